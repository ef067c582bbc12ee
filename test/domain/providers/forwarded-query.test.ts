// A query that is forwarded: the requests in turn, and the page that is made of the answers and the local entities.
//
// The cases of the specification are in test/cases/forwarding.ts.

import assert from 'node:assert/strict'
import t from 'tap'
import type { Entity } from '../../../src/domain/entities/entity.js'
import { renderEntity } from '../../../src/domain/entities/representation.js'
import type { Json } from '../../../src/domain/json.js'
import {
  ForwardedQuery,
  type LocatedEntity,
  mayBeProvided,
  type QueryRequest,
  readProvidedEntities,
} from '../../../src/domain/providers/forwarded-query.js'
import { ProviderIndex } from '../../../src/domain/providers/provider-index.js'
import type { Registration } from '../../../src/domain/providers/registration.js'
import type { SelectorSource } from '../../../src/domain/queries/selection.js'
import * as cases from '../../cases/forwarding.js'
import fc from '../../support/properties.js'
import { provided } from '../../support/registrations.js'
import { selectionOf } from '../../support/selections.js'

const split = (text: string): string[] => text.split(',').filter(word => word !== '' && word !== '-')

/** An entity whose attributes all have one value. */
function entity(id: string, attrs: string, value: string, type = 'T'): Entity {
  const one = { type: 'Text', value, metadata: new Map(), createdMs: 0, modifiedMs: 0 }
  return { id, type, attributes: new Map(split(attrs).map(name => [name, one])), created: 1, modifiedMs: 1 }
}

const placed = (...entities: readonly Entity[]): LocatedEntity[] => entities.map(entity => ({ entity, path: '/' }))

function indexOf(...registrations: readonly Registration[]): ProviderIndex {
  const index = new ProviderIndex()
  for (const one of registrations) index.add(one)
  return index
}

interface Given {
  readonly selectors?: readonly SelectorSource[]
  readonly attrs?: readonly string[]
  readonly limit?: number
  readonly offset?: number
  readonly local?: readonly LocatedEntity[]
  readonly total?: number
  readonly requestsMax?: number
}

function queryOf(index: ProviderIndex, given: Given): ForwardedQuery {
  const { selectors = [], attrs = [], limit = 20, offset = 0, local = [], requestsMax = 1000 } = given
  const sought = { selection: selectionOf({ selectors }), paths: ['/#'], attrs }
  const { total = local.length } = given
  return new ForwardedQuery(index, sought, { limit, offset }, { entities: local, total }, '/', 0, requestsMax)
}

/** Sends all requests of a query; `answer` plays the providers. */
function run(
  query: ForwardedQuery,
  answer: (request: QueryRequest) => { readonly entities: readonly Entity[]; readonly total?: number } | undefined,
): QueryRequest[] {
  const requests: QueryRequest[] = []
  for (let next = query.next(); next; next = query.next()) {
    requests.push(next)
    const answered = answer(next)
    if (answered) query.take(answered.entities, answered.total)
  }
  return requests
}

const numberOf = ({ registration }: QueryRequest): number => Number.parseInt(registration.id, 16)

for (const [what, named, local, registrations, asked] of cases.wanted)
  t.test(`attributes: ${what}`, async t => {
    const all = registrations.map((attrs, at) =>
      provided(at + 1, [{ id: 'E', type: 'T' }], split(attrs), `http://h${at}`),
    )
    const query = queryOf(indexOf(...all), {
      selectors: [{ ids: ['E'], types: ['T'] }],
      attrs: split(named),
      local: local === '' ? [] : placed(entity('E', local, 'here')),
    })
    const requests = run(query, () => undefined)
    t.strictSame(
      requests.map(one => `${numberOf(one)} ${one.attrs.join() || '-'}`),
      asked,
    )
  })

