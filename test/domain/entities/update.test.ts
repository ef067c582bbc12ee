// The effects of requests on one entity. Nearly all rules are tables in test/cases/updates.ts. This file runs them as a
// shard does: it parses the body, then it decides the command.
import t, { type Test } from 'tap'
import {
  type Entity,
  type MetadataMap,
  type Payload,
  parseAttributes,
  parseEntity,
  parseSingleAttribute,
  parseValue,
} from '../../../src/domain/entities/entity.js'
import {
  appendAttributes,
  appendStrict,
  createEntity,
  deleteAttribute,
  deleteEntity,
  entityLabel,
  expiresMs,
  isLocation,
  replaceAttributes,
  type UpdateOutcome,
  updateAttribute,
  updateAttributes,
  updateValue,
} from '../../../src/domain/entities/update.js'
import type { Json } from '../../../src/domain/json.js'
import { type Result, refusalText } from '../../../src/domain/refusal.js'
import { stampOf } from '../../../src/domain/stamp.js'
import {
  changeCases,
  existenceCases,
  expiryCases,
  locationCases,
  metadataCases,
  operatorCases,
  typeCases,
  type Update,
  valueCases,
} from '../../cases/updates.js'

const createdMs = Date.UTC(2024, 4, 1)
const updatedMs = createdMs + 5000
const stamp = stampOf(createdMs) + 7

const body = (text: string): Payload => ({ value: JSON.parse(text) as Json, duplicates: [], deep: true })

function create(attributes: string, keyValues = false): UpdateOutcome {
  const value = { id: 'R1', type: 'Room', ...(JSON.parse(attributes) as object) }
  const wanted = parseEntity({ value, duplicates: [], deep: true }, keyValues)
  return wanted.ok ? createEntity(wanted.value, stamp) : { refusal: wanted.refusal }
}

/** The room R1 with these attributes, created at `createdMs`. */
function room(attributes: string): Entity {
  const after = create(attributes).change?.after
  if (!after) throw new Error(`not a room: ${attributes}`)
  return after
}

/** Sends a request, written as in the tables, to the entity at `updatedMs`. */
function send(before: Entity, request: string, text = '', label = 'R1'): UpdateOutcome {
  const [verb, ...words] = request.split(' ')
  const has = (option: string): boolean => words.includes(option)
  const options = { overrideMetadata: has('overrideMetadata'), forcedUpdate: has('forcedUpdate') }
  const target = words.find(word => !['append', 'keyValues', 'overrideMetadata', 'forcedUpdate'].includes(word))
  const when = <T>(parsed: Result<T>, decide: (wanted: T) => UpdateOutcome): UpdateOutcome =>
    parsed.ok ? decide(parsed.value) : { refusal: parsed.refusal }
  if (target === undefined)
    return when(parseAttributes(body(text), has('keyValues')), wanted => {
      if (verb === 'PUT') return replaceAttributes(before, wanted, updatedMs)
      if (verb === 'PATCH') return updateAttributes(before, wanted, options, label, updatedMs)
      return has('append')
        ? appendStrict(before, wanted, label, updatedMs)
        : appendAttributes(before, wanted, options, updatedMs)
    })
  if (verb === 'DELETE') return deleteAttribute(before, target, updatedMs)
  const [name, part] = target.split('/') as [string, string?]
  if (part === 'value')
    return when(parseValue(body(text)), value => updateValue(before, name, value, options, updatedMs))
  return when(parseSingleAttribute(name, body(text)), wanted =>
    updateAttribute(before, name, wanted, options, updatedMs),
  )
}

const metadataText = (metadata: MetadataMap): string => JSON.stringify(Object.fromEntries(metadata))

/** The attributes as the tables write them. */
function attributesText(entity: Entity): string {
  const members = [...entity.attributes].map(([name, { type, value, metadata }]) => {
    const attribute = JSON.stringify({ type, value }).slice(0, -1)
    return `${JSON.stringify(name)}:${attribute}${metadata.size > 0 ? `,"metadata":${metadataText(metadata)}` : ''}}`
  })
  return `{${members.join(',')}}`
}

/** Kind and text of the refusal; of a database error only the promised beginning. */
function reasonOf({ refusal }: UpdateOutcome): string {
  if (!refusal) return 'accepted'
  return `${refusal.kind} ${refusalText(refusal).replace(/^(Database Error \().+/, '$1…')}`
}

