// The yardstick: the least work that a server on the same HTTP library, store and durability has to do. No NGSI rules
// at all.
//
// Orrery's promise is a share of this server's rate, so every shortcut that keeps the durability is taken: body bytes
// go straight into the native batch, a read is one synchronous get, and a reply has only the headers that it needs.
// Group commit as in the product: one batch per tick, then a syncer thread on the same database handle makes it
// durable, then the replies leave. One commit is in flight; requests that arrive meanwhile are the next batch. A 2xx
// therefore means "on disk" here too.
//
// A batch of entities is the exception to the first shortcut: each is put re-serialised, because it has to be separated
// from the others.
//
// With -notify URL it also has PATCH, which replaces the stored entity by the body. When the body is durable, the
// server posts the new values to that receiver, over connections that are kept alive: the least work of a server that
// commits and notifies. It keeps no state of messages in flight.
//
// Not here: PATCH without -notify (an update is compared to the bare upsert), limits, and answers other than 200, 201,
// 204, 400, 404. Run alone: node dist/bench/bare-server.js -port 1026 -dataDir DIR [-durability sync|os] [-notify URL]

import * as uWS from 'uWebSockets.js'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type Dispatcher, Pool } from 'undici'

/** The part of the binding's underscored, synchronous interface that is used; the package has no types. */
interface RocksBatch {
  _put(key: Uint8Array, value: Uint8Array, options: object): void
  _clear(): void
  _writeSync(options: { sync?: boolean }): void
  _closeSync(): void
}
interface RocksDatabase {
  readonly handle: unknown
  open(options?: object): Promise<void>
  close(): Promise<void>
  batch(): RocksBatch
  _getManySync(keys: Uint8Array[], options: object): (Buffer | undefined)[]
}

const rocksPackage: string = '@nxtedition/rocksdb'
const { RocksLevel } = (await import(rocksPackage)).default as {
  RocksLevel: new (locationOrHandle: unknown) => RocksDatabase
}
const plain = {}
/**
 * Connections to the receiver. More are no quicker: it answers all requests that have come in one of its turns at once.
 */
const receiverConnections = 32
// LIBUS_LISTEN_EXCLUSIVE_PORT: the library's types name an enum that the library itself does not have.
const exclusivePort = 1

// Shared by the two threads: the number of the commit to sync; -1 asks the syncer to end.
interface SyncerInput {
  readonly handle: unknown
  readonly wanted: Int32Array
}

if (isMainThread) await serve()
else await sync(workerData as SyncerInput)

/** The syncer thread: one tiny synced write makes everything before it in the log durable. */
async function sync({ handle, wanted }: SyncerInput): Promise<void> {
  const db = new RocksLevel(handle)
  await db.open()
  const batch = db.batch()
  const key = Buffer.from('\u0000sync')
  const value = Buffer.alloc(1)
  parentPort!.postMessage(0)
  // Sleeping on shared memory wakes sooner than a message would. The way back must be a message, because the other side
  // has an event loop.
  for (let seen = 0; ; ) {
    Atomics.wait(wanted, 0, seen)
    const next = Atomics.load(wanted, 0)
    if (next === -1) break
    if (next === seen) continue
    seen = next
    batch._put(key, value, plain)
    batch._writeSync({ sync: true })
    batch._clear()
    parentPort!.postMessage(seen)
  }
  batch._closeSync()
}

