// Checks the requirements of a start before it creates anything: the files that options name, the ports, and the data
// directory. `orrery config check` makes the same checks, so a start accepts the settings that this command accepts. A
// refused start leaves no new directory behind (docs/operations/starting.md).
//
// A file or port may change between the check and its use. The code that uses it then reports the fault.
//
// Not here: the values of options (config/); the log and the pid file, which a start opens before (program.ts).

import { X509Certificate } from 'node:crypto'
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
// Not imported from the index of the library, which loads gRPC.
import { hostPort, isLocal } from '../../cluster/asks/address.js'
import { readCertificates, unprotected } from '../../cluster/asks/grpc-tls.js'
import type { ClusterConfig, Config } from '../config/config.js'
import type { OptionName } from '../config/options.js'
import { placementDefault } from '../domain/scope.js'
import { certificatesOfText } from '../http/pem.js'
import { backupKeyIn } from '../move/backup-key.js'
import { assertOpenable, clusterOf } from '../storage/data-directory.js'
import { checkAccess } from './access-check.js'
import { assertPair, certificatesOf, logAccessesOf } from './cluster-files.js'
import { assertListenable, type PortToCheck } from './port-check.js'
import { assertTileFile } from './tile-file.js'

export interface Findings {
  /** Sentences for the operator: why a start is refused. */
  readonly faults: string[]
  /** Facts that a start accepts, but that an operator should know. */
  readonly warnings: string[]
  /** Where the access file waits that was read (access-check.ts): the node need not read it again. */
  checkedAccess?: MessagePort
}

/** Checks all requirements of a start; creates nothing. */
export async function preflight(config: Config): Promise<Findings> {
  const findings: Findings = { faults: [], warnings: [] }
  const check = async (at: () => void | Promise<void>): Promise<void> => {
    try {
      await at()
    } catch (error) {
      findings.faults.push((error as Error).message)
    }
  }
  const { http, notifications, cluster, access, audit } = config
  await check(() => checkServer(http, findings))
  const { keyFile } = config.backup
  if (keyFile !== undefined) await check(() => void backupKeyIn(keyFile))
  if (access)
    await check(async () => {
      findings.checkedAccess = await checkAccess(access.file)
    })
  if (audit?.file !== undefined) await check(() => checkAudit(audit.file!))
  const { consoleTiles } = config
  if (consoleTiles?.kind === 'archive') await check(() => assertTileFile(consoleTiles.file))
  const { caFile } = notifications.tls
  if (caFile !== undefined) await check(() => void certificatesIn('notifCaFile', caFile))
  if (cluster) await check(() => checkNode(cluster, findings))
  if (cluster) await check(() => checkLog(cluster, findings))
  await check(() => checkDirectory(config))
  for (const listening of listenersOf(config)) await check(() => assertListenable(listening, config.workers))
  return findings
}

async function checkServer({ tls, server }: Config['http'], { warnings }: Findings): Promise<void> {
  if (tls) {
    const { readTls } = await import('../http/tls.js')
    const { contents } = readTls(tls)
    warnings.push(...outOfDate('cert', tls.certFile, String(contents.cert)))
  }
  if (server === 'uws') await (await import('../http/uws-binary.js')).loadUws()
}

/** The file of the audit log need not be there, but its directory does. */
function checkAudit(file: string): void {
  const directory = dirname(file)
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(`-auditLog: there is no directory ${directory}`)
  const found = statSync(file, { throwIfNoEntry: false })
  if (found && !found.isFile()) throw new Error(`-auditLog: ${file} is not a regular file`)
  try {
    accessSync(found ? file : directory, constants.W_OK)
  } catch {
    throw new Error(`-auditLog: ${file} cannot be written by this user`)
  }
}

// Certificates

/** Certificates of a file; throws when it has none, or one that cannot be read. */
function certificatesIn(option: OptionName, file: string): X509Certificate[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`-${option}: ${(error as Error).message}`)
  }
  return certificatesOfText(text, `-${option}: ${file}`)
}

/** A warning for a certificate that clients accept no longer, or not yet. */
function outOfDate(option: OptionName, file: string, pem: string): string[] {
  const { validFrom, validTo } = new X509Certificate(pem)
  const nowMs = Date.now()
  if (Date.parse(validTo) < nowMs) return [`-${option}: the certificate in ${file} has ended on ${validTo}`]
  if (Date.parse(validFrom) > nowMs)
    return [`-${option}: the certificate in ${file} is valid from ${validFrom} on only`]
  return []
}

// Cluster

function checkNode({ tls: files, isInsecure, listen }: ClusterConfig, { warnings }: Findings): void {
  if (files) {
    const tls = certificatesOf(files)
    readCertificates(tls)
    certificatesIn('clusterCa', files.caFile)
    warnings.push(...outOfDate('clusterCert', files.certFile, tls.cert))
  } else if (!isInsecure && !isLocal(listen)) throw new Error(unprotected(listen))
}

/** The credentials for the engine of the log, if they differ from those for other nodes. */
function checkLog(config: ClusterConfig, { warnings }: Findings): void {
  const shown = logAccessesOf(config, undefined).find(({ tls }) => tls)?.tls
  const { logTls } = config
  if (!shown || !logTls) return
  certificatesIn('shardLogCa', logTls.caFile)
  assertPair(shown)
  if (logTls.certFile !== undefined) warnings.push(...outOfDate('shardLogCert', logTls.certFile, String(shown.cert)))
}

// Data directory

function checkDirectory({ store: { directory }, workers, cluster }: Config): void {
  // Only its log engine knows to which cluster it must belong.
  const wanted = cluster && (clusterOf(directory) ?? { id: '' })
  assertOpenable(directory, { ...placementDefault, workers, ...(wanted && { cluster: wanted }) })
}

// Ports

function listenersOf({ http, cluster }: Config): PortToCheck[] {
  const { host, family, port, http1Port, livePort, admin } = http
  const ports = Object.entries({ port, http1Port, livePort }) as [OptionName, number | undefined][]
  const listeners: PortToCheck[] = ports.flatMap(([option, port]) =>
    port === undefined ? [] : [{ option, port, host, family }],
  )
  if (admin) listeners.push({ option: 'adminPort', ...admin, family })
  const own = cluster && hostPort(cluster.listen)
  if (own) listeners.push({ option: 'clusterListen', ...own, family: 'both' })
  return listeners
}
