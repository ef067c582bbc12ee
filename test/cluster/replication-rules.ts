// The rules of a simulated node that can be switched off, to see that they matter (replication-controls.ts).

import type { ShardLog } from '../../cluster/logs/shard-log.js'
import type { ShardHost } from '../../cluster/replication/shard-host.js'
import type { Replication } from '../../src/shard/replicate/replication.js'

export interface NodeRules {
  /** Reads are answered under a lease only. */
  readonly leases: boolean
  /** Wraps the log of a node. */
  readonly log: (log: ShardLog, owner: string) => ShardLog
  /** Wraps the shards of a node; `later` runs a function when the call has returned. */
  readonly host: (host: ShardHost, later: (run: () => void) => void) => ShardHost
  /** Wraps the appends of a node's shards. */
  readonly replication: (replication: Replication) => Replication
  /** A change of the register is acknowledged only when no owner decides without it. */
  readonly barriers: boolean
  /** An append checks the latest takeover. */
  readonly fenced: boolean
}

export const allRules: NodeRules = {
  leases: true,
  log: log => log,
  host: host => host,
  replication: replication => replication,
  barriers: true,
  fenced: true,
}

/** A log that does most as the given one does. */
export const but = (log: ShardLog, change: Partial<ShardLog>): ShardLog => ({
  takeOver: (shard, owner, onDone) => log.takeOver(shard, owner, onDone),
  retake: (shard, epoch, owner, onDone) => log.retake(shard, epoch, owner, onDone),
  append: (appends, onDone) => log.append(appends, onDone),
  heartbeat: (heartbeat, onDone) => log.heartbeat(heartbeat, onDone),
  read: (shard, after, bytesMax, onDone) => log.read(shard, after, bytesMax, onDone),
  takeovers: onDone => log.takeovers(onDone),
  follow: (wanted, follower) => log.follow(wanted, follower),
  trim: (shard, upTo) => log.trim(shard, upTo),
  lacking: (ends, onDone) => log.lacking(ends, onDone),
  named: (name, onDone) => log.named(name, onDone),
  keepHistory: isOn => log.keepHistory(isOn),
  createOnce: (name, value, onDone) => log.createOnce(name, value, onDone),
  close: () => log.close(),
  appendsMax: log.appendsMax,
  appendBytesMax: log.appendBytesMax,
  ...change,
})

/** Shards that do most as the given ones do. */
export const hostBut = (host: ShardHost, change: Partial<ShardHost>): ShardHost => ({
  position: shard => host.position(shard),
  apply: (shard, payloads, position, onDone) => host.apply(shard, payloads, position, onDone),
  activate: (shard, onDone) => host.activate(shard, onDone),
  seal: (shard, onDone) => host.seal(shard, onDone),
  snapshot: (shard, after, bytesMax, onDone) => host.snapshot(shard, after, bytesMax, onDone),
  install: (shard, rows, isFirst, onDone) => host.install(shard, rows, isFirst, onDone),
  drop: (shard, onDone) => host.drop(shard, onDone),
  sync: onDone => host.sync(onDone),
  requests: shard => host.requests(shard),
  ...change,
})
