// How a node joins a cluster: its agreement with the others before it opens its store, and its connection with them.
//
// First the log engine is asked for the cluster's id and the spread of its data, which the first node has decided for
// good. Then the node's shards are registered with the cluster, which moves them, and its broker gets access to the
// others' shards.

import { randomUUID } from 'node:crypto'
import {
  type BegunExchange,
  type ClockState,
  type ClusterNode,
  type EtcdLog,
  type EtcdTls,
  Identity,
  isHere,
  logIndexOf,
  startClusterNode,
  type Unhealthy,
} from '../../cluster/index.js'
import { AskDeadlines } from '../broker/ask-deadlines.js'
import { ClusteredShards, type Nodes } from '../broker/clustered-shards.js'
import { systemClock } from '../clock.js'
import type { ClusterConfig } from '../config/config.js'
import type { ClockStatus, ClusterNumbers, ClusterStatus, HealthProblem } from '../messages/cluster-status.js'
import { clockInWords } from '../observe/clock-reporter.js'
import { lossInWords, problemInWords } from '../observe/reporters.js'
import type { Chance, Logger } from '../ports.js'
import type { BoundedClock } from './bounded-clock.js'
import { buffersOf, certificatesOf, logTlsIn, nodeCertificatesIn } from './cluster-files.js'
import { checkEngines, openLogsOf } from './cluster-logs.js'
import { type Agreed, agreed, agreedBefore } from './cluster-marks.js'
import type { Agreement, ClusterLog, Joined, JoinedNode, JoinOptions, OwnShards } from './surroundings.js'

const oneCopyWarning =
  'each shard has one copy (-replicas 1): when the disk of a node is lost, the content of its shards is lost (docs/operations/disasters.md)'

/** How long the start of a node waits until every shard has an owner. */
const settleMsMax = 10_000
/** How long a node that ends answers the asks of other nodes that are under way. */
const answeredMsMax = 5_000
/** How long other nodes may take to ask for the shards of a node that ends; then it gives up the rest. */
const drainMsMax = 14_000

export interface ClusterGiven {
  /** The clock of the broker here, which is held within a bound of the clocks of the cluster. */
  readonly clock: Pick<BoundedClock, 'follow'>
  readonly chance: Chance
  readonly logger: Logger
  /** Called when the node must end; a new process may start it again. */
  readonly onFailure: (failure: Error) => void
}

export function openCluster(config: ClusterConfig, given: ClusterGiven): JoinedNode {
  const { logger } = given
  // Files are read when the node begins to watch them, and not before.
  let links: Links | undefined
  return {
    kind: 'node',
    renew(use, contents) {
      if (use === 'log') return renewLogs(links, logTlsIn(contents))
      const certificates = nodeCertificatesIn(contents)
      links?.identity?.renew(certificates)
      if (!config.logTls) renewLogs(links, buffersOf(certificates))
    },
    async agree(wanted, own) {
      links ??= openLinks(config)
      const { logs } = links
      const areChecked = await checkEngines(logs, config, logger)
      const found = own
        ? await agreedBefore(logs, own, logger)
        : await agreed(logs, { ...wanted, id: randomUUID() }, logger)
      // The engines have come up meanwhile.
      if (!areChecked) await checkEngines(logs, config, logger)
      const joining = { config, ...links, ...given, ...found }
      return { agreement: found.agreement, join: (open, options) => join(joining, open, options) }
    },
  }
}

/** The means to connect with other processes. */
interface Links {
  /** undefined: without TLS. */
  readonly identity: Identity | undefined
  /** In the order of the option. */
  readonly logs: readonly EtcdLog[]
}

function openLinks(config: ClusterConfig): Links {
  const tls = config.tls && certificatesOf(config.tls)
  return { identity: tls && new Identity(tls), logs: openLogsOf(config, tls) }
}

/** For the engines that are connected with TLS. */
function renewLogs(links: Links | undefined, tls: EtcdTls): void {
  for (const log of links?.logs ?? []) if (log.isSecure) log.renew(tls)
}

interface Joining extends ClusterGiven, Agreed, Links {
  readonly config: ClusterConfig
}

/**
 * Opens the shards first, since the cluster asks at once for their positions. They append to the log once they are this
 * node's own, after `node.begin`.
 */
