// Sequences of requests against a model of one entity, written from the text of the specification alone
// (docs/interface/entities.md#default-types, docs/interface/updates.md) and as plainly as it can be. After every
// request both must agree on the refusal, on all that is stored, and on times.

import t from 'tap'
import {
  type Entity,
  parseAttributes,
  parseEntity,
  parseSingleAttribute,
  parseValue,
} from '../../src/domain/entities/entity.js'
import {
  appendAttributes,
  appendStrict,
  createEntity,
  deleteAttribute,
  replaceAttributes,
  type UpdateOutcome,
  updateAttribute,
  updateAttributes,
  updateValue,
} from '../../src/domain/entities/update.js'
import type { Json } from '../../src/domain/json.js'
import { type Result, refusalText } from '../../src/domain/refusal.js'
import { stampMs, stampOf } from '../../src/domain/stamp.js'
import fc from '../support/properties.js'

// The sent values

type Typed = { value?: Json; type?: string }
type Sent = Typed & { metadata?: { [name: string]: Typed } }
type Flags = { override: boolean; forced: boolean }
type Request =
  | { to: 'POST' | 'POST append' | 'PATCH' | 'PUT'; sent: { [name: string]: Sent }; flags: Flags }
  | { to: 'PUT attribute'; name: string; sent: Sent; flags: Flags }
  | { to: 'PUT value'; name: string; sent: Json; flags: Flags }
  | { to: 'DELETE attribute'; name: string }

// The model

type Element = { type: string; value: Json }
type Stored = Element & { metadata: { [name: string]: Element }; created: number; modified: number }
type Model = { attributes: { [name: string]: Stored }; created: number; modified: number }

/** A request that is refused as a whole. */
class Refused extends Error {}

const sameText = (value: Json): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
const same = (a: Json, b: Json): boolean => sameText(a) === sameText(b)

const typeOf = (value: Json): string => {
  if (value === null) return 'None'
  if (typeof value === 'object') return 'StructuredValue'
  return { string: 'Text', number: 'Number', boolean: 'Boolean' }[typeof value as 'string' | 'number' | 'boolean']
}

/** `{"$inc": 1}` gives `['$inc', 1]`. The requests below never combine operators. */
function operatorIn(value: Json): [name: string, argument: Json] | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const [first] = Object.entries(value)
  return first?.[0].startsWith('$') ? (first as [string, Json]) : undefined
}

const numeric = (value: Json): number => {
  if (typeof value !== 'number') throw new Refused('InternalServerError')
  return value
}
const list = (value: Json): Json[] => {
  if (!Array.isArray(value)) throw new Refused('InternalServerError')
  return value as Json[]
}
type Members = { [key: string]: Json }
const isMembers = (value: Json): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const members = (value: Json): Members => {
  if (!isMembers(value)) throw new Refused('InternalServerError')
  return value
}

/** The table of docs/interface/updates.md#update-operators. */
function operate([name, argument]: [string, Json], stored: Json): Json {
  switch (name) {
    case '$inc':
      return numeric(stored) + numeric(argument)
    case '$mul':
      return numeric(stored) * numeric(argument) + 0
    case '$min':
      return Math.min(numeric(stored), numeric(argument))
    case '$max':
      return Math.max(numeric(stored), numeric(argument))
    case '$push':
      return [...list(stored), argument]
    case '$addToSet':
      return list(stored).some(item => same(item, argument)) ? stored : [...list(stored), argument]
    case '$pull':
      return list(stored).filter(item => !same(item, argument))
    case '$pullAll':
      return list(stored).filter(item => !list(argument).some(pulled => same(item, pulled)))
    case '$set':
      return isMembers(argument) ? { ...members(stored), ...argument } : argument
    default: {
      // The table names no failure for $unset: where there is no key to remove, nothing changes.
      if (!isMembers(argument) || !isMembers(stored)) return stored
      const rest = { ...stored }
      for (const key of Object.keys(argument)) delete rest[key]
      return rest
    }
  }
}

/** The table of docs/interface/updates.md#operators-on-new-attributes; undefined: the attribute is not created. */
function begin([name, argument]: [string, Json], replacing: boolean): Json | undefined {
  if (name === '$inc') return argument
  if (name === '$mul') return 0
  if (name === '$min') return replacing ? Math.min(0, numeric(argument)) : argument
  if (name === '$max') return replacing ? Math.max(0, numeric(argument)) : argument
  if (name === '$push' || name === '$addToSet') return [argument]
  if (name === '$set') return argument
  return undefined
}

const element = ({ value = null, type }: Typed): Element => ({ type: type ?? typeOf(value), value })

const elements = (sent: Sent['metadata']): Stored['metadata'] =>
  Object.fromEntries(Object.entries(sent ?? {}).map(([name, one]) => [name, element(one)]))

