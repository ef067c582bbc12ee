// The limits of one request or entity (docs/interface/request-limits.md), each from both sides: the largest accepted
// number, and one more.
import t from 'tap'
import {
  type BatchAction,
  parseBatchUpdate,
  parseNotification,
  parseQueryPayload,
} from '../../src/domain/entities/batch.js'
import {
  type Entity,
  type Payload,
  parseAttributes,
  parseEntity,
  type WantedAttribute,
} from '../../src/domain/entities/entity.js'
import {
  appendAttributes,
  appendStrict,
  createEntity,
  replaceAttributes,
  type UpdateOutcome,
  updateAttributes,
} from '../../src/domain/entities/update.js'
import type { Json } from '../../src/domain/json.js'
import { attributesMax, listLengthMax, metadataMax, positionsMax } from '../../src/domain/limits.js'
import { locationOf } from '../../src/domain/places/geo.js'
import { parseRegistration } from '../../src/domain/providers/registration-parser.js'
import { type Refusal, refusalText } from '../../src/domain/refusal.js'
import { stampOf } from '../../src/domain/stamp.js'
import { parseSubscription } from '../../src/domain/subscriptions/subscription-parser.js'

const nowMs = Date.UTC(2024, 4, 1)
const plain = { overrideMetadata: false, forcedUpdate: false }

const payload = (value: unknown): Payload => ({ value: value as Json, duplicates: [], deep: false })

