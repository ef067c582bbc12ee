// Journey A: an entity from its creation to its end, through all parts of the program.
//
// One test shows that an answer leaves only after its commit: it uses a store whose commits wait until the test
// releases them. All others run on whole nodes, over both servers. For an effect without a request they ask again until
// a deadline.

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { AdminOperations } from '../../src/broker/admin.js'
import { BatchOperations } from '../../src/broker/batch.js'
import { documentIds, RegistrationOperations, SubscriptionOperations } from '../../src/broker/documents.js'
import { Entities, TypeOperations } from '../../src/broker/entities.js'
import { ShardClient } from '../../src/broker/shard-client.js'
import { StreamHub } from '../../src/broker/streams/stream-hub.js'
import { TenantOperations } from '../../src/broker/tenants.js'
import { HybridClock, systemChance, systemClock } from '../../src/clock.js'
import { ShardMap } from '../../src/domain/scope.js'
import { AdminHandlers } from '../../src/http/admin.js'
import { AttributeHandlers } from '../../src/http/attributes.js'
import { BackupHandlers } from '../../src/http/backup.js'
import { BatchHandlers } from '../../src/http/batch.js'
import { EntityHandlers } from '../../src/http/entities.js'
import { openFront } from '../../src/http/open-front.js'
import { RegistrationHandlers } from '../../src/http/registrations.js'
import { type Handlers, routesOf } from '../../src/http/routes.js'
import { Server } from '../../src/http/server.js'
import { ServiceHandlers } from '../../src/http/service.js'
import { StreamHandlers } from '../../src/http/streams.js'
import { SubscriptionHandlers } from '../../src/http/subscriptions.js'
import { TenantHandlers } from '../../src/http/tenants.js'
import { TypeHandlers } from '../../src/http/types.js'
import { adminReports } from '../../src/observe/operator.js'
import { StreamTallies } from '../../src/observe/stream-tallies.js'
import type { Batch, Cursor, Range, Store } from '../../src/ports.js'
import { Wire } from '../http/wire.js'
import {
  type Answer,
  errorsOnly,
  type HttpServer,
  httpServers,
  LocalNode,
  logForTests,
  readAnswer,
  startLocalNode,
} from '../support/local-node.js'
import { localShards } from '../support/local-shards.js'
import { MemoryStore } from '../support/memory-store.js'

const jsonType = 'Content-Type: application/json'

/** A store whose commits wait until they are released. */
class HeldStore implements Store {
  readonly name = 'held'
  readonly shared = undefined
  held = false
  readonly #store = new MemoryStore()
  readonly #waiting: (() => void)[] = []
  #onCommit: () => void = () => {}

  commit(batch: Batch, onDone: (error?: Error) => void): void {
    if (!this.held) return this.#store.commit(batch, onDone)
    this.#waiting.push(() => this.#store.commit(batch, onDone))
    this.#onCommit()
  }

  sync(onDone: (error?: Error) => void): void {
    this.#store.sync(onDone)
  }

