// Long work in steps, so that the event loop runs between them. A list over many entities, or a type with very many
// attributes, asks a `Pace` regularly whether its step is over.
//
// A step is measured in time: the duration of a piece of work differs by a factor of a thousand between entities.

/** The clock and the way to the event loop: part of `Clock` (ports.ts). */
export interface Ticks {
  monoMs(): number
  endOfTick(run: () => void): void
}

/** The duration of a step, without its last piece of work. */
const stepMs = 5

export class Pace {
  private readonly ticks: Ticks
  /** The last time when the event loop ran. */
  private sinceMs: number
  private readonly endMs: number

  /** `deadlineMs`: the limit for all steps together. */
  constructor(ticks: Ticks, deadlineMs = Number.POSITIVE_INFINITY) {
    this.ticks = ticks
    this.sinceMs = ticks.monoMs()
    this.endMs = this.sinceMs + deadlineMs
  }

  /** Whether the event loop should run now. */
  get isOver(): boolean {
    return this.ticks.monoMs() - this.sinceMs >= stepMs
  }

  /** Whether the time for all steps was over when this one began. */
  get isLate(): boolean {
    return this.sinceMs > this.endMs
  }

  /** Lets the event loop run. */
  async breathe(): Promise<void> {
    await new Promise<void>(resolve => this.ticks.endOfTick(resolve))
    this.sinceMs = this.ticks.monoMs()
  }
}

/** Elements that are sorted, or merged, between two checks of the time. */
const piece = 1_024

/** Sorts the elements; equal ones keep their order. */
export async function sorted<T>(elements: readonly T[], compare: (a: T, b: T) => number, pace: Pace): Promise<T[]> {
  let runs: T[][] = []
  for (let from = 0; from < elements.length; from += piece) {
    runs.push(elements.slice(from, from + piece).sort(compare))
    if (pace.isOver) await pace.breathe()
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let at = 0; at < runs.length; at += 2) {
      const second = runs[at + 1]
      merged.push(second ? await merge(runs[at]!, second, compare, pace) : runs[at]!)
    }
    runs = merged
  }
  return runs[0] ?? []
}

async function merge<T>(
  first: readonly T[],
  second: readonly T[],
  compare: (a: T, b: T) => number,
  pace: Pace,
): Promise<T[]> {
  const all: T[] = []
  let a = 0
  let b = 0
  while (a < first.length && b < second.length) {
    all.push(compare(second[b]!, first[a]!) < 0 ? second[b++]! : first[a++]!)
    if (all.length % piece === 0 && pace.isOver) await pace.breathe()
  }
  while (a < first.length) all.push(first[a++]!)
  while (b < second.length) all.push(second[b++]!)
  return all
}
