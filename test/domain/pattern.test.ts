// Regular expressions: against the engine of the language where both agree, and with patterns that are made to hurt.
import fc from 'fast-check'
import { RE2JS } from 're2js'
import t from 'tap'
import { patternDepthMax, patternLengthMax } from '../../src/domain/limits.js'
import { compilePattern, type EngineInside, literalPrefix } from '../../src/domain/pattern.js'

const matches = (source: string, text: string): boolean | undefined => compilePattern(source)?.test(text)

/** Milliseconds of processor, so that a busy machine fails no test. */
function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

t.test('a pattern matches some part of a text, and case counts', async t => {
  const rows: [source: string, text: string, expected: boolean][] = [
    ['Room', 'LivingRoom1', true],
    ['Room', 'Livingroom1', false],
    ['^Room', 'LivingRoom1', false],
    ['1$', 'Room1', true],
    ['^Room1$', 'Room1', true],
    ['^Room1$', 'Room12', false],
    ['.*', '', true],
    ['^.*$', 'a\nb', true],
    ['a.b', 'a\nb', true],
    ['^b', 'a\nb', false],
    ['a$', 'a\n', false],
    ['E[23]', 'E3', true],
    ['E\\[23\\]', 'E[23]', true],
    ['\\d+', 'E1', true],
    ['E(1|2)', 'E2', true],
    ['[[:alpha:]]+[[:digit:]]', 'ab1', true],
    ['a{2}', 'aa', true],
    ['^(?:urn|id):', 'id:x', true],
    ['\\.', 'a.b', true],
    ['\\.', 'ab', false],
    ['é', 'café', true],
    ['^.$', '😀', true],
  ]
  for (const [source, text, expected] of rows) t.equal(matches(source, text), expected, `${source} on ${text}`)
})

t.test('what is no expression, or none of POSIX, is refused', async t => {
  const bad = [
    '[',
    '(',
    ')',
    '*',
    'a**',
    '+a',
    'a{2,1}',
    '\\',
    '[b-a]',
    '(?=a)',
    '(?!a)',
    '(?<=a)',
    '(?<!a)',
    '(?i)a',
    '(?P<x>a)',
  ]
  for (const source of [...bad, '(?#x)', '\\1', '\\pL', '\\Qa.b', '[[:nope:]]'])
    t.equal(compilePattern(source), undefined, source)
})

t.test('what is too large is refused before it costs much', async t => {
  const large = ['a{0,1000}'.repeat(100), 'a{1000}{1000}', '((a{30}){30}){30}', '(a?){1000}a{1000}', 'x{1001}']
  large.push('a'.repeat(patternLengthMax + 1), `${'('.repeat(patternDepthMax + 1)}a${')'.repeat(patternDepthMax + 1)}`)
  for (const source of large) {
    const ms = cpuMs(() => t.equal(compilePattern(source), undefined, source.slice(0, 30)))
    t.ok(ms < 100, `${ms} ms`)
  }
  t.ok(compilePattern(`^(${Array.from({ length: 100 }, (_, at) => `urn:ngsi-ld:Device:${at}`).join('|')})$`))
})

t.test('patterns made to hurt stay under 50 ms on 10,000 characters', async t => {
  for (const source of [
    '^(a+)+$',
    '(a|aa)+$',
    '(x+x+)+y',
    '((a|)+)+$',
    '(.*a.*b){20}c',
    '(a|b)*a(a|b){20}$',
    '(a*)*b',
  ]) {
    const pattern = compilePattern(source)
    for (const text of ['a'.repeat(10_000), `${'a'.repeat(9_999)}!`, 'ab'.repeat(5_000)]) {
      const ms = cpuMs(() => pattern?.test(text))
      t.ok(pattern && ms < 50, `${source}: ${ms.toFixed(1)} ms`)
    }
  }
})

t.test('a literal prefix is one that every match begins with', async t => {
  const rows: [source: string, prefix: string][] = [
    ['^urn:ngsi-ld:Room', 'urn:ngsi-ld:Room'],
    ['^urn:Room:[0-9]+$', 'urn:Room:'],
    ['^a\\.b', 'a.b'],
    ['^ab*', 'a'],
    ['^ab{2}', 'a'],
    ['^ab?c', 'a'],
    ['^(ab)', ''],
    ['^ab(c|d)', 'ab'],
    ['^ab[|]', 'ab'],
    ['^ab\\|c', 'ab|c'],
    ['^ab|cd', ''],
    ['^ab(c|d)|e', ''],
    ['ab', ''],
    ['^', ''],
    ['^.*', ''],
    ['^a\\d', 'a'],
  ]
  for (const [source, prefix] of rows) {
    const pattern = compilePattern(source)
    t.equal(pattern && literalPrefix(pattern), prefix, source)
  }
})

t.test('equal texts share their pattern, and many texts do not push memory up', async t => {
  t.equal(compilePattern('shared[0-9]'), compilePattern('shared[0-9]'))
  for (let at = 0; at < 500; at++) compilePattern(`kept${at}[0-9]`)
  t.equal(matches('shared[0-9]', 'shared1'), true)
})

t.test('the engine still has the budget that pattern.ts sets', async t => {
  // Fails when re2js renames its fields: then look at limitStates.
  const { dfa } = (RE2JS.compile('a[0-9]b*c') as unknown as EngineInside).re2Input
  t.match([typeof dfa.stateBudget, typeof dfa.memBudget], ['number', 'number'])
})

const atoms = fc.constantFrom('a', 'b', 'ab', '.', '[ab]', '[^a]', '(a|b)', '(ab)', '\\.', 'c', '(?:b|)')
const repeated = fc
  .tuple(atoms, fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{1,2}', '{0,}'))
  .map(all => all.join(''))
const sources = fc
  .tuple(fc.constantFrom('', '^'), fc.array(repeated, { maxLength: 5 }), fc.constantFrom('', '$', '|a', '|^b'))
  .map(([start, middle, end]) => start + middle.join('') + end)
const subjects = fc.array(fc.constantFrom('a', 'b', 'c', '.', '\n'), { maxLength: 8 }).map(all => all.join(''))

t.test('patterns mean what they mean to the engine of the language, prefixes included', async t => {
  const agree = fc.property(sources, subjects, (source, text) => {
    const pattern = compilePattern(source)
    if (!pattern) return false
    const expected = new RegExp(source, 's').test(text)
    return pattern.test(text) === expected && (!expected || text.startsWith(literalPrefix(pattern)))
  })
  const outcome = fc.check(agree, { numRuns: 10_000 })
  t.notOk(outcome.failed, `seed ${outcome.seed} ${JSON.stringify(outcome.counterexample)}`)
})

t.test('no text makes the compiler fail', async t => {
  const parts = fc.constantFrom(
    ...'()[]{}*+?|^$\\.,-:ab019',
    '[:',
    ':]',
    '{2,3}',
    '\\Q',
    '\\x{',
    '(?',
    'é',
    '\ud800',
    '\n',
  )
  const any = fc.oneof(
    fc.array(parts, { maxLength: 16 }).map(all => all.join('')),
    fc.string({ unit: 'binary' }),
  )
  const holds = fc.property(any, fc.string({ unit: 'binary' }), (source, text) => {
    const pattern = compilePattern(source)
    return (
      pattern === undefined || (typeof pattern.test(text) === 'boolean' && typeof literalPrefix(pattern) === 'string')
    )
  })
  const outcome = fc.check(holds, { numRuns: 30_000 })
  t.notOk(outcome.failed, `seed ${outcome.seed} ${JSON.stringify(outcome.counterexample)}`)
})
