// Random requests of every route of the interface, good and bad alike, for brokers that have to agree about them.
//
// There are several tenants. A plain model (reference-entities) keeps the content of each, so that most requests are
// about existing entities; the model does not follow the bad requests, and need not. Brokers make the ids of
// subscriptions and registrations: a request names the n-th one as `{document n}`, and its sender inserts the id.
//
// Two cases are left out, since only a clock decides them: effects that would expire or stop being throttled while
// requests are sent, and lists in the order of times.
//
// Everything is drawn from one Random, so a seed gives the same requests. Not here: bodies that are wrong
// (wrong-requests).

import type { Random } from './random.js'
import { batchAction, batchChanges, firstEntities, nextChange, type Scene } from './random-change.js'
import { attributeNames, chance, identity, sometimes, types } from './random-entity.js'
import { nextQuery } from './random-query.js'
import { randomBody } from './random-subscription.js'
import { type Entity, Reference } from './reference-entities.js'
import { batchRequest, changeRequest, type HttpRequest, queryRequest } from './reference-requests.js'
import { WrongRequests } from './wrong-requests.js'

export interface RandomRequest extends HttpRequest {
  readonly tenant: string
  /** The kind of request, for the tally. */
  readonly kind: string
  /** The number of the subscription or registration that it makes, if the broker accepts it. */
  readonly makes?: number
  /** The answer has counters of deliveries, which become equal only after the deliveries are counted. */
  readonly isLate?: boolean
}

/** So far away that no such date expires during the test. */
const storyMs = Date.UTC(2100, 0, 1)
const idsPerStem = 5
const entitiesMin = 15
const documentsMax = 12

interface Tenant {
  readonly name: string
  reference: Reference
  readonly subscriptions: number[]
  readonly registrations: number[]
}

type Draw = (tenant: Tenant) => Omit<RandomRequest, 'tenant' | 'kind'>

export class RandomInterface {
  private readonly random: Random
  private readonly tenants: Tenant[]
  private readonly wrong: WrongRequests
  private readonly kinds: readonly (readonly [weight: number, kind: string, draw: Draw])[]
  private nextDocument = 0
  private renamed = 0

  constructor(random: Random, tenants: readonly string[]) {
    this.random = random
    this.wrong = new WrongRequests(random)
    this.tenants = tenants.map(newTenant)
    this.kinds = [
      [24, 'change', tenant => this.change(tenant)],
      [8, 'batch', tenant => this.batch(tenant)],
      [
        20,
        'list',
        ({ reference }) => queryRequest(nextQuery(random, { entities: [...reference.entities], idsPerStem })),
      ],
      [12, 'read', tenant => this.read(tenant)],
      [3, 'types', () => this.typesOf()],
      [
        9,
        'subscription',
        tenant => this.document(tenant.subscriptions, '/v2/subscriptions', () => this.subscription()),
      ],
      [
        6,
        'registration',
        tenant => this.document(tenant.registrations, '/v2/registrations', () => this.registration()),
      ],
      [2, 'explanation', tenant => this.explanation(tenant)],
      [
        16,
        'wrong',
        ({ reference }) => {
          const wrong = this.wrong.next(() => changeRequest(nextChange(this.scene(reference))))
          // What is wrong with it may be ignored: then it lists subscriptions with their counters.
          return { ...wrong, isLate: wrong.target.startsWith('/v2/subscriptions') }
        },
      ],
    ]
  }

  next(): RandomRequest {
    for (;;) {
      const asked = this.draw()
      if (!isOrderedByTime(asked)) return asked
    }
  }

