// Brokers that follow each other by notifications: mirrors, a chain, a pair, a ring. A change at one reaches all, and
// then traffic ends.
//
// Not here: which bodies op/notify accepts (http/lists.test, domain/batch.test), whether a deletion triggers
// (domain/event.test and domain/matcher-model.test), a chain of processes (notification-delivery.test).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: macros of notifications look like templates

import t, { type Test } from 'tap'
import { httpReceiver, type Received, until } from '../deliver/receivers.js'
import { contentOf, type Following, follow, type Traffic, untilQuiet } from '../support/federation.js'
import { type LocalNode, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'
import { Random } from '../support/random.js'
import { chance, shuffled } from '../support/random-entity.js'
import { headerOf } from './notified.js'

t.setTimeout(400_000)

const inTenant = ['Fiware-Service: acme']

/** Sends a request, and throws when it is refused. */
async function send(node: LocalNode, line: string, body?: unknown, headers: readonly string[] = []): Promise<void> {
  const answer = await node.json(line, body, headers)
  if (answer.status >= 300) throw new Error(`${line} ${JSON.stringify(body)}: ${answer.status} ${answer.text}`)
}

const upsert = (node: LocalNode, entity: object, headers?: readonly string[]): Promise<void> =>
  send(node, 'POST /v2/entities?options=upsert,keyValues', entity, headers)

const takenOf = (traffic: readonly Traffic[]): readonly number[] => traffic.map(({ taken }) => taken)

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0)

// Mirrors

const propagating: Following = { notification: { propagateDeletes: true } }

for (const workers of [1, 2])
  t.test(`a mirror equals the original after all operations there, with ${workers} worker(s) each`, async t => {
    const begin = async (): Promise<readonly LocalNode[]> =>
      workers === 1 ? [await startLocalNode(t)] : startLocalWorkers(t, workers)
    const [originals, mirrors] = await Promise.all([begin(), begin()])
    const [original, mirror] = [originals.at(-1)!, mirrors.at(-1)!]
    await follow(originals[0]!, mirrors[0]!, { ...propagating, headers: inTenant })
    const ids = Array.from({ length: 12 }, (_, n) => `R${n}`)
    const entities = ids.map(id => ({
      id,
      type: 'Room',
      a: { type: 'Number', value: 1, metadata: { m: { value: 'x' } } },
    }))
    for (const path of ['/', '/a/b'])
      await send(original, 'POST /v2/op/update', { actionType: 'append', entities }, [
        ...inTenant,
        `Ctx-ServicePath: ${path}`,
      ])
    const far = [...inTenant, 'Ctx-ServicePath: /a/b']
    await send(original, 'PUT /v2/entities/R1/attrs/a/value', { deep: [1, null, { x: 'y' }] }, far)
    await untilQuiet([original, mirror])
    const whole = await contentOf(original, inTenant)
    t.equal(whole.split('\n').length, 24)
    t.equal(await contentOf(mirror, inTenant), whole)

    for (const id of ids.slice(0, 6)) await send(original, `DELETE /v2/entities/${id}`, undefined, far)
    const rest = ids.slice(6, 11).map(id => ({ id, type: 'Room' }))
    await send(original, 'POST /v2/op/update', { actionType: 'delete', entities: rest }, far)
    await send(original, 'DELETE /v2/entities/R0', undefined, inTenant)
    await upsert(original, { id: 'R0', type: 'Room', b: 2 }, inTenant)
    await untilQuiet([original, mirror])
    const left = await contentOf(original, inTenant)
    t.equal(left.split('\n').length, 13)
    t.equal(await contentOf(mirror, inTenant), left)
    t.equal(await contentOf(mirror), '', 'all in one tenant')
  })

