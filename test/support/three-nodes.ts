// Three nodes of one cluster as processes, and the etcd that keeps their log.
//
// They are for tests from the clients' view: an answer must not depend on the node. The log outlives the nodes but no
// power failure, which makes it fast.

import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { type BrokerProcess, freePort, startBroker, type Teardown } from './broker-process.js'
import { startEtcd } from './etcd.js'
import { HttpClient } from './http-client.js'
import { foundSmallCluster } from './small-cluster.js'

const names = ['a', 'b', 'c']

/** How long a node may take to start, beside two others, on a busy machine. */
const readyWaitMs = 60_000

/** How long shards may take to find their owners then. */
const settleMsMax = 60_000
/** The pause between two looks. */
const lookMs = 50

/** Syncing the log to the disk proves nothing here. */
const etcdArgs = ['--unsafe-no-fsync']

export interface ThreeNodesOptions {
  /** An existing folder for the data of all four processes. */
  readonly folder: string
  /** Start options of each node besides those of its place. */
  readonly args?: readonly string[]
  /** The nodes stay in the process group of their parent. */
  readonly sharesGroup?: boolean
  /** The source of their ports; when absent, any free ones. */
  readonly nextPort?: () => Promise<number>
}

/** Starts the nodes and waits until each owns its shards and all agree about that; they end with the test. */
export async function startThreeNodes(t: Teardown, options: ThreeNodesOptions): Promise<readonly BrokerProcess[]> {
  const { folder, args = [], sharesGroup = false, nextPort = freePort } = options
  const etcd = await startEtcd(t, { dataDir: folder, args: etcdArgs, nextPort })
  await foundSmallCluster(etcd)
  const places: { readonly name: string; readonly listen: string; readonly port: number }[] = []
  for (const name of names) places.push({ name, listen: `127.0.0.1:${await nextPort()}`, port: await nextPort() })
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

/** Waits until every shard has its wanted owner. Before that, a request may have to wait, or gets 503. */
async function untilSettled(nodes: readonly BrokerProcess[]): Promise<void> {
  const clients = nodes.map(({ baseUrl }) => new HttpClient(baseUrl))
  const untilMs = performance.now() + settleMsMax
  for (;;) {
    const views = await Promise.all(clients.map(async client => (await client.get('/cluster')).json as ClusterStatus))
    if (views.every(isSettled)) break
    if (performance.now() > untilMs) throw new Error(`the nodes have not settled\n${nodes.map(node => node.printed())}`)
    await pause(lookMs)
  }
  for (const client of clients) client.close()
}

/**
 * Whether a node knows that all nodes have joined and no shard is about to move, owns its own shards, and has copies of
 * the rest.
 */
export function isSettled({ node, members, shards }: ClusterStatus): boolean {
  return (
    members.length === names.length &&
    members.every(({ isJoined }) => isJoined) &&
    shards.every(
      ({ owner, next, copy }) =>
        owner !== undefined && next === undefined && copy === (owner === node ? 'owned' : 'following'),
    )
  )
}
