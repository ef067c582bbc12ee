// The reader thread: runs scans over the store that the main thread has opened, several at a time, a step of each in
// turn.
//
// It only reads. On the order `end` it leaves after the current step. It never closes the store, which belongs to the
// main thread.

import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../clock.js'
import { ShardMap } from '../domain/scope.js'
import { readPlaces } from '../shard/read/places.js'
import {
  asBuffer,
  buffersOf,
  type ReaderInput,
  rangesOf,
  type ScanAnswer,
  type ScanCall,
} from '../shard/read/scan-thread.js'
import { buildTables, type ScanSources, scanList } from '../shard/read/scans.js'
import { readKeys } from '../shard/turn/key-filter.js'
import { attachRocksStore } from '../storage/rocks-store.js'
import { decodeRequest, encodeReply } from '../wire/wire.js'

assert(parentPort, 'this module runs in a worker thread only')
const port = parentPort
const { store: shared, placement, owned } = workerData as ReaderInput

let ending = false
const ground: ScanSources = {
  store: await attachRocksStore(shared),
  shardMap: new ShardMap(placement),
  clock: systemClock,
  ...(owned && { owned }),
  breathe: () =>
    new Promise((resolve, reject) =>
      setImmediate(() => (ending ? reject(new Error('the node is stopping')) : resolve())),
    ),
}

port.on('message', (call: ScanCall) => {
  if (call.kind === 'end') {
    ending = true
    port.close()
    return
  }
  run(call).then(
    answer => port.postMessage(answer, answer.kind === 'tables' ? buffersOf(answer.tables) : []),
    (failure: Error) =>
      port.postMessage({ kind: 'failure', number: call.number, reason: failure.message } satisfies ScanAnswer),
  )
})

async function run(call: Exclude<ScanCall, { kind: 'end' }>): Promise<ScanAnswer> {
  const { number } = call
  if (call.kind === 'build') return { kind: 'tables', number, tables: await buildTables(call.scan, ground) }
  if (call.kind === 'head') return { kind: 'places', number, places: await readPlaces(ground.store, call.scan, owned) }
  if (call.kind === 'keys')
    return { kind: 'keys', number, keys: await readKeys(ground.store, call.scan, ground.breathe) }
  const request = decodeRequest(asBuffer(call.request))
  assert(request.kind === 'list')
  const scan = { ...call.scan, ranges: rangesOf(call.ranges), request }
  return { kind: 'reply', number, reply: encodeReply(await scanList(scan, ground)) }
}