t.test('a propagated deletion has the last state, and is marked in the vocabulary of its broker', async t => {
  for (const vocabulary of [undefined, 'Fiware'] as const) {
    const node = await startLocalNode(t, { vocabulary })
    const receiver = await httpReceiver(t)
    const subscribe = (path: string, notification: object, condition: object) =>
      send(node, 'POST /v2/subscriptions', {
        subject: { entities: [{ idPattern: '^R' }], condition },
        notification: { http: { url: `${receiver.url}/${path}` }, attrsFormat: 'normalized', ...notification },
      })
    await subscribe('propagates', { propagateDeletes: true }, { attrs: ['none'] })
    await subscribe('changed', { propagateDeletes: true, onlyChangedAttrs: true }, { attrs: ['none'] })
    await subscribe('listens', {}, { alterationTypes: ['entityDelete'] })
    await subscribe('unfit', { propagateDeletes: true }, { attrs: ['none'], expression: { q: 'a>1' } })
    await subscribe('fit', { propagateDeletes: true }, { attrs: ['none'], expression: { q: 'a==1' } })
    await subscribe('plain', {}, { attrs: ['none'] })
    await upsert(node, { id: 'R1', type: 'Room', a: 1 })
    await send(node, 'DELETE /v2/entities/R1')
    await untilQuiet([node])
    const whole = { id: 'R1', type: 'Room', a: { type: 'Number', value: 1, metadata: {} } }
    const mark = (one: Received) => [headerOf(one, 'Ctx-Alteration'), headerOf(one, 'Fiware-Alteration')]
    const marked = vocabulary ? [undefined, 'entityDelete'] : ['entityDelete', undefined]
    const received = new Map(receiver.received.map(one => [one.path, [mark(one), JSON.parse(one.body).data[0]]]))
    t.strictSame(
      received,
      new Map([
        ['/propagates', [marked, whole]],
        ['/changed', [marked, { id: 'R1', type: 'Room' }]],
        ['/listens', [[undefined, undefined], whole]],
        ['/fit', [marked, whole]],
      ]),
    )
    t.equal(receiver.received.length, 4)
  }
})

t.test('without propagateDeletes a mirror keeps deleted entities, also when that is turned off later', async t => {
  const [original, keeper, other] = (await Promise.all([1, 2, 3].map(() => startLocalNode(t)))) as [
    LocalNode,
    LocalNode,
    LocalNode,
  ]
  await follow(original, keeper)
  const id = await follow(original, other, propagating)
  for (const name of ['R1', 'R2']) await upsert(original, { id: name, type: 'Room', a: 1 })
  await untilQuiet([original, keeper, other])
  await send(original, 'DELETE /v2/entities/R1')
  await untilQuiet([original, keeper, other])
  t.match((await original.json(`GET /v2/subscriptions/${id}`)).json, { notification: { propagateDeletes: true } })
  const notification = { http: { url: `http://127.0.0.1:${other.port}/v2/op/notify` } }
  await send(original, `PATCH /v2/subscriptions/${id}`, { notification })
  t.notOk(
    'propagateDeletes' in
      ((await original.json(`GET /v2/subscriptions/${id}`)).json as { notification: object }).notification,
  )
  await send(original, 'DELETE /v2/entities/R2')
  await untilQuiet([original, keeper, other])
  const idsAt = async (node: LocalNode) =>
    ((await node.json('GET /v2/entities')).json as { id: string }[]).map(entity => entity.id)
  t.strictSame(await idsAt(keeper), ['R1', 'R2'])
  t.strictSame(await idsAt(other), ['R2'])
})

t.test('a mirror that has entities under other ids deletes them under these', async t => {
  const [original, mirror] = (await Promise.all([1, 2].map(() => startLocalNode(t)))) as [LocalNode, LocalNode]
  const url = `http://127.0.0.1:${mirror.port}/v2/op/notify`
  await send(original, 'POST /v2/subscriptions', {
    subject: { entities: [{ idPattern: '.*' }] },
    notification: { httpCustom: { url, ngsi: { id: 'site1:${id}' } }, propagateDeletes: true },
  })
  await upsert(mirror, { id: 'R1', type: 'Room', a: 0 })
  await upsert(original, { id: 'R1', type: 'Room', a: 1 })
  await untilQuiet([original, mirror])
  const there = 'GET /v2/entities/site1:R1/attrs/a/value'
  t.equal((await mirror.json(there)).text, '1')
  await send(original, 'DELETE /v2/entities/R1')
  await untilQuiet([original, mirror])
  t.equal((await mirror.json(there)).status, 404)
  t.equal((await mirror.json('GET /v2/entities/R1/attrs/a/value')).text, '0')
})

