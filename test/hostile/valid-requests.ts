// Valid requests of every route, written from the interface documents alone (docs/interface/README.md,
// docs/interface/entities.md, docs/interface/subscriptions.md, docs/interface/administration.md).
//
// The requests use few names, so that they concern the same entities; one name in six is one that objects have by
// themselves. The broker may still refuse a request of valid form: the entity may be missing.
//
// Not here: the mutations of these requests (mutations).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a macro looks like that

import { one } from '../support/mutator.js'
import type { Random } from '../support/random.js'
import type { Draft } from './draft.js'
import { oddNames } from './words.js'

/** The target of hostile subscriptions and registrations. */
export interface Targets {
  /** Ports: a receiver that listens, a port without a listener, and the broker itself. */
  readonly receiver: number
  readonly nobody: number
  readonly broker: number
}

/** Tenants that hostile requests may use. */
export const tenants = [
  '',
  '',
  'alpha',
  'alpha',
  'alpha',
  'beta',
  'gamma_1',
  '__proto__',
  'constructor',
  'tostring',
] as const
const plainPaths = ['/', '/a', '/a/b', '/c', '/constructor', '/__proto__'] as const
const wildPaths = ['/#', '/a/#', '/a,/c', '/a/#,/c', '/#'] as const
const ids = ['E1', 'E2', 'E3', 'E4', 'E5', 'urn:ngsi-ld:Room:6', 'E7', 'E8'] as const
const types = ['T', 'Room', 'Thing', 'U'] as const
const attributeNames = ['a', 'b', 'c', 'temp', 'location', 'list'] as const
const metadataNames = ['m', 'accuracy', 'unit'] as const
const formats = ['normalized', 'simplifiedNormalized', 'keyValues', 'simplifiedKeyValues', 'values', 'legacy'] as const
const alterations = ['entityCreate', 'entityChange', 'entityUpdate', 'entityDelete'] as const

type Tree = Record<string, unknown>
type Draw = () => Omit<Draft, 'kind' | 'headers'> & { readonly headers?: Draft['headers'] }

export class ValidRequests {
  private readonly random: Random
  private readonly targets: Targets
  private readonly draws: readonly (readonly [weight: number, kind: string, draw: Draw])[]
  private readonly subscriptions: string[] = []
  private readonly registrations: string[] = []
  private drawn = 0

  constructor(random: Random, targets: Targets) {
    this.random = random
    this.targets = targets
    this.draws = [
      [10, 'entity create', () => this.write('POST', ['v2', 'entities'], this.entity(), ['upsert', 'forcedUpdate'])],
      [3, 'entity create keyValues', () => this.keyValues('POST', ['v2', 'entities'], this.plainEntity())],
      [12, 'entity list', () => this.list()],
      [5, 'entity get', () => this.read(['v2', 'entities', this.id()])],
      [3, 'entity remove', () => this.plain('DELETE', ['v2', 'entities', this.id()], this.typeParam())],
      [4, 'entity attrs get', () => this.read(['v2', 'entities', this.id(), 'attrs'])],
      [6, 'entity update', () => this.write('PATCH', this.attrsPath(), this.attributes(), ['forcedUpdate'])],
      [6, 'entity append', () => this.write('POST', this.attrsPath(), this.attributes(), ['append', 'flowControl'])],
      [4, 'entity replace', () => this.write('PUT', this.attrsPath(), this.attributes(), ['forcedUpdate'])],
      [3, 'attribute get', () => this.read(this.attributePath())],
      [4, 'attribute put', () => this.write('PUT', this.attributePath(), this.attribute(), ['overrideMetadata'])],
      [3, 'attribute remove', () => this.plain('DELETE', this.attributePath(), this.typeParam())],
      [3, 'value get', () => this.valueRead()],
      [4, 'value put', () => this.valueWrite()],
      [7, 'op query', () => this.query()],
      [10, 'op update', () => this.batch()],
      [4, 'op notify', () => this.notify()],
      [2, 'types', () => this.plain('GET', ['v2', 'types'], this.page([['options', 'values']]))],
      [2, 'type', () => this.plain('GET', ['v2', 'types', this.type()])],
      [4, 'subscription create', () => this.json('POST', ['v2', 'subscriptions'], this.subscription())],
      [2, 'subscription list', () => this.plain('GET', ['v2', 'subscriptions'], this.page())],
      [2, 'subscription get', () => this.plain('GET', ['v2', 'subscriptions', this.subscriptionId()])],
      [2, 'subscription change', () => this.changeOf('subscriptions', this.subscriptionId(), this.subscription())],
      [2, 'subscription remove', () => this.plain('DELETE', ['v2', 'subscriptions', this.subscriptionId()])],
      [1, 'deliveries', () => this.plain('GET', ['v2', 'subscriptions', this.subscriptionId(), 'deliveries'])],
      [1, 'retry', () => this.json('POST', ['v2', 'subscriptions', this.subscriptionId(), 'deliveries', 'retry'], {})],
      [1, 'registration create', () => this.json('POST', ['v2', 'registrations'], this.registration())],
      [1, 'registration list', () => this.plain('GET', ['v2', 'registrations'], this.page())],
      [1, 'registration get', () => this.plain('GET', ['v2', 'registrations', this.registrationId()])],
      [1, 'registration change', () => this.changeOf('registrations', this.registrationId(), this.registration())],
      [1, 'registration remove', () => this.plain('DELETE', ['v2', 'registrations', this.registrationId()])],
      [2, 'administration', () => this.administration()],
    ]
  }