  /** Resolves when a commit waits. */
  async commitWaits(): Promise<void> {
    if (this.#waiting.length > 0) return
    await new Promise<void>(resolve => {
      this.#onCommit = resolve
    })
  }

  release(): void {
    this.held = false
    for (const commit of this.#waiting.splice(0)) commit()
  }

  get(key: Uint8Array): Buffer | undefined {
    return this.#store.get(key)
  }

  getMany(keys: readonly Uint8Array[]): (Buffer | undefined)[] {
    return this.#store.getMany(keys)
  }

  cursor(range: Range): Cursor {
    return this.#store.cursor(range)
  }

  batch(): Batch {
    return this.#store.batch()
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

/** A node over the test's own store, put together as src/process/node.ts does it. */
async function startOver(t: Test, store: Store, server: HttpServer): Promise<LocalNode> {
  const shardMap = new ShardMap({ shards: 256, spread: 16 })
  const { logger } = errorsOnly()
  const local = await localShards(store, shardMap, systemClock, { onFailure: error => t.fail(error.message) })
  const client = new ShardClient(local, shardMap)
  const entities = new Entities(client)
  const ids = documentIds(new HybridClock(systemClock), systemChance)
  const facts = { version: '0', runtime: '', machine: '', libraries: {} }
  const handlers: Handlers = {
    entities: new EntityHandlers(entities),
    attributes: new AttributeHandlers(entities),
    batch: new BatchHandlers(entities, new BatchOperations(client, systemClock)),
    types: new TypeHandlers(new TypeOperations(client), systemClock),
    subscriptions: new SubscriptionHandlers(new SubscriptionOperations(client, ids), entities, systemClock, () => true),
    registrations: new RegistrationHandlers(
      new RegistrationOperations(client, ids),
      () => true,
      new AdminOperations(local),
    ),
    streams: new StreamHandlers({
      hub: new StreamHub({ shards: local, clock: systemClock, chance: systemChance, holder: 'here', filtersMax: 100 }),
      streamsMax: 100,
      messageBytesMax: 1_048_576,
      clock: systemClock,
      tallies: new StreamTallies(),
      isEnding: () => false,
    }),
    service: new ServiceHandlers(facts, systemClock, () => true),
    admin: new AdminHandlers(new AdminOperations(local), {
      log: logForTests,
      hasServiceMetrics: false,
      reports: adminReports,
      options: [],
    }),
    backup: new BackupHandlers({ begin: () => Promise.reject(new Error('there is no backup here')) }, undefined),
    tenants: new TenantHandlers(new TenantOperations(client), logger),
  }
  const bodyBytesMax = 1_048_576
  const handler = new Server(routesOf(handlers, 'only'), { bodyBytesMax, tenants: true }, systemChance, logger)
  const options = {
    port: 0,
    host: '127.0.0.1',
    family: 'both',
    connectionsMax: 100,
    connectionsPerAddressMax: 0,
    idleTimeoutS: 0,
    bodyBytesMax,
  } as const
  const front = await openFront(server, options, handler, logger)
  t.teardown(async () => {
    await front.close(0)
    await local.drain()
    await store.close()
  })
  return new LocalNode(await front.listen())
}

/** Asks again until `holds`, for `waitMs` at most. */
async function eventually(holds: () => Promise<boolean>, waitMs = 10_000): Promise<boolean> {
  const deadlineMs = performance.now() + waitMs
  while (!(await holds())) {
    if (performance.now() > deadlineMs) return false
    await pause(5)
  }
  return true
}

/** Whether the promise is still pending after `other` has resolved. */
async function openAfter(promise: Promise<unknown>, other: Promise<unknown>): Promise<boolean> {
  let settled = false
  const settle = () => {
    settled = true
  }
  promise.then(settle, settle)
  await other
  return !settled
}

for (const server of httpServers) {
  t.test(`over ${server}`, async t => {
    acknowledgement(t, server)
    const node = await startLocalNode(t, { server })
    story(t, node)
    values(t, node)
    transience(t, node)
    concurrency(t, node)
  })
}

function acknowledgement(t: Test, server: HttpServer): void {
  t.test('201 leaves only after the commit', async t => {
    const store = new HeldStore()
    const node = await startOver(t, store, server)
    store.held = true
    const creation = node.json('POST /v2/entities', { id: 'R1', type: 'Room' })
    await store.commitWaits()
    t.ok(await openAfter(creation, node.ask('GET /v2')), 'others are answered meanwhile, the creation is not')
    store.release()
    t.match(await creation, { status: 201, headers: { location: '/v2/entities/R1?type=Room' } })
  })

  t.test('a read that would see changes that are not durable yet waits for them, too', async t => {
    const store = new HeldStore()
    const node = await startOver(t, store, server)
    store.held = true
    const first = node.json('POST /v2/entities', { id: 'R1', type: 'Room' })
    await store.commitWaits()
    const second = node.json('POST /v2/entities', { id: 'R1', type: 'Room' })
    const read = node.ask('GET /v2/entities/R1')
    const list = node.ask('GET /v2/entities')
    const early: string[] = []
    for (const [name, answer] of Object.entries({ first, second, read }))
      answer.then(
        () => store.held && early.push(name),
        () => {},
      )
    // Three round trips give an early answer enough time to arrive.
    for (let i = 0; i < 3; i++) await node.ask('GET /v2')
    t.strictSame(early, [])
    store.release()
    t.equal((await first).status, 201)
    t.match(await second, { status: 422, json: { error: 'Unprocessable', description: 'Already Exists' } })
    t.equal((await read).status, 200)
    t.equal((await list).status, 200)
  })
}

function story(t: Test, node: LocalNode): void {
  t.test('an entity is created, refused a second time, read, changed and deleted', async t => {
    const entity = {
      id: 'urn:ngsi-ld:Room:1',
      type: 'Room',
      temp: { type: 'Celsius', value: 21.5, metadata: { unit: { type: 'Text', value: 'C' } } },
      'a.b$c': { type: 'Text', value: 'ü€😀', metadata: {} },
    }
    const path = '/v2/entities/urn:ngsi-ld:Room:1'
    const created = await node.json('POST /v2/entities', entity)
    t.equal(created.status, 201)
    t.equal(created.headers.location, `${path}?type=Room`)
    t.match(await node.json('POST /v2/entities', entity), {
      status: 422,
      json: { error: 'Unprocessable', description: 'Already Exists' },
    })
    t.equal((await node.ask(`GET ${path}`)).text, JSON.stringify(entity), 'the bytes are those of the creation')
    t.equal((await node.ask(`GET ${path}/attrs/temp`)).text, JSON.stringify(entity.temp))
    t.equal((await node.json(`PATCH ${path}/attrs`, { temp: { value: 22 } })).status, 204)
    t.equal(
      (await node.ask(`GET ${path}/attrs/temp`)).text,
      '{"type":"Number","value":22,"metadata":{"unit":{"type":"Text","value":"C"}}}',
      'the type is that of the new value, the metadata stays',
    )
    t.equal((await node.json(`POST ${path}/attrs`, { hum: { value: 40 } })).status, 204)
    t.equal((await node.ask(`DELETE ${path}/attrs/temp`)).status, 204)
    t.strictSame((await node.ask(`GET ${path}?options=keyValues`)).json, {
      id: entity.id,
      type: 'Room',
      'a.b$c': 'ü€😀',
      hum: 40,
    })
    t.equal((await node.json(`PUT ${path}/attrs`, { on: { value: true } })).status, 204)
    t.equal((await node.ask(`GET ${path}/attrs`)).text, '{"on":{"type":"Boolean","value":true,"metadata":{}}}')
    t.equal((await node.ask(`DELETE ${path}/attrs/on`)).status, 204)
    t.equal((await node.ask(`GET ${path}/attrs`)).text, '{}', 'an entity without attributes is legal')
    t.equal((await node.ask(`DELETE ${path}`)).status, 204)
    t.equal((await node.ask(`GET ${path}`)).status, 404)
  })

  t.test('an entity without a type is a Thing, and one with another type is another entity', async t => {
    t.equal((await node.json('POST /v2/entities', { id: 'thing' })).headers.location, '/v2/entities/thing?type=Thing')
    t.equal((await node.json('POST /v2/entities', { id: 'thing', type: 'Room' })).status, 201)
    t.equal((await node.json('POST /v2/entities', { id: 'thing', type: 'Thing' })).status, 422)
    t.equal((await node.ask('GET /v2/entities/thing')).status, 409)
    t.equal((await node.ask('GET /v2/entities/thing?type=Room')).status, 200)
  })

  t.test('an upsert creates, then updates and keeps the attributes that it does not name', async t => {
    const upsert = (body: unknown) => node.json('POST /v2/entities?options=upsert', body)
    for (const attributes of [{ a: { value: 1 }, b: { value: 2 } }, { a: { value: 3 } }]) {
      const answer = await upsert({ id: 'up', type: 'Room', ...attributes })
      t.equal(answer.status, 204)
      t.equal(answer.headers.location, '/v2/entities/up?type=Room')
    }
    t.strictSame((await node.ask('GET /v2/entities/up/attrs?options=keyValues')).json, { a: 3, b: 2 })
  })
}

function values(t: Test, node: LocalNode): void {
  t.test('a value alone is text for a scalar and JSON for the rest', async t => {
    const date = { type: 'DateTime', value: '2035-06-15T07:21:24.238Z' }
    const table: readonly (readonly [attribute: unknown, type: string, text: string])[] = [
      [{ value: 'on' }, 'text/plain', '"on"'],
      [{ value: 'back\\slash\n' }, 'text/plain', '"back\\\\slash\\n"'],
      [{ value: '' }, 'text/plain', '""'],
      [{ value: 3.14 }, 'text/plain', '3.14'],
      [{ value: 200.0 }, 'text/plain', '200'],
      [{ value: 442.123456785551 }, 'text/plain', '442.123456786'],
      [{ value: -0 }, 'text/plain', '0'],
      [{ value: true }, 'text/plain', 'true'],
      [{ value: null }, 'text/plain', 'null'],
      [{}, 'text/plain', 'null'],
      [date, 'text/plain', '2035-06-15T07:21:24.238Z'],
      [{ type: 'DateTime', value: '2016-10-01T02:00:00+02:00' }, 'text/plain', '2016-10-01T00:00:00.000Z'],
      [{ type: 'DateTime', value: null }, 'text/plain', 'null'],
      [{ value: { o1: 1, o2: '2' } }, 'application/json', '{"o1":1,"o2":"2"}'],
      [{ value: {} }, 'application/json', '{}'],
      [{ value: [1, [true, null], 'x'] }, 'application/json', '[1,[true,null],"x"]'],
    ]
    await node.json('POST /v2/entities', { id: 'values', type: 'T', a: { value: 0 } })
    for (const [attribute, type, text] of table) {
      t.equal((await node.json('PUT /v2/entities/values/attrs/a', attribute)).status, 204)
      const answer = await node.ask('GET /v2/entities/values/attrs/a/value')
      t.equal(answer.status, 200)
      t.equal(answer.headers['content-type'], type, text)
      t.equal(answer.text, text)
    }
  })

  t.test('a value is set from text or JSON; type and metadata stay', async t => {
    const table: readonly (readonly [type: string, body: string, value: unknown])[] = [
      ['text/plain', '"on"', 'on'],
      ['text/plain', '""', ''],
      ['text/plain', '"a\\nb"', 'a\\nb'],
      ['text/plain', '"ü€"', 'ü€'],
      ...['true', 'True', 'TRUE'].map(word => ['text/plain', word, true] as const),
      ...['false', 'False', 'FALSE'].map(word => ['text/plain', word, false] as const),
      ...['null', 'Null', 'NULL'].map(word => ['text/plain', word, null] as const),
      ['text/plain', '-12.1', -12.1],
      ['text/plain', '3.2e2', 320],
      ['application/json', '"on"', 'on'],
      ['application/json', ' 17 ', 17],
      ['application/json', 'null', null],
      ['application/json', '[1,{"a":[]}]', [1, { a: [] }]],
      ['application/json', '{}', {}],
      ['application/json', '{"value":5,"type":"X"}', { value: 5, type: 'X' }],
      ['application/json', '{"$set":{"type":"Y"}}', { value: 5, type: 'Y' }],
      [
        'application/json',
        '{"__proto__":{"a":1},"constructor":2}',
        JSON.parse('{"__proto__":{"a":1},"constructor":2}'),
      ],
    ]
    const metadata = { unit: { type: 'Text', value: 'C' } }
    await node.json('POST /v2/entities', { id: 'set', type: 'T', a: { type: 'Celsius', value: 0, metadata } })
    for (const [type, body, value] of table) {
      const put = await node.ask('PUT /v2/entities/set/attrs/a/value', [`Content-Type: ${type}`], body)
      t.equal(put.status, 204, body)
      t.equal(
        (await node.ask('GET /v2/entities/set/attrs/a')).text,
        JSON.stringify({ type: 'Celsius', value, metadata }),
      )
    }
  })

  t.test('names that every object has are ordinary names of attributes and metadata', async t => {
    const text =
      '{"id":"odd","type":"constructor","__proto__":{"type":"T","value":{"__proto__":1},"metadata":{"__proto__":{"type":"Number",' +
      '"value":2}}},"toString":{"type":"Number","value":3,"metadata":{}}}'
    t.equal((await node.ask('POST /v2/entities', [jsonType], text)).status, 201)
    t.equal((await node.ask('GET /v2/entities/odd')).text, text)
    t.equal((await node.ask('GET /v2/entities/odd/attrs/toString/value')).text, '3')
    t.equal((await node.ask('GET /v2/entities/odd/attrs/hasOwnProperty')).status, 404)
    t.equal((await node.json('PATCH /v2/entities/odd/attrs', { valueOf: { value: 1 } })).status, 422)
  })
}

function transience(t: Test, node: LocalNode): void {
  const dateIn = (ms: number) => ({ type: 'DateTime', value: new Date(Date.now() + ms).toISOString() })
  const gone = (id: string) => async () => (await node.ask(`GET /v2/entities/${id}`)).status === 404

  t.test('a transient entity lives until its date, and no longer', async t => {
    const dateExpires = dateIn(50)
    t.equal((await node.json('POST /v2/entities', { id: 'short', type: 'T', dateExpires })).status, 201)
    t.ok(await eventually(gone('short')))
    t.ok(Date.now() >= Date.parse(dateExpires.value), 'not before its time')
    t.match(await node.ask('GET /v2/entities?type=T&id=short'), { status: 200, text: '[]' })
    t.equal((await node.json('POST /v2/entities', { id: 'short', type: 'T' })).status, 201, 'its id is free again')
  })

  t.test('an entity created with a date in the past goes by itself', async t => {
    t.equal((await node.json('POST /v2/entities', { id: 'past', type: 'T', dateExpires: dateIn(-60_000) })).status, 201)
    t.ok(await eventually(gone('past')))
  })

  t.test('an entity whose date is taken away or moved stays when another goes', async t => {
    const soon = dateIn(1_000)
    for (const id of ['rescued', 'regular', 'witness'])
      t.equal((await node.json('POST /v2/entities', { id, type: 'T', dateExpires: soon })).status, 201)
    const moved = await node.json('PUT /v2/entities/rescued/attrs/dateExpires', dateIn(3_600_000))
    const removed = await node.ask('DELETE /v2/entities/regular/attrs/dateExpires')
    t.strictSame([moved.status, removed.status], [204, 204])
    t.ok(await eventually(gone('witness')))
    t.equal((await node.ask('GET /v2/entities/rescued')).status, 200)
    t.equal((await node.ask('GET /v2/entities/regular')).status, 200)
  })

  t.test('the date of a transient entity is shown only when it is named', async t => {
    const dateExpires = dateIn(3_600_000)
    await node.json('POST /v2/entities', { id: 'hidden', type: 'T', a: { value: 1 }, dateExpires })
    const keys = async (query: string) =>
      Object.keys((await node.ask(`GET /v2/entities/hidden/attrs${query}`)).json as object)
    t.strictSame(await keys(''), ['a'])
    t.strictSame(await keys('?attrs=*'), ['a'])
    t.strictSame(await keys('?attrs=dateExpires'), ['dateExpires'])
    t.equal((await node.ask('GET /v2/entities/hidden/attrs/dateExpires/value')).text, dateExpires.value)
  })
}

function concurrency(t: Test, node: LocalNode): void {
  t.test('fifty clients that increment at once end at fifty', async t => {
    await node.json('POST /v2/entities', { id: 'counter', type: 'T', count: { type: 'Number', value: 0 } })
    const increment = { count: { type: 'Number', value: { $inc: 1 } } }
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => node.json('PATCH /v2/entities/counter/attrs', increment)),
    )
    t.ok(answers.every(({ status }) => status === 204))
    t.equal((await node.ask('GET /v2/entities/counter/attrs/count/value')).text, '50')
  })

  t.test('of fifty clients that create the same entity at once one succeeds', async t => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => node.json('POST /v2/entities', { id: 'race', type: 'T', by: { value: i } })),
    )
    t.equal(answers.filter(({ status }) => status === 201).length, 1)
    t.equal(answers.filter(({ status }) => status === 422).length, 49)
    const winner = answers.findIndex(({ status }) => status === 201)
    t.equal((await node.ask('GET /v2/entities/race/attrs/by/value')).text, String(winner))
  })

  t.test('sixty-four clients that keep their connections get all their answers', async t => {
    const rounds = 20
    const client = async (number: number): Promise<string[]> => {
      const wire = await Wire.to(node.port)
      const send = async (line: string, body?: unknown): Promise<Answer> => {
        await wire.request(line, body === undefined ? [] : [jsonType], body === undefined ? '' : JSON.stringify(body))
        return readAnswer(wire, line)
      }
      const wrong: string[] = []
      const expect = (what: string, got: unknown, wanted: unknown) => {
        if (got !== wanted) wrong.push(`client ${number}: ${what} gave ${got} instead of ${wanted}`)
      }
      try {
        for (let round = 0; round < rounds; round++) {
          const id = `load:${number}:${round}`
          const path = `/v2/entities/${id}`
          expect('POST', (await send('POST /v2/entities', { id, type: 'Load', n: { value: round } })).status, 201)
          expect('PATCH', (await send(`PATCH ${path}/attrs`, { n: { value: { $inc: number } } })).status, 204)
          expect('GET', (await send(`GET ${path}/attrs/n/value`)).text, String(round + number))
          expect('a list', (await send(`GET /v2/entities?id=${id}&options=count`)).headers['ctx-total-count'], '1')
          expect('a refusal', (await send('POST /v2/entities', { id, type: 'Load' })).status, 422)
          expect('nonsense', (await send('POST /v2/entities', [])).status, 400)
          expect('DELETE', (await send(`DELETE ${path}`)).status, 204)
          expect('GET after DELETE', (await send(`GET ${path}`)).status, 404)
        }
      } finally {
        wire.leave()
      }
      return wrong
    }
    const wrong = await Promise.all(Array.from({ length: 64 }, (_, number) => client(number)))
    t.strictSame(wrong.flat(), [])
    t.match(await node.ask('GET /v2/entities?type=Load'), { status: 200, text: '[]' })
  })
}
