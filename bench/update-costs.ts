// What a single update costs in a cluster: the processor time of each of its steps, for cluster-model.ts.
//
// Three nodes run on this machine with all members of their etcd, and a single node before them. Differences between
// kinds of work give the costs of steps:
//
//   a read over three nodes, and at one node                  an ask: two of three reads are asked of another node
//   updates with many clients, and with few                   an append, and a record
//   updates with six more followers of the log                a report of a record to one more node
//   this process, which does nothing but follow               a received record
//
// Costs below 0 count as 0: they are less than the noise. The processor time of idle nodes and of an idle etcd is taken
// off first. Members of etcd have a machine each, so for appends and records only the member that works most counts:
// usually the leader. Further followers may use another member, so for reports the work of all members counts.
//
// Not here: the rates of three nodes on this machine (replicated-rates.ts).

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type EtcdLog, openEtcdLog } from '../cluster/index.js'
import { systemClock } from '../src/clock.js'
import type { Costs } from './cluster-model.js'
import { drive } from './generator.js'
import { cpuSecondsOfAll } from './machine.js'
import { type Cpu, type Nodes, startNodes } from './nodes.js'
import type { RateOptions } from './rate-options.js'
import { logNumbers, storeStock } from './replicated-rates.js'
import { progress, thousands } from './report.js'
import { type Server, start } from './servers.js'
import { reads, updates, type Workload } from './workloads.js'

const nodesMeasured = 3
/** Clients that seldom share an append: one at each node. */
const fewClients = nodesMeasured
/** With those of the three nodes they are as many as nine nodes have. */
const furtherFollowers = 6

/** Of one kind of work. */
interface Sample {
  readonly requests: number
  readonly appends: number
  readonly records: number
  readonly bytes: number
  /** Processor seconds, without those of idle processes. `busiest`: of the member of etcd that worked most. */
  readonly nodes: number
  readonly etcd: number
  readonly busiest: number
  /** Of this process. */
  readonly own: number
  /** Mean time of an append. */
  readonly appendMs: number
}

export async function measuredCosts(options: RateOptions): Promise<Costs> {
  const dataDir = join(options.folder, 'nine')
  const nodes = await startNodes(options.subject, dataDir, 3)
  const single = await start(options.subject, join(dataDir, 'single'), 'anywhere', { args: ['-durability', 'sync'] })
  await storeStock(nodes.urls)
  await storeStock([single.url])
  const alone = { read: await aloneMs(options, single, reads), update: await aloneMs(options, single, updates) }
  await single.stop()
  const idle = await idleCores(nodes, options.seconds)
  const sample = (name: string, workload: Workload, connections = options.connections): Promise<Sample> =>
    sampled({ ...options, connections }, nodes, idle, name, workload)
  const read = await sample('reads', reads)
  const few = await sample('updates, few clients', updates, fewClients)
  const many = await sample('updates, many clients', updates)
  const followers = Array.from({ length: furtherFollowers }, () => followerOf(nodes))
  const followed = await sample('updates, more followers', updates)
  for (const follower of followers) await follower.close()
  await nodes.stop()
  rmSync(dataDir, { recursive: true })
  return costsOf({ alone, read, few, many, followed })
}

interface Samples {
  /** Processor ms of a request at a single node. */
  readonly alone: { readonly read: number; readonly update: number }
  readonly read: Sample
  readonly few: Sample
  readonly many: Sample
  readonly followed: Sample
}

function costsOf({ alone, read, few, many, followed }: Samples): Costs {
  const ms = (seconds: number, count: number): number => (seconds / count) * 1000
  const ask = atLeastNone((ms(read.nodes, read.requests) - alone.read) / askedShare)
  const received = atLeastNone(ms(followed.own - many.own, followed.records * furtherFollowers))
  /** What an update costs beyond the same one at a single node, without the ask and the reports. */
  const beyond = (sample: Sample): number =>
    ms(sample.nodes, sample.requests) -
    alone.update -
    ask * askedShare -
    (received * nodesMeasured * sample.records) / sample.requests
  const ofNodes = lineThrough(
    { at: few.appends / few.requests, value: beyond(few) },
    { at: many.appends / many.requests, value: beyond(many) },
  )
  const inEtcd = (sample: Sample, of: 'etcd' | 'busiest'): Point => ({
    at: sample.records / sample.appends,
    value: ms(sample[of], sample.appends),
  })
  const ofAll = lineThrough(inEtcd(few, 'etcd'), inEtcd(many, 'etcd'))
  const perRecordFollowed = (inEtcd(followed, 'etcd').value - ofAll.start) / inEtcd(followed, 'etcd').at
  const etcdReport = atLeastNone((perRecordFollowed - ofAll.slope) / furtherFollowers)
  const ofBusiest = lineThrough(inEtcd(few, 'busiest'), inEtcd(many, 'busiest'))
  return {
    // A read is little more than its request and its answer.
    request: alone.read,
    ask,
    turn: atLeastNone(alone.update - alone.read),
    append: ofNodes.slope,
    received,
    // What does not depend on the number of appends is done by the two standbys.
    apply: ofNodes.start / (nodesMeasured - 1),
    etcdAppend: ofBusiest.start,
    etcdRecord: atLeastNone(ofBusiest.slope - nodesMeasured * etcdReport),
    etcdReport,
    etcdLatency: atLeastNone(few.appendMs - inEtcd(few, 'busiest').value),
    bytesPerUpdate: many.bytes / many.requests,
  }
}

