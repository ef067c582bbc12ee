// The meaning of q and mq: the tables of test/cases/q.ts, and a plain evaluator written from
// docs/interface/queries.md#simple-query-language to compare with.

import t from 'tap'
import type { Attribute, Entity, Metadata } from '../../../src/domain/entities/entity.js'
import { isArray, isObject, type Json, type JsonObject } from '../../../src/domain/json.js'
import { patternWorkMax } from '../../../src/domain/limits.js'
import { conjuncts, matchesQuery, matchesStatement } from '../../../src/domain/queries/query.js'
import { parseQuery } from '../../../src/domain/queries/query-parser.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { stampOf } from '../../../src/domain/stamp.js'
import { queryTables } from '../../cases/q.js'
import fc from '../../support/properties.js'

const createdMs = Date.UTC(2024, 5, 1)
const modifiedMs = Date.UTC(2024, 5, 2)
const path = '/floor1'

const typeOf = (value: Json): string =>
  typeof value === 'number' ? 'Number' : typeof value === 'string' ? 'Text' : 'X'

function attributeOf(stored: Json): Attribute {
  const isFull = isObject(stored) && Object.hasOwn(stored, 'type') && Object.hasOwn(stored, 'value')
  const { type, value, metadata = {} } = isFull ? stored : { type: typeOf(stored), value: stored }
  const elements = Object.entries(metadata as unknown as Record<string, Metadata>)
  return { type: type as string, value: value as Json, metadata: new Map(elements), createdMs, modifiedMs }
}

const entityOf = (id: string, stored: Readonly<Record<string, unknown>>): Entity => ({
  id,
  type: 'T',
  attributes: new Map(Object.entries(stored).map(([name, value]) => [name, attributeOf(value as Json)])),
  created: stampOf(createdMs) + 5,
  modifiedMs,
})

for (const { about, language, stored, rows } of queryTables) {
  t.test(`matches: ${about}`, async t => {
    const entities = Object.entries(stored).map(([id, attributes]) => entityOf(id, attributes))
    for (const [text, matching, why] of rows) {
      const query = parseQuery(text, language)
      if (!query.ok) {
        t.fail(`${text}: ${refusalText(query.refusal)}`)
        continue
      }
      const found = entities.filter(entity => matchesQuery(query.value, entity, path)).map(entity => entity.id)
      t.equal(found.join(' '), matching, `${language}=${text}${why ? `: ${why}` : ''}`)
    }
  })
}

t.test('a query holds when each of its conjuncts does', async t => {
  const query = parseQuery('temp>10;status==on;!gone', 'q')
  if (!query.ok) return t.fail(refusalText(query.refusal))
  const warm = entityOf('R', { temp: 21, status: 'on' })
  t.equal(conjuncts(query.value).length, 3)
  t.ok(conjuncts(query.value).every(statement => matchesStatement(statement, warm, path)))
  t.ok(matchesQuery(query.value, warm, path))
  t.notOk(matchesQuery(query.value, entityOf('S', { temp: 21, status: 'off' }), path))
})

t.test('arrays of objects in arrays of objects cost no more than their size, for every path', async t => {
  let value: Json = 1
  for (let level = 0; level < 25; level++) value = [{ 0: value }]
  for (const text of [`A${'.0'.repeat(30)}==1`, `A${'.k'.repeat(30)}==1`, `A${'.0'.repeat(50)}`]) {
    const query = parseQuery(text, 'q')
    if (!query.ok) return t.fail(refusalText(query.refusal))
    const before = performance.now()
    matchesQuery(query.value, entityOf('R', { A: value }), path)
    t.ok(performance.now() - before < 50, text.slice(0, 10))
  }
})

t.test('a key may be long, and named like anything', async t => {
  for (const key of ['k'.repeat(9_000), '__defineGetter__', '17171717171717', 'propertyIsEnumerable', 'é'.repeat(20)]) {
    const query = parseQuery(`A.'${key}'==1`, 'q')
    if (!query.ok) return t.fail(refusalText(query.refusal))
    t.ok(matchesQuery(query.value, entityOf('R', { A: { [key]: 1 } }), path))
    t.notOk(matchesQuery(query.value, entityOf('R', { A: { [`${key}1`]: 1 } }), path))
    t.notOk(matchesQuery(query.value, entityOf('R', { A: {} }), path))
  }
})

