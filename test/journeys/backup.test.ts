// A backup under load, the loss of everything, and the way back: as an operator does it, with the commands and a kill. What clients had seen
// before the backup began is there again to the last digit; what they wrote meanwhile is there as it was at some moment of it.

import { rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type BrokerProcess, runToEnd, startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { indexesEqualRebuild } from '../support/inspection.js'
import { MoodyReceiver, type ReceivedRequest } from '../support/moody-receiver.js'
import { Random } from '../support/random.js'

t.setTimeout(120_000)

const waitMsMax = 30_000
const tenants = ['', 'city'] as const
const of = (tenant: string, path?: string): Record<string, string> => ({
  ...(tenant !== '' && { 'Ctx-Service': tenant }),
  ...(path !== undefined && { 'Ctx-ServicePath': path }),
})

async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const untilMs = performance.now() + waitMsMax
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > untilMs) throw new Error(`waited too long for: ${what}`)
    await pause(20)
  }
}

const numbers = [
  0,
  -0.5,
  0.1 + 0.2,
  1 / 3,
  1e-9,
  1e-300,
  1.7976931348623157e308,
  2 ** 53 - 1,
  16777217,
  21.10000000000001,
]
const texts = ['', 'x y', '😀 ～ ﬀ', 'null', '\u2028', 'a\tb', 'x'.repeat(3_000)]
const structures = [null, true, [], {}, [1, [2, { a: null }]], { 'a b': { __proto: [0.1] }, größe: 1e-7 }]
const metadata = { accuracy: { type: 'Number', value: 0.30000000000000004 }, how: { type: 'T', value: { deep: [1] } } }

/** Entities with values of every kind, one kind of number or text each. */
function entities(): object[] {
  const values = [
    ...numbers.map(value => ({ type: 'Number', value, metadata })),
    ...texts.map(value => ({ type: 'TextUnrestricted', value, metadata: {} })),
    ...structures.map(value => ({ type: 'StructuredValue', value, metadata })),
    { type: 'DateTime', value: '2024-05-01T10:00:00.123Z', metadata: {} },
    { type: 'geo:json', value: { type: 'Point', coordinates: [-3.712247222222222, 40.42388888888889] }, metadata: {} },
  ]
  return values.map((value, n) => ({
    id: `urn:e:${n}`,
    type: `Type${n % 3}`,
    [`size:${n}`]: value,
    ...(n % 5 === 0 && { dateExpires: { type: 'DateTime', value: '2099-01-01T00:00:00.000Z', metadata: {} } }),
  }))
}

/** A client of each tenant. */
class Client {
  private readonly http: HttpClient

  constructor({ baseUrl }: BrokerProcess) {
    this.http = new HttpClient(baseUrl, 30_000, 8)
  }

  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const answer = await this.http.send(method, path, body, headers)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer
  }

  /** Everything that stands still: entities but for those under load, types, registrations, subscriptions but for retries. */
  async visible(): Promise<ReadonlyMap<string, string>> {
    const seen = new Map<string, string>()
    const all = 'attrs=*,dateCreated,dateModified,dateExpires&metadata=*,dateCreated,dateModified'
    for (const tenant of tenants) {
      for (const path of [`/v2/entities?limit=1000&options=count&q=!load&${all}`, '/v2/registrations?limit=1000'])
        seen.set(`${tenant} ${path}`, (await this.send('GET', path, undefined, of(tenant))).text)
      const types = (await this.send('GET', '/v2/types?limit=1000', undefined, of(tenant))).json as { type: string }[]
      seen.set(`${tenant} types`, JSON.stringify(types.filter(({ type }) => type !== 'Load')))
      const { json } = await this.send('GET', '/v2/subscriptions?limit=1000', undefined, of(tenant))
      seen.set(`${tenant} subscriptions`, JSON.stringify((json as Subscription[]).map(withoutRetries)))
    }
    return seen
  }

  /** The values of all entities under load, by tenant and id. */
  async loaded(): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>()
    for (const tenant of tenants) {
      const { json } = await this.send('GET', '/v2/entities?limit=1000&q=load&options=keyValues', undefined, of(tenant))
      for (const { id, load } of json as { id: string; load: number }[]) found.set(`${tenant} ${id}`, load)
    }
    return found
  }

  close(): void {
    this.http.close()
  }
}

