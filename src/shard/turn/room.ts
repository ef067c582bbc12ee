// Refusals because the disk has no room (docs/operations/full-disk.md).
//
// A turn asks after it has decided. So a client whose request would be refused anyway gets that reason, and a request
// that changes nothing needs no room. Deletions are still accepted, because they are how a client makes room.
//
// Not here: how much room there is (storage/disk-watch.ts).

import { type Refusal, refusals } from '../../domain/refusal.js'
import type { DiskRoom } from '../../ports.js'

/** For a disk that is not watched. */
export const ampleRoom: DiskRoom = {
  isShort: false,
  isScarce: false,
  isExhausted: false,
  freeBytes: Number.POSITIVE_INFINITY,
  reserveBytes: 0,
  afterScarce: run => run(),
}

/** The refusal if a change cannot be made now; undefined when it can. */
export function refusalForRoom(room: DiskRoom, isDeletion: boolean): Refusal | undefined {
  const isRefused = isDeletion ? room.isExhausted : room.isShort
  return isRefused ? refusals.noRoom(room.freeBytes, room.reserveBytes) : undefined
}