async function join<Own extends OwnShards>(
  { config, identity, logs, agreement, marks, clock, chance, logger, onFailure }: Joining,
  open: (log: ClusterLog) => Promise<Own>,
  { listMs, onHealth, onClock, onLost }: JoinOptions,
): Promise<{ readonly own: Own; readonly joined: Joined }> {
  const own = await open({
    replication: {
      engines: logs.length,
      engineOf: shard => logIndexOf(shard, logs.length),
      append: (parts, onDone) => replicator.append(parts, onDone),
    },
    barrier: (shard, sequence, onDone) => replicator.barrier(shard, sequence, () => onDone()),
  })
  const node = await startClusterNode(
    {
      name: config.name,
      listen: config.listen,
      advertised: config.advertised,
      domain: config.domain,
      seeds: config.seeds,
      clusterId: agreement.id,
      life: randomUUID(),
      shards: agreement.shards,
      spread: agreement.spread,
      logs,
      marks,
      clock: systemClock,
      chance: () => chance.fraction(),
      clockSkewMaxMs: config.clockSkewMaxMs,
      transport: { tls: identity, plaintext: config.isInsecure },
      replicationOptions: { replicas: config.replicas, balance: config.balance },
      onHealth: unhealthy => onHealth(unhealthy && problemOf(agreement, logs, unhealthy)),
      onClock: state => {
        clock.follow(state.originMs)
        onClock(clockOf(config, state))
      },
      onLost,
      onExchange: exchange => logger.info(`cluster: ${exchangeInWords(exchange)}`),
      onTrouble: trouble => logger.warn(`cluster: ${trouble}`),
      onFailure,
    },
    own.host,
    { onAsk: (shard, request, onReply, view, from) => shards.onAsk(shard, request, onReply, view, from) },
  )
  const { replicator } = node
  const listWaitMs = listMs + askMs
  const { shardMap, pathsOf } = own
  const local = new AskDeadlines(own.local, systemClock, {
    waitMs: ownerWaitMs,
    listWaitMs,
    stalledMs: () => replicator.stalledMs,
  })
  const nodes = nodesOf(config.name, node)
  const shards = new ClusteredShards({ local, nodes, shardMap, clock: systemClock, pathsOf, ownerWaitMs, listWaitMs })
  node.begin()
  await node.settled(settleMsMax)
  const { unhealthy } = replicator
  if (unhealthy) logger.warn(`cluster: not ready yet: ${problemInWords(problemOf(agreement, logs, unhealthy))}`)
  if (config.replicas === 1) logger.warn(`cluster: ${oneCopyWarning}`)
  const status = (): ClusterStatus => statusOf(config, agreement, logs, node)
  const joined: Joined = {
    shards,
    clusterAdmin: {
      status,
      numbers: () => ({
        status: status(),
        stalledMs: replicator.stalledMs,
        rests: replicator.rests,
        log: logs.flatMap(log => requestsOf(log, logs.length > 1)),
        gossip: node.gossipStats(),
      }),
      drain: () => node.drain(drainMsMax),
      resume: () => node.resume(),
    },
    onMembers(listener) {
      const report = (): void => listener(node.members().map(({ address }) => address))
      node.onMembers(report)
      report()
    },
    onProcesses(listener) {
      const report = (): void => listener(node.members().filter(isHere).length)
      node.onMembers(report)
      report()
    },
    isWhole: () => replicator.knowsRegister,
    unready: () => healthOf(config, agreement, logs, node).reason,
    onReach: () => {},
    rest: () => replicator.rest(),
    stillMs: () => shards.stillMs,
    async drain() {
      if (!(await node.drain(drainMsMax, true))) logger.warn('cluster: not all shards could be given away in time')
    },
    async close() {
      // A write of another node may have happened already: that node gets its answer.
      await Promise.race([new Promise<void>(resolve => shards.end(resolve)), waited(answeredMsMax)])
      await node.close()
      for (const log of logs) await log.close()
    },
  }
  return { own, joined }
}

const waited = (ms: number): Promise<void> => new Promise(resolve => systemClock.after(ms, resolve))

/** The nodes of the cluster, in the form that the broker asks. */
function nodesOf(self: string, node: ClusterNode): Nodes {
  const { replicator } = node
  return {
    self,
    ownerOf: shard => replicator.ownerOf(shard),
    serves: shard => replicator.serves(shard),
    get isLost() {
      return replicator.loss !== undefined
    },
    viewOf: name => replicator.viewOf(name),
    get ownView() {
      return replicator.ownView
    },
    ask: (name, shard, request, onOutcome, waitMs, view) => node.ask(name, shard, request, onOutcome, waitMs, view),
    noteUndecodable: (name, what) => node.noteUndecodable(name, what),
    onChange: listener => node.onOwners(listener),
  }
}

function logOf({ shards }: Agreement, { replicator: { loss } }: ClusterNode): ClusterStatus['log'] {
  if (!loss) return { state: 'whole', shards: [] }
  return { state: 'lost', reason: lossInWords({ ...loss, total: shards + 1 }), shards: loss.shards }
}