interface Subscription {
  readonly description?: string
  readonly notification: Record<string, unknown>
}

/** A receiver that is away goes on failing. */
const withoutRetries = (subscription: Subscription): Subscription =>
  subscription.description === 'away'
    ? { ...subscription, notification: { timesSent: subscription.notification.timesSent } }
    : subscription

/** Writers that count up, each its own entities, and create new ones; what was answered, and what was asked for. */
class Load {
  readonly answered = new Map<string, number>()
  readonly asked = new Map<string, number>()
  private isOver = false
  private readonly writers: Promise<void>[]

  constructor(client: Client, random: Random) {
    this.writers = tenants.flatMap(tenant => [0, 1].map(writer => this.write(client, tenant, writer, random)))
  }

  private async write(client: Client, tenant: string, writer: number, random: Random): Promise<void> {
    let count = 0
    while (!this.isOver) {
      const isNew = count < 3 || (random.fraction() < 0.1 && count < 150)
      const id = `L${writer}.${isNew ? count++ : random.between(0, count - 1)}`
      const name = `${tenant} ${id}`
      const value = (this.asked.get(name) ?? 0) + 1
      this.asked.set(name, value)
      const path = `/p${id.length}`
      const load = { type: 'Number', value }
      if (isNew) await client.send('POST', '/v2/entities', { id, type: 'Load', load }, of(tenant, path))
      else await client.send('PATCH', `/v2/entities/${id}/attrs`, { load }, of(tenant, path))
      this.answered.set(name, value)
    }
  }

  async end(): Promise<void> {
    this.isOver = true
    await Promise.all(this.writers)
  }
}

/** Where a text begins to differ from what is wanted; '': nowhere. */
function differenceIn(text: string, wanted: string): string {
  if (text === wanted) return ''
  let at = 0
  while (text[at] === wanted[at]) at++
  const around = (of: string): string => of.slice(Math.max(0, at - 100), at + 100)
  return `${around(text)} in the place of ${around(wanted)}`
}

const sum = (values: ReadonlyMap<string, number>): number => [...values.values()].reduce((a, b) => a + b, 0)

interface Receivers {
  readonly live: MoodyReceiver
  readonly away: MoodyReceiver
  readonly heard: ReceivedRequest[]
}

async function receivers(t: Test, random: Random): Promise<Receivers> {
  const heard: ReceivedRequest[] = []
  const live = new MoodyReceiver(t, random, request => heard.push(request))
  const away = new MoodyReceiver(t, random, request => heard.push(request))
  for (const one of [live, away]) await one.open()
  await away.close()
  return { live, away, heard }
}

/** Fills both tenants; resolves when nothing moves any more but a receiver's retries. */
async function fill(client: Client, { live, away, heard }: Receivers): Promise<void> {
  const subject = (type: string) => ({ entities: [{ idPattern: '.*', type }] })
  const subscribe = (description: string, tenant: string, type: string, notification: object) =>
    client.send('POST', '/v2/subscriptions', { description, subject: subject(type), notification }, of(tenant))
  const headers = { 'X-Api-Key': 'a-secret', 'X-Plain': 'open' }
  await subscribe('live', 'city', 'Watched', { httpCustom: { url: `${live.url}/live`, headers } })
  await subscribe('away', '', 'Owed', { http: { url: `${away.url}/away` } })
  await subscribe('dead', '', 'Large', { http: { url: `${live.url}/dead` } })
  const provider = { http: { url: 'http://127.0.0.1:9/v2' } }
  for (const tenant of tenants) {
    const provided = { dataProvided: { entities: [{ id: 'R', type: 'R' }], attrs: ['a'] }, provider }
    await client.send('POST', '/v2/registrations', provided, of(tenant))
    for (const [n, entity] of entities().entries())
      await client.send('POST', '/v2/entities', entity, of(tenant, ['/', '/a', '/a/b'][n % 3]))
    // Times of change that differ from those of creation.
    await client.send('POST', '/v2/entities/urn:e:0/attrs', { more: { type: 'Number', value: 1 } }, of(tenant, '/'))
  }
  const count = (type: string, n: number, tenant: string, text = 'x') =>
    client.send(
      'POST',
      '/v2/entities?options=upsert',
      { id: type, type, n: { type: 'Number', value: n }, text: { type: 'Text', value: text } },
      of(tenant),
    )
  for (let n = 0; n < 5; n++) await count('Watched', n, 'city')
  for (let n = 0; n < 4; n++) await count('Owed', n, '')
  await count('Large', 1, '', 'x'.repeat(20_000))
  await until('notifications', () => (heard.length === 5 ? true : undefined))
  await until('counters', async () => {
    const seen = [...(await subscriptions(client, 'city')), ...(await subscriptions(client, ''))]
    const notification = (name: string) => seen.find(({ description }) => description === name)!.notification
    const isThere =
      notification('live').lastSuccess && notification('away').failsCounter && notification('dead').lastFailure
    return isThere && notification('live').timesSent === 5 ? true : undefined
  })
}

