import t from 'tap'
import type { Attribute } from '../../../src/domain/entities/entity.js'
import type { Json } from '../../../src/domain/json.js'
import { matchesQuery } from '../../../src/domain/queries/query.js'
import { type GuardedQuery, guardsOf, Intervals, QueryIndex } from '../../../src/domain/queries/query-index.js'
import { parseQuery } from '../../../src/domain/queries/query-parser.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { attribute, withAttributes } from '../../support/entities.js'
import fc from '../../support/properties.js'
import { attributesForStatements, statementTexts } from '../../support/statements.js'

function guarded(text: string): GuardedQuery {
  const parsed = parseQuery(text, 'q')
  if (!parsed.ok) throw new Error(`${text}: ${refusalText(parsed.refusal)}`)
  return { query: parsed.value, guards: guardsOf(parsed.value) }
}

const entityWith = (attributes: Readonly<Record<string, Attribute | undefined>>) =>
  withAttributes(
    { id: 'e', type: 'T', created: 0 },
    Object.entries(attributes).flatMap(([name, one]) => (one ? [[name, one] as const] : [])),
  )

const valued = (values: Readonly<Record<string, Json>>) =>
  entityWith(Object.fromEntries(Object.entries(values).map(([name, value]) => [name, attribute(value)])))

/** The number of times that each query is shown. */
function shown(index: QueryIndex<GuardedQuery>, entity: ReturnType<typeof valued>): Map<GuardedQuery, number> {
  const times = new Map<GuardedQuery, number>()
  index.visit(entity, '/', query => times.set(query, (times.get(query) ?? 0) + 1))
  return times
}

/** Queries about `a` and, to have more than one attribute, about `b`. */
const queryTexts = fc
  .array(fc.tuple(statementTexts, fc.boolean()), { minLength: 1, maxLength: 3 })
  .map(all => all.map(([text, isOfB]) => (isOfB ? text.replace(/^(!?)a/, '$1b') : text)).join(';'))