/** Runs a table. Texts are compared, so the order of attributes counts. */
function checkUpdates(t: Test, cases: readonly Update[]): void {
  for (const { rule, stored, request, body: text, after, refusal } of cases) {
    const before = room(stored)
    const outcome = send(before, request, text)
    const name = `${rule}: ${request}`
    t.equal(reasonOf(outcome), refusal ?? 'accepted', name)
    if (after === undefined) t.equal(outcome.change, undefined, `${name} leaves nothing to store`)
    else t.equal(attributesText(outcome.change?.after ?? before), after, name)
    t.equal(attributesText(before), attributesText(room(stored)), `${name} leaves the entity before as it was`)
  }
}

t.test('an update gives an attribute the type of the request or the default one, a value keeps it', async t => {
  checkUpdates(t, typeCases)
})

t.test('each request acts on the attributes that exist, that do not, or on all', async t => {
  checkUpdates(t, existenceCases)
})

t.test('an entity has one location', async t => {
  checkUpdates(t, locationCases)
})

t.test('operators act on stored values, in every request', async t => {
  checkUpdates(t, operatorCases)
})

t.test('a value without a type is judged by the stored type', async t => {
  checkUpdates(t, valueCases)
})

t.test('metadata is joined, or replaced with overrideMetadata', async t => {
  for (const [stored, sent, byDefault, override] of metadataCases) {
    const before = room(`{"temp":{"type":"T","value":1,"metadata":${stored}}}`)
    const attribute = `{"type":"T","value":2${sent === '-' ? '' : `,"metadata":${sent}`}}`
    const requests = [
      ['POST', `{"temp":${attribute}}`],
      ['PATCH', `{"temp":${attribute}}`],
      ['PUT temp', attribute],
    ] as const
    for (const [request, text] of requests) {
      const after = (option: string): string =>
        metadataText(send(before, request + option, text).change!.after!.attributes.get('temp')!.metadata)
      t.equal(after(''), byDefault, `${stored} and ${sent}: ${request}`)
      t.equal(after(' overrideMetadata'), override, `${stored} and ${sent}: ${request} overrideMetadata`)
    }
  }
})

t.test('keyValues with overrideMetadata removes the metadata of the touched attributes only', async t => {
  const one = '{"type":"Number","value":1,"metadata":{"m":{"type":"Number","value":1}}}'
  const outcome = send(room(`{"a":${one},"b":${one}}`), 'PATCH keyValues overrideMetadata', '{"a":1}')
  t.equal(attributesText(outcome.change!.after!), `{"a":{"type":"Number","value":1},"b":${one}}`)
})

t.test('a change is distinct from an update that leaves an attribute as it is', async t => {
  for (const [why, stored, request, text, changed] of changeCases) {
    const before = room(`{"temp":${stored}}`)
    const { change } = send(before, request, text)
    const name = `${why}: ${request} ${text}`
    const reported = change?.alterations.map(one => [one.name, one.valueChanged || one.metadataChanged])
    t.strictSame(reported, [['temp', changed]], name)
    t.equal(change?.after !== before, changed, `${name}: entity`)
    t.equal(change?.after?.modifiedMs, changed ? updatedMs : createdMs, `${name}: time of the entity`)
    t.equal(change?.after?.attributes.get('temp')?.modifiedMs, changed ? updatedMs : createdMs, `${name}: time`)
  }
})

t.test('an update without change still reports the attribute that it named', async t => {
  const { change } = send(room('{"temp":{"value":1}}'), 'PATCH', '{"temp":{"value":1}}')
  t.strictSame(change?.alterations, [
    { name: 'temp', action: 'update', named: true, valueChanged: false, metadataChanged: false },
  ])
})

t.test('alterations have the words append, update and delete', async t => {
  const before = room('{"a":{"value":1},"b":{"value":2}}')
  const refusalOf = (request: string, text?: string) =>
    send(before, request, text).change?.alterations.map(({ name, action }) => `${action} ${name}`)
  t.strictSame(refusalOf('POST', '{"b":{"value":3},"c":{"value":3}}'), ['update b', 'append c'])
  t.strictSame(refusalOf('POST append', '{"c":{"value":3},"b":{"value":3}}'), ['append c'])
  t.strictSame(refusalOf('PATCH', '{"a":{"value":3},"b":{"value":2}}'), ['update a', 'update b'])
  t.strictSame(refusalOf('DELETE a'), ['delete a'])
})

t.test('an attribute that is not created is not altered', async t => {
  const { change } = send(room('{}'), 'POST keyValues', '{"a":{"$pull":1}}')
  t.strictSame(change?.alterations, [])
})

