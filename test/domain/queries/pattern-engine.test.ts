// The automata of patterns: which patterns have one, the cost of a test with it, and equal answers without it.

import { RE2JS } from 're2js'
import t from 'tap'
import { explorationMax } from '../../../src/domain/limits.js'
import {
  type EngineInside,
  Exploration,
  engineOf,
  type PatternEngine,
} from '../../../src/domain/queries/pattern-engine.js'
import fc from '../../support/properties.js'

/** A number of steps that is clearly not the cost of an explored pattern. */
const steps = 50

function explored(source: string, allowance = explorationMax): PatternEngine {
  const engine = engineOf(source, steps) as PatternEngine
  engine.explore(new Exploration(allowance))
  return engine
}

t.test('the engine still has the inside that pattern-engine.ts uses', async t => {
  const { re2Input } = RE2JS.compile('(^|:)a[0-9]b*c') as unknown as EngineInside
  const { dfa } = re2Input
  t.match(re2Input, { onepass: null })
  t.match([typeof dfa.stateBudget, typeof dfa.memBudget, dfa.failed], ['number', 'number', false])
  t.match([typeof dfa.step, typeof dfa.resetCache, typeof dfa.clearCache], ['function', 'function', 'function'])
  t.equal(dfa.classBounds.length + 1, dfa.numClasses)
  t.equal(dfa.startStates.size, 0)
})

t.test('patterns in use cost a look into a table for each character', async t => {
  const usual = [
    '^urn:ngsi-ld:Device:[0-9]+$',
    'urn:[^:]+:[A-Z][a-z]+:[0-9]+',
    '^urn:[^:]+:[A-Z][a-z]+:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
    '^(Room|Car|Bus)[0-9]{1,5}$',
    '(ON|OFF)_[0-9]+',
    'error|warn.*disk',
    '(^|:)Pump(:|$)',
    '[[:alpha:]]+[[:digit:]]',
  ]
  for (const source of usual) t.equal(explored(source).cost, 2.5, source)
})

t.test('a pattern with more states than memory costs its steps', async t => {
  for (const source of ['[ab]*a[ab]{12}$', '[ab]*a[ab]{50}$', '[ab]{1,480}$', '.{200}a.{200}$'])
    t.equal(explored(source).cost, steps + 2, source)
})

t.test('exploring ends with its allowance, which patterns share', async t => {
  const allowance = new Exploration(3_000)
  const costs = Array.from({ length: 10 }, (_, n) => {
    const engine = engineOf(`urn:[^:]+:[A-Z][a-z]+:${n}[0-9]+`, steps) as PatternEngine
    engine.explore(allowance)
    return engine.cost
  })
  t.strictSame(costs.slice(0, 2), [2.5, steps + 2])
  t.equal(costs.at(-1), steps + 2)
  t.equal(allowance.left, 0)
})

t.test('an automaton whose memory is full is given up, and its pattern matches as before', async t => {
  const engine = engineOf('[ab]*a[ab]{12}$', steps) as PatternEngine
  const inside = (engine as unknown as { readonly engine: EngineInside }).engine.re2Input
  let state = 1
  const text = Array.from({ length: 4_000 }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state & 65_536 ? 'a' : 'b'
  }).join('')
  for (let at = 300; at < text.length; at += 37) {
    const part = text.slice(at - 300, at)
    t.equal(engine.test(part), part.at(-13) === 'a')
  }
  t.equal(inside.dfa.failed, true)
  t.equal(engine.cost, steps + 2)
})

const atoms = fc.constantFrom(
  'a',
  'b',
  'ab',
  '.',
  '[ab]',
  '[^a]',
  '(a|b)',
  '(^|b)',
  '\\b',
  'c',
  '(?:b|)',
  '(?:[ab]{9})',
)
const sources = fc
  .tuple(
    fc.constantFrom('', '^'),
    fc.array(fc.tuple(atoms, fc.constantFrom('', '', '*', '+', '?', '{1,2}')), { maxLength: 5 }),
    fc.constantFrom('', '$', '|a', '|^b'),
  )
  .map(([start, middle, end]) => start + middle.map(pair => pair.join('')).join('') + end)
const subjects = fc
  .array(fc.constantFrom('a', 'b', 'c', ' ', '\n', 'é', '😀'), { maxLength: 16 })
  .map(all => all.join(''))

t.test('an explored pattern matches the same texts as an unexplored one', async t => {
  const agree = fc.property(sources, subjects, fc.integer({ min: 0, max: 300 }), (source, text, allowance) => {
    const plain = RE2JS.compile(source, RE2JS.DOTALL | RE2JS.DISABLE_UNICODE_GROUPS)
    const expected = plain.test(text)
    return explored(source).test(text) === expected && explored(source, allowance).test(text) === expected
  })
  const outcome = fc.check(agree, { numRuns: 5_000 })
  t.notOk(outcome.failed, `seed ${outcome.seed} ${JSON.stringify(outcome.counterexample)}`)
})