t.test('attributes that an earlier provider has sent are not requested again', async t => {
  const one = { id: 'E', type: 'T' }
  const index = indexOf(
    provided(1, [one], ['a', 'b'], 'http://h1'),
    provided(2, [one], ['b', 'c'], 'http://h2'),
    provided(3, [one], ['a', 'c'], 'http://h3'),
  )
  const query = queryOf(index, { selectors: [{ ids: ['E'], types: ['T'] }] })
  const requests = run(query, request => ({ entities: [entity('E', request.attrs.join(), String(numberOf(request)))] }))
  t.strictSame(
    requests.map(one => `${numberOf(one)} ${one.attrs}`),
    ['1 a,b', '2 c'],
  )
  const [only] = query.result().entities
  t.strictSame(
    [...only!.entity.attributes].map(([name, { value }]) => `${name}${value}`),
    ['a1', 'b1', 'c2'],
  )
})

t.test('registrations at one URL are asked for one entity at once, their attributes together', async t => {
  const url = 'http://h'
  const [e, f] = [
    { id: 'E', type: 'T' },
    { id: 'F', type: 'T' },
  ]
  const index = indexOf(
    provided(1, [e], ['a'], url),
    provided(2, [e, f], ['b'], url),
    provided(3, [{ ...e, type: 'U' }], ['c'], url),
  )
  const requests = run(queryOf(index, {}), () => undefined)
  t.strictSame(
    requests.map(one => `${one.entity.id}/${one.entity.type} ${one.attrs}`),
    ['E/T a,b', 'F/T b', 'E/U c'],
  )
  const whole = indexOf(provided(1, [e], ['a'], url), provided(2, [e], [], url))
  t.strictSame(
    run(queryOf(whole, {}), () => undefined).map(one => one.attrs),
    [[]],
    'who provides the whole entity is asked for all of it',
  )
})

t.test('requests beyond the limit are not made', async t => {
  const all = [1, 2, 3, 4].map(n => provided(n, [{ id: `E${n}` }], [], 'http://h'))
  const requests = run(queryOf(indexOf(...all), { requestsMax: 2 }), () => undefined)
  t.strictSame(requests.map(numberOf), [1, 2])
})

// Paging (docs/interface/registrations.md#queries)

/** Five entities here, ten at each of two providers, which page correctly. */
function paged(limit: number, offset: number) {
  const here = [1, 2, 3, 4, 5].map(n => entity(`A${n}`, '', ''))
  const index = indexOf(
    provided(1, [{ idPattern: '.*', type: 'T' }], ['a'], 'http://b'),
    provided(2, [{ idPattern: '.*', type: 'T' }], ['b'], 'http://c'),
  )
  const query = queryOf(index, {
    selectors: [{ idPattern: '.*', types: ['T'] }],
    limit,
    offset,
    local: placed(...here.slice(offset, offset + limit)),
    total: 5,
  })
  const requests = run(query, request => {
    const name = 'BC'[numberOf(request) - 1]
    const all = Array.from({ length: 10 }, (_, n) => entity(`${name}${n + 1}`, 'a', ''))
    return { entities: all.slice(request.offset, request.offset + request.limit), total: 10 }
  })
  const { entities, total } = query.result()
  return {
    ids: entities.map(one => one.entity.id).join(),
    total,
    windows: requests.map(one => `${one.limit}@${one.offset}`),
  }
}

const ids = (name: string, from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => `${name}${from + n}`)

t.test('a page continues from local entities to one provider after the other', async t => {
  const table: readonly (readonly [
    limit: number,
    offset: number,
    ids: readonly string[],
    windows: readonly string[],
    total: number,
  ])[] = [
    [3, 0, ids('A', 1, 3), [], 5],
    [5, 0, ids('A', 1, 5), [], 5],
    [10, 0, [...ids('A', 1, 5), ...ids('B', 1, 5)], ['5@0', '0@0'], 25],
    [20, 0, [...ids('A', 1, 5), ...ids('B', 1, 10), ...ids('C', 1, 5)], ['15@0', '5@0'], 25],
    [20, 3, [...ids('A', 4, 5), ...ids('B', 1, 10), ...ids('C', 1, 8)], ['18@0', '8@0'], 25],
    [20, 5, [...ids('B', 1, 10), ...ids('C', 1, 10)], ['20@0', '10@0'], 25],
    [20, 10, [...ids('B', 6, 10), ...ids('C', 1, 10)], ['20@5', '15@0'], 25],
    [10, 5, ids('B', 1, 10), ['10@0', '0@0'], 25],
    [20, 17, ids('C', 3, 10), ['20@12', '20@2'], 25],
    [20, 40, [], ['20@35', '20@25'], 25],
    [0, 0, [], [], 5],
  ]
  for (const [limit, offset, expected, windows, total] of table)
    t.strictSame(paged(limit, offset), { ids: expected.join(), total, windows }, `limit=${limit}&offset=${offset}`)
})