/** The share of requests that three nodes ask another node. */
const askedShare = 2 / 3

const atLeastNone = (cost: number): number => Math.max(0, cost)

interface Point {
  readonly at: number
  readonly value: number
}

/** The line through two points, with neither part below 0. */
function lineThrough(one: Point, other: Point): { readonly start: number; readonly slope: number } {
  const steep = atLeastNone((one.value - other.value) / (one.at - other.at))
  const start = atLeastNone(one.value - steep * one.at)
  return { start, slope: start > 0 ? steep : atLeastNone(one.value / one.at) }
}

/** Processor ms of a request at a single node, with nothing beside it. */
async function aloneMs(
  { seconds, warmUpSeconds, connections }: RateOptions,
  { url, pid }: Server,
  workload: Workload,
): Promise<number> {
  const load = { urls: [url], workload, connections, tenant: '', place: 'anywhere' as const }
  await drive({ ...load, seconds: warmUpSeconds })
  const before = cpuSecondsOfAll(pid)
  const { requests } = await drive({ ...load, seconds })
  return ((cpuSecondsOfAll(pid) - before) / requests) * 1000
}

type IdleCores = Pick<Cpu, 'nodes' | 'etcdMembers'>

/** The cores that processes use without any load. */
async function idleCores(nodes: Nodes, seconds: number): Promise<IdleCores> {
  const before = nodes.cpuSeconds()
  const beganMs = performance.now()
  await delay(seconds * 1000)
  const took = (performance.now() - beganMs) / 1000
  const after = nodes.cpuSeconds()
  const etcdMembers = after.etcdMembers.map((used, member) => (used - before.etcdMembers[member]!) / took)
  return { nodes: (after.nodes - before.nodes) / took, etcdMembers }
}

async function sampled(
  { seconds, warmUpSeconds, connections }: RateOptions,
  nodes: Nodes,
  idle: IdleCores,
  name: string,
  workload: Workload,
): Promise<Sample> {
  const load = { urls: nodes.urls, workload, connections, tenant: '', place: 'anywhere' as const }
  await drive({ ...load, seconds: warmUpSeconds })
  const [logBefore, before, ownBefore] = [await logNumbers(nodes), nodes.cpuSeconds(), process.cpuUsage()]
  const outcome = await drive({ ...load, seconds })
  const [own, after, log] = [process.cpuUsage(ownBefore), nodes.cpuSeconds(), await logNumbers(nodes)]
  const appends = log.requests - logBefore.requests
  const ofMembers = after.etcdMembers.map(
    (used, member) => used - before.etcdMembers[member]! - idle.etcdMembers[member]! * outcome.seconds,
  )
  const found = {
    requests: outcome.requests,
    appends,
    records: log.records - logBefore.records,
    bytes: log.bytes - logBefore.bytes,
    nodes: after.nodes - before.nodes - idle.nodes * outcome.seconds,
    etcd: ofMembers.reduce((sum, one) => sum + one, 0),
    busiest: Math.max(...ofMembers),
    own: (own.user + own.system) / 1e6,
    appendMs: ((log.seconds - logBefore.seconds) / appends) * 1000,
  }
  progress(
    `${name}: ${thousands(found.requests)} requests, ${thousands(appends)} appends, ${thousands(found.records)} records, ` +
      `${found.nodes.toFixed(2)} s of nodes, ${found.etcd.toFixed(2)} of etcd, ${found.own.toFixed(2)} of this process`,
  )
  return found
}

/** A follower of the whole log that wants no record of it, like a node without a copy. */
function followerOf(nodes: Nodes): EtcdLog {
  const log = openEtcdLog(nodes.etcd.address(), 'orrery', systemClock)
  const nothing = (): void => {}
  log.follow(() => false, { onGap: nothing, onTakeover: nothing, onRecord: nothing, onHeartbeat: nothing })
  return log
}
