// The syncer thread: makes what the main thread has written to RocksDB durable.
//
// The binding writes on the calling thread, and a flush takes as long as the disk likes. So the main thread writes
// without a flush, and this thread, attached to the same database, issues one tiny flushed write: the log is one file in
// order, so everything before it is durable too. The main thread writes nothing meanwhile, or it would wait in RocksDB
// for the flush after all.
//
// Plain messages, on purpose. Round trip without work, 2 cores: parentPort 48 us, a MessagePort of its own 42 us,
// Atomics.wait here and a message back 43 us, Atomics.wait with Atomics.waitAsync 20 us. With a flush in it (180 us):
// 181, 195, 215 and 163 us, with the worst p99 for the last. Nothing there pays for a thread that blocks.
//
// Not here: the end of the thread. The store ends it and waits, then closes the database; this thread must never close it.

import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { syncKey } from './commit-gate.js'

/** What the syncer says: ready once, then one answer to each message. */
export type SyncerAnswer = { readonly kind: 'ready' } | { readonly kind: 'synced'; readonly error?: unknown }

assert(parentPort, 'runs as a worker thread')
const port = parentPort
const { handle } = workerData as { handle: bigint }

const { RocksLevel } = (await import('@nxtedition/rocksdb')).default
const db = new RocksLevel(handle)
await db.open()
const batch = db.batch()
batch._del(syncKey, {})

const answer = (message: SyncerAnswer) => port.postMessage(message)

port.on('message', () => {
  try {
    batch._writeSync({ sync: true })
    answer({ kind: 'synced' })
  } catch (error) {
    answer({ kind: 'synced', error })
  }
})
answer({ kind: 'ready' })
