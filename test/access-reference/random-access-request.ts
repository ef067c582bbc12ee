// Random requests by random principals: reads with filters, writes one by one and in batches, subscriptions,
// registrations, streams, and paths for operators. Most are about stored entities, so that rules decide about
// something.
//
// Each value that is written is a marker, a text that occurs once. So a marker in an answer names its attribute, and
// filters compare with markers.
//
// Not here: the answers (reference-answers), the form of a request (access-request).

import type { Random } from '../support/random.js'
import { chance, several, shuffled, sometimes } from '../support/random-entity.js'
import type { Change, Entity, GivenAttribute, Named, Target } from '../support/reference-entities.js'
import type { Geo, Position } from '../support/reference-geo.js'
import type { Query, Selector, Shown, Statement } from '../support/reference-query.js'
import type { AlterationType, Element, Subscription } from '../support/reference-subscriptions.js'
import type { Watch } from '../support/reference-watch.js'
import { providedIds, providedTarget, providedTenant } from './access-provider.js'
import type { AccessRequest, RequestOf, WantedChange } from './access-request.js'
import { attributes, ids, keyNames, paths, secretOf, strongKey, tenants, types } from './random-access-file.js'
import type { AccessReference } from './reference-answers.js'

/** The numbers of the markers that were drawn. */
export class Markers {
  #last = 0

  next(): string {
    return `mk${++this.#last}z`
  }

  any(random: Random): string {
    return `mk${random.between(1, this.#last + 1)}z`
  }
}

export const markerPattern = /mk\d+z/g

export interface Draw {
  readonly random: Random
  readonly reference: AccessReference
  readonly markers: Markers
  /** False: neither subscriptions nor registrations, which a broker may not decide yet. */
  readonly withDocuments: boolean
}

const subscriptionsMax = 30
const registrationsMax = 20

/**
 * The headers by which a client shows who asks; mostly a key, which the present file may have or not. Every fourth
 * write is by the strong key.
 */
export function nextProof(random: Random, seed: number, isWrite: boolean): Readonly<Record<string, string>> {
  if (isWrite && chance(random, 0.25)) return strongProof(seed)
  const secret = secretOf(seed, random.pick(keyNames))
  const draw = random.fraction()
  if (draw < 0.1) return {}
  if (draw < 0.12) return { 'X-Api-Key': secretOf(seed, 'a key that no file has') }
  if (draw < 0.13) return { Authorization: 'Basic a2V5OmtleQ==' }
  if (draw < 0.14) return { 'X-Api-Key': secret, 'X-Auth-Token': secretOf(seed, 'another one') }
  if (draw < 0.15) return { 'X-Api-Key': secret, Authorization: `Bearer ${secret}` }
  if (draw < 0.3) return { Authorization: `Bearer ${secret}` }
  return draw < 0.4 ? { 'X-Auth-Token': secret } : { 'X-Api-Key': secret }
}

export const strongProof = (seed: number) => ({ 'X-Api-Key': secretOf(seed, strongKey) })

/** A request that is no read of entities. */
export function nextWrite(draw: Draw): AccessRequest {
  const { random } = draw
  if (draw.reference.provided && chance(random, 0.06)) return nextProvidedWrite(draw)
  const tenant = random.pick(tenants)
  const kind = draw.withDocuments ? random.fraction() : 0.74 * random.fraction()
  if (kind < 0.5) return { tenant, kind: 'change', ...nextWanted(draw, tenant) }
  if (kind < 0.68) return nextBatch(draw, tenant)
  if (kind < 0.74) return nextNotify(draw, tenant)
  if (kind < 0.89) return subscriptionRequest(draw, tenant)
  if (kind < 0.96) return registrationRequest(draw, tenant)
  return { tenant: '', kind: 'plain', ...random.pick<PlainTarget>(plainTargets) }
}

