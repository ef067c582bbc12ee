// One node: it is composed of its storage, its shards, its delivery and its front (compose/), and closed in the one
// order that is safe.

import type { Config } from '../config/config.js'
import type { CutOff } from '../http/drain.js'
import { backupKeyIn } from '../move/backup-key.js'
import { Expiry } from '../shard/expiry.js'
import type { AccessInUse } from './compose/access.js'
import { openAudit } from './compose/audit.js'
import { openCertificates } from './compose/certificates.js'
import { openDelivery, type WatchedFiles } from './compose/delivery.js'
import { loadFront, openNodeFront } from './compose/front.js'
import { openObservation } from './compose/observation.js'
import { openShards } from './compose/shards.js'
import { openStorage } from './compose/storage.js'
import type { RunningNode, Surroundings } from './surroundings.js'

/** How long a stopping node waits for requests, and then for notifications in flight. */
const drainMsMax = 5_000
/**
 * The same for requests at a node of a cluster: such a request waits for an owner of its shard, and then for the log.
 * By then it has its answer, if only that its outcome is unknown.
 */
const askedMsMax = 12_000
/** How long a node of a cluster that ends may take to write down the outcomes of its notifications. */
const writtenMs = 8_000

/**
 * Starts a node. When the directory or the port cannot be used, it closes all opened parts and rejects with a sentence
 * for the operator.
 */
export async function startNode(config: Config, surroundings: Surroundings): Promise<RunningNode> {
  const { place } = surroundings
  // Comes before anything else is opened: there is no node without its access file.
  const accessFile = config.access && (await readAccessFile(config.access.file, config, surroundings))
  // The same holds for its audit log.
  const audit = openAudit(config, surroundings)
  // Comes before anything reads the files that it watches.
  const certificates = openCertificates(config, surroundings)
  if (place?.kind === 'node')
    for (const use of ['cluster', 'log'] as const) certificates.on(use, contents => place.renew(use, contents))
  // Starts here because the node may wait for the engine of the log, whose certificate has ended.
  certificates.begin()
  try {
    return await openNode(config, surroundings, { certificates, accessFile, audit })
  } catch (error) {
    accessFile?.source.stop()
    await audit?.close()
    certificates.stop()
    throw error
  }
}

async function readAccessFile(file: string, config: Config, surroundings: Surroundings): Promise<AccessInUse> {
  const { openAccessFile } = await import('./compose/access.js')
  return openAccessFile(file, config, surroundings)
}