  next(): Draft {
    const { random } = this
    let left = random.fraction() * this.draws.reduce((sum, [weight]) => sum + weight, 0)
    const found = this.draws.find(([weight]) => {
      left -= weight
      return left < 0
    })
    const [, kind, draw] = found ?? this.draws[0]!
    const { headers = [], ...drawn } = draw()
    return { kind, ...drawn, headers: [...headers, ...this.vendorHeaders(drawn.method, kind)] }
  }

  /** Keeps the location of a created document: some of the later requests are about it. */
  learn(location: string): void {
    const [, , kind, id] = location.split('/')
    const known = kind === 'subscriptions' ? this.subscriptions : kind === 'registrations' ? this.registrations : []
    if (id === undefined) return
    known.push(id)
    if (known.length > 200) known.splice(0, 100)
  }

  private vendorHeaders(method: string, kind: string): Draft['headers'] {
    const { random } = this
    const headers: Draft['headers'] = []
    const prefix = this.chance(8) ? 'Fiware' : 'Ctx'
    const tenant = one(random, tenants)
    if (tenant !== '') headers.push([`${prefix}-Service`, tenant])
    const reads = method === 'GET' || kind === 'op query' || kind.startsWith('subscription')
    if (this.chance(2))
      headers.push([
        `${prefix}-ServicePath`,
        reads && this.chance(3) ? one(random, wildPaths) : one(random, plainPaths),
      ])
    headers.push([`${prefix}-Correlator`, `hostile-${random.seed}-${this.drawn++}`])
    if (this.chance(20)) headers.push(['X-Auth-Token', 'hostile-token'])
    if (this.chance(20)) headers.push(['X-Forwarded-For', '203.0.113.7, 10.0.0.1'])
    if (this.chance(20)) headers.push(['Origin', 'http://evil.example'])
    return headers
  }

  private chance(of: number): boolean {
    return this.random.between(1, of) === 1
  }

  private some<T>(choices: readonly T[], least = 0): T[] {
    return choices.filter((_, index) => index < least || this.chance(3))
  }

  private name(choices: readonly string[]): string {
    return this.chance(6) ? one(this.random, oddNames) : one(this.random, choices)
  }

  private id = (): string => this.name(ids)
  private type = (): string => this.name(types)
  private attributeName = (): string => {
    const name = this.name(attributeNames)
    return name === 'dateExpires' && !this.chance(10) ? 'a' : name
  }

  private attrsPath = (): string[] => ['v2', 'entities', this.id(), 'attrs']
  private attributePath = (): string[] => [...this.attrsPath(), this.attributeName()]
  private subscriptionId = (): string => one(this.random, ['51c0ac9ed714fb3b37d7d5a8', ...this.subscriptions])
  private registrationId = (): string => one(this.random, ['51c0ac9ed714fb3b37d7d5a8', ...this.registrations])
  private typeParam = (): Draft['params'] => (this.chance(2) ? [['type', this.type()]] : [])

  private plain(method: string, path: string[], params: Draft['params'] = []): ReturnType<Draw> {
    return { method, path, params }
  }

  private json(method: string, path: string[], json: unknown, params: Draft['params'] = []): ReturnType<Draw> {
    return { method, path, params, json, headers: [['Content-Type', 'application/json']] }
  }

  private write(method: string, path: string[], json: unknown, options: readonly string[]): ReturnType<Draw> {
    const chosen = this.some(options)
    return this.json(method, path, json, chosen.length > 0 ? [['options', chosen.join(',')]] : [])
  }

  private keyValues(method: string, path: string[], json: unknown): ReturnType<Draw> {
    return this.json(method, path, json, [['options', 'keyValues']])
  }

