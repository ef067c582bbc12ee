// The data and traffic of an operator's broker in journeys: two tenants with values of every kind, subscriptions whose
// receivers are there, away or refuse, a load of writers, and all that clients can see of it, to be compared before and
// after.

import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import type { BrokerProcess } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { MoodyReceiver, type ReceivedRequest } from '../support/moody-receiver.js'
import type { Random } from '../support/random.js'

const waitMsDefault = 30_000
export const tenants = ['', 'city'] as const
export const of = (tenant: string, path?: string): Record<string, string> => ({
  ...(tenant !== '' && { 'Ctx-Service': tenant }),
  ...(path !== undefined && { 'Ctx-ServicePath': path }),
})

export async function until<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  waitMsMax = waitMsDefault,
): Promise<T> {
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

/** Most entities in one list. */
const pageLimit = 1000

/** A client of each tenant. */
export class Client {
  private readonly http: HttpClient

  constructor({ baseUrl }: BrokerProcess) {
    this.http = new HttpClient(baseUrl, 30_000, 8)
  }

  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const answer = await this.http.send(method, path, body, headers)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer
  }

  /** All data that does not change: entities but those under load, types, registrations, subscriptions but retries. */
  async visible(): Promise<ReadonlyMap<string, string>> {
    const seen = new Map<string, string>()
    const all = 'attrs=*,dateCreated,dateModified,dateExpires&metadata=*,dateCreated,dateModified'
    for (const tenant of tenants) {
      for (let offset = 0; ; offset += pageLimit) {
        const path = `/v2/entities?limit=${pageLimit}&offset=${offset}&q=!load&${all}`
        const { text, json } = await this.send('GET', path, undefined, of(tenant))
        seen.set(`${tenant} ${path}`, text)
        if ((json as unknown[]).length < pageLimit) break
      }
      const { headers } = await this.send('GET', '/v2/entities?limit=0&options=count&q=!load', undefined, of(tenant))
      seen.set(`${tenant} entities`, String(headers['ctx-total-count']))
      const registered = (await this.send('GET', '/v2/registrations?limit=1000', undefined, of(tenant)))
        .json as object[]
      // What a process has counted since its start goes with it.
      const registrations = registered.map(one => ({ ...one, forwardingInformation: undefined }))
      seen.set(`${tenant} registrations`, JSON.stringify(registrations))
      const types = (await this.send('GET', '/v2/types?limit=1000', undefined, of(tenant))).json as { type: string }[]
      seen.set(`${tenant} types`, JSON.stringify(types.filter(({ type }) => type !== 'Load')))
      const { json } = await this.send('GET', '/v2/subscriptions?limit=1000', undefined, of(tenant))
      seen.set(`${tenant} subscriptions`, JSON.stringify((json as Subscription[]).map(withoutMoving)))
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

/**
 * Without counters that change: a receiver that is away continues to fail, and the load continues to cause
 * notifications.
 */
function withoutMoving(subscription: Subscription): Subscription {
  const { description, notification } = subscription
  if (description === 'away') return { ...subscription, notification: { timesSent: notification.timesSent } }
  return description === 'load' ? { ...subscription, notification: {} } : subscription
}

/**
 * Writers that count up, each in its own entities, and create new ones. Keeps the last answered and the last requested
 * value.
 */
export class Load {
  readonly answered = new Map<string, number>()
  readonly asked = new Map<string, number>()
  private isOver = false
  private readonly writers: Promise<void>[]

  /** `restMs`: pause between two requests of a writer. */
  constructor(
    client: Client,
    random: Random,
    private readonly restMs = 0,
  ) {
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
      if (this.restMs > 0) await pause(this.restMs)
    }
  }

  async end(): Promise<void> {
    this.isOver = true
    await Promise.all(this.writers)
  }
}

/** The first difference of a text from the wanted one; '' if there is none. */
export function differenceIn(text: string, wanted: string): string {
  if (text === wanted) return ''
  let at = 0
  while (text[at] === wanted[at]) at++
  const around = (of: string): string => of.slice(Math.max(0, at - 100), at + 100)
  return `${around(text)} in the place of ${around(wanted)}`
}

export const sum = (values: ReadonlyMap<string, number>): number => [...values.values()].reduce((a, b) => a + b, 0)

export interface Receivers {
  readonly live: MoodyReceiver
  readonly away: MoodyReceiver
  readonly received: ReceivedRequest[]
}

export async function receivers(t: Test, random: Random): Promise<Receivers> {
  const received: ReceivedRequest[] = []
  const live = new MoodyReceiver(t, random, request => received.push(request))
  const away = new MoodyReceiver(t, random, request => received.push(request))
  for (const one of [live, away]) await one.open()
  await away.close()
  return { live, away, received: received }
}

/** Fills both tenants; resolves when only the retries of a receiver still change data. */
export async function fill(client: Client, { live, away, received }: Receivers): Promise<void> {
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
  await until('notifications', () => (received.length === 5 ? true : undefined))
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

export async function deadLetters(client: Client): Promise<unknown> {
  const [dead] = (await subscriptions(client, '')).filter(({ description }) => description === 'dead')
  const { json } = await client.send('GET', `/v2/subscriptions/${dead!.id}/deliveries`)
  return (json as { deadLetters: unknown }).deadLetters
}