t.test('an entity that is deleted while the mirror is away is deleted there when it is back', async t => {
  const original = await startLocalNode(t)
  let isWell = true
  const door = await httpReceiver(t, (_request, response) => response.writeHead(isWell ? 200 : 503).end())
  await send(original, 'POST /v2/subscriptions', {
    subject: { entities: [{ idPattern: '.*' }] },
    notification: { http: { url: door.url }, propagateDeletes: true },
  })
  await upsert(original, { id: 'R1', type: 'Room', a: 1 })
  await untilQuiet([original])
  isWell = false
  await send(original, 'DELETE /v2/entities/R1')
  await until(() => door.received.length === 2)
  isWell = true
  await until(() => door.received.length === 3)
  const [, first, again] = door.received as [Received, Received, Received]
  t.equal(headerOf(again, 'Ctx-Alteration'), 'entityDelete')
  t.equal(again.body, first.body)
})

// Chains

// A broker with `-compat fiware` reads only Fiware-* headers: it may be followed by any broker, and may follow brokers
// with the same option.
for (const [first, last] of [
  ['Fiware', 'Fiware'],
  ['Fiware', undefined],
  [undefined, undefined],
] as const)
  t.test(
    `a chain of three brokers carries tenant, path and correlator, and deletions: ${first ?? 'Ctx'} to ${last ?? 'Ctx'}`,
    async t => {
      const [a, b, c] = (await Promise.all(
        [first, last, last].map(vocabulary => startLocalNode(t, { vocabulary })),
      )) as [LocalNode, LocalNode, LocalNode]
      const receiver = await httpReceiver(t)
      await follow(a, b, { ...propagating, headers: inTenant })
      await follow(b, c, { ...propagating, headers: inTenant })
      const notification = { http: { url: receiver.url }, propagateDeletes: true }
      const subject = { entities: [{ idPattern: '.*' }] }
      await send(c, 'POST /v2/subscriptions', { subject, notification }, inTenant)
      const far = ['Fiware-Service: acme', 'Fiware-ServicePath: /far/away', 'Fiware-Correlator: root']
      await upsert(a, { id: 'R1', type: 'Room', n: 1, where: { x: [1, null] } }, far)
      await send(a, 'DELETE /v2/entities/R1', undefined, [...far, 'X-Auth-Token: secret'])
      await untilQuiet([a, b, c])
      t.equal(receiver.received.length, 2)
      const names = [
        ...['Service', 'ServicePath', 'Correlator', 'Alteration'].map(name => `${last ?? 'Ctx'}-${name}`),
        'X-Auth-Token',
      ]
      const received = receiver.received.map(one => names.map(name => headerOf(one, name)))
      const correlator = 'root; cbnotif=1; cbnotif=1; cbnotif=1'
      t.strictSame(received, [
        ['acme', '/far/away', correlator, undefined, undefined],
        ['acme', '/far/away', correlator, 'entityDelete', 'secret'],
      ])
      for (const node of [a, b, c]) t.equal(await contentOf(node, inTenant), '')
    },
  )

// Circles

/**
 * Otherwise each broker would send its old values of the others' attributes, which would overwrite the present ones.
 */
const changesOnly: Following = { notification: { propagateDeletes: true, onlyChangedAttrs: true }, headers: inTenant }

/** Brokers in a ring: each notifies the next one, the last one the first. */
async function ring(
  t: Parameters<typeof startLocalNode>[0],
  size: number,
  following = changesOnly,
): Promise<LocalNode[]> {
  const nodes = await Promise.all(Array.from({ length: size }, () => startLocalNode(t)))
  for (const [at, node] of nodes.entries()) await follow(node, nodes[(at + 1) % size]!, following)
  return nodes
}

