// The entries of a cluster in its log engines: a node with the engines in another order, with one more or one fewer, or
// with an engine of another cluster does not start, and changes nothing.

import t from 'tap'
import { agreed, agreedBefore, agreementIn, type MarkedLog } from '../../src/process/cluster-marks.js'

/** An engine that keeps names in memory. */
class NamedValues implements MarkedLog {
  readonly values = new Map<string, Buffer>()

  constructor(readonly name: string) {}

  named: MarkedLog['named'] = (name, onDone) =>
    setImmediate(() => onDone({ kind: 'read', value: this.values.get(name) }))

  createOnce: MarkedLog['createOnce'] = (name, value, onDone) =>
    setImmediate(() => {
      if (!this.values.has(name)) this.values.set(name, value)
      onDone({ kind: 'stands', value: this.values.get(name)! })
    })

  /** All that it keeps, as text. */
  get text(): string {
    return [...this.values].map(([name, value]) => `${name} ${value}`).join('\n')
  }
}

const silent = { warn: (): void => {} }
const wanted = { shards: 64, spread: 16, id: 'x' }
const own = { path: '/data', id: 'x' }

async function founded(...names: readonly string[]): Promise<NamedValues[]> {
  const logs = names.map(name => new NamedValues(name))
  await agreed(logs, wanted, silent)
  return logs
}

t.test('the entry in a single engine is that of earlier builds', async t => {
  const [a] = await founded('a')
  t.equal(a!.text, 'cluster {"version":2,"shards":64,"spread":16,"id":"x"}')
})

t.test('several engines have their places in their entries, and later nodes find these', async t => {
  const logs = await founded('a', 'b')
  t.strictSame(
    logs.map(({ text }) => text),
    [
      'cluster {"version":3,"shards":64,"spread":16,"id":"x","place":0,"of":2}\ndivided {"version":1}',
      'cluster {"version":3,"shards":64,"spread":16,"id":"x","place":1,"of":2}\ndivided {"version":1}',
    ],
  )
  const found = await agreed(logs, { ...wanted, shards: 32, id: 'y' }, silent)
  t.strictSame(found.agreement, wanted)
  t.strictSame(
    found.marks.map(({ value }) => value),
    logs.map(({ values }) => values.get('cluster')),
  )
  t.strictSame((await agreedBefore(logs, own, silent)).agreement, wanted)
  t.strictSame((await agreementIn(logs, silent))?.agreement, wanted)
})

t.test('engines that a node may not use in this way', async t => {
  const [a, b] = (await founded('a', 'b')) as [NamedValues, NamedValues]
  const [c] = (await founded('c')) as [NamedValues]
  const other = [new NamedValues('d'), new NamedValues('e')] as const
  await agreed(other, { ...wanted, id: 'z' }, silent)
  const before = [a, b, c, ...other].map(({ text }) => text).join('\n')
  for (const [says, logs, pattern] of [
    ['another order', [b, a], /names the log engine b as number 1 of 2, and for cluster x it is number 2 of 2/],
    ['one missing', [a], /names the log engine a as the only one, and for cluster x it is number 1 of 2/],
    ['one more', [a, b, new NamedValues('n')], /engine a as number 1 of 3, and for cluster x it is number 1 of 2/],
    ['one twice', [a, a], /engine a as number 2 of 2, and for cluster x it is number 1 of 2/],
    ['one of another cluster', [a, other[1]], /different clusters: a has x, and e has z/],
    ['one of a cluster with one engine', [a, c], /engine c as number 2 of 2, and for cluster x it is the only one/],
    ['an empty one', [a, new NamedValues('n')], /engine n \(-shardLog\) has nothing of cluster x, which a keeps/],
    [
      'an empty one in the first place',
      [new NamedValues('n'), b],
      /engine n .* has nothing of cluster x, which b keeps/,
    ],
  ] as const) {
    await t.rejects(agreed(logs, { ...wanted, id: 'n' }, silent), { message: pattern }, says)
    await t.rejects(agreedBefore(logs, own, silent), { message: /Nothing was changed/ }, `${says}: a node of before`)
    t.equal(logs.find(({ name }) => name === 'n')?.text ?? '', '', `${says}: nothing is written`)
  }
  t.equal([a, b, c, ...other].map(({ text }) => text).join('\n'), before, 'nothing was changed')
})

t.test('a foundation that was interrupted goes on with the id that it had', async t => {
  const [a, b] = (await founded('a', 'b')) as [NamedValues, NamedValues]
  for (const { values } of [a, b]) values.delete('divided')
  b.values.delete('cluster')
  const { agreement } = await agreed([a, b], { ...wanted, id: 'later' }, silent)
  t.equal(agreement.id, 'x')
  t.match(b.text, /"id":"x","place":1,"of":2/)
  t.match(a.text, /divided/)
})

t.test('nodes that begin a cluster together agree on one', async t => {
  const logs = [new NamedValues('a'), new NamedValues('b')]
  const found = await Promise.all(['x', 'y', 'z'].map(id => agreed(logs, { ...wanted, id }, silent)))
  t.equal(new Set(found.map(({ agreement }) => agreement.id)).size, 1)
})

t.test('an entry of a version that is not known here is not read', async t => {
  const log = new NamedValues('a')
  log.values.set('cluster', Buffer.from('{"version":4,"shards":64,"spread":16,"id":"x","place":0,"of":1}'))
  await t.rejects(agreed([log], wanted, silent), { message: /has version 4/ })
})