t.test('a pattern looks at so many characters of an entity, in an array as well', async t => {
  const query = parseQuery('A~=[xy]{50}', 'q')
  if (!query.ok) return t.fail(refusalText(query.refusal))
  const matches = (value: Json) => matchesQuery(query.value, entityOf('R', { A: value }), path)
  const fitting = 'x'.repeat(50)
  const lengthMax = patternWorkMax / 50
  t.equal(matches(fitting.padEnd(lengthMax)), true)
  t.equal(matches(fitting.padEnd(lengthMax + 1)), false)
  t.equal(matches([' '.repeat(lengthMax - 100), fitting]), true)
  t.equal(matches([' '.repeat(lengthMax - 50), fitting]), false)
  t.equal(matches([' '.repeat(lengthMax + 1), fitting]), true, 'a text that is too long is passed over')
  t.equal(matches(Array(lengthMax).fill('')), false)
  t.equal(matches([...Array(lengthMax).fill(''), fitting]), false, 'short texts count, too')
  const within = parseQuery('A.k~=[xy]{50}', 'q')
  if (!within.ok) return t.fail(refusalText(within.refusal))
  const objects = (...texts: string[]) => entityOf('R', { A: texts.map(k => ({ k })) })
  t.equal(matchesQuery(within.value, objects('', fitting), path), true)
  t.equal(matchesQuery(within.value, objects(' '.repeat(lengthMax - 50), fitting), path), false)
})

// The plain evaluator. It shares nothing with the broker but the entity: structures instead of text, recursion, dates
// as Date.

type Word = { readonly quoted: boolean; readonly text: string }
interface StatementCase {
  readonly form: 'exists' | 'missing' | '==' | '!=' | '>' | '<' | '>=' | '<=' | '~='
  readonly tokens: readonly string[]
  readonly shape: 'one' | 'list' | 'range'
  /** The right side; none for the first two forms. */
  readonly words: readonly Word[]
}

const written = (word: Word): string => (word.quoted ? `'${word.text}'` : word.text)
const name = (token: string): string => (/[.:]/.test(token) ? `'${token}'` : token)

function textOf(asked: StatementCase): string {
  const left = asked.tokens.map(name).join('.')
  if (asked.form === 'exists') return left
  if (asked.form === 'missing') return `!${left}`
  return left + asked.form + asked.words.map(written).join(asked.shape === 'range' ? '..' : ',')
}

type Meant = { kind: 'string' | 'number' | 'boolean' | 'null' | 'date'; as: Json }

const isoDate = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?$/

function meaning({ quoted, text }: Word): Meant {
  if (quoted) return { kind: 'string', as: text }
  if (text !== '' && Number.isFinite(Number(text))) return { kind: 'number', as: Number(text) }
  if (isoDate.test(text)) return { kind: 'date', as: new Date(text).getTime() / 1000 }
  if (text === 'true' || text === 'false') return { kind: 'boolean', as: text === 'true' }
  return text === 'null' ? { kind: 'null', as: null } : { kind: 'string', as: text }
}

/** docs/interface/queries.md#operators: the legal right sides of each operator. */
function isLegal(asked: StatementCase): boolean {
  if (asked.form === 'exists' || asked.form === 'missing' || asked.form === '~=') return true
  const kinds = asked.words.map(word => meaning(word).kind)
  const isEqual = asked.form === '==' || asked.form === '!='
  const ordered = kinds.every(kind => kind === 'number' || kind === 'date' || kind === 'string')
  if (asked.shape === 'one') return isEqual || ordered
  if (!isEqual || kinds.includes('boolean')) return false
  if (asked.shape === 'range') return ordered && kinds[0] === kinds[1]
  return new Set(kinds.map(kind => (kind === 'null' ? 'string' : kind))).size === 1
}