t.test('an entity that is on the page is completed, even if the page is full', async t => {
  const index = indexOf(
    provided(1, [{ id: 'E', type: 'T' }], ['b'], 'http://h1'),
    provided(2, [{ id: 'F', type: 'T' }], ['b'], 'http://h2'),
    provided(3, [{ idPattern: '.*', type: 'T' }], ['b'], 'http://h3'),
  )
  const query = queryOf(index, { limit: 1, local: placed(entity('E', 'a', 'here')), total: 7 })
  const requests = run(query, () => ({ entities: [entity('E', 'a,b', 'there')], total: 1 }))
  t.strictSame(
    requests.map(({ limit, offset, entity }) => [entity.id, limit, offset]),
    [['E', 1, 0]],
  )
  const { entities, total } = query.result()
  t.equal(total, 8)
  t.strictSame(
    [...entities[0]!.entity.attributes].map(([name, { value }]) => `${name} ${value}`),
    ['a here', 'b there'],
  )
})

t.test('a query with an id asks providers of every id for missing attributes, though the page is full', async t => {
  const index = indexOf(provided(1, [{ idPattern: '.*', type: 'T' }], ['b'], 'http://h'))
  const query = queryOf(index, { selectors: [{ ids: ['E'] }], limit: 1, local: placed(entity('E', 'a', 'here')) })
  t.match(query.next(), { entity: { id: 'E', type: 'T' }, attrs: ['b'], limit: 1, offset: 0 })
})

t.test('entities that were not requested are ignored', async t => {
  const index = indexOf(provided(1, [{ idPattern: '.*', type: 'T' }], [], 'http://h'))
  const query = queryOf(index, {
    selectors: [
      { ids: ['E'], types: ['T'] },
      { idPattern: '^R', types: ['T'] },
    ],
  })
  run(query, () => ({
    entities: [entity('E', 'a', ''), entity('X', 'a', ''), entity('E', 'a', '', 'U'), entity('R1', 'a', '')],
  }))
  t.strictSame(
    query.result().entities.map(one => `${one.entity.id}/${one.entity.type}`),
    ['E/T', 'R1/T'],
  )
})

t.test('a provider that sends more than it was asked for does not make the page larger', async t => {
  const index = indexOf(provided(1, [{ idPattern: '.*' }], [], 'http://h'))
  const query = queryOf(index, { limit: 3 })
  run(query, () => ({ entities: ids('E', 1, 50).map(id => entity(id, 'a', '')) }))
  t.strictSame([query.result().entities.length, query.result().total], [3, 50])
})

t.test('an id with two types here is not taken for either', async t => {
  const index = indexOf(provided(1, [{ id: 'E' }], ['a'], 'http://h'))
  const query = queryOf(index, {
    selectors: [{ ids: ['E'] }],
    local: placed(entity('E', 'a', ''), entity('E', 'a', '', 'U')),
  })
  t.match(query.next(), { entity: { id: 'E', type: undefined }, attrs: ['a'] })
})

t.test('registrations of a hundred thousand devices do not slow down a query for one', async t => {
  const index = indexOf()
  for (let n = 0; n < 100_000; n++) index.add(provided(n, [{ id: `E${n}`, type: 'T' }], ['a'], 'http://h'))
  const startMs = performance.now()
  for (let n = 0; n < 1000; n++) queryOf(index, { selectors: [{ ids: [`E${n}`] }] }).next()
  const ms = performance.now() - startMs
  t.ok(ms < 1000, `${ms} ms`)
})

// Any answers of providers

const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 })
const entities = (value: string) =>
  fc
    .record({ id: fc.constantFrom('E', 'F', 'G'), type: fc.constantFrom('T', 'U'), attrs: names })
    .map(one => entity(one.id, one.attrs.join(), value, one.type))
