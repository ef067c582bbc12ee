// Wrong requests, and right ones that were spoilt: rows of the tables of test/cases, bodies, parameters and headers
// that were mutilated, methods that a path does not have. Some of them are right by accident.
//
// None sets an expiry of an entity: the time of it would depend on a clock.

import { errorCases } from '../cases/errors.js'
import {
  batchLanguage,
  entityLanguage,
  headerLanguage,
  orderLanguage,
  queryLanguage,
  queryStringLanguage,
} from '../cases/languages.js'
import { type Language, Mutator, mutateJson, one } from './mutator.js'
import type { Random } from './random.js'
import { chance } from './random-entity.js'
import type { HttpRequest } from './reference-requests.js'

/** Longest text that is drawn: enough for all limits except that of bodies, which has a request of its own. */
const lengthMax = 4_000
/** The limit of bodies that the brokers are given; one request exceeds it. */
export const bodyBytesMax = 65_536

const paths = [
  '/v2/entities',
  '/v2/entities/R1',
  '/v2/entities/R1/attrs',
  '/v2/entities/R1/attrs/temp',
  '/v2/entities/R1/attrs/temp/value',
  '/v2/op/query',
  '/v2/op/update',
  '/v2/op/notify',
  '/v2/types',
  '/v2/types/Room',
  '/v2/subscriptions',
  '/v2/subscriptions/65f0c2a1b4d3e2f1a0c9b8d7',
  '/v2/subscriptions/65f0c2a1b4d3e2f1a0c9b8d7/deliveries',
  '/v2/subscriptions/65f0c2a1b4d3e2f1a0c9b8d7/deliveries/retry',
  '/v2/registrations',
  '/v2/registrations/65f0c2a1b4d3e2f1a0c9b8d7',
  '/v2/registrations/short',
  '/v2',
  '/v2/',
  '/v3',
] as const

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export class WrongRequests {
  private readonly random: Random
  private readonly entity: Mutator
  private readonly batch: Mutator
  private readonly parameters: Mutator
  private readonly header: Mutator
  private readonly order: Mutator
  private readonly q: Mutator
  private readonly mq: Mutator

  constructor(random: Random) {
    this.random = random
    const mutatorOf = (language: Language): Mutator => new Mutator(random, { ...language, lengthMax })
    this.entity = mutatorOf(entityLanguage)
    this.batch = mutatorOf(batchLanguage)
    this.parameters = mutatorOf(queryStringLanguage)
    this.header = mutatorOf(headerLanguage)
    this.order = mutatorOf(orderLanguage)
    this.q = mutatorOf(queryLanguage('q'))
    this.mq = mutatorOf(queryLanguage('mq'))
  }

  /** The next one that HTTP can carry; `right` returns a valid one to spoil. */
  next(right: () => HttpRequest): HttpRequest {
    for (;;) {
      const request = this.draw(right)
      if (canBeSent(request) && !/dateExpires/i.test(`${request.target} ${request.body}`)) return request
    }
  }

  /** A JSON text, spoilt. */
  spoilt(body: string): string {
    const { random } = this
    if (chance(random, 0.2))
      return new Mutator(random, {
        texts: [body],
        words: ['"', '{', ',', 'null'],
        nests: [['[', ']']],
        lengthMax,
      }).next()
    return JSON.stringify(mutateJson(random, JSON.parse(body), values))
  }

  private draw(right: () => HttpRequest): HttpRequest {
    const { random } = this
    const post = (target: string, body: string): HttpRequest => ({ method: 'POST', target, headers: {}, body })
    const get = (target: string, headers = {}): HttpRequest => ({ method: 'GET', target, headers })
    const place = '/v2/entities/R1/attrs'
    const option = random.pick(['', '', '?options=keyValues', '?options=upsert', '?options=append', '?options=none'])
    return random.pick<() => HttpRequest>([
      () => requestOf(one(random, errorCases)),
      () => requestOf(one(random, errorCases)),
      () => post(`/v2/entities${option}`, this.entity.next()),
      () => ({ ...post(place + option, this.entity.next()), method: random.pick(['POST', 'PATCH', 'PUT']) }),
      () => ({ ...post(`${place}/temp`, this.entity.next()), method: 'PUT' }),
      () => ({ ...post(`${place}/A/value`, this.entity.next()), method: 'PUT' }),
      () => post(random.pick(['/v2/op/query', '/v2/op/update', '/v2/op/notify']), this.batch.next()),
      () => get(`/v2/entities?${this.parameters.next()}`),
      () => get(`/v2/entities?q=${encoded(this.q.next())}`),
      () => get(`/v2/entities?mq=${encoded(this.mq.next())}`),
      () => get(`/v2/entities?orderBy=${encoded(this.order.next())}`),
      () => get(this.header.next()),
      () => get('/v2/entities', { [random.pick(['Ctx-ServicePath', 'Accept'])]: this.header.next() }),
      () => ({ method: random.pick(methods), target: random.pick(paths), headers: {}, body: '{}' }),
      () => ({ method: random.pick(['GET', 'DELETE']), target: random.pick(paths), headers: {} }),
      () => post('/v2/entities', JSON.stringify({ id: 'R2', a: { value: 'x'.repeat(bodyBytesMax) } })),
      () => this.changed(right()),
      () => this.changed(right()),
      () => this.changed(right()),
    ])()
  }

  /** A request with another body, parameter or header than it had. */
  private changed(request: HttpRequest): HttpRequest {
    const { random } = this
    const { target, headers, body } = request
    const mark = target.includes('?') ? '&' : '?'
    return random.pick<() => HttpRequest>([
      () => (body === undefined ? request : { ...request, body: this.spoilt(body) }),
      () => (body === undefined ? request : { ...request, body: this.spoilt(body) }),
      () => ({ ...request, target: `${target}${mark}${this.parameters.next()}` }),
      () => ({ ...request, headers: { ...headers, 'Ctx-ServicePath': this.header.next() } }),
      () => ({ ...request, headers: { ...headers, 'Content-Type': this.header.next() } }),
      () => ({ ...request, method: random.pick(methods) }),
    ])()
  }
}

/** Values that replace the own value of a member. */
const values: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  '',
  'x',
  'a(b',
  'Room',
  '.*',
  '(',
  [],
  {},
  [1],
  { id: 'R1' },
  'http://h',
  '2150-01-01',
]

const encoded = (text: string): string => encodeURIComponent(text.toWellFormed())

function requestOf({ request, headers = [], body }: (typeof errorCases)[number]): HttpRequest {
  const [method = '', target = ''] = request.split(' ')
  const named = headers.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()])
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { method, target, headers: Object.fromEntries(named), ...(text !== undefined && { body: text }) }
}

/** Whether the client of the tests can send the request: it refuses some characters by itself. */
const canBeSent = ({ target, headers, body }: HttpRequest): boolean =>
  /^\/[\x21-\x7e]*$/.test(target) &&
  target.length < 2 * lengthMax &&
  Object.values(headers).every(value => /^[\x20-\x7e]*$/.test(value)) &&
  (body?.isWellFormed() ?? true)