export function nextRead(draw: Draw): AccessRequest {
  const { random } = draw
  const tenant = random.pick(tenants)
  const kind = random.fraction()
  if (kind < 0.03 && draw.reference.provided) return nextProvided(random)
  if (kind < 0.52) return { kind: 'entities', tenant, query: nextList(draw, tenant) }
  if (kind < 0.86) return readOfOne(draw, tenant)
  return { tenant, paths: readPaths(random), ...readOfTypes(random) }
}

type PlainTarget = Pick<RequestOf<'plain'>, 'target' | 'needs'>

const plainTargets: [PlainTarget, ...PlainTarget[]] = [
  { target: '/statistics', needs: 'admin' },
  { target: '/admin/log', needs: 'admin' },
  { target: '/metrics', needs: 'metrics' },
  { target: '/version', needs: 'principal' },
  { target: '/v2', needs: 'principal' },
  { target: '/v2/access', needs: 'principal' },
  { target: '/health/live', needs: 'nothing' },
]

// Reads

const readPaths = (random: Random): readonly string[] | undefined =>
  random.pick([
    undefined,
    undefined,
    undefined,
    undefined,
    ['/#'],
    ['/'],
    ['/a/#'],
    ['/a/#', '/c'],
    ['/ab/#', '/a'],
    ['/a/b/c'],
  ])

function readOfOne(draw: Draw, tenant: string): AccessRequest {
  const { random } = draw
  const { id, type: found, path } = someTarget(draw, tenant)
  const inPaths = chance(random, 0.3) ? [path] : readPaths(random)
  const type = sometimes(random, 0.7, () => found)
  const one = { tenant, paths: inPaths, id, type }
  if (chance(random, 0.5))
    return { ...one, kind: 'attribute', name: random.pick(attributes), part: random.pick(['attribute', 'value']) }
  const attrs = sometimes(random, 0.4, () => shownNames(random))
  return { ...one, kind: 'entity', attrs, part: random.pick(['entity', 'entity', 'attributes']) }
}

const nextProvided = (random: Random): AccessRequest => ({
  kind: 'provided',
  tenant: providedTenant,
  paths: random.pick([undefined, undefined, ['/'], ['/#'], ['/', '/a']]),
  form: random.pick(['entity', 'list', 'query']),
  isTyped: chance(random, 0.7),
})

const readOfTypes = (random: Random) =>
  random.pick([
    { kind: 'types', detail: random.pick(['all', 'all', 'values', 'noAttrDetail']) } as const,
    { kind: 'type', type: random.pick([...types, 'Nothing']) } as const,
  ])

const shownNames = (random: Random): string[] =>
  random.pick([
    () => shuffled(random, attributes).slice(0, random.between(1, 3)),
    () => [...shuffled(random, attributes).slice(0, 2), 'servicePath'],
    () => ['*', 'servicePath'],
  ])()

/** A list with one order: paths, types and ids make the last keys of every `orderBy`. */
export function nextList(draw: Draw, tenant: string): Query {
  const { random } = draw
  const form = random.pick(['GET', 'GET', 'POST'])
  const asked = random.pick(['', '', '', 'q', 'q', 'q', 'mq', 'geo', 'geo', 'q geo'] as const)
  const orderBy = sometimes(random, 0.35, () => [
    ...several(random, 0, 2, () => ({ name: random.pick(plainNames), descending: chance(random, 0.4) })),
    ...['id', 'type', 'servicePath'].map(name => ({ name, descending: false })),
  ])
  const named =
    form === 'POST' ? sometimes(random, 0.15, () => [random.pick(plainNames), random.pick(plainNames)]) : undefined
  const shown = random.pick<() => Shown>([
    () => ({ mode: 'normalized' }),
    () => ({ mode: 'keyValues' }),
    () => ({ mode: random.pick(['normalized', 'keyValues', 'values']), attrs: shownNames(random) }),
  ])()
  const inPaths = readPaths(random)
  return {
    form,
    selectors: form === 'GET' ? getSelectors(random) : postSelectors(random),
    counted: chance(random, 0.8),
    shown: named ? { mode: 'keyValues', attrs: [...new Set(named)] } : shown,
    limit: random.pick([1000, 1000, 1000, 1000, 20, 20, 3, 3, 0]),
    ...(chance(random, 0.15) && { offset: random.between(0, 8) }),
    ...(inPaths && { paths: inPaths }),
    ...(asked.includes('q') && !asked.includes('mq') && { q: several(random, 1, 2, () => statement(draw, tenant)) }),
    ...(asked === 'mq' && { mq: [metadataStatement(draw)] }),
    ...(asked.includes('geo') && { geo: nearOne(random) }),
    ...(named && { attributes: [...new Set(named)] }),
    ...(orderBy && { orderBy }),
  }
}