const unique = (all: readonly Entity[]): Entity[] => [
  ...new Map(all.map(one => [`${one.id}/${one.type}`, one])).values(),
]
const registered = fc.array(
  fc.record({
    id: fc.constantFrom('E', 'F', undefined),
    type: fc.constantFrom('T', undefined),
    attrs: names,
    url: fc.constantFrom('http://x', 'http://y'),
  }),
  { maxLength: 5 },
)

t.test('with any answers local entities stay, each entity is there once, and the first value counts', async () => {
  const some = fc.tuple(
    registered,
    fc.array(entities('here'), { maxLength: 3 }).map(unique),
    fc.array(
      fc.option(fc.tuple(fc.array(entities('there'), { maxLength: 4 }), fc.option(fc.nat(9), { nil: undefined })), {
        nil: undefined,
      }),
      { maxLength: 8 },
    ),
    fc.nat(5),
    names,
  )
  fc.assert(
    fc.property(some, ([all, local, answers, more, attrs]) => {
      const index = indexOf(
        ...all.map(({ id, type, attrs, url }, at) =>
          provided(at + 1, [{ ...(id === undefined ? { idPattern: '.*' as const } : { id }), type }], attrs, url),
        ),
      )
      const limit = local.length + more
      const query = queryOf(index, { attrs, limit, local: placed(...local) })
      let at = 0
      let calls = 0
      const firstWord = new Map<string, string>()
      for (const one of local)
        for (const name of one.attributes.keys()) firstWord.set(`${one.id}/${one.type}/${name}`, 'here')
      const requests = run(query, () => {
        const answer = answers[at++]
        if (!answer) return undefined
        calls += answer[1] ?? answer[0].length
        return { entities: answer[0], ...(answer[1] === undefined ? {} : { total: answer[1] }) }
      })
      const { entities: page, total } = query.result()
      assert.equal(total, local.length + calls)
      assert(page.length <= limit)
      assert.equal(unique(page.map(one => one.entity)).length, page.length)
      for (const [at, one] of local.entries()) {
        assert.equal(`${page[at]!.entity.id}/${page[at]!.entity.type}`, `${one.id}/${one.type}`)
        for (const [name, attribute] of one.attributes) assert.equal(page[at]!.entity.attributes.get(name), attribute)
        assert.equal(page[at]!.isJoined, page[at]!.entity.attributes.size > one.attributes.size)
      }
      // No provider is asked for one entity twice, and each only for named attributes.
      const asked = requests.map(({ registration, entity }) => JSON.stringify([registration.provider.url, entity]))
      assert.equal(new Set(asked).size, asked.length)
      if (attrs.length > 0)
        for (const one of requests)
          assert(one.attrs.length > 0 && one.attrs.every(name => (attrs as readonly string[]).includes(name)))
    }),
    { numRuns: 300 },
  )
})

t.test('where no provider may have anything, none is asked', async t => {
  const entities = [{ id: 'E', type: 'T' }, { id: 'F' }, { idPattern: '.*' as const, type: 'U' }]
  const selectors: readonly SelectorSource[] = [
    { ids: ['E'] },
    { ids: ['F'], types: ['T'] },
    { ids: ['G'], types: ['U'] },
    { ids: ['G'], types: ['T'] },
    { idPattern: '.*', types: ['T'] },
    { idPattern: '.*', types: ['V'] },
    { types: ['U'] },
  ]
  const seen = { yes: 0, no: 0 }
  for (const one of [undefined, ...selectors])
    for (const subset of [[], [0], [1], [2], [0, 1], [0, 1, 2]]) {
      const index = indexOf(...subset.map(at => provided(at + 1, [entities[at]!], [], `http://h${at}`)))
      const given = { selectors: one ? [one] : [] }
      const may = mayBeProvided(index, selectionOf(given))
      const asked = run(queryOf(index, given), () => undefined)
      if (!may) t.strictSame(asked, [], `${JSON.stringify(one)} of ${subset}`)
      seen[asked.length > 0 ? 'yes' : 'no']++
      if (asked.length > 0) t.ok(may)
    }
  t.ok(seen.yes > 5 && seen.no > 5, JSON.stringify(seen))
})