  private page(more: Draft['params'] = []): Draft['params'] {
    const params: Draft['params'] = [
      ['limit', String(this.random.between(0, 1000))],
      ['offset', String(this.random.between(0, 30))],
      ['options', 'count'],
    ]
    return this.some([...params.slice(0, 2), ...(more.length > 0 ? more : params.slice(2))])
  }

  private read(path: string[]): ReturnType<Draw> {
    const params: Draft['params'] = [
      ['type', this.type()],
      ['attrs', [this.attributeName(), 'dateModified', '*'].slice(0, this.random.between(1, 3)).join(',')],
      ['metadata', one(this.random, ['*', 'm', 'dateCreated', 'previousValue'])],
      ['options', one(this.random, ['keyValues', 'values', 'unique', 'skipForwarding'])],
    ]
    return { method: 'GET', path, params: this.some(params), headers: this.accept() }
  }

  private accept = (): Draft['headers'] =>
    this.chance(4) ? [['Accept', one(this.random, ['application/json', '*/*', 'application/*;q=0.5, text/plain'])]] : []

  private valueRead(): ReturnType<Draw> {
    const accept = one(this.random, ['*/*', 'text/plain', 'application/json', 'text/plain;q=0.1, application/json'])
    return { ...this.plain('GET', [...this.attributePath(), 'value'], this.typeParam()), headers: [['Accept', accept]] }
  }

  private valueWrite(): ReturnType<Draw> {
    const path = [...this.attributePath(), 'value']
    if (this.chance(2)) return this.json('PUT', path, this.value(), this.typeParam())
    const text = one(this.random, ['12.5', '"text"', 'true', 'null'])
    return {
      ...this.plain('PUT', path, this.typeParam()),
      bytes: Buffer.from(text),
      headers: [['Content-Type', 'text/plain']],
    }
  }

  private list(): ReturnType<Draw> {
    const { random } = this
    const geo = one(random, [
      ['near;maxDistance:1000', 'point', '40.1,-3.2'],
      ['coveredBy', 'polygon', '0,0;0,10;10,10;0,0'],
      ['intersects', 'box', '-5,-5;50,50'],
      ['equals', 'line', '1,1;2,2'],
      ['disjoint', 'point', '0,0'],
    ])
    const params: Draft['params'] = [
      ['id', `${this.id()},${this.id()}`],
      ['type', this.type()],
      ['q', this.q()],
      ['mq', `${this.attributeName()}.${one(random, metadataNames)}>1`],
      ['attrs', this.attributeName()],
      ['metadata', '*'],
      ['orderBy', one(random, ['a', '!temp,b', 'dateCreated', 'id'])],
      ['options', one(random, ['count', 'keyValues', 'values,count', 'unique'])],
    ]
    if (this.chance(4)) params[0] = ['idPattern', one(random, ['^E', '.*', 'E[1-4]$', '(E|urn).*'])]
    if (this.chance(4)) params[1] = ['typePattern', one(random, ['T|Room', '.*', '^U$'])]
    const chosen = this.some(params).concat(this.page().filter(([name]) => name !== 'options'))
    if (this.chance(6))
      for (const [at, name] of ['georel', 'geometry', 'coords'].entries()) chosen.push([name, geo[at]!])
    return { method: 'GET', path: ['v2', 'entities'], params: chosen, headers: this.accept() }
  }

  private q(): string {
    const operator = one(this.random, ['==', '!=', '>', '<', '>=', '<=', '~='])
    const right = one(this.random, ['1', '1..5', 'text', "'quoted'", 'a,b', '2026-01-01', 'true', '^t'])
    const statements = [`${this.attributeName()}${operator}${right}`, this.attributeName(), `!${this.attributeName()}`]
    return this.some(statements, 1).join(';')
  }

  private value(): unknown {
    const { random } = this
    return one<unknown>(random, [
      random.between(-1000, 1000),
      random.fraction() * 100,
      'text',
      `ünïcödé ${random.between(0, 9)}`,
      true,
      null,
      [1, 'two', { three: [3] }],
      { [this.attributeName()]: { deep: [1, 2, 3] } },
      { $inc: 1 },
      { $push: 1 },
      { $addToSet: 'x' },
      { $set: { [one(random, oddNames)]: 1 } },
      { $unset: { a: 1 } },
      { $max: 10 },
    ])
  }

