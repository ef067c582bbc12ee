// Opens the engine that keeps a cluster's logs, as the configuration names it, and reads or creates the entry that
// describes the whole cluster.

import {
  type Certificates,
  type ClusterMark,
  type EtcdLog,
  faultOfEtcd,
  openEtcdLog,
  type ShardLog,
  type Unknown,
} from '../../cluster/index.js'
import { systemClock } from '../clock.js'
import type { ClusterConfig } from '../config/config.js'
import { assertVersion, Unreadable } from '../domain/unreadable.js'
import type { Logger } from '../ports.js'
import { logAccessOf } from './cluster-files.js'
import type { Agreement } from './surroundings.js'

/** Pause between two tries to read the cluster's entry. */
const agreeRetryMs = 500

/**
 * Opens the log of the configured cluster. `tls`: the certificates for other nodes; also used for the engine if the
 * options set no others. Throws an error with a sentence for the operator when a file cannot be read.
 */
export function openLogOf(config: ClusterConfig, tls: Certificates | undefined): EtcdLog {
  const { address, tls: shown } = logAccessOf(config, tls)
  return openEtcdLog(address, 'orrery', systemClock, shown ? { tls: shown } : {})
}

/**
 * Checks the versions of the members of the engine that answer. Returns whether any did. Rejects with a sentence for
 * the operator when a version is known to lose data, unless the options accept that.
 */
export async function checkEngine(
  log: Pick<EtcdLog, 'versions'>,
  { isLogUnsafe }: Pick<ClusterConfig, 'isLogUnsafe'>,
  logger: Pick<Logger, 'warn'>,
): Promise<boolean> {
  const versions = await log.versions()
  for (const [member, version] of versions) {
    const fault = faultOfEtcd(version)
    if (fault === undefined) continue
    const words = `the log engine (-shardLog) at ${member} is etcd ${version}: ${fault}`
    if (!isLogUnsafe)
      throw new Error(
        `${words}. Upgrade it (docs/operations/cluster.md#versions-of-etcd), or accept the risk with -shardLogUnsafe`,
      )
    logger.warn(`cluster: ${words}. -shardLogUnsafe accepts that`)
  }
  return versions.size > 0
}

/** The name of the cluster's entry in the engine. */
const markName = 'cluster'
/** Version of this entry, and of all other rows of the cluster in the engine: 1 had counts in other rows. */
const markVersion = 2

/** The entry of a cluster that is to be created. */
export interface WantedAgreement extends Agreement {
  /** The id that the cluster had before its log was lost (recover.ts). */
  readonly recovered?: string
}

/** Reads the entry of this cluster, and waits as long as that takes. Creates it as `wanted` if there is none. */
export async function agreed(log: ShardLog, wanted: WantedAgreement, logger: Pick<Logger, 'warn'>): Promise<Agreed> {
  const value = await answered<Buffer>(logger, onDone =>
    log.createOnce(markName, Buffer.from(JSON.stringify({ version: markVersion, ...wanted })), outcome =>
      onDone(outcome.kind === 'stands' ? { kind: 'answer', value: outcome.value } : outcome),
    ),
  )
  return agreedOf(value)
}

/** Reads the entry of the cluster that the engine keeps, and waits as long as that takes. Undefined: it keeps none. */
export async function agreementIn(log: ShardLog, logger: Pick<Logger, 'warn'>): Promise<Agreed | undefined> {
  const value = await answered<Buffer | undefined>(logger, onDone =>
    log.named(markName, outcome =>
      onDone(outcome.kind === 'read' ? { kind: 'answer', value: outcome.value } : outcome),
    ),
  )
  return value && agreedOf(value)
}

/** The same for a node that belongs to a cluster already. It creates no missing entry, since it may be brought back. */
export async function agreedBefore(
  log: ShardLog,
  own: { readonly path: string; readonly id: string },
  logger: Pick<Logger, 'warn'>,
): Promise<Agreed> {
  const found = await agreementIn(log, logger)
  if (found?.agreement.id === own.id) return found
  if (found?.recovered === own.id)
    throw new Error(
      `data directory ${own.path} belongs to cluster ${own.id}, which was recovered without it and is cluster ${found.agreement.id} now. ` +
        'Nothing was changed. Start the node with an empty directory: it gets copies from the other nodes (docs/operations/disasters.md)',
    )
  const has = found ? `has cluster ${found.agreement.id} in its place` : 'has nothing of it'
  throw new Error(
    `data directory ${own.path} belongs to cluster ${own.id}, and the log engine (-shardLog) ${has}: its data was deleted or replaced, or it is another engine. ` +
      'Nothing was changed. Bring the log back, or name the right engine, and start again (docs/operations/log-lost.md)',
  )
}

/** The agreement, and its bytes in the engine. */
export interface Agreed {
  readonly agreement: Agreement
  readonly mark: ClusterMark
  /** The id that the cluster had before its log was lost; undefined: it was never recovered. */
  readonly recovered: string | undefined
}

function agreedOf(value: Buffer): Agreed {
  const { version, id, shards, spread, recovered } = markOf(value)
  assertVersion("the cluster's mark in the log engine (-shardLog)", version, markVersion)
  if (typeof id !== 'string' || !Number.isSafeInteger(shards) || !Number.isSafeInteger(spread)) throw noMark()
  return {
    agreement: { id, shards: Number(shards), spread: Number(spread) },
    mark: { name: markName, value },
    recovered: typeof recovered === 'string' ? recovered : undefined,
  }
}

function markOf(value: Buffer): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(value.toString())
    if (typeof found === 'object' && found !== null) return found as Readonly<Record<string, unknown>>
  } catch {}
  throw noMark()
}

const noMark = (): Error =>
  new Unreadable(`the cluster's mark in the log engine (-shardLog), under the name ${markName}, cannot be read`)

/** The answer of the engine, or the reason why there is none. */
type EngineAnswer<T> = { readonly kind: 'answer'; readonly value: T } | Unknown

/** Asks the engine until it answers. Rejects with a sentence for the operator when the engine refuses this node. */
async function answered<T>(
  logger: Pick<Logger, 'warn'>,
  ask: (onDone: (outcome: EngineAnswer<T>) => void) => void,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const outcome = await new Promise<EngineAnswer<T>>(ask)
    if (outcome.kind === 'answer') return outcome.value
    if (outcome.isRefused)
      throw new Error(
        `the log engine refuses this node (${outcome.reason}): check -shardLogUser and -shardLogPasswordFile, or the user in -shardLog, and the rights of that user in etcd`,
      )
    if (attempt % 10 === 0) logger.warn(`cluster: waiting for the log engine (${outcome.reason})`)
    await new Promise<void>(resolve => systemClock.after(agreeRetryMs, resolve))
  }
}