const plainNames = ['a', 'b', 'c', 'd'] as const
const typePatterns = ['^M', 'r$', 'Lamp', '.'] as const
const idPatterns = ['^E', '^urn:', '[12]$', '.*'] as const

function getSelectors(random: Random): readonly Selector[] {
  if (chance(random, 0.6)) return []
  return [{ ...someIds(random, random.between(1, 3)), ...someTypes(random, random.between(1, 2)) }]
}

const postSelectors = (random: Random): readonly Selector[] =>
  several(random, 1, 2, () => {
    const drawn = someIds(random, 1)
    return { ...('ids' in drawn ? drawn : { idPattern: random.pick(idPatterns) }), ...someTypes(random, 1) }
  })

const someIds = (random: Random, most: number): Selector =>
  random.pick<() => Selector>([
    () => ({}),
    () => ({}),
    () => ({ ids: shuffled(random, ids).slice(0, most) }),
    () => ({ idPattern: random.pick(idPatterns) }),
  ])()

const someTypes = (random: Random, most: number): Selector =>
  random.pick<() => Selector>([
    () => ({}),
    () => ({ types: shuffled(random, types).slice(0, most) }),
    () => ({ types: shuffled(random, types).slice(0, most) }),
    () => ({ typePattern: random.pick(typePatterns) }),
  ])()

/** A statement about a marker, mostly one that some entity has there. */
function statement({ random, reference, markers }: Draw, tenant: string): Statement {
  const name = random.pick(plainNames)
  const stored = [...reference.entitiesOf(tenant).entities].flatMap(one => one.attributes.get(name)?.value ?? [])
  const drawn = stored[random.between(0, stored.length - 1)]
  const text = typeof drawn === 'string' && chance(random, 0.8) ? drawn : markers.any(random)
  return random.pick([
    () => statementOf([name], 'exists'),
    () => statementOf([name], 'missing'),
    () => statementOf([name], '==', text),
    () => statementOf([name], '!=', text),
    () => statementOf([name], '>', text),
    () => statementOf([name], '<=', text),
    () => ({
      ...statementOf([name], '~=', text.slice(0, 4)),
      text: `${name}~=${text.slice(0, 4)}`,
      words: [{ quoted: false, text: text.slice(0, 4) }],
    }),
  ])()
}

const metadataStatement = ({ random, markers }: Draw): Statement => {
  const tokens = [random.pick(plainNames), 'acc']
  return random.pick([
    () => statementOf(tokens, 'exists'),
    () => statementOf(tokens, 'missing'),
    () => statementOf(tokens, '>', markers.any(random)),
  ])()
}

function statementOf(tokens: readonly string[], form: Statement['form'], word?: string): Statement {
  const left = tokens.join('.')
  if (word === undefined) return { form, tokens, shape: 'one', words: [], text: form === 'missing' ? `!${left}` : left }
  return { form, tokens, shape: 'one', words: [{ quoted: true, text: word }], text: `${left}${form}'${word}'` }
}

/** Locations are on two points, and far from one another. */
const points: [Position, ...Position[]] = [
  [-3, 40],
  [-3, 41],
]

function nearOne(random: Random): Geo {
  const [x, y] = random.pick(points)
  const place = { type: 'Point' as const, positions: [[x, y] as const] }
  const metres = { metresMin: 0, metresMax: 1000 }
  return { relation: 'near', place, georel: 'near;maxDistance:1000', geometry: 'point', coords: `${y},${x}`, ...metres }
}

