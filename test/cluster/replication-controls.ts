// The rules of replication, each switched off: a simulation that does not notice would prove nothing.
//
// Not here: rules that chance breaks too seldom (replication/takeovers.test.ts, replication/barrier.test.ts).

import type { ShardLog } from '../../cluster/logs/shard-log.js'
import { allRules, but, hostBut, type NodeRules } from './replication-rules.js'

/** Each with the rule that it breaks. */
export const controls: Readonly<Record<string, NodeRules>> = {
  'an append is compared with the latest takeover in one step': { ...allRules, fenced: false },
  'reads are answered under a lease': { ...allRules, leases: false },
  'an append without an answer is not taken for done': {
    ...allRules,
    log: log =>
      but(log, {
        append: (appends, onDone) =>
          log.append(appends, outcome => onDone(outcome.kind === 'unknown' ? { kind: 'appended' } : outcome)),
      }),
  },
  'a shard is handed over when nothing of it is under way any more': {
    ...allRules,
    host: (host, later) =>
      hostBut(host, {
        seal: (shard, onDone) => {
          host.seal(shard, () => {})
          later(onDone)
        },
      }),
  },
  'a write is acknowledged when it is appended, and every one before it': {
    ...allRules,
    log: log =>
      but(log, { append: (appends, onDone) => log.read(appends[0]!.shard, 0, 1, () => early(log, appends, onDone)) }),
  },
  'an append of a shard begins when the one before it has ended': {
    ...allRules,
    replication: replication => ({
      engines: replication.engines,
      engineOf: shard => replication.engineOf(shard),
      append: (parts, onDone) => {
        replication.append(parts, onDone)
        replication.append(parts, () => {})
      },
    }),
  },
  'what is trimmed is on the disks of those that keep it': {
    ...allRules,
    host: (host, later) => hostBut(host, { sync: later }),
  },
  'no more is trimmed than that': {
    ...allRules,
    log: log => but(log, { trim: shard => log.trim(shard, Number.POSITIVE_INFINITY) }),
  },
  'a change of the register is told of when no owner decides without it': { ...allRules, barriers: false },
}

function early(
  log: ShardLog,
  appends: Parameters<ShardLog['append']>[0],
  onDone: Parameters<ShardLog['append']>[1],
): void {
  log.append(appends, () => {})
  onDone({ kind: 'appended' })
}