async function serve(): Promise<void> {
  const options = process.argv.slice(2)
  const option = (name: string, otherwise: string): string => {
    const at = options.indexOf(`-${name}`)
    return at === -1 ? otherwise : (options[at + 1] ?? otherwise)
  }
  const synced = option('durability', 'sync') === 'sync'

  const db = new RocksLevel(option('dataDir', './bare-data'))
  await db.open({
    createIfMissing: true,
    walCompression: false,
    compaction: 'level',
    memtableMemoryBudget: 64 << 20,
    cacheSize: 64 << 20,
  })
  const batch = db.batch()

  const wanted = new Int32Array(new SharedArrayBuffer(4))
  const syncer = new Worker(new URL(import.meta.url), {
    workerData: { handle: db.handle, wanted } satisfies SyncerInput,
  })
  await new Promise(started => syncer.once('message', started))
  syncer.on('error', error => {
    throw error
  })

  /** An answer that waits for its commit. */
  interface Waiting {
    readonly response: uWS.HttpResponse
    /** 201 or 204. */
    readonly isCreate: boolean
    gone: boolean
    /** The message for the receiver after the commit; '' for none. */
    notice: string
  }
  let staged: Waiting[] = []
  let inFlight: Waiting[] | undefined
  let scheduled = false

  const commit = (): void => {
    scheduled = false
    inFlight = staged
    staged = []
    batch._writeSync(plain)
    batch._clear()
    if (synced) {
      Atomics.add(wanted, 0, 1)
      Atomics.notify(wanted, 0)
    } else committed()
  }

  const committed = (): void => {
    const done = inFlight!
    inFlight = undefined
    // At the end of the tick, not now: the batch then also has the later requests of this tick, 4 % more per second.
    if (staged.length > 0) {
      scheduled = true
      setImmediate(commit)
    }
    for (const waiting of done) {
      if (waiting.notice !== '') notify(waiting.notice)
      if (waiting.gone) continue
      waiting.response.cork(() => {
        if (waiting.isCreate) waiting.response.writeStatus('201 Created').end()
        else waiting.response.writeStatus('204 No Content').endWithoutBody()
      })
    }
  }
  syncer.on('message', committed)

  /** `put` adds a whole body to the batch. It returns false if the body is no valid one; the answer is then 400. */
  const stage = (
    response: uWS.HttpResponse,
    isCreate: boolean,
    put: (body: Buffer, waiting: Waiting) => boolean,
  ): void => {
    let chunks: Buffer | undefined
    const waiting: Waiting = { response, isCreate, gone: false, notice: '' }
    response.onAborted(() => {
      waiting.gone = true
    })
    response.onData((chunk, last) => {
      let body = Buffer.from(chunk)
      if (chunks) body = Buffer.concat([chunks, body])
      if (!last) {
        chunks = Buffer.from(body)
        return
      }
      if (!put(body, waiting)) {
        response.writeStatus('400 Bad Request').end()
        return
      }
      staged.push(waiting)
      if (inFlight || scheduled) return
      scheduled = true
      setImmediate(commit)
    })
  }

  const putEntity = (body: Buffer): boolean => {
    const id = (parsed(body) as { id?: unknown } | undefined)?.id
    if (typeof id !== 'string') return false
    batch._put(Buffer.from(id), body, plain)
    return true
  }

  const putEntities = (body: Buffer): boolean => {
    const entities = (parsed(body) as { entities?: { id?: unknown }[] } | undefined)?.entities
    if (!Array.isArray(entities)) return false
    for (const entity of entities) {
      if (typeof entity.id !== 'string') return false
      batch._put(Buffer.from(entity.id), Buffer.from(JSON.stringify(entity)), plain)
    }
    return true
  }

  const receiver = option('notify', '')
  const notify = receiver === '' ? (): void => {} : notifierOf(new URL(receiver))
  const putAttributes =
    (id: string) =>
    (body: Buffer, waiting: Waiting): boolean => {
      const text = body.toString()
      if (typeof parsed(text) !== 'object') return false
      batch._put(Buffer.from(id), body, plain)
      waiting.notice = `{"subscriptionId":"0123456789abcdef01234567","data":[{"id":"${id}","type":"Sensor",${text.slice(1)}]}`
      return true
    }

  const app = uWS.App()
  app.get('/v2', response => {
    response.writeHeader('Content-Type', 'application/json').end('{}')
  })
  app.get('/v2/entities/:id', (response, request) => {
    const [value] = db._getManySync([Buffer.from(request.getParameter(0)!)], plain)
    if (value) response.writeHeader('Content-Type', 'application/json').end(value)
    else response.writeStatus('404 Not Found').end()
  })
  app.post('/v2/entities', (response, request) => {
    stage(response, request.getQuery() !== 'options=upsert', putEntity)
  })
  if (receiver !== '')
    app.patch('/v2/entities/:id/attrs', (response, request) => {
      stage(response, false, putAttributes(request.getParameter(0)!))
    })
  app.post('/v2/op/update', response => {
    stage(response, false, putEntities)
  })

  app.listen(Number(option('port', '1026')), exclusivePort, listening => {
    if (!listening) throw new Error('cannot listen')
    console.log(`bare server listens on ${uWS.us_socket_local_port(listening)}`)
  })

  process.once('SIGTERM', async () => {
    app.close()
    while (inFlight || scheduled) await new Promise(resolve => setImmediate(resolve))
    Atomics.store(wanted, 0, -1)
    Atomics.notify(wanted, 0)
    await new Promise(ended => syncer.once('exit', ended))
    batch._closeSync()
    await db.close()
    process.exit(0)
  })
}

/** Sends a body to the receiver, and ignores the outcome, except for failures, which end the process. */
function notifierOf({ origin, pathname }: URL): (body: string) => void {
  const pool = new Pool(origin, { connections: receiverConnections, pipelining: 1 })
  let sent = 0
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart() {},
    onResponseStart() {},
    onResponseData() {},
    onResponseEnd() {},
    onResponseError(_controller, error) {
      throw error
    },
  }
  return body => {
    sent += 1
    const headers = ['Content-Type', 'application/json', 'Ctx-Notification-Id', String(sent)]
    pool.dispatch({ path: pathname, method: 'POST', headers, body }, handler)
  }
}

function parsed(body: Buffer | string): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}
