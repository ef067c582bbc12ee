// How a node gets a copy of a shard that it cannot make from the log alone: page by page from a node that has one.
//
// The source reads pages at different moments while the shard changes. The copy is right nevertheless: the node then
// follows the log from the source's position before the first page. Records contain rows, not differences, so they
// correct every row that a page has too early or too late. Every page must have been read no earlier in the log than
// that position.
//
// A log that still has its first record needs no snapshot.

import type { ShardLog } from '../logs/shard-log.js'
import { beginning } from './log-record.js'
import { decodePeerReply, encodePeerMessage, positionFrom } from './peer-messages.js'
import { isUnreadable, type LogPosition, type ShardHost } from './shard-host.js'

export interface FetchParts {
  readonly log: Pick<ShardLog, 'read'>
  readonly host: Pick<ShardHost, 'install' | 'drop' | 'apply'>
  /** Asks the source node; undefined: no answer. */
  readonly ask: (request: Buffer, onReply: (reply: Buffer | undefined) => void) => void
  /** The node has sent a page that the host cannot read. */
  readonly onUnreadable: (reason: string) => void
}

/**
 * Fetches a shard. Returns the position from which to follow its log, or the reason why there is none now. A failure of
 * the host is an error.
 */
export function fetchShard(
  shard: number,
  parts: FetchParts,
  onDone: (outcome: LogPosition | string | Error) => void,
): void {
  const { log, host } = parts
  log.read(shard, 0, 1, outcome => {
    if (outcome.kind === 'unknown') return onDone(outcome.reason)
    const isWhole = outcome.last === 0 || outcome.records[0]?.sequence === 1
    if (!isWhole) return fetchPage(shard, parts, undefined, '', onDone)
    host.drop(shard, failure => {
      if (failure) onDone(failure)
      else settle(shard, parts, beginning, onDone)
    })
  })
}

function fetchPage(
  shard: number,
  parts: FetchParts,
  base: LogPosition | undefined,
  after: string,
  onDone: (outcome: LogPosition | string | Error) => void,
): void {
  parts.ask(encodePeerMessage({ kind: 'snapshot', shard, after }), reply => {
    const page = reply && decodePeerReply(reply)
    if (page?.message.kind !== 'page')
      return onDone(page?.message.kind === 'refused' ? page.message.reason : 'no answer')
    const { position, next } = page.message
    const from = base ?? positionFrom(position)
    if (position.sequence < from.sequence) return onDone('the source of a snapshot has gone back')
    parts.host.install(shard, page.bytes, base === undefined, failure => {
      if (failure && isUnreadable(failure)) {
        // Another node, or this one once it is upgraded, may send one that can be read.
        parts.onUnreadable(failure.message)
        onDone(failure.message)
      } else if (failure) onDone(failure)
      else if (next !== undefined) fetchPage(shard, parts, from, next, onDone)
      else settle(shard, parts, from, onDone)
    })
  })
}

/** From now on the store has a copy, up to the position. */
function settle(
  shard: number,
  { host }: FetchParts,
  position: LogPosition,
  onDone: (outcome: LogPosition | Error) => void,
): void {
  host.apply(shard, [], position, failure => onDone(failure ?? position))
}
