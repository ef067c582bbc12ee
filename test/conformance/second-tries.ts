// A case that was lost is run again, alone, before it counts.
//
// Many cases wait for notifications for a time that their author found long enough. On a busy machine it may be too
// short.

import { type Deviation, judge, levels, type Outcome, type Passing, type Verdict } from './verdict.js'

export interface Tried {
  readonly verdict: Verdict
  readonly outcomes: readonly Outcome[]
  /** Cases that passed only when they were run again. */
  readonly second: readonly string[]
}

/** Judges the outcomes of `runCases` with `options`, and runs the lost cases a second time. */
export async function judgedTwice(
  runCases: (options: readonly string[]) => Promise<Outcome[]>,
  options: readonly string[],
  { passing, deviations }: { readonly passing: Passing; readonly deviations: readonly Deviation[] },
): Promise<Tried> {
  const first = await runCases(options)
  const { lost } = judge(passing, first, deviations)
  const ids = [...new Set(levels.flatMap(level => lost[level]))]
  const again = ids.length === 0 ? [] : await runCases(['--only', ids.join(','), '--jobs', '1'])
  const outcomes = first.map(one => again.find(({ id }) => id === one.id) ?? one)
  const second = outcomes.filter((one, at) => one !== first[at] && one.semantic).map(({ id }) => id)
  return { verdict: judge(passing, outcomes, deviations), outcomes, second }
}