const subscriptions = async (client: Client, tenant: string): Promise<readonly (Subscription & { id: string })[]> =>
  (await client.send('GET', '/v2/subscriptions', undefined, of(tenant))).json as (Subscription & { id: string })[]

async function deadLetters(client: Client): Promise<unknown> {
  const [dead] = (await subscriptions(client, '')).filter(({ description }) => description === 'dead')
  const { json } = await client.send('GET', `/v2/subscriptions/${dead!.id}/deliveries`)
  return (json as { deadLetters: unknown }).deadLetters
}

t.test('what was backed up under load comes back after everything is lost', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const folder = tempDir(t)
  const keyFile = join(folder, 'key')
  writeFileSync(keyFile, 'a-key-of-some-length\n')
  const file = join(folder, 'backup')
  const args = ['-multiservice', '-outReqMsgMaxSize', '10000', '-backupKeyFile', keyFile]
  const broker = await startBroker(t, { dataDir: join(folder, 'first'), args: [...args, '-workers', '2'] })
  const receiving = await receivers(t, random)
  const first = new Client(broker)
  await fill(first, receiving)
  const [visible, letters] = [await first.visible(), await deadLetters(first)]
  t.match(letters, [{}], 'there is a dead letter')
  const load = new Load(first, random)
  await until('load', () => (sum(load.answered) > 100 ? true : undefined))

  const before = new Map(load.answered)
  const { code, stderr } = await runToEnd(t, [
    'backup',
    '--from',
    broker.baseUrl,
    '--to',
    file,
    '--backupKeyFile',
    keyFile,
  ])
  const after = new Map(load.asked)
  t.equal(code, 0, stderr)
  t.equal(statSync(file).mode & 0o777, 0o600)
  await until('more load', () => (sum(load.answered) > sum(after) + 50 ? true : undefined))
  await load.end()
  first.close()
  await broker.kill('SIGKILL')
  rmSync(broker.dataDir, { recursive: true })

  for (const workers of [1, 3])
    t.test(`into ${workers} worker(s)`, async t => {
      const dataDir = join(folder, `restored-${workers}`)
      const restored = await runToEnd(t, ['restore', '--from', file, '-dataDir', dataDir])
      t.equal(restored.code, 0, restored.stderr)
      const { heard, away } = receiving
      heard.length = 0
      await away.open()
      const again = await startBroker(t, { dataDir, args: [...args, '-workers', String(workers)] })
      const client = new Client(again)
      for (const [what, text] of await client.visible()) t.equal(differenceIn(text, visible.get(what)!), '', what)
      t.strictSame(await deadLetters(client), letters)
      const loaded = await client.loaded()
      for (const [name, value] of before) t.ok(loaded.get(name)! >= value, `${name}: ${loaded.get(name)} >= ${value}`)
      for (const [name, value] of loaded)
        t.ok(value <= (after.get(name) ?? 0), `${name}: ${value} <= ${after.get(name)}`)

      await client.send('POST', '/v2/entities/Watched/attrs', { n: { type: 'Number', value: 9 } }, of('city', '/'))
      const told = await until('what is owed', () => {
        const owed = heard.filter(({ path }) => path === '/away')
        const live = heard.find(({ path }) => path === '/live')
        return owed.length >= 4 && live ? { owed, live } : undefined
      })
      t.match(told.live.headers, { 'x-api-key': 'a-secret', 'x-plain': 'open' })
      const values = new Set(told.owed.map(({ body }) => JSON.parse(body).data[0].n.value as number))
      t.strictSame([...values].sort(), [0, 1, 2, 3])
      client.close()
      await again.kill('SIGTERM')
      t.strictSame(await indexesEqualRebuild(dataDir), [])
    })
})
