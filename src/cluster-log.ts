// The engine that keeps a cluster's logs, as the configuration names it, and what stands there of the cluster as a whole.

import { readFileSync } from 'node:fs'
import {
  type Certificates,
  type ClusterMark,
  type EtcdLog,
  openEtcdLog,
  parseEtcdAddress,
  type ShardLog,
} from '../cluster/index.js'
import { systemClock } from './clock.js'
import type { ClusterConfig } from './config.js'
import type { Agreement } from './node.js'
import type { Logger } from './ports.js'

/** Between two tries to find out what the cluster is. */
const agreeRetryMs = 500

/** The log of the cluster that is configured. `tls`: what this side shows, where the engine wants that. */
export function openLogOf(config: ClusterConfig, tls: Certificates | undefined): EtcdLog {
  const address = parseEtcdAddress(config.log)
  if (typeof address === 'string') throw new Error(`-shardLog: ${address}`)
  return openEtcdLog(address, 'orrery', systemClock, address.secure && tls ? { tls: buffersOf(tls) } : {})
}

/** Under which name the engine keeps what the cluster is. */
const markName = 'cluster'

/** What stands in the engine for this cluster, as long as it takes to find out; as wanted where nothing does. */
export async function agreed(log: ShardLog, wanted: Agreement, logger: Pick<Logger, 'warn'>): Promise<Agreed> {
  const value = await answered<Buffer>(logger, onDone =>
    log.createOnce(markName, Buffer.from(JSON.stringify(wanted)), told =>
      onDone(told.kind === 'stands' ? { value: told.value } : told.reason),
    ),
  )
  return agreedOf(value)
}

/** The same for who belongs to a cluster already: makes nothing of what is missing, since others may bring it back. */
export async function agreedBefore(
  log: ShardLog,
  own: { readonly path: string; readonly id: string },
  logger: Pick<Logger, 'warn'>,
): Promise<Agreed> {
  const value = await answered<Buffer | undefined>(logger, onDone =>
    log.named(markName, told => onDone(told.kind === 'read' ? { value: told.value } : told.reason)),
  )
  const found = value && agreedOf(value)
  if (found?.agreement.id === own.id) return found
  const has = found ? `has cluster ${found.agreement.id} in its place` : 'has nothing of it'
  throw new Error(
    `data directory ${own.path} belongs to cluster ${own.id}, and the log engine (-shardLog) ${has}: its data was deleted or replaced, or it is another engine. ` +
      'Nothing was changed. Bring the log back, or name the right engine, and start again (docs/operations/log-lost.md)',
  )
}

/** What the cluster is, and the bytes that say so in the engine. */
export interface Agreed {
  readonly agreement: Agreement
  readonly mark: ClusterMark
}

const agreedOf = (value: Buffer): Agreed => ({
  agreement: JSON.parse(value.toString()) as Agreement,
  mark: { name: markName, value },
})

/** Asks the engine until it answers. A string says why it has not. */
async function answered<T>(
  logger: Pick<Logger, 'warn'>,
  ask: (onDone: (outcome: { readonly value: T } | string) => void) => void,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const outcome = await new Promise<{ readonly value: T } | string>(ask)
    if (typeof outcome !== 'string') return outcome.value
    if (attempt % 10 === 0) logger.warn(`cluster: waiting for the log engine (${outcome})`)
    await new Promise<void>(resolve => systemClock.after(agreeRetryMs, resolve))
  }
}

/** What the files say. */
export function certificatesOf({ certFile, keyFile, caFile }: NonNullable<ClusterConfig['tls']>): Certificates {
  const read = (file: string): string => readFileSync(file, 'utf8')
  return { cert: read(certFile), key: read(keyFile), ca: read(caFile) }
}

const buffersOf = ({ cert, key, ca }: Certificates) => ({
  cert: Buffer.from(cert),
  key: Buffer.from(key),
  ca: Buffer.from(ca),
})