// Entities in the answers of providers: sensible parts are accepted, the rest is ignored.

const read = (json: Json) => readProvidedEntities(json, 'Thing')
const view = { mode: 'normalized', attrs: undefined, metadata: undefined } as const
const shown = (json: Json) => read(json)?.map(entity => JSON.parse(renderEntity(entity, '/', view)))

t.test('an answer is an array of normalized entities', async t => {
  const entity = {
    id: 'E',
    type: 'T',
    a: { type: 'Number', value: 1, metadata: { m: { type: 'Text', value: 'x' } } },
    b: { type: 'StructuredValue', value: { x: [null, true] }, metadata: {} },
  }
  t.strictSame(shown([entity, { id: 'F', type: 'T' }]), [entity, { id: 'F', type: 'T' }])
  t.strictSame(shown([]), [])
  for (const json of [null, 1, 'x', {}, { id: 'E' }]) t.equal(read(json), undefined)
})

t.test('missing types are those of creation', async t => {
  t.strictSame(shown([{ id: 'E', a: { value: 1 }, b: { value: 'x', metadata: { m: { value: null } } } }]), [
    {
      id: 'E',
      type: 'Thing',
      a: { type: 'Number', value: 1, metadata: {} },
      b: { type: 'Text', value: 'x', metadata: { m: { type: 'None', value: null } } },
    },
  ])
})

const deep = (levels: number): Json => (levels === 0 ? 1 : [deep(levels - 1)])

t.test('an invalid part of an answer is left out, and the rest counts', async t => {
  const good = { id: 'E', type: 'T', a: { type: 'Number', value: 1, metadata: {} } }
  const bad: readonly Json[] = [
    null,
    1,
    'E',
    [],
    {},
    { id: 1 },
    { id: '' },
    { id: 'a b' },
    { id: 'E', type: null },
    { id: 'x'.repeat(257) },
  ]
  t.strictSame(shown([...bad, good, ...bad]), [good])
  const members: Record<string, Json> = {
    'a b': { value: 1 },
    ['x'.repeat(257)]: { value: 1 },
    bare: 1,
    empty: null,
    list: [],
    valueless: { type: 'Number' },
    badType: { type: 1, value: 1 },
    infinite: { type: 'Number', value: JSON.parse('1e999') },
    infiniteWithin: { type: 'X', value: { x: [JSON.parse('-1e999')] } },
    tooDeep: { type: 'X', value: deep(60) },
  }
  t.strictSame(shown([{ ...good, ...members }]), [good])
  const metadata = {
    ok: { type: 'Text', value: 'x' },
    'a b': { value: 1 },
    bare: 1,
    infinite: { value: JSON.parse('1e999') },
  }
  t.strictSame(shown([{ ...good, a: { ...good.a, metadata } }]), [
    { ...good, a: { ...good.a, metadata: { ok: metadata.ok } } },
  ])
})

t.test('the times of creation and change of such an entity are not shown', async t => {
  const [entity] = read([{ id: 'E', type: 'T', a: { value: 1 } }])!
  const attrs = ['*', 'dateCreated', 'dateModified', 'a']
  const withBuiltins = { mode: 'normalized', attrs, metadata: ['*', 'dateCreated', 'dateModified'] } as const
  t.strictSame(JSON.parse(renderEntity(entity!, '/', withBuiltins)), {
    id: 'E',
    type: 'T',
    a: { type: 'Number', value: 1, metadata: {} },
  })
  const named = { mode: 'keyValues', attrs: ['dateCreated', 'dateModified'], metadata: undefined } as const
  t.strictSame(JSON.parse(renderEntity(entity!, '/', named)), { id: 'E', type: 'T' })
})

t.test('entities accepted from any answer can be rendered as JSON', async () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue(), { maxLength: 4 }), fc.jsonValue(), (items, value) => {
      const some = [...items, { id: 'E', x: { value }, y: { value: 1, metadata: value } }] as Json
      for (const entity of read(some) ?? []) JSON.parse(renderEntity(entity, '/', view))
    }),
  )
})
