// The metrics of a node of a cluster, about that node alone: whom it sees, what it has of shards, and what the log of the cluster costs it.

import type { MetricFamily, MetricSample } from '../messages/admin.js'
import type { ClusterNumbers } from '../messages/cluster-status.js'
import { byLabel, family, single } from './metric-family.js'

/** All metrics of the node's place in its cluster. */
export function clusterFamilies({ status, log, stalledMs, gossip }: ClusterNumbers): readonly MetricFamily[] {
  const { members, shards } = status
  const logCounts = (
    name: string,
    help: string,
    of: (numbers: ClusterNumbers['log'][number]) => number,
  ): MetricFamily =>
    family(
      `orrery_cluster_log_${name}_total`,
      'counter',
      help,
      log.map(numbers => ({ labels: { kind: numbers.kind }, value: of(numbers) })),
    )
  return [
    family('orrery_cluster_members', 'gauge', 'Nodes that this one knows of.', counted(members, 'status')),
    family(
      'orrery_cluster_shards',
      'gauge',
      'Shards, the register among them, by what this node has.',
      counted(shards, 'copy'),
    ),
    single(
      'orrery_cluster_unowned_shards',
      'gauge',
      'Shards that no node owns.',
      shards.filter(({ owner }) => owner === undefined).length,
    ),
    single(
      'orrery_cluster_lost_shards',
      'gauge',
      'Shards of which the log engine has lost what this node knows.',
      status.log.shards.length,
    ),
    single(
      'orrery_cluster_unready_shards',
      'gauge',
      'Shards that could not answer lately, as far as this node knows.',
      status.health.shards.length,
    ),
    single(
      'orrery_cluster_log_stalled_seconds',
      'gauge',
      'How long the append under way has waited for the engine.',
      stalledMs / 1000,
    ),
    single(
      'orrery_cluster_lag_records',
      'gauge',
      'Records that are known and not applied here, of the shard that has most.',
      Math.max(0, ...shards.map(({ lag }) => lag)),
    ),
    logCounts('requests', 'Requests to the engine of the log.', ({ requests }) => requests),
    logCounts('failures', 'Requests to it without an answer.', ({ failures }) => failures),
    logCounts('records', 'Records in these.', ({ records }) => records),
    logCounts('bytes', 'Bytes of records in these.', ({ bytes }) => bytes),
    logCounts('seconds', 'Time of these.', ({ milliseconds }) => milliseconds / 1000),
    byLabel('orrery_cluster_gossip_bytes_total', 'counter', 'Bytes of gossip.', 'direction', {
      sent: gossip.bytesSent,
      received: gossip.bytesReceived,
    }),
    single(
      'orrery_cluster_gossip_unreadable_total',
      'counter',
      'Messages of gossip that were ignored: no message, or of another version.',
      gossip.messagesUnreadable,
    ),
    byLabel(
      'orrery_cluster_undecodable_total',
      'counter',
      'Messages that could not be read, by the node that sent them.',
      'node',
      Object.fromEntries(
        members.filter(({ name }) => name !== status.node).map(({ name, undecodable }) => [name, undecodable]),
      ),
    ),
    single('orrery_cluster_suspicions_total', 'counter', 'Nodes that did not answer.', gossip.suspicions),
  ]
}

function counted<K extends string>(all: readonly Readonly<Record<K, string>>[], by: K): readonly MetricSample[] {
  const counts = new Map<string, number>()
  for (const one of all) counts.set(one[by], (counts.get(one[by]) ?? 0) + 1)
  return [...counts].map(([word, value]) => ({ labels: { [by]: word }, value }))
}