function add(model: Model, name: string, sent: Sent, now: number, replacing: boolean): void {
  const { type, value } = element(sent)
  const operator = operatorIn(value)
  const first = operator ? begin(operator, replacing) : value
  if (first === undefined) return
  model.attributes[name] = { type, value: first, metadata: elements(sent.metadata), created: now, modified: now }
  model.modified = now
}

function change(model: Model, name: string, sent: Sent, flags: Flags, now: number): void {
  const old = model.attributes[name]!
  const { type, value: wanted } = element(sent)
  const operator = operatorIn(wanted)
  const value = operator ? operate(operator, old.value) : wanted
  // docs/interface/updates.md#metadata-in-updates, row by row.
  let metadata: Stored['metadata']
  if (flags.override) metadata = elements(sent.metadata)
  else if (!sent.metadata) metadata = old.metadata
  else if (Object.keys(sent.metadata).length === 0) metadata = {}
  else metadata = { ...old.metadata, ...elements(sent.metadata) }
  // docs/interface/entities.md#changes.
  const differs = type !== old.type || !same(value, old.value) || !same(metadata, old.metadata)
  if (!differs && !operator && !flags.forced) return
  model.attributes[name] = { type, value, metadata, created: old.created, modified: now }
  model.modified = now
}

/**
 * Applies the request to the model, and returns the name of the error, if any. A request that throws leaves nothing
 * behind.
 */
function answer(model: Model, request: Request, now: number): string | undefined {
  const has = (name: string): boolean => Object.hasOwn(model.attributes, name)
  if ('name' in request) {
    const { name } = request
    if (!has(name)) throw new Refused('NotFound')
    if (request.to === 'PUT attribute') change(model, name, request.sent, request.flags, now)
    else if (request.to === 'PUT value') {
      const { type } = model.attributes[name]!
      change(model, name, { type, value: request.sent }, { ...request.flags, override: false }, now)
    } else {
      delete model.attributes[name]
      model.modified = now
    }
    return undefined
  }
  const { to, sent, flags } = request
  const names = Object.keys(sent)
  if (to === 'PUT') {
    model.attributes = {}
    model.modified = now
    for (const name of names) add(model, name, sent[name]!, now, true)
    return undefined
  }
  const existed = names.filter(has)
  const missed = names.filter(name => !has(name))
  const wrong = to === 'POST append' ? existed : to === 'PATCH' ? missed : []
  if (names.length > 0 && wrong.length === names.length) throw new Refused('Unprocessable')
  if (to !== 'POST append') for (const name of existed) change(model, name, sent[name]!, flags, now)
  if (to !== 'PATCH') for (const name of missed) add(model, name, sent[name]!, now, false)
  return wrong.length > 0 ? 'PartialUpdate' : undefined
}

// The same requests to the broker's own rules

const parsed = <T>(result: Result<T>): T => {
  if (!result.ok) throw new Error(`the request is at fault: ${refusalText(result.refusal)}`)
  return result.value
}
const body = (value: Json) => ({ value: JSON.parse(JSON.stringify(value)) as Json, duplicates: [], deep: false })

function ask(before: Entity, request: Request, now: number): UpdateOutcome {
  if (request.to === 'DELETE attribute') return deleteAttribute(before, request.name, now)
  const options = { overrideMetadata: request.flags.override, forcedUpdate: request.flags.forced }
  switch (request.to) {
    case 'PUT attribute':
      return updateAttribute(
        before,
        request.name,
        parsed(parseSingleAttribute(request.name, body(request.sent as Json))),
        options,
        now,
      )
    case 'PUT value':
      return updateValue(before, request.name, parsed(parseValue(body(request.sent))), options, now)
    default: {
      const wanted = parsed(parseAttributes(body(request.sent as Json), false))
      if (request.to === 'PUT') return replaceAttributes(before, wanted, now)
      if (request.to === 'PATCH') return updateAttributes(before, wanted, options, 'R1', now)
      return request.to === 'POST append'
        ? appendStrict(before, wanted, 'R1', now)
        : appendAttributes(before, wanted, options, now)
    }
  }
}

/** All that is stored, times and order included, as one text. */
const entityText = (entity: Entity): string =>
  JSON.stringify({
    created: stampMs(entity.created),
    modified: entity.modifiedMs,
    attributes: [...entity.attributes].map(([name, a]) => [
      name,
      a.type,
      sameText(a.value),
      sameText(Object.fromEntries(a.metadata) as unknown as Json),
      a.createdMs,
      a.modifiedMs,
    ]),
  })

const modelText = ({ created, modified, attributes }: Model): string =>
  JSON.stringify({
    created,
    modified,
    attributes: Object.entries(attributes).map(([name, a]) => [
      name,
      a.type,
      sameText(a.value),
      sameText(a.metadata),
      a.created,
      a.modified,
    ]),
  })

// Few names and few values, so that requests meet the results of others.

