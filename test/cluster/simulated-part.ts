// One of several logs among which the shards are divided, over an engine that keeps those of all.
//
// Each node has a connection for each log, with faults of its own. So one log can be away while the others work.

import assert from 'node:assert/strict'
import { logIndexOf } from '../../cluster/logs/divided-log.js'
import type { ShardLog } from '../../cluster/logs/shard-log.js'
import { but } from './replication-rules.js'

/** The log at an index. It reports nothing of the shards of other logs, and takes no appends for them. */
export function partOf(log: ShardLog, index: number, logs: number): ShardLog {
  const keeps = (shard: number): boolean => logIndexOf(shard, logs) === index
  return but(log, {
    append: (appends, onDone) => {
      assert(
        appends.every(({ shard }) => keeps(shard)),
        'an append has a shard of another log',
      )
      log.append(appends, onDone)
    },
    takeovers: onDone =>
      log.takeovers(outcome => {
        if (outcome.kind === 'unknown') return onDone(outcome)
        onDone({ ...outcome, takeovers: new Map([...outcome.takeovers].filter(([shard]) => keeps(shard))) })
      }),
    follow: (wanted, follower) =>
      log.follow(shard => keeps(shard) && wanted(shard), {
        onRecord: (shard, record) => follower.onRecord(shard, record),
        onTakeover: (shard, takeover) => keeps(shard) && follower.onTakeover(shard, takeover),
        onHeartbeat: (node, bytes) => follower.onHeartbeat(node, bytes),
        onGap: reason => follower.onGap(reason),
      }),
  })
}