// Writes

function someTarget({ random, reference }: Draw, tenant: string): Target {
  const stored = [...reference.entitiesOf(tenant).entities]
  const found = chance(random, 0.75) ? stored[random.between(0, stored.length - 1)] : undefined
  return found ?? { path: random.pick(paths), id: random.pick(ids), type: random.pick(types) }
}

function value(random: Random, markers: Markers, name: string): GivenAttribute {
  if (name === 'loc') {
    const [x, y] = random.pick(points)
    return { type: 'geo:point', value: `${y}, ${x}` }
  }
  const metadata = sometimes(random, 0.2, () => [['acc', { value: markers.next() }]] as const)
  return { value: markers.next(), ...(chance(random, 0.1) && { type: 'Any' }), ...(metadata && { metadata }) }
}

function given({ random, markers }: Draw, least: number): Named<GivenAttribute> {
  const names = shuffled(random, attributes).slice(0, random.between(least, random.pick([1, 2, 3, 5])))
  const chosen = names.length < least ? (['a'] as const) : names
  return chosen.map(name => [name, value(random, markers, name)] as const)
}

const plain = { override: false, forced: false }

function nextWanted(draw: Draw, tenant: string): WantedChange {
  const { random, markers } = draw
  const { path, id, type } = someTarget(draw, tenant)
  const isTyped = chance(random, 0.75)
  const target = { path, id, type }
  const created = { path, id, type: isTyped ? type : 'Thing' }
  const name = random.pick(attributes)
  const forced = chance(random, 0.1)
  const change = random.pick<() => Change>([
    () => ({ ...created, action: 'create', given: given(draw, 0) }),
    () => ({ ...created, action: 'create', given: given(draw, 0) }),
    () => ({ ...created, action: 'append', creates: true, given: given(draw, 1), ...plain, forced }),
    () => ({ ...target, action: 'append', creates: false, given: given(draw, 1), ...plain }),
    () => ({ ...target, action: 'appendStrict', creates: false, given: given(draw, 1), ...plain }),
    () => ({ ...target, action: 'update', given: given(draw, 1), ...plain, forced }),
    () => ({ ...target, action: 'update', given: given(draw, 1), ...plain, forced }),
    () => ({ ...target, action: 'updateOne', name, given: value(random, markers, name), ...plain }),
    () => ({ ...target, action: 'updateValue', name: random.pick(plainNames), value: markers.next(), forced: false }),
    () => ({ ...target, action: 'replace', given: given(draw, 1) }),
    () => ({ ...target, action: 'deleteSome', names: [name] }),
    () =>
      chance(random, 0.6)
        ? { ...target, action: 'deleteEntity' }
        : { ...created, action: 'create', given: given(draw, 1) },
  ])()
  return { change, isTyped }
}

function nextBatch(draw: Draw, tenant: string): AccessRequest {
  const { random } = draw
  const action = random.pick(['append', 'append', 'append', 'append', 'appendStrict', 'update', 'replace', 'delete'])
  const { path } = someTarget(draw, tenant)
  const changes = several(random, 1, 3, (): WantedChange => {
    const { id, type } = someTarget(draw, tenant)
    const target = { path, id, type }
    const isTyped = chance(random, 0.8)
    switch (action) {
      case 'append':
      case 'appendStrict':
        return { isTyped, change: { ...target, action, creates: true, given: given(draw, 1), ...plain } }
      case 'update':
        return { isTyped, change: { ...target, action, given: given(draw, 1), ...plain } }
      case 'replace':
        return { isTyped, change: { ...target, action, given: given(draw, 1) } }
      default: {
        const names = shuffled(random, attributes).slice(0, random.between(0, 2))
        if (names.length === 0) return { isTyped, change: { ...target, action: 'deleteEntity' } }
        return { isTyped, change: { ...target, action: 'deleteSome', names } }
      }
    }
  })
  return { tenant, kind: 'batch', action, changes }
}