const bothChanged = { valueChanged: true, metadataChanged: true }

t.test('a change of the value is distinct from one of the metadata', async t => {
  const before = room('{"temp":{"value":1,"metadata":{"m":{"value":1}}}}')
  const changed = (request: string, text: string) =>
    send(before, request, text).change?.alterations.map(one => [one.valueChanged, one.metadataChanged])
  t.strictSame(changed('PATCH', '{"temp":{"value":2}}'), [[true, false]], 'value')
  t.strictSame(changed('PATCH', '{"temp":{"value":1,"type":"T"}}'), [[true, false]], 'type')
  t.strictSame(changed('PATCH', '{"temp":{"value":1,"metadata":{"m":{"value":2}}}}'), [[false, true]], 'metadata')
  t.strictSame(changed('PATCH overrideMetadata', '{"temp":{"value":1}}'), [[false, true]], 'its removal')
  t.strictSame(changed('PATCH', '{"temp":{"value":2,"metadata":{"n":{"value":2}}}}'), [[true, true]], 'both')
  t.strictSame(changed('PATCH forcedUpdate', '{"temp":{"value":1}}'), [[true, false]], 'forced')
  t.strictSame(changed('PATCH', '{"temp":{"value":{"$mul":1}}}'), [[true, false]], 'an operator')
})

t.test('a replacement updates the named attributes, which all count as changed, and deletes the rest', async t => {
  const { change } = send(room('{"a":{"value":1},"b":{"value":2}}'), 'PUT', '{"b":{"value":2},"c":{"value":3}}')
  t.strictSame(change?.alterations, [
    { name: 'b', action: 'update', named: true, ...bothChanged },
    { name: 'c', action: 'append', named: true, ...bothChanged },
    { name: 'a', action: 'delete', named: false, ...bothChanged },
  ])
})

t.test('a replacement by an operator that yields nothing deletes the attribute', async t => {
  const { change } = send(room('{"a":{"value":[1]}}'), 'PUT keyValues', '{"a":{"$pull":1}}')
  t.strictSame([...change!.after!.attributes], [])
  t.strictSame(change?.alterations, [{ name: 'a', action: 'delete', named: true, ...bothChanged }])
})

const times = (entity: Entity | undefined, name: string) => {
  const attribute = entity?.attributes.get(name)
  return attribute && [attribute.createdMs, attribute.modifiedMs]
}

t.test('a new entity has one time everywhere', async t => {
  const entity = room('{"a":{"value":1}}')
  t.strictSame([entity.created, entity.modifiedMs, times(entity, 'a')], [stamp, createdMs, [createdMs, createdMs]])
})

t.test('the creation of an entity never moves', async t => {
  for (const request of ['POST', 'PATCH', 'PUT', 'POST forcedUpdate'])
    t.equal(send(room('{"a":{"value":1}}'), request, '{"a":{"value":2}}').change?.after?.created, stamp, request)
  t.equal(send(room('{"a":{"value":1}}'), 'DELETE a').change?.after?.created, stamp, 'DELETE')
})

t.test('id and type of an entity never change', async t => {
  for (const request of ['POST', 'PATCH', 'PUT'])
    t.match(send(room('{"a":{"value":1}}'), request, '{"a":{"value":2}}').change?.after, { id: 'R1', type: 'Room' })
})

t.test('times of an attribute: created with it, modified by its own change', async t => {
  const before = room('{"a":{"value":1},"b":{"value":1}}')
  const after = send(before, 'POST', '{"a":{"value":2},"b":{"value":1},"c":{"value":3}}').change?.after
  t.strictSame(times(after, 'a'), [createdMs, updatedMs], 'changed')
  t.strictSame(times(after, 'b'), [createdMs, createdMs], 'named without change')
  t.strictSame(times(after, 'c'), [updatedMs, updatedMs], 'appended')
})

t.test('a replacement makes all attributes new', async t => {
  const after = send(room('{"a":{"value":1}}'), 'PUT', '{"a":{"value":1}}').change?.after
  t.strictSame(times(after, 'a'), [updatedMs, updatedMs])
  t.equal(after?.modifiedMs, updatedMs)
})

t.test('a replacement modifies the entity, even of nothing by nothing', async t => {
  t.equal(send(room('{}'), 'PUT keyValues', '{"a":{"$pull":1}}').change?.after?.modifiedMs, updatedMs)
})

