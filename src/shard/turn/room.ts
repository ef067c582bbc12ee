// What is refused for want of room on the disk (docs/operations/full-disk.md).
//
// A turn asks after it has decided: a client whose request would be refused anyway is told that reason, and a request
// that changes nothing needs no room. Deletions go on, because they are how a client makes room.
//
// Not here: how much room there is (storage/disk-watch.ts).

import { type Refusal, refusals } from '../../domain/refusal.js'
import type { DiskRoom } from '../../ports.js'

/** Of a disk that nobody watches. */
export const ampleRoom: DiskRoom = {
  isShort: false,
  isScarce: false,
  isExhausted: false,
  freeBytes: Number.POSITIVE_INFINITY,
  reserveBytes: 0,
  afterScarce: run => run(),
}

/** Why a change cannot be made now; undefined when it can. */
export function refusalForRoom(room: DiskRoom, isDeletion: boolean): Refusal | undefined {
  const isRefused = isDeletion ? room.isExhausted : room.isShort
  return isRefused ? refusals.noRoom(room.freeBytes, room.reserveBytes) : undefined
}
