// A copy that a node fetches page by page while its source changes: with the log behind it, it is the same as the
// source, or it is not taken.

import t from 'tap'
import { beginning } from '../../../cluster/replication/log-record.js'
import { encodePeerMessage, textOf } from '../../../cluster/replication/peer-messages.js'
import type { LogPosition, ShardHost } from '../../../cluster/replication/shard-host.js'
import { fetchShard } from '../../../cluster/replication/snapshot-fetch.js'
import { type Counter, CountingHost } from '../counting-host.js'

const shard = 0
const names = ['a', 'b', 'c', 'd', 'e', 'f']
const positionOf = (sequence: number): LogPosition => ({ ...beginning, sequence })
/** Each record of the log raises all counters. */
const payloadOf = (sequence: number): Buffer =>
  Buffer.from(JSON.stringify(names.map(name => [name, { value: sequence, by: `record ${sequence}` }])))
const now = (run: () => void): void => run()

function apply(host: CountingHost, from: number, to: number): void {
  for (let sequence = from; sequence <= to; sequence++)
    host.apply(shard, [payloadOf(sequence)], positionOf(sequence), () => {})
}

function valuesOf(host: CountingHost): readonly (number | undefined)[] {
  const values: (number | undefined)[] = []
  for (const name of names) host.read(shard, name, (counter: Counter | undefined) => values.push(counter?.value))
  return values
}

/** Fetches from sources, one for each page, and follows the log to its end. Undefined: the copy was not taken. */
function fetched(sources: readonly CountingHost[], end: number): readonly (number | undefined)[] | undefined {
  const target = new CountingHost(now)
  let page = 0
  let places: Buffer | undefined
  let taken: LogPosition | undefined
  fetchShard(
    shard,
    {
      log: {
        read: (_shard, _after, _bytesMax, onDone) =>
          onDone({ kind: 'read', records: [], last: end, takeover: undefined }),
      },
      host: target as Pick<ShardHost, 'install' | 'drop' | 'apply'>,
      ask: (_request, onReply) => {
        const source = sources[Math.min(page++, sources.length - 1)]!
        const position = textOf(source.position(shard)!)
        source.snapshot(shard, places, 1_000, ({ rows, next }) => {
          places = next
          onReply(encodePeerMessage({ kind: 'page', position, next: next?.toString('base64') }, rows))
        })
      },
      onUnreadable: () => {},
    },
    outcome => {
      if (typeof outcome === 'object' && 'sequence' in outcome) taken = outcome
    },
  )
  if (!taken) return undefined
  apply(target, taken.sequence + 1, end)
  return valuesOf(target)
}

const sourceAt = (sequence: number): CountingHost => {
  const source = new CountingHost(now)
  apply(source, 1, sequence)
  return source
}

t.test('a source that changes between two pages gives the same copy', async t => {
  t.strictSame(fetched([sourceAt(5), sourceAt(8)], 9), Array(names.length).fill(9))
  t.strictSame(fetched([sourceAt(5), sourceAt(8)], 8), Array(names.length).fill(8))
})

t.test('a source that has lost its last records between two pages gives no copy without them', async t => {
  const copy = fetched([sourceAt(8), sourceAt(5)], 8)
  t.ok(copy === undefined || copy.every(value => value === 8), `${copy}`)
})

t.test('a source that is as far as before gives a copy', async t => {
  t.strictSame(fetched([sourceAt(8), sourceAt(8)], 8), Array(names.length).fill(8))
})
