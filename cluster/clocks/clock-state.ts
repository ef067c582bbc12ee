// Whether the wall clock of this node is close enough to those of the others: one pure function.
//
// Clocks are compared by their origins (peer-origin.ts). The reference is the median of all clocks, our own included.
// With an even number of clocks it is the earlier one of the two in the middle: nothing shows which of two clocks is
// wrong, and the one ahead does the harm. It removes entities before their time, and its stamps hold those of others
// back. A clock behind only makes both late.
//
// Of the range that contains another clock's origin, the value nearest to our own clock counts. So a slow network never
// makes a clock wrong.
//
// A difference has to last before it counts, because a suspended machine, or a clock that was set, looks wrong until
// the next round trips, and because the nodes with the right time may be out of reach for a moment. The first
// comparison counts at once: a node must not take shards before it.

import type { OriginRange } from './peer-origin.js'

/**
 * `unknown`: it could not be compared. `close`: it is within `skewMaxMs` of the reference. `apart`: it is further away,
 * or there is no majority and half of the clocks are further away. `unsafe`: it is so far away that the node takes no
 * shards.
 */
export type ClockVerdict = 'unknown' | 'close' | 'apart' | 'unsafe'

export interface ClockState {
  readonly verdict: ClockVerdict
  /** How far our clock is ahead of the reference; below 0: behind. 0 if unknown. */
  readonly aheadMs: number
  /** The origin of the reference; undefined: unknown. */
  readonly originMs: number | undefined
  /** Whether it was compared before. The first comparison counts at once. */
  readonly wasCompared: boolean
  /** When our clock began to look worse than `verdict`, on our monotonic clock; undefined: it does not. */
  readonly worseSinceMs: number | undefined
}

export const clockUnknown: ClockState = {
  verdict: 'unknown',
  aheadMs: 0,
  originMs: undefined,
  wasCompared: false,
  worseSinceMs: undefined,
}

/** Beyond so many times `skewMaxMs` a clock is unsafe. */
export const unsafeFactor = 4
/** Within so much of `skewMaxMs` a clock that was apart is close again. */
const closeAgain = 0.8
/** How long a clock looks worse before it counts as worse: longer than all round trips take that are kept. */
export const worseMs = 3_000

const severity: Readonly<Record<ClockVerdict, number>> = { unknown: 0, close: 1, apart: 2, unsafe: 3 }

export interface ClockReadings {
  readonly monoMs: number
  /** The origin of our own wall clock. */
  readonly ownMs: number
  /** The ranges of the nodes that can be reached. */
  readonly others: readonly OriginRange[]
  readonly skewMaxMs: number
}

/** The state after a look at the clocks. */
export function nextClockState(before: ClockState, readings: ClockReadings): ClockState {
  const { monoMs, ownMs, skewMaxMs } = readings
  const compared = compare(before, readings)
  if (!compared) return { ...clockUnknown, wasCompared: before.wasCompared }
  const { originMs, furthestMs } = compared
  const aheadMs = ownMs - originMs
  const found = verdictOf(before.verdict, Math.abs(aheadMs), furthestMs, skewMaxMs)
  const isWorse = severity[found] >= severity.apart && severity[found] > severity[before.verdict]
  const worseSinceMs = before.worseSinceMs ?? monoMs
  const waits = isWorse && before.wasCompared && monoMs - worseSinceMs < worseMs
  const latest = { aheadMs, originMs, wasCompared: true }
  return waits
    ? { ...latest, verdict: before.verdict, worseSinceMs }
    : { ...latest, verdict: found, worseSinceMs: undefined }
}

/**
 * The origin of the reference, and how far the furthest of the clocks in the middle is away. A node that can reach no
 * other keeps the reference while its clock is wrong, so a wrong clock does not become right when the others fail.
 */
function compare(
  before: ClockState,
  { ownMs, others }: ClockReadings,
): { readonly originMs: number; readonly furthestMs: number } | undefined {
  if (others.length === 0) {
    if (severity[before.verdict] < severity.apart || before.originMs === undefined) return undefined
    return { originMs: before.originMs, furthestMs: Math.abs(ownMs - before.originMs) }
  }
  const nearest = others.map(({ earliestMs, latestMs }) => Math.min(Math.max(ownMs, earliestMs), latestMs))
  const origins = [ownMs, ...nearest].sort((a, b) => a - b)
  const originMs = origins[(origins.length - 1) >> 1]!
  const laterMs = origins[origins.length >> 1]!
  return { originMs, furthestMs: Math.max(Math.abs(ownMs - originMs), Math.abs(ownMs - laterMs)) }
}

function verdictOf(before: ClockVerdict, distanceMs: number, furthestMs: number, skewMaxMs: number): ClockVerdict {
  if (distanceMs > (before === 'unsafe' ? 1 : unsafeFactor) * skewMaxMs) return 'unsafe'
  const wasWrong = severity[before] >= severity.apart
  return furthestMs > (wasWrong ? closeAgain : 1) * skewMaxMs ? 'apart' : 'close'
}