const secondsOf = (type: string, value: Json): Json =>
  (type === 'DateTime' || type === 'ISO8601') && typeof value === 'string' ? new Date(value).getTime() / 1000 : value

function under(value: Json, [key, ...rest]: readonly string[]): Json[] {
  if (key === undefined) return [value]
  if (isArray(value)) {
    if (/^(0|[1-9]\d*)$/.test(key)) return Number(key) < value.length ? under(value[Number(key)]!, rest) : []
    return value.flatMap(element => (isArray(element) ? [] : under(element, [key, ...rest])))
  }
  return isObject(value) && Object.hasOwn(value, key) ? under(value[key]!, rest) : []
}

function targets(language: 'q' | 'mq', asked: StatementCase, entity: Entity): Json[] {
  const [first = '', ...keys] = asked.tokens
  const isBinary = asked.form !== 'exists' && asked.form !== 'missing'
  if (language === 'q' && isBinary && keys.length === 0) {
    if (first === 'dateCreated') return [createdMs / 1000]
    if (first === 'dateModified') return [modifiedMs / 1000]
    if (first === 'servicePath') return [path]
  }
  const attribute = entity.attributes.get(first)
  if (!attribute) return []
  if (language === 'q') return under(secondsOf(attribute.type, attribute.value), keys)
  const [second = '', ...deeper] = keys
  if (second === 'dateCreated' && deeper.length === 0) return [createdMs / 1000]
  if (second === 'dateModified' && deeper.length === 0) return [modifiedMs / 1000]
  const metadata = attribute.metadata.get(second)
  return metadata ? under(secondsOf(metadata.type, metadata.value), deeper) : []
}

function plainly(language: 'q' | 'mq', asked: StatementCase, entity: Entity): boolean {
  const found = targets(language, asked, entity)
  if (asked.form === 'exists') return found.length > 0
  if (asked.form === 'missing') return found.length === 0
  if (found.length === 0) return false
  const elements = found.flatMap(target => (isArray(target) ? [...target] : [target]))
  const words = asked.words.map(meaning)
  const order = (a: Json, b: Json): number | undefined =>
    (typeof a === 'number' && typeof b === 'number') || (typeof a === 'string' && typeof b === 'string')
      ? a < b
        ? -1
        : a > b
          ? 1
          : 0
      : undefined
  const equals = (value: Json): boolean =>
    asked.shape === 'range'
      ? [0, 1].includes(order(value, words[0]!.as) ?? 9) && [0, -1].includes(order(value, words[1]!.as) ?? 9)
      : words.some(word => (isObject(value) || isArray(value) ? false : value === word.as))
  switch (asked.form) {
    case '==':
      return elements.some(equals)
    case '!=':
      return !elements.some(equals)
    case '>':
      return elements.some(value => order(value, words[0]!.as) === 1)
    case '<':
      return elements.some(value => order(value, words[0]!.as) === -1)
    case '>=':
      return elements.some(value => [0, 1].includes(order(value, words[0]!.as) ?? 9))
    case '<=':
      return elements.some(value => [0, -1].includes(order(value, words[0]!.as) ?? 9))
    case '~=':
      return elements.some(value => typeof value === 'string' && new RegExp(asked.words[0]!.text).test(value))
  }
}

const names = ['A', 'B', 'k', '0', '1', 'x.y', 'a:b', 'dateCreated', 'dateModified', 'servicePath'] as const
const strings = ['a', 'b', 'ab', '1', '21', 'true', 'null', '2024-01-01', '/floor1'] as const
const numbers = [0, 1, 2.5, 21, -3, 1704067200, createdMs / 1000] as const
const dates = ['2024-01-01T00:00:00.000Z', '2024-06-01T00:00:00.000Z', '2024-06-02T00:00:00.000Z'] as const