/** A write that may go to the provider. None of them creates anything. */
function nextProvidedWrite(draw: Draw): AccessRequest {
  const { random, markers } = draw
  const target = (): Target => ({
    path: providedTarget.path,
    id: random.pick(providedIds),
    type: chance(random, 0.7) ? providedTarget.type : random.pick(types),
  })
  const isTyped = () => chance(random, 0.4)
  const [tenant, name] = [providedTenant, random.pick(attributes)]
  const update = (): Change => ({ ...target(), action: 'update', given: given(draw, 1), ...plain })
  const replace = (): Change => ({ ...target(), action: 'replace', given: given(draw, 1) })
  const single = random.pick<() => Change>([
    update,
    replace,
    () => ({ ...target(), action: 'updateOne', name, given: value(random, markers, name), ...plain }),
    () => ({ ...target(), action: 'updateValue', name: 'a', value: markers.next(), forced: false }),
  ])
  if (chance(random, 0.5)) return { tenant, kind: 'change', isTyped: isTyped(), change: single() }
  const action = random.pick(['update', 'update', 'replace'])
  const item = action === 'update' ? update : replace
  const changes = several(random, 1, 3, (): WantedChange => ({ isTyped: isTyped(), change: item() }))
  return { tenant, kind: 'batch', action, changes }
}

function nextNotify(draw: Draw, tenant: string): AccessRequest {
  const { random } = draw
  const deletes = chance(random, 0.3)
  const { path } = someTarget(draw, tenant)
  const changes = several(random, 1, 2, (): WantedChange => {
    const { id, type } = someTarget(draw, tenant)
    const isTyped = chance(random, 0.8)
    const target = { path, id, type: isTyped ? type : 'Thing' }
    if (deletes) return { isTyped, change: { ...target, action: 'deleteEntity' } }
    return { isTyped, change: { ...target, action: 'append', creates: true, given: given(draw, 1), ...plain } }
  })
  return { tenant, kind: 'notify', deletes, changes }
}

// Subscriptions and registrations

function subscriptionRequest(draw: Draw, tenant: string): AccessRequest {
  const { random, reference } = draw
  const { subscriptions } = reference
  const one = subscriptions[random.between(0, subscriptions.length - 1)]
  const choice = random.fraction()
  const header = random.pick([undefined, undefined, ['/a'], ['/']])
  if (!one || (choice < 0.35 && subscriptions.length < subscriptionsMax)) {
    const watched = random.pick([undefined, undefined, ['/a/#'], ['/a'], ['/'], ['/ab/#']])
    return { tenant, paths: watched, kind: 'subscribe', ...nextSubscription(draw, watched, tenant) }
  }
  if (choice < 0.55)
    return { tenant, paths: random.pick([undefined, undefined, ['/a'], ['/a/#']]), kind: 'list subscriptions' }
  if (choice < 0.6) {
    const part = random.pick(['explain', 'deliveries'])
    return { tenant: one.tenant, kind: 'look', at: one.at, part, id: random.pick(ids) }
  }
  if (choice < 0.7) return { tenant: one.tenant, paths: header, kind: 'subscription', at: one.at }
  if (choice < 0.85) return { tenant: one.tenant, paths: header, kind: 'unsubscribe', at: one.at }
  const changed = nextSubscription(draw, header, one.tenant)
  return { tenant: one.tenant, paths: header, kind: 'change subscription', at: one.at, ...changed }
}