for (const size of [2, 3])
  t.test(`an update goes once round ${size} brokers and ends where it began`, async t => {
    const nodes = await ring(t, size)
    let rounds = 0
    const roundEnds = async (what: string): Promise<void> => {
      rounds++
      t.strictSame(takenOf(await untilQuiet(nodes)), Array(size).fill(rounds), what)
      const [first, ...others] = await Promise.all(nodes.map(node => contentOf(node, inTenant)))
      for (const other of others) t.equal(other, first, what)
    }
    for (const [at, node] of nodes.entries()) {
      await upsert(node, { id: 'R1', type: 'Room', a: at, [`a${at}`]: [at] }, inTenant)
      await roundEnds(`an update at ${at}`)
    }
    t.match(await contentOf(nodes[0]!, inTenant), `"a":{"metadata":{},"type":"Number","value":${size - 1}},"a0"`)
    await send(nodes[1]!, 'DELETE /v2/entities/R1', undefined, inTenant)
    await roundEnds('a deletion')
    t.equal(await contentOf(nodes[0]!, inTenant), '')
  })

/** Three brokers in a ring. Each one's notifications to the next carry a patch (`ngsi`). */
async function patchingRing(t: Test, ngsi: object): Promise<readonly LocalNode[]> {
  const nodes = await Promise.all([1, 2, 3].map(() => startLocalNode(t)))
  for (const [at, node] of nodes.entries()) {
    const url = `http://127.0.0.1:${nodes[(at + 1) % 3]!.port}/v2/op/notify`
    await send(node, 'POST /v2/subscriptions', {
      subject: { entities: [{ idPattern: '.*' }] },
      notification: { httpCustom: { url, ngsi } },
    })
  }
  return nodes
}

t.test('a patch of an entity at every broker of a ring ends where it began', async t => {
  const nodes = await patchingRing(t, { way: { type: 'Text', value: '${way}x' } })
  await upsert(nodes[0]!, { id: 'R1', type: 'Room', way: 'x' })
  t.strictSame(takenOf(await untilQuiet(nodes)), [1, 1, 1])
  const ways = await Promise.all(nodes.map(node => node.json('GET /v2/entities/R1/attrs/way/value')))
  t.strictSame(
    ways.map(({ json, text }) => json ?? text),
    [3, 1, 2].map(hops => JSON.stringify('x'.repeat(hops + 1))),
  )
})

t.test('a creation of an entity at every broker of a ring ends after ten of them', async t => {
  const nodes = await patchingRing(t, { id: '${id}x' })
  await upsert(nodes[0]!, { id: 'R', type: 'Room', way: 'x' })
  t.strictSame(takenOf(await untilQuiet(nodes)), [3, 4, 3])
  const ids = await Promise.all(nodes.map(async node => JSON.parse((await node.json('GET /v2/entities')).text)))
  t.strictSame(
    ids.map(entities => entities.map(({ id }: { id: string }) => id.length - 1)),
    [
      [0, 3, 6, 9],
      [1, 4, 7, 10],
      [2, 5, 8],
    ],
  )
})

t.test('values that chase each other round a ring come to an end', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const nodes = await ring(t, 3)
  let updates = 0
  await Promise.all(
    nodes.map(async node => {
      for (let n = 0; n < 20; n++) {
        updates++
        const one = { id: `R${random.between(1, 2)}`, type: 'Room' }
        const body = chance(random, 0.2)
          ? { actionType: 'delete', entities: [one] }
          : { actionType: 'append', entities: [{ ...one, a: { value: random.between(1, 5) } }] }
        // The entity to delete may be gone already.
        await node.json('POST /v2/op/update', body, inTenant)
      }
    }),
  )
  const taken = sumOf(takenOf(await untilQuiet(nodes)))
  t.ok(taken > 0 && taken <= 10 * updates, `${updates} updates made ${taken} notifications`)
})

