// Patterns that are slow by design, and texts on which they are slow.

/** A pattern whose table does not fit, another one for each number. */
export const wild = (n: number): string => `[ab]*a[ab]{30}${String.fromCharCode(0x100 + n)}?$`

let state = 1
/** The same texts in every run. */
export const random = (length: number): string =>
  Array.from({ length }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state & 65_536 ? 'a' : 'b'
  }).join('')