const scalars = fc.oneof(
  fc.constantFrom<Json>(...strings),
  fc.constantFrom<Json>(...numbers),
  fc.constantFrom<Json>(null, true, false),
)
const { value: values } = fc.letrec<{ value: Json }>(tie => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    scalars,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('A', 'k', '0', 'x.y'), tie('value'), { maxKeys: 3 }) as fc.Arbitrary<JsonObject>,
  ),
}))
const dated = fc.oneof(
  { weight: 4, arbitrary: values.map(value => ({ type: 'X', value })) },
  { weight: 1, arbitrary: fc.constantFrom(...dates).map(value => ({ type: 'DateTime', value: value as Json })) },
)
const attributes: fc.Arbitrary<Json> = fc
  .tuple(dated, fc.dictionary(fc.constantFrom('A', 'k', 'dateCreated'), dated, { maxKeys: 2 }))
  .map(([stored, metadata]) => ({ ...stored, metadata: metadata as JsonObject }))
const entities = fc
  .dictionary(fc.constantFrom(...names), attributes, { maxKeys: 4 })
  .map(stored => entityOf('E', stored))

const words: fc.Arbitrary<Word> = fc.oneof(
  fc.constantFrom(...strings).map(text => ({ quoted: true, text })),
  fc.constantFrom(...strings, ...dates, ...numbers.map(String), 'false').map(text => ({ quoted: false, text })),
)
const tokens = fc.array(fc.constantFrom(...names, 'A', 'A', 'k'), { minLength: 1, maxLength: 4 })
const patterns = fc
  .constantFrom('a', '^a', 'b$', '^ab$', '[0-9]', '.', '^.*$', 'a+b?', '^[^a]')
  .map(text => ({ quoted: false, text }))
const plain = (text: string): Word => ({ quoted: false, text })
const orders = ['>', '<', '>=', '<='] as const
const sameKind = fc.oneof(
  fc.array(
    fc
      .constantFrom(...numbers)
      .map(String)
      .map(plain),
    { minLength: 2, maxLength: 4 },
  ),
  fc.array(fc.constantFrom(...dates).map(plain), { minLength: 2, maxLength: 4 }),
  fc.array(fc.constantFrom('a', 'b', 'null', '/floor1').map(plain), { minLength: 2, maxLength: 4 }),
  fc.array(words, { minLength: 2, maxLength: 4 }),
)
const asked: fc.Arbitrary<StatementCase> = fc
  .oneof(
    fc.constantFrom('exists' as const, 'missing' as const).map(form => ({ form, shape: 'one' as const, words: [] })),
    fc.record({
      form: fc.constantFrom('==' as const, '!=' as const, ...orders),
      shape: fc.constant('one' as const),
      words: words.map(word => [word]),
    }),
    fc.record({
      form: fc.constantFrom('==' as const, '!=' as const),
      shape: fc.constant('list' as const),
      words: sameKind,
    }),
    fc.record({
      form: fc.constantFrom('==' as const, '!=' as const, '==' as const, '>' as const),
      shape: fc.constant('range' as const),
      words: sameKind.map(all => all.slice(0, 2)),
    }),
    patterns.map(word => ({ form: '~=' as const, shape: 'one' as const, words: [word] })),
  )
  .chain(rest => tokens.map(all => ({ ...rest, tokens: all })))

t.test('the matching entities are those of a plain evaluator', async t => {
  let matches = 0
  let refusals = 0
  const agree = fc.property(fc.constantFrom('q' as const, 'mq' as const), asked, entities, (language, one, entity) => {
    const query = parseQuery(textOf(one), language)
    const isAboutMetadata = language === 'mq' && one.tokens.length < 2
    if (query.ok !== (isLegal(one) && !isAboutMetadata)) return false
    if (!query.ok) {
      refusals++
      return true
    }
    const wanted = plainly(language, one, entity)
    if (wanted) matches++
    return matchesQuery(query.value, entity, path) === wanted
  })
  const outcome = fc.check(agree, { numRuns: 25_000 })
  t.notOk(outcome.failed, `seed ${outcome.seed} ${JSON.stringify(outcome.counterexample?.slice(0, 2))}`)
  t.comment(`${matches} matched, ${refusals} refused`)
  t.ok(matches > 1000)
})