  private draw(): RandomRequest {
    const { random } = this
    const tenant = this.tenants[random.between(0, this.tenants.length - 1)]!
    const { name } = tenant
    if (tenant.reference.size < entitiesMin) return { ...this.beginning(tenant), tenant: name, kind: 'batch' }
    let left = random.fraction() * this.kinds.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, kind, draw] of this.kinds) {
      left -= weight
      if (left < 0) return { ...draw(tenant), tenant: name, kind }
    }
    throw new Error('the shares of the kinds do not add up')
  }

  /** The broker did not make a requested document. */
  notMade(document: number): void {
    for (const { subscriptions, registrations } of this.tenants)
      for (const list of [subscriptions, registrations])
        if (list.includes(document)) list.splice(list.indexOf(document), 1)
  }

  /** The content of a tenant is unknown from now on: another tenant takes its place. */
  forsake(name: string): void {
    const at = this.tenants.findIndex(tenant => tenant.name === name)
    this.tenants[at] = newTenant(`${name}_${this.renamed++}`)
  }

  /** The present tenants. */
  get names(): readonly string[] {
    return this.tenants.map(({ name }) => name)
  }

  private scene(reference: Reference): Scene {
    return { reference, random: this.random, nowMs: storyMs, idsPerStem, isMine: () => true, creates: true }
  }

  private beginning({ reference }: Tenant): HttpRequest {
    const changes = firstEntities(this.random, reference, entitiesMin, idsPerStem, storyMs)
    return batchRequest('append', changes)
  }

  private change({ reference }: Tenant): HttpRequest {
    const change = nextChange(this.scene(reference))
    reference.apply(change, storyMs)
    return changeRequest(change, chance(this.random, 0.3))
  }

  private batch(tenant: Tenant): HttpRequest {
    const { reference } = tenant
    const action = batchAction(this.random)
    const changes = []
    for (const change of batchChanges(this.scene(reference), action)) {
      changes.push(change)
      reference.apply(change, storyMs)
    }
    if (changes.length === 0) return this.change(tenant)
    const request = batchRequest(action, changes)
    if (action !== 'append' || chance(this.random, 0.7)) return request
    const { entities } = JSON.parse(request.body!) as { readonly entities: unknown }
    return { ...request, target: '/v2/op/notify', body: JSON.stringify({ subscriptionId: '5', data: entities }) }
  }

  private anyEntity({ reference }: Tenant): Pick<Entity, 'id' | 'type' | 'path'> & Partial<Entity> {
    const all = [...reference.entities]
    return chance(this.random, 0.9) ? all[this.random.between(0, all.length - 1)]! : identity(this.random, idsPerStem)
  }

  private read(tenant: Tenant): HttpRequest {
    const { random } = this
    const { id, type, path, attributes } = this.anyEntity(tenant)
    const names = [...(attributes?.keys() ?? []), ...attributeNames.slice(0, 2)]
    const someName = () => names[random.between(0, names.length - 1)]!
    const place = `/v2/entities/${encodeURIComponent(id)}`
    const name = encodeURIComponent(someName())
    const target = random.pick([place, `${place}/attrs`, `${place}/attrs/${name}`, `${place}/attrs/${name}/value`])
    const parameters = {
      type: sometimes(random, 0.7, () => type),
      options: sometimes(random, 0.4, () => random.pick(['keyValues', 'values', 'unique', 'keyValues,unique'])),
      attrs: sometimes(random, 0.3, () => `${someName()},${random.pick(['*', 'dateModified', 'none', someName()])}`),
      metadata: sometimes(random, 0.2, () => random.pick(['*', 'dateCreated,*', 'acc', 'none'])),
    }
    const accepted = sometimes(random, 0.2, () =>
      random.pick(['text/plain', 'application/json', 'text/*;q=0.5', 'a/b']),
    )
    const headers = {
      ...(chance(random, 0.6) && { 'Ctx-ServicePath': path }),
      ...(accepted !== undefined && { Accept: accepted }),
    }
    return { method: 'GET', target: target + queryOf(parameters), headers }
  }

  private typesOf(): HttpRequest {
    const { random } = this
    const path = random.pick(['/#', '/a/#', '/', '/ab'])
    const headers = sometimes(random, 0.5, () => ({ 'Ctx-ServicePath': path })) ?? {}
    if (chance(random, 0.3))
      return { method: 'GET', target: `/v2/types/${random.pick([...types, 'Nothing'])}`, headers }
    const parameters = {
      options: sometimes(random, 0.7, () => random.pick(['count', 'values', 'noAttrDetail', 'count,noAttrDetail'])),
      limit: sometimes(random, 0.5, () => random.pick(['1', '2', '20', '1000'])),
      offset: sometimes(random, 0.3, () => random.pick(['0', '1', '5'])),
    }
    return { method: 'GET', target: `/v2/types${queryOf(parameters)}`, headers }
  }

  // Subscriptions and registrations

  private document(documents: number[], route: string, body: () => string): Omit<RandomRequest, 'tenant' | 'kind'> {
    const { random } = this
    const path = random.pick(['/', '/a', '/a/#', '/#'])
    const headers: Record<string, string> = sometimes(random, 0.3, () => ({ 'Ctx-ServicePath': path })) ?? {}
    const draw = random.fraction()
    if (documents.length === 0 || (draw < 0.35 && documents.length < documentsMax)) {
      const makes = this.nextDocument++
      documents.push(makes)
      const target = route + (chance(random, 0.1) ? '?options=skipInitialNotification' : '')
      return { method: 'POST', target, headers, body: this.spoilt(body()), makes }
    }
    const number = documents[random.between(0, documents.length - 1)]!
    const one = `${route}/{document ${number}}`
    if (draw < 0.55) return { method: 'PATCH', target: one, headers, body: this.part(body()) }
    if (draw < 0.7) return { method: 'GET', target: one, headers, isLate: true }
    if (draw < 0.85) {
      const limit = sometimes(random, 0.5, () => random.pick(['1', '3', '20', '1000']))
      const offset = sometimes(random, 0.3, () => random.pick(['0', '1', '20']))
      const options = sometimes(random, 0.6, () => 'count')
      return { method: 'GET', target: route + queryOf({ limit, offset, options }), headers, isLate: true }
    }
    // Deleted documents are often requested again.
    if (chance(random, 0.8)) documents.splice(documents.indexOf(number), 1)
    return { method: 'DELETE', target: one, headers }
  }

  private explanation(tenant: Tenant): Omit<RandomRequest, 'tenant' | 'kind'> {
    const { random } = this
    const { subscriptions } = tenant
    if (subscriptions.length === 0) return this.typesOf()
    const { id, type } = this.anyEntity(tenant)
    const number = subscriptions[random.between(0, subscriptions.length - 1)]!
    const parameters = { options: 'explain', entity: id, type: sometimes(random, 0.7, () => type) }
    const target = `/v2/subscriptions/{document ${number}}${queryOf(parameters)}`
    return { method: 'GET', target, headers: {}, isLate: true }
  }

  /** A valid one; half of them are about existing entities. */
  private subscription(): string {
    const body = randomBody(this.random)
    // A throttling never ends during the test.
    const lasting = body.replaceAll(/"throttling":([1-9]\d*)/g, '"throttling":$1000000')
    if (chance(this.random, 0.5)) return lasting
    return lasting
      .replaceAll(/\b(temperature|pressure)\b/g, word => (word === 'pressure' ? 'status' : 'temp'))
      .replaceAll(/"type":"[TU]"/g, '"type":"Room"')
      .replaceAll('"^T"', '"^R"')
      .replaceAll(/"e([1-3])"/g, '"room$1"')
      .replaceAll('^e[0-9]', '^r')
  }

  private registration(): string {
    const { random } = this
    const someone = () => ({
      ...random.pick<object>([{ id: `room${random.between(1, 3)}` }, { idPattern: '.*' }, { idPattern: '^x' }]),
      ...random.pick<object>([{}, { type: random.pick(types) }, { typePattern: '.*' }]),
    })
    const attrs = [...attributeNames].slice(random.between(0, 3), random.between(3, 6))
    const mode = random.pick(['all', 'none', 'query', 'update'])
    return JSON.stringify({
      ...(chance(random, 0.5) && { description: random.pick(['', 'a provider', 'é 😀']) }),
      dataProvided: {
        entities: [someone(), someone()].slice(random.between(0, 1)),
        ...(chance(random, 0.7) && { attrs }),
      },
      provider: {
        http: { url: random.pick(['http://h', 'http://h:8080/v2', 'https://h/é']) },
        ...(chance(random, 0.5) && { supportedForwardingMode: mode }),
        ...(chance(random, 0.1) && { legacyForwarding: true }),
      },
      ...(chance(random, 0.3) && { expires: random.pick(['2150-01-02T03:04:05.678Z', '2001-01-01', '']) }),
      ...(chance(random, 0.4) && { status: random.pick(['active', 'inactive']) }),
    })
  }

  private spoilt(body: string): string {
    return chance(this.random, 0.25) ? this.wrong.spoilt(body) : body
  }

  /** Some members of a body, as in a PATCH. */
  private part(body: string): string {
    const members = Object.entries(JSON.parse(body) as object).filter(() => chance(this.random, 0.6))
    return this.spoilt(JSON.stringify(Object.fromEntries(members)))
  }
}

/** The changes of a batch may or may not fall into one millisecond. */
const isOrderedByTime = ({ target }: HttpRequest): boolean => /orderBy=[^&]*date(Created|Modified)/.test(target)

const newTenant = (name: string): Tenant => ({ name, reference: new Reference(), subscriptions: [], registrations: [] })

function queryOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const words = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  return words.length === 0 ? '' : `?${words.join('&')}`
}
