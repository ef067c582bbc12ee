// The filters that one holder of streams has registered at this owner, and its poll that waits.

import type { ChangeFilter } from '../../domain/streams/change-filter.js'
import type { RefusedFilter, StreamPoll, StreamReply } from '../../messages/streams.js'

/** A filter with the holder that wants its changes. */
export interface OwnedFilter extends ChangeFilter {
  readonly holder: Holder
  readonly number: number
}

/** A poll that waits for changes. */
export interface WaitingPoll {
  readonly step: StreamPoll
  readonly onReply: (reply: StreamReply) => void
  readonly untilMs: number
  /** Changes up to this position are not for this holder. */
  seen: number
}

export class Holder {
  /** The number of changes of its filters that were made. */
  revision = 0
  readonly filters = new Map<number, OwnedFilter>()
  poll: WaitingPoll | undefined
  /** The revision since which everything that was staged at its arrival is durable. */
  durable = 0
  /** The same, and the holder has its changes. */
  settled = 0
  /** New filters for which there was no room; the next answer reports them. */
  refused: RefusedFilter[] = []
  /** Its filters go when it has not polled until then. */
  leaseUntilMs = 0

  constructor(readonly name: string) {}
}
