// The metrics of a node of a cluster, about that node alone: whom it sees, what it has of shards, and what the log of the cluster costs it.

import type { Family, Labels, Sample } from '../domain/exposition.js'
import type { ClusterNumbers } from '../ports.js'

/** All metrics of the node's place in its cluster. */
export function clusterFamilies({ status, log, stalledMs, gossip }: ClusterNumbers): readonly Family[] {
  const { members, shards } = status
  const logCounts = (name: string, help: string, of: (numbers: ClusterNumbers['log'][number]) => number): Family =>
    family(
      `orrery_cluster_log_${name}_total`,
      'counter',
      help,
      log.map(numbers => sample({ kind: numbers.kind }, of(numbers))),
    )
  return [
    family('orrery_cluster_members', 'gauge', 'Nodes that this one knows of.', counted(members, 'status')),
    family(
      'orrery_cluster_shards',
      'gauge',
      'Shards, the register among them, by what this node has.',
      counted(shards, 'copy'),
    ),
    family('orrery_cluster_unowned_shards', 'gauge', 'Shards that no node owns.', [
      sample({}, shards.filter(({ owner }) => owner === undefined).length),
    ]),
    family('orrery_cluster_lost_shards', 'gauge', 'Shards of which the log engine has lost what this node knows.', [
      sample({}, status.log.shards.length),
    ]),
    family(
      'orrery_cluster_unready_shards',
      'gauge',
      'Shards that could not answer lately, as far as this node knows.',
      [sample({}, status.health.shards.length)],
    ),
    family('orrery_cluster_log_stalled_seconds', 'gauge', 'How long the append under way has waited for the engine.', [
      sample({}, stalledMs / 1000),
    ]),
    family(
      'orrery_cluster_lag_records',
      'gauge',
      'Records that are known and not applied here, of the shard that has most.',
      [sample({}, Math.max(0, ...shards.map(({ lag }) => lag)))],
    ),
    logCounts('requests', 'Requests to the engine of the log.', ({ requests }) => requests),
    logCounts('failures', 'Requests to it without an answer.', ({ failures }) => failures),
    logCounts('records', 'Records in these.', ({ records }) => records),
    logCounts('bytes', 'Bytes of records in these.', ({ bytes }) => bytes),
    logCounts('seconds', 'Time of these.', ({ milliseconds }) => milliseconds / 1000),
    family('orrery_cluster_gossip_bytes_total', 'counter', 'Bytes of gossip.', [
      sample({ direction: 'sent' }, gossip.bytesSent),
      sample({ direction: 'received' }, gossip.bytesReceived),
    ]),
    family('orrery_cluster_suspicions_total', 'counter', 'Nodes that did not answer.', [sample({}, gossip.suspicions)]),
  ]
}

function counted<K extends string>(all: readonly Readonly<Record<K, string>>[], by: K): readonly Sample[] {
  const counts = new Map<string, number>()
  for (const one of all) counts.set(one[by], (counts.get(one[by]) ?? 0) + 1)
  return [...counts].map(([word, count]) => sample({ [by]: word }, count))
}

const sample = (labels: Labels, value: number): Sample => ({ labels, value })

const family = (name: string, type: Family['type'], help: string, samples: readonly Sample[]): Family => ({
  name,
  type,
  help,
  join: 'sum',
  samples,
})
