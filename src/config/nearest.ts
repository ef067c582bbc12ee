// Of the words that there are, the one that somebody most likely meant.

/**
 * Slips of the pen in a word of this length that still let it be recognized: one in four characters, at least one, and
 * none in a word so short that it would be near to everything.
 */
const slipsMax = (length: number): number => (length < 3 ? 0 : Math.max(1, Math.floor(length / 4)))

/** The word with the fewest slips, whatever its case; undefined: none is near. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  const meant = word.toLowerCase()
  let best: string | undefined
  let fewest = slipsMax(meant.length) + 1
  for (const one of words) {
    if (Math.abs(one.length - meant.length) >= fewest) continue
    const slips = slipsBetween(meant, one.toLowerCase())
    if (slips < fewest) {
      best = one
      fewest = slips
    }
  }
  return best
}

/** `; did you mean X?`, or nothing. `shown` makes of the word what is shown. */
export function didYouMean(word: string, words: readonly string[], shown = (near: string): string => near): string {
  const near = nearest(word, words)
  return near === undefined ? '' : `; did you mean ${shown(near)}?`
}

/**
 * The Damerau-Levenshtein distance with adjacent transpositions: how many characters are missing, too many, wrong, or
 * exchanged with their neighbour.
 */
function slipsBetween(a: string, b: string): number {
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
