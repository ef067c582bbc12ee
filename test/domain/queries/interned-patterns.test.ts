import t from 'tap'
import { eventWorkMax, explorationMax } from '../../../src/domain/limits.js'
import { type InternedPattern, InternedPatterns } from '../../../src/domain/queries/interned-patterns.js'
import { EventWork } from '../../../src/domain/queries/pattern.js'
import { Exploration } from '../../../src/domain/queries/pattern-engine.js'

t.test('a text is interned once, however many use it', async t => {
  const patterns = new InternedPatterns()
  const pattern = patterns.intern('[0-9]x$')
  t.equal(patterns.intern('[0-9]x$'), pattern)
  patterns.release(pattern)
  t.equal(patterns.intern('[0-9]x$'), pattern)
  patterns.release(pattern)
  patterns.release(pattern)
  t.not(patterns.intern('[0-9]x$'), pattern)
})

t.test('nothing is compiled before it is tested', async t => {
  const patterns = new InternedPatterns()
  const pattern = patterns.intern('^urn:[a-z]+$')
  t.equal(pattern.prefix, 'urn:')
  t.equal(pattern.pattern, undefined)
  t.ok(patterns.matches(pattern, 'urn:a'))
  t.ok(pattern.pattern)
})

t.test('an invalid pattern matches nothing', async t => {
  const patterns = new InternedPatterns()
  t.notOk(patterns.matches(patterns.intern('(a'), '(a'))
})

t.test('answers are right whether they are kept or not, for more patterns than the table has columns', async t => {
  const patterns = new InternedPatterns()
  const all = Array.from({ length: 200 }, (_, n) => patterns.intern(`[x-z]${n}$`))
  for (const again of [1, 2])
    for (const n of [0, 31, 32, 127, 128, 199])
      for (const [at, pattern] of all.entries())
        if (patterns.matches(pattern, `y${n}`) !== (at === n)) t.fail(`${again}: y${n} and ${pattern.source}`)
  t.pass()
})

t.test('a column that is used again knows nothing of the pattern before', async t => {
  const patterns = new InternedPatterns()
  for (let n = 0; n < 300; n++) {
    const pattern = patterns.intern(`[x-z]${n}$`)
    const isRight = patterns.matches(pattern, 'y7') === (n === 7) && patterns.matches(pattern, `y${n}`)
    if (!isRight) t.fail(pattern.source)
    patterns.release(pattern)
  }
  t.pass()
})

t.test('answers are right when there are more texts than the table has rows', async t => {
  const patterns = new InternedPatterns()
  const pattern = patterns.intern('[x-z][0-9]*7$')
  for (let n = 0; n < 150_000; n++) if (patterns.matches(pattern, `y${n}`) !== (n % 10 === 7)) t.fail(`y${n}`)
  for (const text of ['y7', 'y70000', 'y149997', 'y149997'])
    t.equal(patterns.matches(pattern, text), text.endsWith('7'), text)
})

t.test('patterns that need no engine take no column', async t => {
  const patterns = new InternedPatterns()
  for (const source of ['^room', 'room$', 'room', '^(a|b)1$', '.*']) {
    const pattern = patterns.intern(source)
    patterns.matches(pattern, 'room')
    t.equal(pattern.column, -1, source)
  }
})

t.test('texts are kept as long as a pattern needs them, and of all tables together not too many', async t => {
  const all = { count: 0 }
  const tables = Array.from({ length: 20 }, () => {
    const patterns = new InternedPatterns(all)
    return { patterns, pattern: patterns.intern('[x-z][0-9]*7$') }
  })
  for (const { patterns, pattern } of tables)
    for (let n = 0; n < 20_000; n++) if (patterns.matches(pattern, `y${n}`) !== (n % 10 === 7)) t.fail(`y${n}`)
  t.ok(all.count <= 262_144 + tables.length * 1024)
  for (const { patterns, pattern } of tables) patterns.release(pattern)
  t.equal(all.count, 0)
  const [{ patterns } = tables[0]!] = tables
  const again = patterns.intern('[x-z]8$')
  for (const text of ['y7', 'y8', 'y8']) t.equal(patterns.matches(again, text), text === 'y8')
  patterns.release(again)
  t.equal(all.count, 0)
})

t.test('patterns that need an engine are prepared, others are not', async t => {
  const patterns = new InternedPatterns()
  const [engine, plain] = ['[0-9]x$', '^room'].map(source => patterns.intern(source)) as [
    InternedPattern,
    InternedPattern,
  ]
  for (const one of [engine, plain]) patterns.prepare(one, new Exploration(explorationMax))
  t.equal(engine.pattern?.cost, 2 + engine.pattern!.steps / 100)
  t.equal(plain.pattern, undefined)
  t.ok(patterns.matches(plain, 'room1'))
})

t.test('a pattern is tested once for an event, and not when the event has no work left', async t => {
  const patterns = new InternedPatterns()
  const all = Array.from({ length: 200 }, (_, n) => patterns.intern(`[x-z]${n}$`))
  const work = new EventWork()
  work.begin()
  for (const pattern of all) patterns.matches(pattern, 'y199', work, 1)
  const last = all.at(-1) as InternedPattern
  t.ok(last.column < 0, 'there are more than columns')
  work.begin()
  t.ok(work.spend(eventWorkMax), 'nothing is left')
  t.equal(patterns.matches(last, 'y199', work, 1), true, 'what came of it is known')
  t.equal(patterns.matches(last, 'y199', work, 2), false)
  t.equal(work.isExceeded, true)
  work.begin()
  t.equal(patterns.matches(last, 'y199', work, 3), true)
})