const name = fc.constantFrom('n', 'list', 'object', 'other')
const item = fc.constantFrom<Json>(0, 1, 2, 'x', { a: 1, b: 2 }, { b: 2, a: 1 }, [1])
const keys = fc.dictionary(fc.constantFrom('a', 'b', 'c.d'), fc.constantFrom<Json>(1, 2, 'x'), {
  noNullPrototype: true,
})
const small = fc.integer({ min: -3, max: 3 })
const operator: fc.Arbitrary<Json> = fc
  .oneof(
    fc.tuple(fc.constantFrom('$inc', '$mul', '$min', '$max'), small as fc.Arbitrary<Json>),
    fc.tuple(fc.constantFrom('$push', '$addToSet'), item),
    fc.tuple(fc.constant('$pull'), fc.constantFrom<Json>(0, 1, 'x', [1])),
    fc.tuple(fc.constant('$pullAll'), fc.array(item, { maxLength: 3 }) as fc.Arbitrary<Json>),
    fc.tuple(fc.constantFrom('$set', '$unset'), keys as fc.Arbitrary<Json>),
    fc.tuple(fc.constant('$set'), fc.constantFrom<Json>(1, [1], null)),
  )
  .map(([key, argument]) => ({ [key]: argument }))
const value = fc.oneof(
  small,
  fc.array(item, { maxLength: 3 }),
  keys,
  item,
  fc.constant(null),
  operator,
) as fc.Arbitrary<Json>

const type = fc.constantFrom('T', 'U')
const typed = fc.record({ value: item, type }, { requiredKeys: [] })
const metadata = fc.dictionary(fc.constantFrom('m1', 'm2', 'm3'), typed, { noNullPrototype: true, maxKeys: 2 })
const attribute = fc.record({ value, type, metadata }, { requiredKeys: [] }) as fc.Arbitrary<Sent>
const attributes = fc.dictionary(name, attribute, { minKeys: 1, noNullPrototype: true })
const flags = fc.record({ override: fc.boolean(), forced: fc.boolean() })
const request: fc.Arbitrary<Request> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ to: fc.constantFrom('POST', 'POST append', 'PATCH', 'PUT'), sent: attributes, flags }),
  },
  { weight: 2, arbitrary: fc.record({ to: fc.constant('PUT attribute'), name, sent: attribute, flags }) },
  { weight: 2, arbitrary: fc.record({ to: fc.constant('PUT value'), name, sent: value, flags }) },
  { weight: 1, arbitrary: fc.record({ to: fc.constant('DELETE attribute'), name }) },
) as fc.Arbitrary<Request>

/** $min and $max of anything but numbers need the order of kinds, which operators.test.ts tests. */
const isNumeric = (value: Json | undefined): boolean => value === undefined || typeof value === 'number'

function leavesNumbers(model: Model, request: Request): boolean {
  if (request.to === 'DELETE attribute') return true
  const sent: [string, Json | undefined][] =
    request.to === 'PUT value'
      ? [[request.name, request.sent]]
      : request.to === 'PUT attribute'
        ? [[request.name, request.sent.value]]
        : Object.entries(request.sent).map(([name, { value }]) => [name, value])
  return sent.every(([name, value]) => {
    const operator = operatorIn(value ?? null)?.[0]
    const compares = operator === '$min' || operator === '$max'
    return !compares || request.to === 'PUT' || isNumeric(model.attributes[name]?.value)
  })
}

t.test('any sequence of requests has the effect that the specification states', async t => {
  const startMs = Date.UTC(2024, 4, 1)
  const refusals = new Set<string | undefined>()
  fc.assert(
    fc.property(attributes, fc.array(request, { minLength: 1, maxLength: 12 }), (first, requests) => {
      const parsedFirst = parsed(parseEntity(body({ id: 'R1', type: 'Room', ...first } as Json), false))
      let entity = createEntity(parsedFirst, stampOf(startMs)).change!.after!
      let model: Model = { attributes: {}, created: startMs, modified: startMs }
      for (const [name, sent] of Object.entries(first)) add(model, name, sent, startMs, true)
      if (entityText(entity) !== modelText(model)) throw new Error(`${entityText(entity)} is not ${modelText(model)}`)

      requests.forEach((request, at) => {
        if (!leavesNumbers(model, request)) return
        const now = startMs + at + 1
        const next = structuredClone(model)
        let expected: string | undefined
        try {
          expected = answer(next, request, now)
          model = next
        } catch (refused) {
          if (!(refused instanceof Refused)) throw refused
          expected = refused.message
        }
        const { change, refusal } = ask(entity, request, now)
        entity = change?.after ?? entity
        refusals.add(refusal?.kind)
        if (refusal?.kind !== expected) throw new Error(`${refusal?.kind} is not ${expected}`)
        if (entityText(entity) !== modelText(model)) throw new Error(`${entityText(entity)} is not ${modelText(model)}`)
      })
    }),
    { numRuns: 2000 },
  )
  t.strictSame(
    [...refusals].sort(),
    ['InternalServerError', 'NotFound', 'PartialUpdate', 'Unprocessable', undefined],
    'requests of every outcome were among them',
  )
})
