// The syncer thread: makes the main thread's writes to RocksDB durable.
//
// The binding writes on the calling thread, and a flush takes as long as the disk needs. So the main thread writes
// without a flush, and this thread, attached to the same database, issues one tiny flushed write: the log is one file
// in order, so everything before it is durable too. The main thread writes nothing meanwhile, or it would wait in
// RocksDB for the flush after all.
//
// It sleeps on a shared counter rather than on messages, because the event loop pays for the wake-up at every commit,
// and a notify is cheaper than a message. The way back must be a message: the other side has an event loop. A lost
// wake-up would stall the node. The counter is compared before sleeping, so none is lost.
//
// Not here: the end of the thread. The store requests it and waits, then closes the database; this thread must never
// close it.

import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { syncKey } from './commit-gate.js'
import { endOfFlushes, type SyncerAnswer, type SyncerInput } from './rocks-store.js'

assert(parentPort, 'this module runs in a worker thread only')
const port = parentPort
const { handle, wanted } = workerData as SyncerInput

const { RocksLevel } = (await import('@nxtedition/rocksdb')).default
const db = new RocksLevel(handle)
await db.open()
const batch = db.batch()
batch._del(syncKey, {})

const answer = (message: SyncerAnswer) => port.postMessage(message)

let done = 0
for (;;) {
  Atomics.wait(wanted, 0, done)
  const next = Atomics.load(wanted, 0)
  if (next === endOfFlushes) break
  if (next === done) continue
  done = next
  try {
    batch._writeSync({ sync: true })
    answer(null)
  } catch (error) {
    answer(error instanceof Error ? error : new Error(String(error)))
  }
}
await batch.close()
