// The journal of a home: what it tells of its changes, and what it may leave out.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { encodeSubscription } from '../../../src/domain/subscriptions/subscription-json.js'
import { Journal, type JournalEntry } from '../../../src/shard/documents/journal.js'
import { subscription } from '../../support/subscriptions.js'

const plain = subscription('{"subject":{"entities":[{"id":"E"}]},"notification":{"http":{"url":"http://h"}}}')
const entry = (revision: number, id: string, isRemoval = false): JournalEntry => ({
  revision,
  kind: 'subscription',
  tenant: 't',
  id,
  text: isRemoval ? undefined : () => encodeSubscription({ ...plain, tenant: 't', id, description: String(revision) }),
})

const textBytes = entry(1, '1').text!().length

const told = (journal: Journal, after: number, upTo: number, bytesMax = Number.MAX_SAFE_INTEGER) => {
  const { changes, isAll } = journal.extract(after, upTo, bytesMax)
  return { revisions: changes.map(({ revision }) => revision), isAll }
}

t.test('it tells what lies behind one revision and up to another, in order', async t => {
  const journal = new Journal([entry(9, 'c'), entry(3, 'a'), entry(5, 'b', true)])
  journal.append(entry(12, 'd'))
  t.strictSame(told(journal, 0, 12), { revisions: [3, 5, 9, 12], isAll: true })
  t.strictSame(told(journal, 3, 9), { revisions: [5, 9], isAll: true })
  t.strictSame(told(journal, 4, 8), { revisions: [5], isAll: true })
  t.strictSame(told(journal, 12, 12), { revisions: [], isAll: true })
})

t.test('it stops when it has told enough bytes, but tells one change at least', async t => {
  const journal = new Journal([1, 2, 3, 4].map(revision => entry(revision, String(revision))))
  t.strictSame(told(journal, 0, 4, 1), { revisions: [1], isAll: false })
  t.strictSame(told(journal, 1, 4, 2 * textBytes), { revisions: [2, 3], isAll: false })
  t.strictSame(told(journal, 3, 4, 1), { revisions: [4], isAll: true })
})

t.test('a removal is told without a text', async t => {
  const journal = new Journal([entry(1, 'a', true)])
  t.strictSame(journal.extract(0, 1, 1).changes, [
    { revision: 1, kind: 'subscription', tenant: 't', id: 'a', text: undefined },
  ])
})

t.test('documents of two kinds do not take each other for an earlier state, though they have one id', async t => {
  const journal = new Journal()
  for (let n = 1; n <= 2002; n++) journal.append({ ...entry(n, 'a'), kind: n % 2 ? 'subscription' : 'registration' })
  journal.shorten(2002, 2002)
  t.strictSame(told(journal, 0, 2002), { revisions: [2001, 2002], isAll: true })
})

t.test('however often few subscriptions change, it stays short', async t => {
  const journal = new Journal()
  for (let revision = 1; revision <= 100_000; revision++) {
    journal.append(entry(revision, String(revision % 10)))
    journal.shorten(revision, revision)
    if (journal.length > 2000) t.fail(`${journal.length} entries`)
  }
  t.equal(told(journal, 0, 100_000).revisions.at(-1), 100_000)
})

t.test('who has learned from a shortened journal knows what all changes up to there come to', async () => {
  const changes = fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.boolean()), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(changes, fc.nat(40), fc.nat(40), (all, upTo, from) => {
      const journal = new Journal()
      // Enough of one more that it is worth shortening.
      for (let n = 1; n <= 1001; n++) journal.append(entry(n, 'other'))
      const entries = all.map(([id, isRemoval], at) => entry(2000 + at, String(id), isRemoval))
      for (const one of entries) journal.append(one)
      const horizon = 2000 + Math.min(upTo, all.length)
      const after = 2000 + Math.min(from, upTo, all.length) - 1
      journal.shorten(horizon, after)
      const states = (some: readonly { id: string; revision: number }[]) =>
        new Map(some.map(({ id, revision }) => [id, revision]))
      const behind = entries.filter(({ revision }) => revision > after && revision <= horizon)
      assert.deepEqual(states(journal.extract(after, horizon, 1e9).changes), states(behind))
    }),
  )
})
