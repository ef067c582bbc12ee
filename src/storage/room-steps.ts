// How much room a disk has, as a state with hysteresis (docs/operations/full-disk.md). A pure function: who looks and when is in disk-watch.
//
//   room = what is free + what the reserve file holds - the reserve
//
// So the number does not change when the reserve is given up or made anew: the state cannot flap because of it. All bounds are parts of
// the reserve R:
//
//   state       begins when     ends when       what it means
//   short       room < R        room > 2 R      what needs room is refused
//   scarce      room < R/4      room >= R/2     the reserve is given up, copies of other nodes' shards wait
//   exhausted   free < R/16     free >= R/8     deletions are refused as well, commits wait
//
// The reserve file is there exactly while the room is not scarce. A store without a byte cannot even open, so the file is also given up at
// a start whose room is short.

/** From much room to none; each state includes what those before it mean. */
export const roomStates = ['ample', 'short', 'scarce', 'exhausted'] as const
export type RoomState = (typeof roomStates)[number]

/** What was seen of a disk. */
export interface DiskSight {
  /** Free for this process. */
  readonly freeBytes: number
  /** What the reserve file holds. */
  readonly heldBytes: number
}

/** What is free above the reserve; negative when part of the reserve is in use. */
export const roomOf = ({ freeBytes, heldBytes }: DiskSight, reserveBytes: number): number =>
  freeBytes + heldBytes - reserveBytes

/** The state after a look at the disk. */
export function nextState(before: RoomState, sight: DiskSight, reserveBytes: number): RoomState {
  const room = roomOf(sight, reserveBytes)
  const was = roomStates.indexOf(before)
  // A state that lasts ends at its second bound, another one begins at its first.
  const isLess = (state: RoomState, bytes: number, begins: number, ends: number): boolean =>
    was >= roomStates.indexOf(state) ? bytes < ends : bytes < begins
  if (isLess('exhausted', sight.freeBytes, reserveBytes / 16, reserveBytes / 8)) return 'exhausted'
  if (isLess('scarce', room, reserveBytes / 4, reserveBytes / 2)) return 'scarce'
  // Twice the reserve does not suffice yet: it has to be more.
  return isLess('short', room, reserveBytes, reserveBytes * 2 + 1) ? 'short' : 'ample'
}

/** What is to be done with the reserve file in a state. */
export function reserveStep(state: RoomState, sight: DiskSight, reserveBytes: number): 'keep' | 'give up' | 'make' {
  if (state === 'scarce' || state === 'exhausted') return sight.heldBytes > 0 ? 'give up' : 'keep'
  const hasRoom = roomOf(sight, reserveBytes) >= reserveBytes / 2
  return sight.heldBytes < reserveBytes && hasRoom ? 'make' : 'keep'
}

/** A disk is looked at so often at most, and at least. */
export const lookMsMin = 50
export const lookMsMax = 1_000
/** How fast somebody may fill the disk without this process being late: 1 GB/s, as fast as the disks that servers have. */
const fillBytesPerMsMax = 1_048_576

/** When to look again: before the room can have become short. */
export function lookAfterMs(sight: DiskSight, reserveBytes: number): number {
  const spareBytes = roomOf(sight, reserveBytes) - reserveBytes
  return Math.min(lookMsMax, Math.max(lookMsMin, Math.floor(spareBytes / fillBytesPerMsMax)))
}