t.test('every query that holds is shown, after any additions and removals', async t => {
  let holding = 0
  let passedOver = 0
  fc.assert(
    fc.property(
      fc.array(queryTexts, { minLength: 1, maxLength: 30 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      fc.array(fc.tuple(attributesForStatements, attributesForStatements), { minLength: 5, maxLength: 5 }),
      (texts, removals, entities) => {
        const index = new QueryIndex<GuardedQuery>()
        const queries = new Set(texts.map(guarded))
        for (const query of queries) index.add(query)
        for (const removal of removals) {
          const gone = [...queries][removal % queries.size]
          if (!gone) break
          index.remove(gone)
          queries.delete(gone)
        }
        for (const [a, b] of entities) {
          const entity = entityWith({ a, b })
          const result = shown(index, entity)
          for (const query of result.keys()) if (!queries.has(query)) throw new Error('one that has been removed')
          for (const query of queries) {
            const holds = matchesQuery(query.query, entity, '/')
            if (holds) holding++
            if (holds && !result.has(query)) throw new Error(JSON.stringify(query.query))
            if (!result.has(query)) passedOver++
          }
        }
      },
    ),
    { numRuns: 1500 },
  )
  t.ok(holding > 1000, `${holding} times a query held`)
  t.ok(passedOver > holding, `${passedOver} times a query was passed over`)
})

/** Queries about a hundred rooms or limits, an entity, and the largest number of them that may be tried on it. */
const selections: readonly [
  why: string,
  text: (n: number) => string,
  entity: Readonly<Record<string, Json>>,
  most: number,
][] = [
  ['equality', n => `room==${n}`, { room: 17 }, 1],
  ['equality of a text', n => `room==r${n}`, { room: 'r17' }, 1],
  ['a list', n => `room==${n},${n + 1}`, { room: 17 }, 2],
  ['an element of an array', n => `room==${n}`, { room: [17, 17, 18, 'x'] }, 2],
  ['lower bounds', n => `level>${n}`, { level: 10 }, 11],
  ['upper bounds', n => `level<${n}`, { level: 90 }, 10],
  ['a range', n => `level==${n}..${n + 1}`, { level: 17.5 }, 1],
  ['bounds on both sides', n => `level>${n};level<${n + 1}`, { level: 17.5 }, 1],
  ['bounds of an array', n => `level>${n}`, { level: [3, 10, 'x'] }, 11],
  ['bounds of dates', n => `when>2024-01-01T00:00:00.${String(n).padStart(3, '0')}Z`, { when: '2024' }, 0],
  ['a key in an object', n => `address.room==${n}`, { address: { room: 17 } }, 1],
  ['a key in the objects of an array', n => `rooms.no==${n}`, { rooms: [{ no: 17 }, { no: [18, 19] }] }, 3],
  ['what tells more of two', n => `status==on;room==${n}`, { status: 'on', room: 17 }, 2],
  ['an attribute that is not there', n => `room~=${n}`, { level: 1 }, 0],
  ['attributes of which one is there', n => `room${n}`, { room17: null }, 1],
  ['another kind of value', n => `room==${n}`, { room: '17' }, 0],
  ['an object', n => `room>${n}`, { room: { no: 17 } }, 0],
]

t.test('of a hundred queries only those are shown that may hold', async t => {
  for (const [why, text, values, most] of selections) {
    const index = new QueryIndex<GuardedQuery>()
    const queries = Array.from({ length: 100 }, (_, n) => guarded(text(n)))
    for (const query of queries) index.add(query)
    const result = shown(index, valued(values))
    t.ok(result.size <= most, `${why}: ${text(17)} shows ${result.size} of at most ${most}`)
    for (const query of queries) if (matchesQuery(query.query, valued(values), '/')) t.ok(result.has(query), why)
  }
})

t.test('a query is not shown again for each element that is alike', async t => {
  const index = new QueryIndex<GuardedQuery>()
  const query = guarded('a==1')
  index.add(query)
  t.strictSame([...shown(index, valued({ a: [1, 1, 1, 1] })).values()], [1])
})

t.test('a query that names no attribute which must be there is always shown', async t => {
  for (const text of ['!a', 'dateModified>2020-01-01', 'servicePath~=^/', '!a.k']) {
    const index = new QueryIndex<GuardedQuery>()
    index.add(guarded(text))
    t.equal(shown(index, valued({ b: 1 })).size, 1, text)
  }
})

type Ends = readonly [low: number | undefined, high: number | undefined]

const end = fc.option(fc.integer({ min: -5, max: 5 }), { nil: undefined })
const act = fc.record({ ends: fc.tuple(end, end), removes: fc.boolean(), choice: fc.nat() })
const looks = fc.array(fc.tuple(fc.integer({ min: -6, max: 6 }), fc.nat({ max: 3 })), { minLength: 4, maxLength: 4 })

const holds = ([low, high]: Ends, least: number, most: number): boolean =>
  (low === undefined || low <= most) && (high === undefined || high >= least)

function found(intervals: Intervals<number, number>, least: number, most: number): number[] {
  const items: number[] = []
  intervals.visit(least, most, item => items.push(item))
  return items.sort((a, b) => a - b)
}

t.test('a look finds the same as a walk through all intervals', async t => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 300, size: 'max' }), looks, (acts, looks) => {
      const intervals = new Intervals<number, number>()
      const there = new Map<number, Ends>()
      for (const [at, { ends, removes, choice }] of acts.entries()) {
        const items = [...there.keys()]
        if (removes && items.length > 0) {
          const item = items[choice % items.length]!
          intervals.remove(...there.get(item)!, item)
          there.delete(item)
        } else {
          intervals.add(...ends, at)
          there.set(at, ends)
        }
        // Meanwhile some of them wait, some are in the tree, and some are holes in it.
        if (at % 50 === 0) found(intervals, 0, 0)
      }
      if (intervals.size !== there.size) throw new Error(`${intervals.size} are not ${there.size}`)
      for (const [least, width] of looks) {
        const wanted = [...there].filter(([, ends]) => holds(ends, least, least + width)).map(([item]) => item)
        const result = found(intervals, least, least + width)
        if (String(result) !== String(wanted.sort((a, b) => a - b))) throw new Error(`${result} is not ${wanted}`)
      }
    }),
    { numRuns: 500 },
  )
  t.pass()
})

t.test('the same interval may be there many times, and each is removed by itself', async t => {
  const intervals = new Intervals<number, number>()
  for (let n = 0; n < 200; n++) intervals.add(1, undefined, n)
  t.equal(found(intervals, 1, 1).length, 200)
  intervals.remove(1, undefined, 150)
  t.equal(found(intervals, 1, 1).includes(150), false)
  t.equal(found(intervals, 1, 1).length, 199)
})

t.test('texts are compared as the language compares them', async t => {
  const intervals = new Intervals<string, string>()
  intervals.add('b', undefined, 'from b')
  intervals.add(undefined, 'Z', 'to Z')
  const result = (text: string): string[] => {
    const items: string[] = []
    intervals.visit(text, text, item => items.push(item))
    return items
  }
  t.strictSame(result('b'), ['from b'])
  t.strictSame(result('a'), [])
  t.strictSame(result('A'), ['to Z'])
})

t.test('a value that few of very many intervals hold is found without a walk through them', async t => {
  const intervals = new Intervals<number, number>()
  for (let n = 0; n < 100_000; n++) intervals.add(n, n + 1, n)
  t.strictSame(found(intervals, 500.5, 500.5), [500])
  const before = performance.now()
  for (let n = 0; n < 1000; n++) found(intervals, n + 0.5, n + 0.5)
  t.ok(performance.now() - before < 1000, 'a thousand looks take less than a second, not the minute of as many walks')
})
