// Patterns that need no engine: which ones they are, and that they match as in the engine of the language.

import t from 'tap'
import { plainTextsLengthMax } from '../../../src/domain/limits.js'
import { plainTest } from '../../../src/domain/queries/plain-pattern.js'
import fc from '../../support/properties.js'

const ids = Array.from({ length: 100 }, (_, at) => `urn:ngsi-ld:Device:${at}`)

t.test('texts and lists of texts are plain, with any anchors', async t => {
  const plain = [
    '',
    'Room',
    '^Room',
    '1$',
    '^Room1$',
    '.*',
    '^.*$',
    '^$',
    'a\\.b',
    '^Room.*',
    '.*Room.*',
    '^.*Room$',
    'Room.*$',
  ]
  plain.push(
    'a|b',
    '^a$|^b',
    '(a|b)',
    '^(a|b)$',
    '^(?:a|b)c',
    '^urn:(a|b|)x$',
    '^a.*|b$',
    ids.join('|'),
    `^(${ids.join('|')})$`,
  )
  for (const source of plain) t.ok(plainTest(source), source)
})

t.test('everything else is left to the engine', async t => {
  const others = [
    'a.b',
    'a*',
    'ab?',
    '[ab]',
    'a{2}',
    '\\d',
    '(a)*',
    '(a|b){2}',
    '((a))',
    '(^a|b)',
    '(a|b',
    'a)',
    '.*?',
    'a.*b',
    '.*.*a',
  ]
  others.push(
    '^^a',
    'a$$',
    '(a|b)(c|d)',
    '(a*|b)',
    'a|b*',
    '(?i)a',
    '(?:a',
    'a\\.*',
    '$a',
    'a|[b]',
    '^*',
    'a$*',
    'a.**',
  )
  for (const source of others) t.equal(plainTest(source), undefined, source)
})

t.test('a list is one look into a set, and a search costs with its length', async t => {
  t.equal(plainTest(`^(${ids.join('|')})$`)?.steps, 0)
  t.equal(plainTest('^Room')?.steps, 0)
  const [short, long, list] = ['Room', 'a'.repeat(4000), ids.join('|')].map(source => plainTest(source)?.steps ?? 0)
  t.ok(short! > 0 && short! < 1)
  t.ok(long! >= 40 && long! < 50)
  t.ok(list! >= 25 && list! < 100)
})

t.test('a list whose items are long when written out is left to the engine', async t => {
  const list = Array.from({ length: 500 }, (_, at) => at).join('|')
  const head = 'a'.repeat(plainTextsLengthMax / 500)
  t.ok(plainTest(`${head.slice(10)}(${list})`))
  t.notOk(plainTest(`${head}(${list})`))
})

const texts = fc.array(fc.constantFrom('a', 'b', 'ab', '\\.', '\\$', 'é'), { maxLength: 2 }).map(all => all.join(''))
const groups = fc
  .tuple(fc.constantFrom('(', '(?:'), fc.array(texts, { minLength: 1, maxLength: 3 }))
  .map(([open, all]) => `${open}${all.join('|')})`)
const alternatives = fc
  .tuple(
    fc.constantFrom('', '^', '.*', '^.*'),
    texts,
    fc.oneof(fc.constant(''), groups),
    texts,
    fc.constantFrom('', '$', '.*', '.*$'),
  )
  .map(all => all.join(''))
const sources = fc.array(alternatives, { minLength: 1, maxLength: 3 }).map(all => all.join('|'))
const subjects = fc.array(fc.constantFrom('a', 'b', '.', '$', 'é', '\n'), { maxLength: 6 }).map(all => all.join(''))

t.test('plain patterns match as in the engine of the language', async t => {
  const agree = fc.property(
    sources,
    subjects,
    (source, text) => plainTest(source)?.test(text) === new RegExp(source, 's').test(text),
  )
  const outcome = fc.check(agree, { numRuns: 20_000 })
  t.notOk(outcome.failed, `seed ${outcome.seed} ${JSON.stringify(outcome.counterexample)}`)
})
