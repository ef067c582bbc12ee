// Chooses, among several copies of a shard whose log is gone, the one to continue with.
//
// The positions are all that is known of the copies. Positions of one log agree: those of the same record have the same
// hash, and a later record has no lower epoch. Two copies that contradict each other have followed different logs, such
// as an engine with an older backup that some nodes continued with. Then at most one of them is right. A copy is refused
// when more copies agree with one that contradicts it, and the furthest of the others is taken. Where as many copies
// agree with either, only the operator can decide.
//
// Not here: the logs that begin with the chosen copies (founding.ts).

import type { LogPosition } from './shard-host.js'

export type CopyChoice =
  | {
      readonly kind: 'taken'
      readonly position: LogPosition
      /** Which of the given copies are at this position. */
      readonly holders: readonly number[]
      /** Which of them contradict it. The others are behind. */
      readonly refused: readonly number[]
    }
  /** There is no copy at all. */
  | { readonly kind: 'missing' }
  /** The furthest copies contradict each other, and none has a majority. */
  | { readonly kind: 'undecided' }

/** `copies`: their positions; undefined where there is no whole copy. */
export function chooseCopy(copies: readonly (LogPosition | undefined)[]): CopyChoice {
  const known = copies.flatMap((position, at) => (position ? [{ at, position }] : []))
  if (known.length === 0) return { kind: 'missing' }
  const contradicting = (position: LogPosition): Known[] => known.filter(one => !agree(one.position, position))
  const votes = (position: LogPosition): number => known.length - contradicting(position).length
  const furthestFirst = known.toSorted((a, b) => b.position.sequence - a.position.sequence)
  for (const { position } of furthestFirst) {
    const refused = contradicting(position)
    const most = Math.max(0, ...refused.map(one => votes(one.position)))
    if (most > votes(position)) continue
    if (most === votes(position)) return { kind: 'undecided' }
    const holders = known.filter(one => isSamePosition(one.position, position))
    return { kind: 'taken', position, holders: holders.map(({ at }) => at), refused: refused.map(({ at }) => at) }
  }
  return { kind: 'undecided' }
}

interface Known {
  readonly at: number
  readonly position: LogPosition
}

/** Whether both are positions of one log, as far as they show it. */
function agree(a: LogPosition, b: LogPosition): boolean {
  if (a.sequence === b.sequence) return isSamePosition(a, b)
  return a.sequence < b.sequence ? a.epoch <= b.epoch : a.epoch >= b.epoch
}

/** Whether two positions are those of the same record of the same log: then their copies are alike. */
export const isSamePosition = (a: LogPosition, b: LogPosition): boolean =>
  a.sequence === b.sequence && a.epoch === b.epoch && a.hash.equals(b.hash)