t.test('deleting an attribute modifies the entity, and no other attribute', async t => {
  const after = send(room('{"a":{"value":1},"b":{"value":1}}'), 'DELETE a').change?.after
  t.equal(after?.modifiedMs, updatedMs)
  t.strictSame(times(after, 'b'), [createdMs, createdMs])
})

t.test('the entity is named with its type when the request named it', async t => {
  t.equal(entityLabel('R1', undefined), 'R1')
  t.equal(entityLabel('R1', 'Room'), 'R1/Room')
  const before = room('{"a":{"value":1}}')
  t.equal(
    reasonOf(send(before, 'PATCH', '{"b":{},"c":{}}', 'R1/Room')),
    'Unprocessable do not exist: R1/Room - [ b, c ]',
  )
  t.equal(
    reasonOf(send(before, 'POST append', '{"a":{}}', 'R1/Room')),
    'Unprocessable one or more of the attributes in the request already exist: R1/Room - [ a ]',
  )
})

t.test('an attribute keeps its place when it is updated, and goes to the end when it is deleted and added', async t => {
  const before = room('{"b":{"value":1},"a":{"value":1},"c":{"value":1}}')
  const names = (entity: Entity | undefined): string => [...entity!.attributes.keys()].join(' ')
  t.equal(names(send(before, 'POST', '{"d":{},"c":{"value":2},"a":{"value":2}}').change?.after), 'b a c d')
  const without = send(before, 'DELETE b').change!.after!
  t.equal(names(send(without, 'POST', '{"b":{}}').change?.after), 'a c b')
})

t.test('names that are array indexes come first, where they will be when the entity was stored', async t => {
  const names = (entity: Entity | undefined): string => [...entity!.attributes.keys()].join(' ')
  const before = room('{"b":{},"a":{}}')
  const indexed = send(before, 'POST', '{"17":{},"c":{},"2":{}}').change?.after
  t.equal(names(indexed), '2 17 b a c')
  t.equal(names(send(indexed!, 'PATCH', '{"17":{"value":1}}').change?.after), '2 17 b a c')
})

t.test('a new entity has the sent attributes', async t => {
  const sent =
    '{"temp":{"type":"Celsius","value":21,"metadata":{"m":{"type":"T","value":1}}},"on":{"type":"Boolean","value":true}}'
  t.equal(attributesText(room(sent)), sent)
  t.strictSame(create(sent).change?.before, undefined)
  t.strictSame(create(sent).change?.alterations, [
    { name: 'temp', action: 'append', named: true, ...bothChanged },
    { name: 'on', action: 'append', named: true, ...bothChanged },
  ])
})

t.test('operators of a new entity start from their base', async t => {
  const sent =
    '{"inc":{"$inc":4},"mul":{"$mul":4},"min":{"$min":4},"max":{"$max":-4},"push":{"$push":4},"pull":{"$pull":4}}'
  const values = [...create(sent, true).change!.after!.attributes].map(([name, { value }]) => [name, value])
  t.strictSame(Object.fromEntries(values), { inc: 4, mul: 0, min: 0, max: 0, push: [4] })
})

t.test('a new entity with an operator that fails is not created', async t => {
  t.equal(reasonOf(create('{"a":1,"b":{"$inc":"x"}}', true)), 'InternalServerError Database Error (…')
  t.equal(create('{"a":1,"b":{"$inc":"x"}}', true).change, undefined)
})

const point = '{"type":"geo:json","value":{"type":"Point","coordinates":[2,41]}}'

t.test('a new entity has at most one location', async t => {
  const outcome = create(`{"a":${point},"b":{"type":"geo:point","value":"1, 2"}}`)
  t.equal(outcome.refusal?.kind, 'NoResourceAvailable')
  t.equal(outcome.change, undefined)
  t.equal(reasonOf(create(`{"a":${point},"b":{"type":"geo:point","value":null}}`)), 'accepted')
})

t.test('a bad location of a new entity is refused', async t => {
  t.equal(
    reasonOf(create('{"a":{"type":"geo:json","value":{"type":"Feature","geometry":1}}}')),
    'BadRequest error parsing location attribute: geometry in Feature is not an object',
  )
})

/** Updates after which the attribute loc is no location any more, so that another attribute may be it. */
const givesUp: [request: string, body: string][] = [
  ['PATCH', '{"loc":{"value":"here"}}'],
  ['PATCH', '{"loc":{"type":"geo:json","value":null}}'],
  ['PUT loc/value', 'null'],
  ['PATCH', '{"loc":{"type":"geo:json","value":{},"metadata":{"ignoreType":{"value":true}}}}'],
  ['PUT', '{"other":{"value":1}}'],
  ['DELETE loc', ''],
]

