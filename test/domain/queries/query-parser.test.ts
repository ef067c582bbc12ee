// The syntax of q and mq: every refusal of docs/interface/errors.md#queries, the parsed form of a statement, the
// limits, and 100,000 mutilated texts.

import t from 'tap'
import {
  patternStepsMax,
  patternWorkMax,
  queryPatternsMax,
  queryStatementsMax,
  queryTextLengthMax,
} from '../../../src/domain/limits.js'
import { parseQuery, type QueryLanguage, type Statement } from '../../../src/domain/queries/query-parser.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { queryTables, refusedQueries } from '../../cases/q.js'
import fc from '../../support/properties.js'
import { slowness } from '../../support/slowness.js'

const refusalOf = (text: string, language: QueryLanguage = 'q'): string => {
  const query = parseQuery(text, language)
  return query.ok ? '(accepted)' : `${query.refusal.kind} ${refusalText(query.refusal)}`
}

function only(text: string, language: QueryLanguage = 'q'): Statement {
  const query = parseQuery(text, language)
  if (!query.ok) throw new Error(refusalText(query.refusal))
  return query.value.statements[0]!
}

t.test('an invalid query is refused with the text of the interface', async t => {
  for (const [language, text, description] of refusedQueries)
    t.equal(refusalOf(text, language), `BadRequest ${description}`, `${language}=${text}`)
})

t.test('paths are split at dots outside quotes', async t => {
  t.match(only("A.'x.y'.0"), { operator: 'Exists', path: { attribute: 'A', metadata: undefined } })
  t.strictSame(only("A.'x.y'.0.00").path.steps, [
    { key: 'x.y', index: -1 },
    { key: '0', index: 0 },
    { key: '00', index: -1 },
  ])
  t.match(only("'a:b'.'c.d'.e==1", 'mq').path, { attribute: 'a:b', metadata: 'c.d', steps: [{ key: 'e' }] })
})

t.test('dates become epoch seconds and lists become sets', async t => {
  t.match(only('A==2024-01-01T00:00:00.5Z'), { operator: 'Equals', right: { kind: 'value', value: 1704067200.5 } })
  t.match(only('A!=b,null'), { operator: 'Differs', right: { kind: 'list', items: new Set(['b', null]) } })
  t.match(only('A:1..2.5'), { operator: 'Equals', right: { kind: 'range', from: 1, to: 2.5 } })
  t.match(only('A>=-3'), { operator: 'GreaterThanOrEqual', right: -3 })
  t.match(only('A~=x..y'), { operator: 'MatchPattern', right: { source: 'x..y' } })
})

t.test('builtins are recognised without further path only', async t => {
  t.equal(only('dateCreated>1').path.builtin, 'dateCreated')
  t.equal(only('servicePath==/a').path.builtin, 'servicePath')
  t.equal(only('dateCreated').path.builtin, undefined)
  t.equal(only('dateCreated.x==1').path.builtin, undefined)
  t.equal(only('A.dateModified==1', 'mq').path.builtin, 'dateModified')
  t.equal(only('A.dateModified.x==1', 'mq').path.builtin, undefined)
  t.equal(only('A.servicePath==x', 'mq').path.builtin, undefined)
})

t.test('the limits refuse with a text that names them', async t => {
  const many = (count: number, one: string): string => Array.from({ length: count }, () => one).join(';')
  t.equal(refusalOf(many(queryStatementsMax, 'A')), '(accepted)')
  t.equal(
    refusalOf(many(queryStatementsMax + 1, 'A')),
    `BadRequest number of statements in q: ${queryStatementsMax + 1}, max supported: ${queryStatementsMax}`,
  )
  t.equal(refusalOf(many(queryPatternsMax, 'A~=b')), '(accepted)')
  t.match(refusalOf(many(queryPatternsMax + 1, 'A~=b')), /^BadRequest number of regular expressions in q: max/)
  t.equal(refusalOf(many(2, 'A~=[a-z]{1,200}')), '(accepted)')
  t.equal(
    refusalOf(many(3, 'A~=[a-z]{1,200}')),
    `BadRequest steps of all regular expressions in q: max supported: ${patternStepsMax}`,
  )
  t.match(refusalOf('A'.repeat(queryTextLengthMax + 1), 'mq'), /^BadRequest mq length: 65537, max length supported/)
  t.match(refusalOf('A~=a{900}{900}'), /^BadRequest error compiling filter regex/)
})

t.test('the patterns of a query share the characters at which they may look', async t => {
  const text = 'A~=[ab]{100}'
  const alone = only(text)
  const query = parseQuery(`${text};B~=[ab]{300};C~=^plain`, 'q')
  if (!query.ok || alone.operator !== 'MatchPattern') return t.fail(text)
  t.equal(alone.charactersMax, patternWorkMax / 100)
  t.match(query.value.statements, Array(3).fill({ charactersMax: patternWorkMax / 400 }))
})

t.test('the longest texts are read in time', async t => {
  const worst = ["'", '.', ',', ';', ' ', '..', 'a.', "'a'.", '=', '!', "'a',", '1,', '\t', '[', '(', '\\']
  for (const part of worst) {
    const text = part.repeat(queryTextLengthMax / part.length)
    const before = process.cpuUsage()
    for (const left of ['', 'A==', 'A>', 'A~=', 'A.b']) parseQuery((left + text).slice(0, queryTextLengthMax), 'q')
    const { user, system } = process.cpuUsage(before)
    const tookMs = (user + system) / 1000
    t.ok(tookMs < 200 || tookMs < 200 * slowness(), JSON.stringify(part))
  }
})

const known = [
  ...refusedQueries.map(([, text]) => text),
  ...queryTables.flatMap(({ rows }) => rows.map(([text]) => text)),
]
const parts = [
  ...'\'.,;:!=<>~()[]{}*+?|^$\\" ',
  '..',
  '==',
  '!=',
  '~=',
  'A',
  'temp',
  '1',
  '2024-01-01',
  'null',
  'true',
  'é',
  '\0',
  '\ud800',
]
const mutated = fc
  .tuple(
    fc.constantFrom(...known),
    fc.array(fc.tuple(fc.nat(30), fc.nat(3), fc.constantFrom(...parts)), { maxLength: 4 }),
  )
  .map(([text, cuts]) => cuts.reduce((now, [at, drop, part]) => now.slice(0, at) + part + now.slice(at + drop), text))
const texts = fc.oneof(
  mutated,
  fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map(all => all.join('')),
  fc.string({ unit: 'binary' }),
)

t.test('no text makes the parser fail, and a refusal is a BadRequest', async t => {
  let accepted = 0
  const holds = fc.property(texts, fc.constantFrom<QueryLanguage>('q', 'mq'), (text, language) => {
    const query = parseQuery(text, language)
    if (query.ok) accepted++
    return query.ok ? query.value.statements.length > 0 : query.refusal.kind === 'BadRequest'
  })
  const outcome = fc.check(holds, { numRuns: 100_000 })
  t.notOk(outcome.failed, `seed ${outcome.seed} ${JSON.stringify(outcome.counterexample)}`)
  t.comment(`${accepted} accepted`)
})