function problemOf({ shards }: Agreement, logs: Links['logs'], unhealthy: Unhealthy): HealthProblem {
  switch (unhealthy.kind) {
    case 'lost':
      return { kind: 'lost', ...unhealthy.loss, total: shards + 1 }
    case 'full':
    case 'away': {
      const { log, ...problem } = unhealthy
      return { ...problem, ...(logs.length > 1 && { engine: logs[log]!.name }) }
    }
    default:
      return unhealthy
  }
}

/** The requests to an engine, by their kind; with its name where there are several. */
const requestsOf = (log: EtcdLog, isNamed: boolean): ClusterNumbers['log'] =>
  Object.entries(log.stats().requests).map(([kind, counts]) => ({
    kind,
    ...(isNamed && { engine: log.name }),
    ...counts,
  }))

/** The engines where there are several. */
function enginesOf({ shards }: Agreement, logs: Links['logs'], { replicator }: ClusterNode): ClusterStatus['engines'] {
  if (logs.length === 1) return undefined
  return logs.map(({ name }, log) => {
    const trouble = replicator.troubleOf(log)
    const kept = Array.from({ length: shards + 1 }, (_, shard) => shard).filter(
      shard => logIndexOf(shard, logs.length) === log,
    )
    return {
      engine: name,
      shards: kept.length,
      hasRegister: kept.includes(shards),
      state: trouble ? (trouble.isFull ? 'full' : 'away') : 'answers',
      ...(trouble && { reason: trouble.reason }),
    }
  })
}

function clockOf({ clockSkewMaxMs }: ClusterConfig, { verdict, aheadMs }: ClockState): ClockStatus {
  return { state: verdict, aheadMs: Math.round(aheadMs), skewMaxMs: clockSkewMaxMs }
}

function healthOf(
  config: ClusterConfig,
  agreement: Agreement,
  logs: Links['logs'],
  node: ClusterNode,
): ClusterStatus['health'] {
  const { unhealthy } = node.replicator
  const clock = clockOf(config, node.clockState)
  if (!unhealthy && clock.state === 'unsafe') return { state: 'clock', reason: clockInWords(clock), shards: [] }
  if (!unhealthy) return { state: 'ready', shards: [] }
  const problem = problemOf(agreement, logs, unhealthy)
  return { state: problem.kind, reason: problemInWords(problem), shards: problem.shards }
}

function statusOf(config: ClusterConfig, agreement: Agreement, logs: Links['logs'], node: ClusterNode): ClusterStatus {
  const { name } = config
  const { replicator } = node
  const owned = new Map<string, number>()
  const shards = [...replicator.standings()].map(({ shard, replica }) => {
    const owner = replicator.ownerOf(shard)
    if (owner !== undefined) owned.set(owner, (owned.get(owner) ?? 0) + 1)
    const { state: copy, end, lag } = replica
    const wanted = replicator.ownerWanted(shard)
    const next = wanted === owner ? undefined : wanted
    return { shard, owner, next, epoch: replicator.epochOf(shard), copy, known: end.sequence, lag }
  })
  const members = node.members().map(({ name, address, domain, status, isJoined }) => ({
    name,
    address,
    domain,
    status,
    isJoined,
    owned: owned.get(name) ?? 0,
    load: rounded(replicator.loadOf(name)),
    protocol: node.statsOf(name)?.protocol,
    undecodable: node.statsOf(name)?.undecodable ?? 0,
    clockAheadMs: rounded(node.clockAheadMs(name)),
  }))
  const isJoined = members.some(member => member.name === name && member.isJoined)
  const log = logOf(agreement, node)
  const engines = enginesOf(agreement, logs, node)
  const health = healthOf(config, agreement, logs, node)
  const clock = clockOf(config, node.clockState)
  const { balance, exchanges } = replicator
  return {
    node: name,
    cluster: agreement.id,
    isJoined,
    log,
    ...(engines && { engines }),
    health,
    clock,
    balance,
    exchanges,
    members,
    shards,
  }
}

const rounded = (value: number | undefined): number | undefined => (value === undefined ? undefined : Math.round(value))

function exchangeInWords(exchange: BegunExchange): string {
  const { node, gives, takes } = exchange
  const { givesLoad, takesLoad, ownLoad, otherLoad, meanLoad } = exchange
  const [given, taken, own, other, mean] = [givesLoad, takesLoad, ownLoad, otherLoad, meanLoad].map(Math.round)
  return `shard ${gives} (${given} requests/s) goes to ${node} for shard ${takes} (${taken}/s), since this node has ${own}/s, ${node} ${other}/s, and the mean is ${mean}/s`
}

/** Time of an ask, on top of the time for the requested list. */
const askMs = 2_000
/**
 * How long a request waits for the owner of a shard, this node or another one: a shard that moves, a node that dies and
 * an election of the log engine are a pause then, also on a machine that is busy with other work. Keep it below the
 * client's own timeout.
 */
const ownerWaitMs = 8_000
