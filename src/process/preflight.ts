// Checks what a start needs before it makes anything: the files that options name, the ports, and the data directory.
// `orrery config check` makes the same checks, so a start accepts what it calls good. A refused start leaves no new
// directory behind (docs/operations/starting.md).
//
// A file or port may change between the check and its use. The code that uses it then reports the fault.
//
// Not here: the values of options (config/); the log and the pid file, which a start opens before (program.ts).

import { X509Certificate } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { connect, isIPv6 } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createSecureContext } from 'node:tls'
// Not by the index of the library, which loads gRPC.
import { hostPort, isLocal } from '../../cluster/asks/address.js'
import { readCertificates, unprotected } from '../../cluster/asks/grpc-tls.js'
import type { EtcdTls } from '../../cluster/logs/etcd-options.js'
import type { ClusterConfig, Config } from '../config/config.js'
import type { OptionName } from '../config/options.js'
import { placementDefault } from '../domain/scope.js'
import { listenFailure } from '../http/front.js'
import { assertOpenable, clusterOf } from '../storage/data-directory.js'
import { certificatesOf, logAccessOf } from './cluster-files.js'

export interface Findings {
  /** Sentences for the operator: why a start is refused. */
  readonly faults: string[]
  /** What a start accepts, and an operator should know. */
  readonly warnings: string[]
}

/** Checks all that a start needs; makes nothing. */
export async function preflight(config: Config): Promise<Findings> {
  const findings: Findings = { faults: [], warnings: [] }
  const look = async (at: () => void | Promise<void>): Promise<void> => {
    try {
      await at()
    } catch (error) {
      findings.faults.push((error as Error).message)
    }
  }
  const { http, notifications, cluster } = config
  await look(() => lookAtServer(http, findings))
  const { caFile } = notifications.tls
  if (caFile !== undefined) await look(() => void certificatesIn('notifCaFile', caFile))
  if (cluster) await look(() => lookAtNode(cluster, findings))
  if (cluster) await look(() => lookAtLog(cluster, findings))
  await look(() => lookAtDirectory(config))
  for (const listening of listenersOf(config)) await look(() => assertListenable(listening, waitMsOf(config)))
  return findings
}

async function lookAtServer({ tls, server }: Config['http'], { warnings }: Findings): Promise<void> {
  if (tls) {
    const { readTls } = await import('../http/node-front.js')
    const { cert } = readTls(tls)
    warnings.push(...outOfDate('cert', tls.certFile, String(cert)))
  }
  if (server === 'uws') await (await import('../http/uws-binary.js')).loadUws()
}

// Certificates

const pemCertificate = /-----BEGIN (TRUSTED )?CERTIFICATE-----[^-]+-----END (TRUSTED )?CERTIFICATE-----/g

/** Certificates of a file; fails when it has none, or one that cannot be read. */
function certificatesIn(option: OptionName, file: string): X509Certificate[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`-${option}: ${(error as Error).message}`)
  }
  const found = text.match(pemCertificate) ?? []
  if (found.length === 0) throw new Error(`-${option}: ${file} holds no certificate`)
  try {
    return found.map(one => new X509Certificate(one.replaceAll('TRUSTED ', '')))
  } catch (error) {
    throw new Error(`-${option}: ${file} holds a certificate that cannot be read: ${(error as Error).message}`)
  }
}

/** A warning for a certificate that its clients do not accept any more, or not yet. */
function outOfDate(option: OptionName, file: string, pem: string): string[] {
  const { validFrom, validTo } = new X509Certificate(pem)
  const nowMs = Date.now()
  if (Date.parse(validTo) < nowMs) return [`-${option}: the certificate in ${file} has ended on ${validTo}`]
  if (Date.parse(validFrom) > nowMs)
    return [`-${option}: the certificate in ${file} is valid from ${validFrom} on only`]
  return []
}

// Cluster

function lookAtNode({ tls: files, isInsecure, listen }: ClusterConfig, { warnings }: Findings): void {
  if (files) {
    const tls = certificatesOf(files)
    readCertificates(tls)
    certificatesIn('clusterCa', files.caFile)
    warnings.push(...outOfDate('clusterCert', files.certFile, tls.cert))
  } else if (!isInsecure && !isLocal(listen)) throw new Error(unprotected(listen))
}

/** What this node shows the engine of the log, where it is not what it shows other nodes. */
function lookAtLog(config: ClusterConfig, { warnings }: Findings): void {
  const { tls: shown } = logAccessOf(config, undefined)
  const { logTls } = config
  if (!shown || !logTls) return
  certificatesIn('shardLogCa', logTls.caFile)
  assertPair(shown)
  if (logTls.certFile !== undefined) warnings.push(...outOfDate('shardLogCert', logTls.certFile, String(shown.cert)))
}

