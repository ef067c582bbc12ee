// Trace levels: which of the lines at DEBUG are written, as sets of numbers from 0 to 255 and as the text that operators write
// (operations.md §5.2).
//
// A text is a comma list of levels and of ranges with both ends included. Rendering gives the shortest such list, in order.
//
// Not here: what is traced at which level (README, "Logs").

export type TraceLevels = ReadonlySet<number>

export const noTraces: TraceLevels = new Set()

export const traceLevelMax = 255

/** The levels of a text such as `60,80-90`; undefined when it is no such list. */
export function parseTraceLevels(text: string): TraceLevels | undefined {
  const levels = new Set<number>()
  for (const range of text.split(',')) {
    const ends = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(range)
    const [from, to] = [Number(ends?.[1]), Number(ends?.[2] ?? ends?.[1])]
    if (!ends || from > to || to > traceLevelMax) return undefined
    for (let level = from; level <= to; level++) levels.add(level)
  }
  return levels
}

/** The levels as a text: `19, 21-25`; '' for none. */
export function renderTraceLevels(levels: TraceLevels): string {
  const ranges: string[] = []
  for (let level = 0; level <= traceLevelMax; level++) {
    if (!levels.has(level)) continue
    const from = level
    while (levels.has(level + 1)) level++
    ranges.push(from === level ? `${from}` : `${from}-${level}`)
  }
  return ranges.join(', ')
}

/** The levels without some of them. */
export const withoutTraceLevels = (levels: TraceLevels, gone: TraceLevels): TraceLevels =>
  new Set([...levels].filter(level => !gone.has(level)))
