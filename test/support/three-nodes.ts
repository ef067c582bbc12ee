// Three nodes of one cluster as processes, and the etcd that keeps their log.
//
// For tests of what clients see: which node is asked must not matter. Their log survives them and no power failure, which makes it fast.

import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterStatus } from '../../src/ports.js'
import { type BrokerProcess, freePort, startBroker, type Teardown } from './broker-process.js'
import { startEtcd } from './etcd.js'
import { HttpClient } from './http-client.js'

/** How long a node may take to start, beside two others, on a machine that is busy. */
const readyWaitMs = 60_000

/** How long shards may take to find their owners then. */
const settleMsMax = 60_000
/** Between two looks. */
const lookMs = 50

/** Syncing the log to the disk proves nothing here. */
const etcdArgs = ['--unsafe-no-fsync']

export interface ThreeNodesOptions {
  /** An existing folder for the data of all four processes. */
  readonly folder: string
  /** Start options of each node besides those of its place. */
  readonly args?: readonly string[]
  /** They stay in the process group of their parent. */
  readonly sharesGroup?: boolean
  /** Where their ports come from; any free ones when absent. */
  readonly nextPort?: () => Promise<number>
}

/** Starts them and waits until each owns its shards and all agree about that; they end with the test. */
export async function startThreeNodes(t: Teardown, options: ThreeNodesOptions): Promise<readonly BrokerProcess[]> {
  const { folder, args = [], sharesGroup = false, nextPort = freePort } = options
  const etcd = await startEtcd(t, { dataDir: folder, args: etcdArgs, nextPort })
  const places: { readonly name: string; readonly listen: string; readonly port: number }[] = []
  for (const name of ['a', 'b', 'c'])
    places.push({ name, listen: `127.0.0.1:${await nextPort()}`, port: await nextPort() })
  const everybody = places.map(({ listen }) => listen).join(',')
  const shardLog = `etcd://${etcd.address().members.join(',')}`
  const nodes = await Promise.all(
    places.map(({ name, listen, port }) => {
      const place = ['-nodeName', name, '-clusterListen', listen, '-clusterJoin', everybody, '-shardLog', shardLog]
      return startBroker(t, { dataDir: join(folder, name), port, args: [...place, ...args], readyWaitMs, sharesGroup })
    }),
  )
  await untilSettled(nodes)
  return nodes
}

/** Waits until all nodes know the same owner of every shard, each node owns some, and nothing has changed between two looks. */
async function untilSettled(nodes: readonly BrokerProcess[]): Promise<void> {
  const clients = nodes.map(({ baseUrl }) => new HttpClient(baseUrl))
  const untilMs = performance.now() + settleMsMax
  let before: string | undefined
  for (;;) {
    const views = await Promise.all(clients.map(async client => (await client.get('/cluster')).json as ClusterStatus))
    const seen = ownersIn(views)
    if (seen !== undefined && seen === before) break
    before = seen
    if (performance.now() > untilMs) throw new Error(`the nodes have not settled\n${nodes.map(node => node.printed())}`)
    await pause(lookMs)
  }
  for (const client of clients) client.close()
}

/** The epoch and owner of all shards, when the nodes agree about them; else undefined. */
function ownersIn(views: readonly ClusterStatus[]): string | undefined {
  const [first, ...others] = views.map(({ shards }) =>
    shards
      .map(({ shard, owner, epoch }) => `${shard} ${owner} ${epoch}`)
      .sort()
      .join(),
  )
  const isShared = views.every(({ members }) => members.length === views.length && members.every(one => one.owned > 0))
  return isShared && others.every(other => other === first) ? first : undefined
}
