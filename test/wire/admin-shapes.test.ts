// Replies to operators that other processes send are checked whole: one that is none of the five is refused.

import t from 'tap'
import type { MetricFamily, ShardReply, Statistics } from '../../src/messages/messages.js'
import { emptyTally } from '../../src/observe/service-metrics.js'
import { decodeReply, encodeReply } from '../../src/wire/wire.js'

const family: MetricFamily = {
  name: 'orrery_requests_total',
  type: 'counter',
  help: 'Requests.',
  aggregator: 'sum',
  values: [{ labels: { method: 'GET' }, value: 7 }],
}
const statistics: Statistics = { uptimeS: 9, intervalS: 4, hasSemWait: false, simulatedNotifications: 0 }
const cache = { ids: '', refresh: 0, inserts: 1, removes: 0, updates: 0, items: 1 }
const tally = emptyTally('default-service', '/')

const sent = (content: unknown): ShardReply =>
  decodeReply(encodeReply({ kind: 'admin', content } as unknown as ShardReply))

t.test('a reply to each command is received', async t => {
  for (const content of [[family], [], statistics, cache, [tally], null])
    t.strictSame(sent(content), { kind: 'admin', content })
})

t.test('members that a later release adds are ignored', async t => {
  const content = [{ ...family, unit: 'requests', values: [{ labels: {}, value: 1, atMs: 5 }] }]
  t.strictSame(sent(content), { kind: 'admin', content })
})

t.test('a number that is not finite is null in JSON, and does not spoil the other metrics', async t => {
  const content = [{ ...family, values: [{ labels: {}, value: Number.NaN }] }]
  t.strictSame(sent(content), { kind: 'admin', content: [{ ...family, values: [{ labels: {}, value: null }] }] })
})

const garbage: readonly (readonly [what: string, content: unknown])[] = [
  ['nothing', undefined],
  ['a text', 'metrics'],
  ['a number', 7],
  ['a truth value', true],
  ['an object without members', {}],
  ['a list of texts', ['orrery_requests_total 7']],
  ['a list with null', [family, null]],
  ['metrics and tallies mixed', [family, tally]],
  ['a metric without a name', [{ ...family, name: undefined }]],
  ['a metric of an unknown type', [{ ...family, type: 'summary' }]],
  ['a metric that is merged in an unknown way', [{ ...family, aggregator: 'average' }]],
  ['samples that are no list', [{ ...family, values: {} }]],
  ['a sample whose value is a text', [{ ...family, values: [{ labels: {}, value: '7' }] }]],
  ['a sample whose label is a number', [{ ...family, values: [{ labels: { code: 200 }, value: 7 }] }]],
  ['a sample without labels', [{ ...family, values: [{ value: 7 }] }]],
  ['a tally without a path', [{ ...tally, path: undefined }]],
  ['a tally with a text', [{ ...tally, incomingTransactions: '1' }]],
  ['statistics with a wrong block', { ...statistics, notifQueue: [] }],
  ['statistics whose counts are texts', { ...statistics, counters: { requests: { '/v2': { GET: '1' } } } }],
  ['statistics without an interval', { ...statistics, intervalS: undefined }],
  ['a cache without its ids', { ...cache, ids: undefined }],
]

for (const [what, content] of garbage)
  t.test(`${what} is no reply to an operator`, async t => {
    t.throws(() => sent(content), /kind admin, with these members, is not known/)
  })