function nextSubscription(draw: Draw, header: readonly string[] | undefined, tenant: string) {
  const { random } = draw
  const lists = random.pick([
    () => ({ sentAttrs: [], exceptAttrs: [] }),
    () => ({ sentAttrs: shuffled(random, attributes).slice(0, random.between(1, 3)), exceptAttrs: [] }),
    () => ({ sentAttrs: ['*', 'alterationType'], exceptAttrs: [] }),
    () => ({ sentAttrs: [], exceptAttrs: [random.pick(attributes)] }),
  ])()
  const q = sometimes(random, 0.25, () => [statement(draw, tenant)])
  const mq = sometimes(random, 0.1, () => [metadataStatement(draw)])
  const subscription: Subscription = {
    id: '',
    path: header?.[0] ?? '/#',
    status: 'active',
    throttlingSeconds: 0,
    elements: several(random, 1, 2, () => element(random)),
    attrs: chance(random, 0.5) ? [] : shuffled(random, attributes).slice(0, random.between(1, 2)),
    alterationTypes: chance(random, 0.6) ? [] : someAlterations(random),
    notifyOnMetadataChange: chance(random, 0.7),
    onlyChangedAttrs: chance(random, 0.25),
    ...lists,
    ...(q && { q }),
    ...(mq && { mq }),
  }
  return { subscription, isCustom: chance(random, 0.2) }
}

const someAlterations = (random: Random): AlterationType[] =>
  shuffled(random, ['entityCreate', 'entityChange', 'entityUpdate', 'entityDelete'] as const).slice(
    0,
    random.between(1, 4),
  )

const element = (random: Random): Element => ({
  ...(chance(random, 0.3) ? { id: random.pick(ids) } : { idPattern: random.pick(['.*', '.*', ...idPatterns]) }),
  ...random.pick<() => Element>([
    () => ({}),
    () => ({ type: random.pick(types) }),
    () => ({ type: random.pick(types) }),
    () => ({ typePattern: random.pick(typePatterns) }),
  ])(),
})

function registrationRequest({ random, reference }: Draw, tenant: string): AccessRequest {
  const { registrations } = reference
  const one = registrations[random.between(0, registrations.length - 1)]
  const choice = random.fraction()
  const header = [random.pick(paths)]
  if (!one || (choice < 0.45 && registrations.length < registrationsMax)) {
    const elements = several(random, 1, 2, () => ({
      ...(chance(random, 0.5) ? { id: random.pick(ids) } : { idPattern: '.*' }),
      ...(chance(random, 0.7) && { type: random.pick(types) }),
    }))
    const attrs = chance(random, 0.4) ? [] : shuffled(random, attributes).slice(0, random.between(1, 2))
    return { tenant, paths: header, kind: 'register', registration: { elements, attrs } }
  }
  if (choice < 0.65) return { tenant, paths: header, kind: 'list registrations' }
  if (choice < 0.8) return { tenant: one.tenant, paths: header, kind: 'registration', at: one.at }
  return { tenant: one.tenant, paths: header, kind: 'unregister', at: one.at }
}

// Streams

/** A watch with a snapshot, which shows that the stream has begun everywhere. */
export function nextAccessWatch(draw: Draw, tenant: string, isMessage: boolean): Watch {
  const { random } = draw
  const q = sometimes(random, 0.2, () => [statement(draw, tenant)])
  const geo = sometimes(random, 0.1, () => nearOne(random))
  const attrs = sometimes(random, 0.3, () => shownNames(random))
  return {
    path: random.pick(['/#', '/#', '/#', '/a', '/a/#', '/']),
    selectors: isMessage && chance(random, 0.3) ? postSelectors(random) : getSelectors(random),
    conditionAttrs: chance(random, 0.8) ? [] : [random.pick(attributes)],
    alterationTypes: chance(random, 0.7) ? [] : someAlterations(random),
    shown: { mode: random.pick(['normalized', 'keyValues']), ...(attrs && { attrs }) },
    onlyChangedAttrs: chance(random, 0.25),
    sysAttrs: false,
    leave: chance(random, 0.5),
    snapshot: true,
    minIntervalMs: 0,
    gatherMs: 0,
    ...(q && { q }),
    ...(geo && { geo }),
  }
}

/** The attributes of entities with the markers in them. */
export const markersIn = (entity: Entity): readonly (readonly [marker: string, name: string])[] =>
  [...entity.attributes].flatMap(([name, { value, metadata }]) =>
    [...(JSON.stringify([value, ...metadata.values()]).match(markerPattern) ?? [])].map(
      marker => [marker, name] as const,
    ),
  )
