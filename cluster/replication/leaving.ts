// Checks that an unused store has everything that a cluster has acknowledged. This must be certain before its content
// moves elsewhere.
//
// A change is acknowledged once its record is in the log of its shard. So a copy has everything if no log holds a whole
// step behind the copy's position, and if no node is running that could append one. A running node that owns shards
// proves that by its heartbeats.
//
// Nothing is written: the cluster is not changed.

import type { LogReading, LogRecord, ShardLog } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { answered, type FoundingOptions, foundingOptionsDefault } from './founding.js'
import { decodeRecord } from './log-record.js'
import { replicationOptionsDefault } from './replication-options.js'
import type { LogPosition } from './shard-host.js'

/**
 * The shards whose logs hold more than these positions. Rejects with a sentence for the operator when the engine does
 * not answer.
 */
export async function findBehind(
  positions: ReadonlyMap<number, LogPosition>,
  log: Pick<ShardLog, 'read'>,
  clock: Pick<ClusterClock, 'after'>,
  options: FoundingOptions = foundingOptionsDefault,
): Promise<readonly number[]> {
  const behind: number[] = []
  for (const [shard, { sequence }] of positions) {
    let after = sequence
    for (;;) {
      const { last, records } = await answered<LogReading>(
        onDone => log.read(shard, after, replicationOptionsDefault.pageBytesMax, onDone),
        clock,
        options,
      )
      if (last <= after) break
      if (!areBegun(records, after)) {
        behind.push(shard)
        break
      }
      after = records.at(-1)!.sequence
    }
  }
  return behind
}

/**
 * Whether these records only begin a step behind a place, of which nothing was acknowledged. Records that were trimmed
 * or cannot be read may be more.
 */
const areBegun = (records: readonly LogRecord[], after: number): boolean =>
  records[0]?.sequence === after + 1 && records.every(({ bytes }) => decodeRecord(bytes)?.fragment.continues === true)

/**
 * The nodes that own shards and append, as far as the log reports within two heartbeats. Needs a log without another
 * follower.
 */
export async function findLiving(
  log: Pick<ShardLog, 'follow'>,
  clock: Pick<ClusterClock, 'after'>,
  heartbeatMs = replicationOptionsDefault.heartbeatMs,
): Promise<readonly string[]> {
  const living = new Set<string>()
  log.follow(() => false, {
    onHeartbeat: node => void living.add(node),
    onRecord: () => {},
    onTakeover: () => {},
    onGap: () => {},
  })
  await new Promise<void>(resolve => clock.after(heartbeatMs * 2 + startMs, resolve))
  return [...living].sort()
}

/** How long following may take to begin. */
const startMs = 1000