  private attribute(): Tree {
    const { random } = this
    if (this.chance(12)) return { type: 'geo:json', value: this.geometry() }
    if (this.chance(15)) return { type: 'DateTime', value: one(random, ['2026-01-01T00:00:00Z', '2030-05-06']) }
    if (this.chance(15)) return { type: 'TextUnrestricted', value: '<b onclick="x">' }
    if (this.chance(20)) return { type: one(random, ['geo:point', 'geo:line']), value: one(random, ['40,-3', '1,1']) }
    const attribute: Tree = { value: this.value() }
    if (this.chance(2)) attribute.type = this.name(['Number', 'Text', 'Own'])
    if (this.chance(3)) attribute.metadata = named(this.name(metadataNames), { value: 5, type: this.name(['Number']) })
    return attribute
  }

  private geometry(): unknown {
    const point = [this.random.between(-180, 180), this.random.between(-90, 90)]
    return one<unknown>(this.random, [
      { type: 'Point', coordinates: point },
      {
        type: 'LineString',
        coordinates: [
          [0, 0],
          [1, 1],
        ],
      },
      {
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [0, 5],
            [5, 5],
            [0, 0],
          ],
        ],
      },
    ])
  }

  private attributes(): Tree {
    const count = this.random.between(1, 4)
    const all: Tree = Object.create(null)
    for (let left = count; left > 0; left--) all[this.attributeName()] = this.attribute()
    delete all.id
    delete all.type
    return all
  }

  private entity(): Tree {
    return { id: this.id(), ...(this.chance(5) ? {} : { type: this.type() }), ...copied(this.attributes()) }
  }

  private plainEntity(): Tree {
    return { id: this.id(), type: this.type(), ...copied(named(this.attributeName(), this.value())) }
  }

  private selector(): Tree {
    const selector: Tree = this.chance(4) ? { idPattern: one(this.random, ['.*', '^E', 'E[1-3]']) } : { id: this.id() }
    if (this.chance(2)) selector.type = this.type()
    else if (this.chance(6)) selector.typePattern = '.*'
    return selector
  }

  private query(): ReturnType<Draw> {
    const body: Tree = { entities: this.some([this.selector(), this.selector(), this.selector()], 1) }
    if (this.chance(3)) body.attrs = [this.attributeName(), 'dateModified']
    if (this.chance(6)) body.metadata = ['*', 'dateCreated']
    if (this.chance(3)) body.expression = { q: this.q() }
    return this.json('POST', ['v2', 'op', 'query'], body, this.page([['options', 'keyValues']]))
  }

  private batch(): ReturnType<Draw> {
    const actionType = one(this.random, ['append', 'appendStrict', 'update', 'delete', 'replace', 'APPEND'])
    const entities = Array.from({ length: this.random.between(1, 5) }, () => this.entity())
    return this.write('POST', ['v2', 'op', 'update'], { actionType, entities }, ['overrideMetadata', 'flowControl'])
  }

  private notify(): ReturnType<Draw> {
    const body = { subscriptionId: '51c0ac9ed714fb3b37d7d5a8', data: this.some([this.entity(), this.entity()], 1) }
    return this.json('POST', ['v2', 'op', 'notify'], body)
  }

  private url(): string {
    const { receiver, nobody, broker } = this.targets
    const at = this.random.between(0, 99)
    if (at < 80) return `http://127.0.0.1:${receiver}/n/${this.id().replaceAll(/[^\w]/g, '_')}`
    if (at < 84) return `http://127.0.0.1:${nobody}/gone`
    if (at < 88) return `http://127.0.0.1:${broker}/v2/op/notify`
    if (at < 92) return `http://localhost:${receiver}/local`
    if (at < 95) return 'http://169.254.169.254/latest/meta-data'
    if (at < 98) return `http://127.0.0.1:${broker}/v2/subscriptions`
    return `http://[::ffff:127.0.0.1]:${receiver}/mapped`
  }

  private transport(): Tree {
    const { random } = this
    const { broker, nobody } = this.targets
    const url = this.url()
    switch (random.between(0, 9)) {
      case 0:
        return { mqtt: { url: `mqtt://127.0.0.1:${nobody}`, topic: 'hostile/x', qos: 1 } }
      case 1:
        return { httpCustom: { url, method: 'PUT', headers: { 'X-Own': '${id}' }, qs: { id: '${id}' } } }
      case 2:
        return { httpCustom: { url, json: { all: '${a}', id: '${id}', nothing: '${__proto__}' } } }
      case 3:
        return { httpCustom: { url, payload: 'id ${id} service ${service} token ${authToken} ${constructor}' } }
      case 4:
        return {
          httpCustom: { url, ngsi: { id: 'N${id}', type: 'Derived', derived: { value: '${temp}', type: 'Number' } } },
        }
      case 5: {
        const path = one(random, ['/v2/entities', '/v2/subscriptions', '/v2/entities/${id}', '/admin/metrics'])
        const method = one(random, ['POST', 'GET', 'DELETE', 'PUT'])
        const headers = { 'Ctx-Service': 'vault', 'Fiware-Service': 'vault', 'Content-Type': 'application/json' }
        return { httpCustom: { url: `http://127.0.0.1:${broker}${path}`, method, headers } }
      }
      default:
        return { http: this.chance(4) ? { url, timeout: 500 } : { url } }
    }
  }

  private subscription(): Tree {
    const { random } = this
    const subject: Tree = { entities: [this.chance(2) ? { idPattern: '.*' } : this.selector()] }
    if (this.chance(3)) {
      const condition: Tree = { attrs: this.some([this.attributeName(), this.attributeName()].filter(unlike), 1) }
      if (this.chance(3)) condition.expression = { q: this.q() }
      if (this.chance(4)) condition.alterationTypes = this.some([...alterations], 1)
      subject.condition = condition
    }
    const notification: Tree = { ...this.transport() }
    if (this.chance(2)) notification.attrsFormat = one(random, formats)
    if (this.chance(3)) notification.attrs = [this.attributeName(), 'dateModified']
    if (this.chance(6)) notification.onlyChangedAttrs = true
    const body: Tree = { subject, notification, throttling: this.chance(4) ? random.between(1, 5) : 0 }
    if (this.chance(3)) body.description = 'hostile'
    if (this.chance(4)) body.expires = '2040-01-01T00:00:00Z'
    if (this.chance(6)) body.status = one(random, ['active', 'inactive', 'oneshot'])
    return body
  }

  private registration(): Tree {
    const { random } = this
    const { receiver, nobody, broker } = this.targets
    const url = one(random, [
      `http://127.0.0.1:${receiver}/provider`,
      `http://127.0.0.1:${receiver}/provider`,
      `http://127.0.0.1:${receiver}/provider`,
      `http://127.0.0.1:${nobody}`,
      `http://127.0.0.1:${broker}/v2`,
    ])
    const entities = [this.chance(8) ? { idPattern: '.*', type: this.type() } : { id: this.id(), type: this.type() }]
    const provider: Tree = { http: { url } }
    if (this.chance(3)) provider.supportedForwardingMode = one(random, ['all', 'none', 'query', 'update'])
    const body: Tree = { dataProvided: { entities, attrs: [this.attributeName()] }, provider }
    if (this.chance(3)) body.expires = '2040-01-01T00:00:00Z'
    return body
  }

  private changeOf(documents: string, id: string, whole: Tree): ReturnType<Draw> {
    const members = this.some(Object.entries(whole), 1)
    return this.json('PATCH', ['v2', documents, id], Object.fromEntries(members))
  }

  private administration(): ReturnType<Draw> {
    const { random } = this
    const [method, path, params] = one<[string, string[], Draft['params']?]>(random, [
      ['GET', ['v2']],
      ['GET', ['version']],
      ['GET', ['health', 'live']],
      ['GET', ['health', 'ready']],
      ['GET', ['metrics']],
      ['GET', ['statistics'], [['options', 'fullCounters']]],
      ['DELETE', ['statistics']],
      ['GET', ['cache', 'statistics']],
      ['DELETE', ['cache', 'statistics']],
      ['GET', ['admin', 'log']],
      ['PUT', ['admin', 'log'], [['level', one(random, ['INFO', 'WARN', 'DEBUG', 'none'])]]],
      ['PUT', ['admin', 'log'], [['lineMaxSize', '2000']]],
      ['GET', ['log', 'trace']],
      ['PUT', ['log', 'trace', one(random, ['20-39', '0-255', '180,181'])]],
      ['DELETE', ['log', 'trace']],
      ['DELETE', ['log', 'trace', '181']],
      ['GET', ['admin', 'sem']],
      ['GET', ['admin', 'metrics'], [['reset', 'true']]],
      ['DELETE', ['admin', 'metrics']],
      ['GET', ['cluster']],
    ])
    return this.plain(method, path, params ?? [])
  }
}

/** An object with one member of any name. */
function named(name: string, value: unknown): Tree {
  const tree: Tree = Object.create(null)
  tree[name] = value
  return tree
}

/** As a spread takes it: `__proto__` stays a member of its own. */
const copied = (tree: Tree): Tree => ({ ...tree })

const unlike = (name: string, at: number, all: readonly string[]): boolean => all.indexOf(name) === at
