// A node of a cluster in a process of its own, which keeps counters (counting-host.ts) over a real etcd. A test sends
// it requests over its channel.
//
// The disk of these nodes is their memory: a process that ends loses it, and the next one fetches its shards.

import { type ClusterNode, startClusterNode } from '../../cluster/cluster-node.js'
import { openEtcdLog } from '../../cluster/logs/etcd-log.js'
import type { EtcdAddress } from '../../cluster/logs/etcd-options.js'
import type { ReplicationOptions } from '../../cluster/replication/replication-options.js'
import { systemClock } from '../../src/clock.js'
import { type Counter, CountingHost } from './counting-host.js'

export interface CountingSetting {
  readonly name: string
  readonly life: string
  readonly listen: string
  readonly seeds: readonly string[]
  readonly etcd: EtcdAddress
  readonly shards: number
  readonly options: Partial<ReplicationOptions>
}

export type CountingOrder =
  | { readonly kind: 'start'; readonly setting: CountingSetting }
  | {
      readonly kind: 'raise' | 'read'
      readonly number: number
      readonly shard: number
      readonly entity: string
      readonly by: string
    }
  | { readonly kind: 'status'; readonly number: number }
  | { readonly kind: 'drain'; readonly number: number }

export type CountingAnswer =
  | { readonly kind: 'ready'; readonly address: string }
  | { readonly kind: 'done'; readonly number: number; readonly counter: Counter | undefined }
  /** `refused`: the operation certainly did not happen. */
  | { readonly kind: 'refused' | 'unknown'; readonly number: number }
  | {
      readonly kind: 'status'
      readonly number: number
      readonly owned: readonly number[]
      readonly members: readonly string[]
      /** The members to which there are links. */
      readonly linked: readonly string[]
    }
  | { readonly kind: 'failed'; readonly reason: string }

/** A request from one node to the host of another. */
interface CountingRequest {
  readonly kind: 'raise' | 'read'
  readonly entity: string
  readonly by: string
}

const host = new CountingHost(run => void setImmediate(run))
let node: ClusterNode | undefined

const say = (answer: CountingAnswer): void => {
  if (process.connected) process.send!(answer)
}

function fail(error: Error): void {
  say({ kind: 'failed', reason: error.message })
  process.exit(1)
}

/** Replies; returns false if the node does not own the shard. */
function perform(
  shard: number,
  { kind, entity, by }: CountingRequest,
  onReply: (counter: Counter | undefined) => void,
): boolean {
  if (!node?.replicator.serves(shard) || !host.isActive(shard)) return false
  if (kind === 'raise') host.raise(shard, entity, by, counter => onReply(counter))
  else host.read(shard, entity, onReply)
  return true
}

async function start(setting: CountingSetting): Promise<void> {
  const { etcd, options, ...rest } = setting
  const log = openEtcdLog(etcd, 'test', systemClock)
  node = await startClusterNode(
    {
      ...rest,
      domain: '',
      spread: 1,
      clusterId: 'test',
      logs: [log],
      clock: systemClock,
      chance: Math.random,
      replicationOptions: options,
      onTrouble: trouble => process.stderr.write(`${setting.name}: ${trouble}\n`),
      onFailure: fail,
    },
    host,
    {
      onAsk: (shard, request, onReply) => {
        const asked = JSON.parse(Buffer.from(request).toString()) as CountingRequest
        const isDone = perform(shard, asked, counter => onReply(Buffer.from(JSON.stringify({ counter }))))
        if (!isDone) onReply(Buffer.from('{"refused":true}'))
      },
    },
  )
  host.begin(node.replicator, fail)
  node.begin()
  say({ kind: 'ready', address: node.address })
}

function operate(order: Extract<CountingOrder, { kind: 'raise' | 'read' }>): void {
  const { number, shard } = order
  const refuse = (): void => say({ kind: 'refused', number })
  const owner = node?.replicator.ownerOf(shard)
  if (!node || owner === undefined) return refuse()
  if (perform(shard, order, counter => say({ kind: 'done', number, counter }))) return
  if (node.members()[0]?.name === owner) return refuse()
  node.ask(owner, shard, Buffer.from(JSON.stringify(order)), outcome => {
    if (outcome.kind === 'unavailable') return refuse()
    if (outcome.kind === 'unknown') return say({ kind: 'unknown', number })
    const { counter, refused } = JSON.parse(outcome.reply.toString()) as { counter?: Counter; refused?: true }
    if (refused) refuse()
    else say({ kind: 'done', number, counter })
  })
}

process.on('message', (order: CountingOrder) => {
  switch (order.kind) {
    case 'start':
      start(order.setting).catch(fail)
      return
    case 'raise':
    case 'read':
      return operate(order)
    case 'status': {
      const owned = [...(node?.replicator.standings() ?? [])].filter(({ phase }) => phase === 'active')
      const all = node?.members() ?? []
      const members = all.map(({ name, status, isJoined }) => `${name} ${status} ${isJoined}`)
      const linked = all.flatMap(({ name }) => (node?.statsOf(name) ? name : []))
      return say({ kind: 'status', number: order.number, owned: owned.map(({ shard }) => shard), members, linked })
    }
    case 'drain':
      void node?.drain(10_000).then(async () => {
        await node?.close()
        say({ kind: 'done', number: order.number, counter: undefined })
        process.exit(0)
      })
  }
})
process.once('disconnect', () => process.exit())