function assertPair({ cert, key }: EtcdTls): void {
  try {
    if (cert && key) createSecureContext({ cert, key })
  } catch (error) {
    throw new Error(`-shardLogCert and -shardLogKey: ${(error as Error).message}`)
  }
}

// Data directory

function lookAtDirectory({ store: { directory }, workers, cluster }: Config): void {
  // Which cluster it has to be of, its log engine knows.
  const wanted = cluster && (clusterOf(directory) ?? { id: '' })
  assertOpenable(directory, { ...placementDefault, workers, ...(wanted && { cluster: wanted }) })
}

// Ports

interface Listening extends Pick<Config['http'], 'host' | 'family'> {
  readonly option: OptionName
  readonly port: number
}

function listenersOf({ http, cluster }: Config): Listening[] {
  const { host, family, port, http1Port, livePort } = http
  const ports = Object.entries({ port, http1Port, livePort }) as [OptionName, number | undefined][]
  const listeners = ports.flatMap(([option, port]) => (port === undefined ? [] : [{ option, port, host, family }]))
  const own = cluster && hostPort(cluster.listen)
  return own ? [...listeners, { option: 'clusterListen', ...own, family: 'both' }] : listeners
}

/** How long workers of a supervisor that was killed may still hold the port, and how often it is tried. */
const portWaitMs = 2_000
const portRetryMs = 50

const waitMsOf = ({ workers }: Config): number => (workers > 1 ? portWaitMs : 0)

/** Fails with the server's sentence when the port cannot be listened on. Waits up to `waitMs` for one that is in use. */
async function assertListenable(listening: Listening, waitMs: number): Promise<void> {
  const failure = (await bindFailureOf(listening)) ?? (await failureIfTaken(listening, waitMs))
  if (!failure) return
  const { option } = listening
  const { message } = listenFailure(failure, listening)
  throw new Error(option === 'port' ? message : `-${option}: ${message}`)
}

/**
 * Why the address is not ours or the port not permitted. A datagram socket finds out: a socket that listens would accept
 * connections of clients that wait for the broker, and reset them.
 */
async function bindFailureOf({ host, port, family }: Listening): Promise<NodeJS.ErrnoException | undefined> {
  let failure: NodeJS.ErrnoException | undefined
  for (const place of await placesOf(host, family)) {
    failure = await datagramFailureOf(place, port)
    if (!failure || !isOfServersToo(failure, port)) return undefined
  }
  return failure
}

const privilegedPortMax = 1023

/** Whether a server would meet the failure as well: a policy of the system may forbid datagrams alone. */
const isOfServersToo = ({ code }: NodeJS.ErrnoException, port: number): boolean =>
  code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT' || (code === 'EACCES' && port <= privilegedPortMax)

/** Addresses to listen on, of which one has to be had. */
async function placesOf(host: string | undefined, family: Listening['family']): Promise<string[]> {
  if (host !== undefined) return [(await lookup(host)).address]
  return family === 'ipv4' ? ['0.0.0.0'] : family === 'ipv6' ? ['::'] : ['::', '0.0.0.0']
}

const datagramFailureOf = (address: string, port: number): Promise<NodeJS.ErrnoException | undefined> =>
  new Promise(resolve => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
    socket.once('error', error => {
      socket.close()
      resolve(error)
    })
    socket.bind(port, address, () => socket.close(() => resolve(undefined)))
  })

/** A failure when another process serves the port, and still does after `waitMs`. */
async function failureIfTaken(
  { host, port, family }: Listening,
  waitMs: number,
): Promise<NodeJS.ErrnoException | undefined> {
  if (port === 0) return undefined
  const served = (await placesOf(host, family)).flatMap(place => loopbackOf[place] ?? [place])
  const targets = family === 'ipv6' ? served.filter(isIPv6) : served
  const untilMs = performance.now() + waitMs
  while ((await Promise.all(targets.map(target => accepts(target, port)))).includes(true)) {
    if (performance.now() >= untilMs) return Object.assign(new Error('in use'), { code: 'EADDRINUSE' })
    await pause(portRetryMs)
  }
  return undefined
}

/** Where a server on all addresses answers. */
const loopbackOf: Readonly<Record<string, readonly string[]>> = { '0.0.0.0': ['127.0.0.1'], '::': ['::1', '127.0.0.1'] }

/** How long a connection to an address of this machine may take. */
const connectMsMax = 1_000

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host, timeout: connectMsMax })
    const end = (isTaken: boolean): void => {
      socket.destroy()
      resolve(isTaken)
    }
    socket.once('connect', () => end(true))
    socket.once('timeout', () => end(false))
    socket.once('error', () => end(false))
  })
}
