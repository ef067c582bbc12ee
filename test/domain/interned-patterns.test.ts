import t from 'tap'
import { InternedPatterns, rowsOfAllTables } from '../../src/domain/interned-patterns.js'

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

t.test('what is no pattern matches nothing', async t => {
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
  const before = rowsOfAllTables()
  const tables = Array.from({ length: 20 }, () => {
    const patterns = new InternedPatterns()
    return { patterns, pattern: patterns.intern('[x-z][0-9]*7$') }
  })
  for (const { patterns, pattern } of tables)
    for (let n = 0; n < 20_000; n++) if (patterns.matches(pattern, `y${n}`) !== (n % 10 === 7)) t.fail(`y${n}`)
  t.ok(rowsOfAllTables() <= 262_144 + tables.length * 1024)
  for (const { patterns, pattern } of tables) patterns.release(pattern)
  t.equal(rowsOfAllTables(), before)
  const [{ patterns } = tables[0]!] = tables
  const again = patterns.intern('[x-z]8$')
  for (const text of ['y7', 'y8', 'y8']) t.equal(patterns.matches(again, text), text === 'y8')
  patterns.release(again)
  t.equal(rowsOfAllTables(), before)
})
