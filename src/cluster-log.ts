// The engine that keeps a cluster's logs, as the configuration names it, and what stands there of the cluster as a whole.

import { readFileSync } from 'node:fs'
import { type Certificates, type EtcdLog, openEtcdLog, parseEtcdAddress, type ShardLog } from '../cluster/index.js'
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

/** What stands in the engine for this cluster, as long as it takes to find out. */
export async function agreed(log: ShardLog, wanted: Agreement, logger: Pick<Logger, 'warn'>): Promise<Agreement> {
  for (let attempt = 0; ; attempt++) {
    const outcome = await new Promise<Buffer | string>(resolve =>
      log.createOnce('cluster', Buffer.from(JSON.stringify(wanted)), told =>
        resolve(told.kind === 'stands' ? told.value : told.reason),
      ),
    )
    if (typeof outcome !== 'string') return JSON.parse(outcome.toString()) as Agreement
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
