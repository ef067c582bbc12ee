// Which nodes keep their shards although gossip does not reach them.

import t from 'tap'
import { ShardHeartbeats } from '../../../cluster/replication/shard-heartbeats.js'

const freshMs = 1000

const at = (ms: number) => ({ monoMs: () => ms })

/** Nodes that gossip has reported once. */
const known = ['a 1', 'b 1', 'c 1']

function signs(...reachable: readonly string[]): ShardHeartbeats {
  const made = new ShardHeartbeats(freshMs)
  made.setReachable(new Set(reachable), new Set([...reachable, ...known]))
  made.setReachable(new Set(reachable), new Set(reachable))
  return made
}

t.test('the smaller side of a cut spares only nodes of which the log reports heartbeats', async t => {
  const alone = signs('a 1')
  t.notOk(alone.spares('b 1', 0), 'nobody has told of it')
  alone.note('b 1', at(0))
  t.ok(alone.spares('b 1', freshMs - 1), 'one of two halves')
  t.notOk(alone.spares('c 1', 0), 'this one is not told of')
  alone.note('c 1', at(500))
  t.ok(alone.spares('c 1', 500))
  t.notOk(alone.spares('b 1', freshMs), 'a sign counts for a while')
  t.ok(alone.spares('c 1', freshMs), 'each its own')
})

t.test('the larger side does not', async t => {
  const two = signs('b 1', 'c 1')
  two.note('a 1', at(0))
  t.notOk(two.spares('a 1', 0))
})

t.test('a heartbeat from the time when gossip still reached a node does not count later', async t => {
  const made = signs('a 1', 'b 1')
  made.note('b 1', at(0))
  made.setReachable(new Set(['a 1']), new Set(['a 1']))
  t.notOk(made.spares('b 1', 0))
  made.note('b 1', at(1))
  t.ok(made.spares('b 1', 1))
  made.setReachable(new Set(['a 1', 'b 1']), new Set(['a 1', 'b 1']))
  made.setReachable(new Set(['a 1']), new Set(['a 1']))
  t.notOk(made.spares('b 1', 2), 'nor what was told before it was heard again')
})

t.test('a node that is doubted counts as one that is there', async t => {
  const made = signs()
  made.setReachable(new Set(['a 1']), new Set(['a 1', 'b 1']))
  made.note('c 1', at(0))
  t.notOk(made.spares('c 1', 0))
})

t.test('a node that gossip has not reported yet keeps its shards as long as the log reports it', async t => {
  const two = signs('a 1', 'b 1')
  t.notOk(two.spares('c 2', 0), 'nobody has told of it')
  two.note('c 2', at(0))
  t.ok(two.spares('c 2', freshMs - 1), 'another life of c')
  t.notOk(two.spares('c 2', freshMs))
  two.note('c 2', at(freshMs))
  two.setReachable(new Set(['a 1', 'b 1', 'c 2']), new Set(['a 1', 'b 1', 'c 2']))
  two.setReachable(new Set(['a 1', 'b 1']), new Set(['a 1', 'b 1']))
  two.note('c 2', at(freshMs))
  t.notOk(two.spares('c 2', freshMs), 'gossip knows that it is gone')
})
