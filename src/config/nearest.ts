// Finds the known word that is most likely meant by an unknown one.

/**
 * Typing errors allowed in a word of this length: one in four characters, at least one. None in a word of one or two
 * characters, which would be near to everything.
 */
const errorsMax = (length: number): number => (length < 3 ? 0 : Math.max(1, Math.floor(length / 4)))

/** The word with the fewest typing errors, ignoring case; undefined: none is near. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  const meant = word.toLowerCase()
  let best: string | undefined
  let fewest = errorsMax(meant.length) + 1
  for (const one of words) {
    if (Math.abs(one.length - meant.length) >= fewest) continue
    const errors = distanceBetween(meant, one.toLowerCase())
    if (errors < fewest) {
      best = one
      fewest = errors
    }
  }
  return best
}

/** `; did you mean X?`, or nothing. `shown` turns the word into its displayed form. */
export function didYouMean(word: string, words: readonly string[], shown = (near: string): string => near): string {
  const near = nearest(word, words)
  return near === undefined ? '' : `; did you mean ${shown(near)}?`
}

/**
 * The Damerau-Levenshtein distance with adjacent transpositions: the number of missing, additional, wrong, or swapped
 * characters.
 */
function distanceBetween(a: string, b: string): number {
  let twoUp: number[] = []
  let up = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const line = [row]
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      const isExchanged = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      line.push(
        Math.min(
          up[column]! + 1,
          line[column - 1]! + 1,
          up[column - 1]! + (isSame ? 0 : 1),
          isExchanged ? twoUp[column - 2]! + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
    twoUp = up
    up = line
  }
  return up[b.length]!
}
