// The counting behind the closing line of `npm test`.

import { Readable } from 'node:stream'
import t from 'tap'
import { closingLine, count } from './tap-totals.js'

const totalsOf = (...lines: string[]) =>
  count(Readable.from([['TAP version 14', ...lines, ''].join('\n')]), 'a file', () => {})

t.test('assertions count, the tests that hold them do not', async t => {
  const totals = await totalsOf('# Subtest: a', '    ok 1 - x', '    ok 2 - y', '    1..2', 'ok 1 - a', '1..1')
  t.strictSame(totals, { passed: 2, failed: 0, skipped: 0, tests: 1 })
})

t.test('a failed assertion counts once, however deep it is', async t => {
  const totals = await totalsOf('# Subtest: a', '    not ok 1 - x', '    1..1', 'not ok 1 - a', '1..1')
  t.strictSame(totals, { passed: 0, failed: 1, skipped: 0, tests: 1 })
})

t.test('a file that failed although its assertions passed counts as a failure', async t => {
  const totals = await totalsOf('# Subtest: a', '    ok 1 - x', '    1..1', 'not ok 1 - a', '1..1')
  t.strictSame(totals, { passed: 1, failed: 1, skipped: 0, tests: 1 })
})

t.test('a skipped test is counted apart', async t => {
  const totals = await totalsOf('ok 1 - a # SKIP needs root', 'ok 2 - b', '1..2')
  t.strictSame(totals, { passed: 1, failed: 0, skipped: 1, tests: 2 })
})

t.test('the closing line names skips only when there are some', async t => {
  t.equal(closingLine({ passed: 3, failed: 0, skipped: 0 }), '3 passed, 0 failed')
  t.equal(closingLine({ passed: 3, failed: 1, skipped: 2 }), '3 passed, 1 failed, 2 skipped')
})
