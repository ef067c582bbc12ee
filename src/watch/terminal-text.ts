// Texts of strangers on a terminal: without characters that control it, and in columns.
//
// A value may contain any character. Some would move the cursor, recolour the screen, or reverse the direction of what
// follows: control characters (ESC among them), format characters (bidirectional marks, zero-width ones), separators of
// lines, and halves of surrogate pairs. They are written as JSON escapes instead. In JSON text such an escape means the
// same, so a program that reads the output gets the same values.
//
// Pure. Widths are those of common terminals, without a table for each of them: a caller that needs a line to stay a
// single one switches wrapping off as well.

const controls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** The text with an escape such as `\u001b` in place of each character that could control a terminal. */
export function visible(text: string): string {
  return text.replace(controls, character =>
    Array.from({ length: character.length }, (_, at) => escapeOf(character.charCodeAt(at))).join(''),
  )
}

const escapeOf = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`

/** Marks that stand on the character before them. */
const marks = /[\p{Mn}\p{Me}]/u
/** Characters of East Asian scripts, and pictures: they take two columns. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
const plain = /^[\x20-\x7e]*$/

/** Columns that the text takes on a terminal. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const character of text) width += columnsOf(character)
  return width
}

const columnsOf = (character: string): number => (marks.test(character) ? 0 : wide.test(character) ? 2 : 1)

/** The beginning of the text that fits so many columns, with `…` at its end if it is not the whole text. */
export function clipped(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  let kept = ''
  let width = 0
  for (const character of text) {
    width += columnsOf(character)
    if (width > columns - 1) break
    kept += character
  }
  return columns > 0 ? `${kept}…` : ''
}

/** The text with spaces behind it, so that it takes so many columns. */
export const padded = (text: string, columns: number): string => text + ' '.repeat(Math.max(0, columns - widthOf(text)))