t.test('an attribute that gives up being the location leaves the place to another', async t => {
  for (const [request, text] of givesUp) {
    const { after } = send(room(`{"loc":${point}}`), request, text).change!
    t.notOk([...after!.attributes.values()].some(isLocation), `${request} ${text}`)
    const next = send(after!, 'POST', `{"b":${point}}`)
    t.equal(reasonOf(next), 'accepted', `${request} ${text}`)
    t.ok(isLocation(next.change!.after!.attributes.get('b')!), `${request} ${text}`)
  }
})

t.test('an entity expires at its dateExpires', async t => {
  for (const [stored, request, text, expires] of expiryCases) {
    const ms = expiresMs(send(room(stored), request, text).change!.after!)
    t.equal(ms === undefined ? 'never' : new Date(ms).toISOString(), expires, `${stored} ${request} ${text}`)
  }
})

t.test('an entity may be created transient, though its time is over', async t => {
  t.equal(expiresMs(room('{"dateExpires":{"type":"DateTime","value":"1999-01-01"}}')), Date.UTC(1999, 0, 1))
  t.equal(expiresMs(room('{"temp":{"value":1}}')), undefined)
})

t.test('dateExpires that is not declared a date is refused in every request', async t => {
  const before = room('{"dateExpires":{"type":"DateTime","value":"2030-01-01"}}')
  const text = 'BadRequest error processing date expiration attribute, see log traces'
  for (const request of ['POST', 'PATCH', 'PUT'])
    t.equal(reasonOf(send(before, request, '{"dateExpires":{"value":"2031-01-01"}}')), text, request)
  t.equal(reasonOf(send(before, 'PUT dateExpires', '{"value":"2031-01-01"}')), text)
  t.equal(reasonOf(send(before, 'PUT dateExpires/value', '"soon"')), 'BadRequest date has invalid format')
})

t.test('deleting an entity deletes all its attributes, and names none of them', async t => {
  const before = room('{"a":{"value":1},"b":{"value":1}}')
  t.strictSame(deleteEntity(before).change, {
    before,
    after: undefined,
    alterations: [
      { name: 'a', action: 'delete', named: false, ...bothChanged },
      { name: 'b', action: 'delete', named: false, ...bothChanged },
    ],
  })
  t.strictSame(deleteEntity(room('{}')).change?.alterations, [])
})

t.test('names of the language are ordinary names of attributes and metadata', async t => {
  const sent =
    '{"__proto__":{"type":"T","value":1,"metadata":{"__proto__":{"type":"T","value":2}}},"constructor":{"type":"T","value":3}}'
  const wanted = parseAttributes(body(sent), false)
  if (!wanted.ok) throw new Error(refusalText(wanted.refusal))
  const appended = appendAttributes(
    room('{}'),
    wanted.value,
    { overrideMetadata: false, forcedUpdate: false },
    updatedMs,
  )
  t.equal(attributesText(appended.change!.after!), sent)
  const patched = send(appended.change!.after!, 'PUT __proto__/value', '{"__proto__":5}')
  t.equal(JSON.stringify(patched.change!.after!.attributes.get('__proto__')!.value), '{"__proto__":5}')
})

t.test(
  'a plain dateExpires is one until it is updated, even with the same value (docs/interface/entities.md#builtin-attributes)',
  async t => {
    const value = '2099-01-01T00:00:00.000Z'
    const before = room(`{"a":{"value":1},"dateExpires":{"type":"DateTime","value":"${value}"}}`)
    const attributes = new Map(before.attributes)
    attributes.set('dateExpires', { ...before.attributes.get('dateExpires')!, isPlain: true })
    const plain: Entity = { ...before, attributes }
    t.equal(expiresMs(before), Date.parse(value))
    t.equal(expiresMs(plain), undefined)
    const wanted = { type: 'DateTime', value, operator: undefined, metadata: undefined }
    const options = { overrideMetadata: false, forcedUpdate: false }
    const other = updateAttribute(plain, 'a', { ...wanted, type: 'Number', value: 2 }, options, updatedMs)
    t.equal(expiresMs(other.change!.after!), undefined, 'an update of another attribute leaves it')
    const own = updateAttribute(plain, 'dateExpires', wanted, options, updatedMs)
    t.equal(expiresMs(own.change!.after!), Date.parse(value))
  },
)