async function openNode(config: Config, surroundings: Surroundings, files: WatchedFiles): Promise<RunningNode> {
  const { clock, logger } = surroundings
  const { certificates, accessFile, audit } = files
  const quotas = accessFile?.quotas
  const { keyFile } = config.backup
  const backupKey = keyFile === undefined ? undefined : backupKeyIn(keyFile)
  const observation = openObservation(config, surroundings)
  const storage = await openStorage(config, surroundings, observation)
  const { store, scanner, disk, share } = storage
  const closeStorage = async (): Promise<void> => {
    await disk?.stop()
    await scanner.close()
    await store.close()
  }
  const page = await orUndone(() => loadFront(config, logger), closeStorage)
  const nodeShards = await orUndone(
    () => openShards(config, surroundings, storage, observation, accessFile),
    closeStorage,
  )
  const isNode = share?.kind === 'node'
  const { local, shards, joined, unusedTenants, deletions } = nodeShards
  quotas?.onJoined(joined)
  const closeShards = async (): Promise<void> => {
    unusedTenants?.end()
    local.end()
    await deletions.end()
    await joined?.close()
    await local.drain()
    await closeStorage()
  }
  const delivery = await orUndone(
    async () => openDelivery(config, surroundings, storage, nodeShards, observation, files),
    closeShards,
  )
  const { dispatcher, forwarder, egress, recovered, statistics, access } = delivery
  const { loop, summary } = observation
  const { keyFilter, expiryMark: mark } = local.parts
  /** Ends the background work, and writes down the outcomes of notifications. */
  const finish = async (): Promise<void> => {
    local.end()
    await deletions.end()
    await dispatcher.stop(drainMsMax)
    await recovered
    await local.drain()
  }
  const requestsMsMax = isNode ? askedMsMax : drainMsMax
  const logCutOff = (cutOff: CutOff | undefined): void => {
    if (!cutOff) return
    const { connections, requests } = cutOff
    logger.warn(
      `stopping: cut off ${connections} connections after ${requestsMsMax} ms, with ${requests} requests under way`,
    )
  }
  let isEnding = false
  const behind = { page, storage, nodeShards, delivery, observation, backupKey, quotas, isEnding: () => isEnding }
  const closeDelivery = async (): Promise<void> => {
    access?.stop()
    forwarder.close()
    local.end()
    await dispatcher.stop(0)
    await recovered
    // The outcomes of deliveries meanwhile are still to be written down.
    await closeShards()
  }
  await access?.ready()
  const { front, streams } = await orUndone(() => openNodeFront(config, surroundings, behind), closeDelivery)
  certificates.on('https', ({ key, cert, clientCa }) => key && cert && front.renewTls({ key, cert, clientCa }))
  const port = await orUndone(() => front.listen(), closeDelivery)
  for (const own of [port, front.http1Port]) if (own !== undefined) egress.listensAt(own)
  if (front.adminPort !== undefined) egress.listensForOperatorsAt(front.adminPort)
  const owned = share?.kind === 'node' ? share.ownership.owned : undefined
  const { expiryIntervalMs: intervalMs } = config
  const expiry = new Expiry({ store, shards, clock, logger, intervalMs, mark, owned })
  statistics.reset()
  disk?.start()
  expiry.start()
  loop.start()
  if (config.logging.summaryS > 0) summary.start(config.logging.summaryS, clock, logger)
  const learned = keyFilter.learn(store, scanner, clock).catch((error: Error) => {
    logger.warn(`which ids there are could not be read, so new ones are looked for in the store: ${error.message}`)
  })
  return {
    port,
    adminPort: front.adminPort,
    store: store.name,
    lookAtFiles: () => {
      accessFile?.source.readAgain()
      audit?.reopen()
      void certificates.look()
    },
    unlisten: () =>
      awake(async () => {
        isEnding = true
        streams.endAll()
        // A node of a cluster accepts clients while it gives its shards away.
        if (joined?.drain) front.dismiss()
        else await front.unlisten()
      }),
    drain: () =>
      awake(async () => {
        isEnding = true
        streams.endAll()
        if (joined?.drain) {
          front.dismiss()
          await joined.drain()
        }
        logCutOff(await front.close(requestsMsMax))
        forwarder.close()
        loop.stop()
        summary.stop()
        await expiry.stop()
      }),
    dismiss: () =>
      awake(async () => {
        streams.endAll()
        logCutOff(await front.close(requestsMsMax))
      }),
    close: () =>
      awake(async () => {
        certificates.stop()
        accessFile?.source.stop()
        access?.stop()
        unusedTenants?.end()
        await disk?.stop()
        // A node that has left its cluster makes nothing durable any more. Before that it may wait in vain for a log
        // that is not available.
        if (isNode) await Promise.race([finish(), new Promise<void>(resolve => clock.after(writtenMs, resolve))])
        await joined?.close()
        if (!isNode) await finish()
        keyFilter.stop()
        await learned
        await scanner.close()
        await store.close()
        await audit?.close()
      }),
  }
}

/** A step of a start; if it fails, `undo` closes the earlier parts. */
async function orUndone<T>(step: () => Promise<T>, undo: () => Promise<void>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    await undo()
    throw error
  }
}

const awakeMs = 1_000

/** Keeps the process alive until `run` ends: a stopping node serves nothing, and timers do not do that (clock.ts). */
async function awake(run: () => Promise<void>): Promise<void> {
  const timer = setInterval(() => {}, awakeMs)
  try {
    await run()
  } finally {
    clearInterval(timer)
  }
}