/** `count` members `prefix0`, `prefix1` and so on, all of one value. */
const members = (count: number, value: unknown, prefix = 'a'): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}${n}`, value]))

const list = <T>(count: number, item: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => item(n))

/** The text of the refusal, or `taken`. */
const said = (result: { readonly ok: boolean; readonly refusal?: Refusal }): string =>
  result.refusal ? `${result.refusal.kind}: ${refusalText(result.refusal)}` : 'taken'

const refusalOf = ({ refusal }: UpdateOutcome): string => said({ ok: false, ...(refusal && { refusal }) })

const tooMany = (what: string, max: number, count = max + 1): string =>
  `BadRequest: too many ${what}: ${count}, at most ${max}`

const wanted = (json: unknown): ReadonlyMap<string, WantedAttribute> => {
  const parsed = parseAttributes(payload(json), false)
  if (!parsed.ok) throw new Error(refusalText(parsed.refusal))
  return parsed.value
}

const attribute = { value: 1 }

/** An entity with this number of attributes, which may exceed the limit, as in entities older than the limit. */
function entityOf(count: number): Entity {
  const stored = { type: 'Number', value: 1, metadata: new Map(), createdMs: nowMs, modifiedMs: nowMs }
  const attributes = new Map(list(count, n => [`a${n}`, stored] as const))
  return { id: 'E', type: 'T', attributes, created: stampOf(nowMs), modifiedMs: nowMs }
}

const subject = { entities: [{ id: 'E' }] }
const notification = { http: { url: 'http://h' } }
const head = { id: '0'.repeat(24), tenant: '', servicePath: '/' }
const subscription = (fields: object) => parseSubscription(payload({ subject, notification, ...fields }), head)
const registration = (dataProvided: object) =>
  parseRegistration(payload({ dataProvided, provider: { http: { url: 'http://h' } } }), head)

t.test('a body names at most so many attributes of an entity, id and type not counted', async t => {
  const attributesOf = (count: number) => members(count, attribute)
  const inEach: readonly ((attributes: object) => { readonly ok: boolean })[] = [
    attributes => parseEntity(payload({ id: 'E', type: 'T', ...attributes }), false),
    attributes => parseEntity(payload({ id: 'E', ...attributes }), true),
    attributes => parseAttributes(payload(attributes), false),
    attributes => parseAttributes(payload(attributes), true),
    ...(['append', 'delete'] satisfies BatchAction[]).map(
      actionType => (attributes: object) =>
        parseBatchUpdate(payload({ actionType, entities: [{ id: 'E', type: 'T', ...attributes }] }), false),
    ),
    attributes => parseNotification(payload({ subscriptionId: 's', data: [{ id: 'E', ...attributes }] }), ''),
    attributes => subscription({ notification: { httpCustom: { url: 'http://h', ngsi: { id: 'E', ...attributes } } } }),
  ]
  for (const [index, parse] of inEach.entries()) {
    t.equal(said(parse(attributesOf(attributesMax))), 'taken', `${index}`)
    t.equal(said(parse(attributesOf(attributesMax + 1))), tooMany('attributes', attributesMax), `${index}`)
  }
})

t.test('an entity grows up to as many attributes, by any request', async t => {
  const full = entityOf(attributesMax)
  const more = wanted({ more: attribute })
  t.equal(refusalOf(appendAttributes(entityOf(attributesMax - 1), more, plain, nowMs)), 'taken')
  t.equal(refusalOf(appendAttributes(full, more, plain, nowMs)), tooMany('attributes', attributesMax))
  t.equal(refusalOf(appendStrict(full, more, 'E', nowMs)), tooMany('attributes', attributesMax))
  // A refused request changes nothing.
  const partly = appendStrict(full, wanted({ a0: attribute, more: attribute }), 'E', nowMs)
  t.strictSame([refusalOf(partly), partly.change], [tooMany('attributes', attributesMax), undefined])
  t.equal(refusalOf(appendAttributes(full, wanted({ a0: { value: 2 } }), plain, nowMs)), 'taken')
  t.equal(refusalOf(updateAttributes(full, wanted({ a0: { value: 2 } }), plain, 'E', nowMs)), 'taken')
  t.equal(refusalOf(replaceAttributes(full, wanted(members(attributesMax, attribute, 'b')), nowMs)), 'taken')
})

t.test('an entity that had more before there was the limit can be changed, and does not grow', async t => {
  const large = entityOf(attributesMax + 10)
  t.equal(refusalOf(updateAttributes(large, wanted({ a0: { value: 2 } }), plain, 'E', nowMs)), 'taken')
  t.equal(refusalOf(appendAttributes(large, wanted({ a0: { value: 2 } }), plain, nowMs)), 'taken')
  const grown = appendAttributes(large, wanted({ more: attribute }), plain, nowMs)
  t.equal(refusalOf(grown), tooMany('attributes', attributesMax, attributesMax + 11))
})

t.test('an attribute has at most so many metadata, at once or by and by', async t => {
  const withMetadata = (count: number, prefix = 'm') => ({ value: 1, metadata: members(count, attribute, prefix) })
  t.equal(said(parseAttributes(payload({ a: withMetadata(metadataMax) }), false)), 'taken')
  t.equal(said(parseAttributes(payload({ a: withMetadata(metadataMax + 1) }), false)), tooMany('metadata', metadataMax))
  const entity = parseEntity(payload({ id: 'E', a: withMetadata(metadataMax - 1) }), false)
  if (!entity.ok) return t.fail()
  const before = createEntity(entity.value, stampOf(nowMs)).change!.after!
  const after = (count: number, options = plain) =>
    updateAttributes(before, wanted({ a: withMetadata(count, 'n') }), options, 'E', nowMs)
  t.equal(refusalOf(after(1)), 'taken')
  t.equal(refusalOf(after(2)), tooMany('metadata', metadataMax))
  t.equal(refusalOf(after(metadataMax, { ...plain, overrideMetadata: true })), 'taken')
})

t.test('a list in a body has at most so many elements', async t => {
  const names = (count: number) => list(count, n => `a${n}`)
  const ids = (count: number) => list(count, n => ({ id: `E${n}` }))
  const notified = (fields: object) => subscription({ notification: { ...notification, ...fields } })
  const lists: readonly (readonly [what: string, parse: (count: number) => { readonly ok: boolean }])[] = [
    ['entities', n => parseBatchUpdate(payload({ actionType: 'append', entities: ids(n) }), false)],
    ['entities', n => parseNotification(payload({ subscriptionId: 's', data: ids(n) }), '')],
    ['entities', n => parseQueryPayload(payload({ entities: ids(n) }))],
    ['names', n => parseQueryPayload(payload({ attrs: names(n) }))],
    ['names', n => parseQueryPayload(payload({ attributes: names(n) }))],
    ['names', n => parseQueryPayload(payload({ attrs: ['a'], metadata: names(n) }))],
    ['entities', n => subscription({ subject: { entities: ids(n) } })],
    ['names', n => subscription({ subject: { ...subject, condition: { attrs: names(n) } } })],
    ['names', n => notified({ attrs: names(n) })],
    ['names', n => notified({ exceptAttrs: names(n) })],
    ['names', n => notified({ metadata: names(n) })],
    ['names', n => subscription({ notification: { httpCustom: { url: 'http://h', headers: members(n, 'x') } } })],
    ['names', n => subscription({ notification: { httpCustom: { url: 'http://h', qs: members(n, 'x') } } })],
    ['entities', n => registration({ entities: ids(n) })],
    ['names', n => registration({ entities: ids(1), attrs: names(n) })],
  ]
  for (const [index, [what, parse]] of lists.entries()) {
    t.equal(said(parse(listLengthMax)), 'taken', `${index}`)
    t.equal(said(parse(listLengthMax + 1)), tooMany(what, listLengthMax), `${index}`)
  }
})

const create = (value: unknown, type = 'geo:json'): UpdateOutcome => {
  const entity = parseEntity(payload({ id: 'E', place: { type, value } }), false)
  if (!entity.ok) throw new Error(refusalText(entity.refusal))
  return createEntity(entity.value, stampOf(nowMs))
}

/** A ring of this number of positions around a centre, the first of them again at the end. */
const ring = (count: number, shift = 0): number[][] => {
  const open = list(count - 1, n => {
    const angle = (2 * Math.PI * n) / (count - 1)
    return [shift + Math.cos(angle), Math.sin(angle)]
  })
  return [...open, open[0]!]
}

t.test('a location has at most so many positions, all its parts together', async t => {
  const half = positionsMax / 2
  const kinds: readonly (readonly [type: string, coordinates: (extra: number) => unknown])[] = [
    ['MultiPoint', extra => ring(positionsMax + extra)],
    ['LineString', extra => ring(positionsMax + extra)],
    ['MultiLineString', extra => [ring(half), ring(half + extra)]],
    ['Polygon', extra => [ring(positionsMax + extra)]],
    ['MultiPolygon', extra => [[ring(half)], [ring(half + extra, 5)]]],
  ]
  for (const [type, coordinates] of kinds) {
    t.equal(refusalOf(create({ type, coordinates: coordinates(0) })), 'taken', type)
    const geometry = { type, coordinates: coordinates(1) }
    t.equal(refusalOf(create(geometry)), tooMany('positions', positionsMax), type)
    t.equal(refusalOf(create({ type: 'Feature', geometry })), tooMany('positions', positionsMax), type)
  }
  const line = (count: number) => list(count, n => `${n % 90}, 0`)
  t.equal(refusalOf(create(line(positionsMax), 'geo:line')), 'taken')
  t.equal(refusalOf(create(line(positionsMax + 1), 'geo:line')), tooMany('positions', positionsMax))
})

t.test('a location that was stored with more is still one', async t => {
  const value = { type: 'LineString', coordinates: ring(positionsMax + 1) }
  const stored = { type: 'geo:json', value, metadata: new Map(), createdMs: nowMs, modifiedMs: nowMs }
  const { created, modifiedMs } = entityOf(0)
  t.match(locationOf({ attributes: new Map([['place', stored]]), created, modifiedMs }), { type: 'LineString' })
})

t.test('of several locations in one request only the first is looked at: they are refused anyway', async t => {
  const place = (coordinates: unknown) => ({ type: 'geo:json', value: { type: 'Polygon', coordinates } })
  const looks: string[] = []
  const seen = (name: string) =>
    new Proxy([ring(4)], {
      get: (target, key) => {
        looks.push(name)
        return Reflect.get(target, key)
      },
    })
  const attributes = wanted({ a: place([ring(4)]), b: place([ring(4)]), c: place([ring(4)]) })
  for (const name of attributes.keys())
    Object.assign(attributes.get(name)!.value as object, { coordinates: seen(name) })
  t.match(createEntity({ id: 'E', type: 'T', attributes }, stampOf(nowMs)), {
    refusal: { kind: 'NoResourceAvailable' },
  })
  t.strictSame([...new Set(looks)], ['a'])
})