/** The writes to one broker: attributes of shared entities that it alone writes, and entities that it alone has. */
class Writer {
  /** The last value of each attribute that only this broker writes, by path, entity and attribute. */
  readonly written = new Map<string, unknown>()
  readonly gone = new Set<string>()
  requests = 0
  private readonly node: LocalNode
  private readonly name: string
  private readonly random: Random
  private count = 0

  constructor(node: LocalNode, name: string, random: Random) {
    this.node = node
    this.name = name
    this.random = random
  }

  async write(requests: number): Promise<void> {
    for (let left = requests; left > 0; left--) {
      this.requests++
      await (chance(this.random, 0.15) ? this.deleteOne() : this.update())
    }
  }

  /** Each value is used once. */
  private value(): unknown {
    const n = `${this.name}${++this.count}`
    return this.random.pick<unknown>([this.count, n, [n], { n, deep: { list: [this.count, null] } }])
  }

  private async update(): Promise<void> {
    const { random, name } = this
    const path = random.pick(['/', '/a', '/a/b'])
    const shared = shuffled(random, ['S1', 'S2', 'S3']).slice(0, random.between(0, 3))
    // A deleted entity is not created again.
    const own = shuffled(
      random,
      Array.from({ length: 8 }, (_, n) => `${name}-${n}`),
    ).filter(id => !this.gone.has(`${path} ${id}`))
    const ids = [...shared, ...own.slice(0, shared.length === 0 ? 1 : random.between(0, 1))]
    if (ids.length === 0) return
    const entities = ids.map(id => {
      const attributes = [1, 2].slice(0, random.between(1, 2)).map(n => [`${name}${n}`, this.value()] as const)
      for (const [attribute, value] of attributes) this.written.set(`${path} ${id} ${attribute}`, value)
      return { id, type: 'T', ...Object.fromEntries(attributes) }
    })
    const headers = [...inTenant, `Ctx-ServicePath: ${path}`]
    await send(this.node, 'POST /v2/op/update?options=keyValues', { actionType: 'append', entities }, headers)
  }

  private async deleteOne(): Promise<void> {
    const own = [...this.written.keys()].filter(key => key.includes(` ${this.name}-`))
    if (own.length === 0) return
    const [path, id] = own[this.random.between(0, own.length - 1)]!.split(' ') as [string, string]
    this.gone.add(`${path} ${id}`)
    for (const key of own) if (key.startsWith(`${path} ${id} `)) this.written.delete(key)
    await send(this.node, `DELETE /v2/entities/${id}?type=T`, undefined, [...inTenant, `Ctx-ServicePath: ${path}`])
  }
}

/** The attributes that a broker has, with the keys of `written`. */
async function valuesAt(node: LocalNode): Promise<ReadonlyMap<string, unknown>> {
  const { json } = await node.ask('GET /v2/entities?limit=1000&options=keyValues&attrs=*,servicePath', inTenant)
  const values = new Map<string, unknown>()
  for (const { id, type: _, servicePath, ...attributes } of json as readonly Record<string, unknown>[])
    for (const [name, value] of Object.entries(attributes)) values.set(`${servicePath} ${id} ${name}`, value)
  return values
}

t.test('three brokers in a ring that are all written to have the same in the end, and all of it', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const nodes = await ring(t, 3)
  const writers = nodes.map((node, at) => new Writer(node, 'abc'[at]!, new Random(random.between(1, 2 ** 31))))
  for (const burst of [40, 1, 80]) {
    await Promise.all(writers.map(writer => writer.write(burst)))
    const traffic = await untilQuiet(nodes)
    const written = new Map(writers.flatMap(writer => [...writer.written]))
    const entries = (values: ReadonlyMap<string, unknown>) =>
      [...values].sort(([one], [other]) => (one < other ? -1 : 1))
    for (const [at, node] of nodes.entries())
      t.strictSame(entries(await valuesAt(node)), entries(written), `after ${burst} more requests, at ${at}`)
    t.comment(`${sumOf(writers.map(({ requests }) => requests))} requests, notifications ${takenOf(traffic)}`)
  }
  t.ok(
    writers.every(({ gone }) => gone.size > 0),
    'everybody has deleted something',
  )
})
