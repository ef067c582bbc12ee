// Regular expressions: against the engine of the language where both agree, and with patterns that are made to hurt.

import { RE2JS } from 're2js'
import t from 'tap'
import {
  identifierLengthMax,
  patternDepthMax,
  patternLengthMax,
  patternStepsMax,
  patternWorkMax,
} from '../../../src/domain/limits.js'
import { charactersMax, compilePattern, literalPrefix } from '../../../src/domain/queries/pattern.js'
import fc from '../../support/properties.js'

const matches = (source: string, text: string): boolean | undefined => compilePattern(source)?.test(text)

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

t.test('an invalid expression, or one outside POSIX, is refused', async t => {
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

t.test('a too large expression is refused before it is compiled', async t => {
  const large = ['a{0,1000}'.repeat(100), 'a{1000}{1000}', '((a{30}){30}){30}', '(a?){1000}a{1000}', 'x{1001}']
  large.push('a'.repeat(patternLengthMax + 1), `${'('.repeat(patternDepthMax + 1)}a${')'.repeat(patternDepthMax + 1)}`)
  large.push('.'.repeat(patternStepsMax + 1), 'a?'.repeat(patternStepsMax / 2 + 1))
  large.push(`[${wide(1900)}]{9}`, `a{0,${patternStepsMax / 2 + 1}}`)
  for (const source of large) t.equal(compilePattern(source), undefined, source.slice(0, 30))
})

/** This number of characters, of which no two are neighbours: as a class, as many ranges. */
const wide = (count: number): string =>
  Array.from({ length: count }, (_, at) => String.fromCharCode(0x4e00 + 2 * at)).join('')

t.test('the usual expressions are not too large', async t => {
  const ids = Array.from({ length: 100 }, (_, at) => `urn:ngsi-ld:Device:${at}`)
  const uuids = ids.map((_, at) => `9b1deb4d-3b7d-4bad-9bdd-2b0d7b3d${1000 + at}`)
  const usual = [ids.join('|'), `^(${ids.join('|')})$`, uuids.join('|'), `^(?:${uuids.join('|')})$`]
  usual.push(
    ids
      .slice(0, 30)
      .map(id => `^${id}[0-9]+$`)
      .join('|'),
    '^[A-Za-z0-9_.-]{1,255}$',
    '^.{1,255}$',
  )
  usual.push(
    '^[a-z]{1,255}@[a-z]{1,200}[.][a-z]{2,24}$',
    '^urn:[^:]+:[A-Z][a-z]+:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
  )
  for (const source of usual) t.ok(compilePattern(source), source.slice(0, 50))
})

t.test('patterns made to hurt match correctly, within their work', async t => {
  const hurting = ['^(a+)+$', '(a|aa)+$', '(x+x+)+y', '((a|)+)+$', '(.*a.*b){20}c', '(a|b)*a(a|b){20}$', '(a*)*b']
  for (const source of hurting) {
    const pattern = compilePattern(source)
    if (!pattern) return t.fail(source)
    const length = Math.floor(charactersMax(pattern.steps))
    for (const text of ['a'.repeat(length), `${'a'.repeat(length - 1)}!`, 'ab'.repeat(length / 2)])
      t.equal(typeof pattern.test(text), 'boolean', source)
  }
  t.equal(matches('^(a+)+$', 'a'.repeat(30_000)), true)
  t.equal(matches('^(a+)+$', `${'a'.repeat(30_000)}!`), false)
  t.equal(matches('(a|b)*a(a|b){180}$', 'a'.repeat(180)), false)
  t.equal(matches('(a|b)*a(a|b){180}$', 'a'.repeat(181)), true)
})

t.test('a text matches no pattern that has too many steps for its length', async t => {
  for (const [source, character] of [
    ['(a|b)*a(a|b){100}$', 'a'],
    ['[ab]{3}', 'a'],
    ['x+', 'x'],
    ['aa|b', 'a'],
    ['a'.repeat(1000), 'a'],
  ] as const) {
    const pattern = compilePattern(source)
    if (!pattern) return t.fail(source)
    const lengthMax = Math.floor(patternWorkMax / pattern.steps)
    t.equal(pattern.test(character.repeat(lengthMax)), true, `${source.slice(0, 20)} ${lengthMax}`)
    t.equal(pattern.test(character.repeat(lengthMax + 1)), false, source.slice(0, 20))
  }
})

t.test('an identifier is never too long, and an anchored text has no limit', async t => {
  const identifier = 'a'.repeat(identifierLengthMax)
  const widest = compilePattern(`b?${'a?'.repeat(patternStepsMax / 2 - 1)}`)
  t.equal(widest?.steps, patternStepsMax)
  t.equal(widest?.test(identifier), true)
  t.equal(matches('^a', 'a'.repeat(10_000_000)), true)
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

const atoms = fc.constantFrom('a', 'b', 'ab', '.', '[ab]', '[^a]', '(a|b)', '(ab)', '\\.', 'c', '(?:b|)')
const repeated = fc
  .tuple(atoms, fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{1,2}', '{0,}'))
  .map(all => all.join(''))
const sources = fc
  .tuple(fc.constantFrom('', '^'), fc.array(repeated, { maxLength: 5 }), fc.constantFrom('', '$', '|a', '|^b'))
  .map(([start, middle, end]) => start + middle.join('') + end)
const subjects = fc.array(fc.constantFrom('a', 'b', 'c', '.', '\n'), { maxLength: 8 }).map(all => all.join(''))

t.test('patterns match as in the engine of the language, prefixes included', async t => {
  const agree = fc.property(sources, subjects, (source, text) => {
    const pattern = compilePattern(source)
    if (!pattern) return false
    const expected = new RegExp(source, 's').test(text)
    return pattern.test(text) === expected && (!expected || text.startsWith(literalPrefix(pattern)))
  })
  const outcome = fc.check(agree, { numRuns: 10_000 })
  t.notOk(outcome.failed, `seed ${outcome.seed} ${JSON.stringify(outcome.counterexample)}`)
})

const counted = fc
  .array(
    fc.oneof(
      repeated,
      repeated.map(inner => `(${inner}){0,3}`),
      fc.constantFrom('[a-z]{2,}', '(a{2}|b*){3}'),
    ),
    {
      maxLength: 8,
    },
  )
  .map(all => `[ab]${all.join('')}`)

t.test('the compiled program has no more steps than were counted', async t => {
  const holds = fc.property(counted, source => {
    const pattern = compilePattern(source)
    // The engine adds its beginning and end.
    return pattern !== undefined && RE2JS.compile(source, RE2JS.DOTALL).programSize() <= pattern.steps + 4
  })
  const outcome = fc.check(holds, { numRuns: 2_000 })
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
