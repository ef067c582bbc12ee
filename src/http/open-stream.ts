// An open stream, whatever its transport, and what every stream needs (docs/interface/live.md).

import type { StreamEvent } from '../broker/streams/stream-event.js'
import type { StreamHub } from '../broker/streams/stream-hub.js'
import type { AuditTrail, Clock } from '../ports.js'
import type { AccessGuard } from './access-guard.js'
import type { StreamsOfTenants } from './streams-of-tenants.js'

export type StreamTransport = 'sse' | 'websocket'

/** Why a stream has ended, for counters. `error`: the client has broken the protocol. */
export type ClosedBy = 'client' | 'slow' | 'stopping' | 'refused' | 'error'

/** Why a stream ends, as its reader sees it. */
export type EndReason = 'stopping' | 'too slow' | 'limit' | 'token over'

/** Counts streams. */
export interface StreamCounts {
  begin(transport: StreamTransport): void
  end(transport: StreamTransport, by: ClosedBy): void
  event(kind: string): void
  fold(count: number): void
  /** Sets the source of the number of characters that wait for readers. */
  watch(waiting: () => number): void
}

export interface StreamParts {
  readonly hub: StreamHub
  /** Open streams of this node (`-maxStreams`); 0: streams are off. */
  readonly streamsMax: number
  /** Bytes of one message (`-inReqPayloadMaxSize`). */
  readonly messageBytesMax: number
  readonly clock: Pick<Clock, 'after' | 'wallMs'>
  readonly tallies: StreamCounts
  /** undefined: there is no access control. */
  readonly access?: AccessGuard | undefined
  /** undefined: there is no audit log. */
  readonly audit?: AuditTrail | undefined
  /** undefined: the streams of tenants are not limited. */
  readonly ofTenants?: StreamsOfTenants | undefined
  /** Whether the node is about to end. */
  readonly isEnding: () => boolean
}

export interface OpenStream {
  /** Ends the stream with an event that gives the reason. */
  end(reason: EndReason, by: ClosedBy): void
  /** Ends it, if the present access file allows its reader less than it reads. */
  lookAtRights(): void
}

/** A proxy may close a connection on which nothing is sent: while there are no events, an empty comment is. */
export const silenceMsMax = 10_000
export const silence = ':\n\n'

/** How long the owners of shards may take to learn a filter. */
export const beginMsMax = 10_000
export const filterUnknown = 'not all owners of shards know the filter'

export const endEvent = (reason: EndReason): StreamEvent => ({
  kind: 'end',
  cursor: undefined,
  data: JSON.stringify({ reason }),
})
