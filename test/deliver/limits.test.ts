// The widths and queues of the modes of notification.

import t from 'tap'
import { limitsByDefault, poolsOf, retrySendsMax, unprovenSendsMax } from '../../src/deliver/limits.js'

const { queueMax, sendsMax, laneSendsMax } = limitsByDefault
const pool = (tenant: string | undefined, queue: number, sends: number, lane: number) => ({
  tenant,
  queueMax: queue,
  sendsMax: sends,
  laneSendsMax: lane,
})

const modes: readonly (readonly [mode: string, pools: unknown])[] = [
  ['transient', [pool(undefined, queueMax, sendsMax, laneSendsMax)]],
  ['persistent', [pool(undefined, queueMax, sendsMax, 1)]],
  ['threadpool', [pool(undefined, 100, 10, 10)]],
  ['threadpool:7:3', [pool(undefined, 7, 3, 3)]],
  ['threadpool:007:3,Acme:2:1,x_y:4:5', [pool(undefined, 7, 3, 3), pool('acme', 2, 1, 1), pool('x_y', 4, 5, 5)]],
]

t.test('a mode sets the number of messages in flight and the number of waiting ones', async t => {
  for (const [mode, pools] of modes) t.same(poolsOf(mode, limitsByDefault), pools, mode)
})

t.test('a mode that the options would not have accepted is a bug', async t => {
  for (const mode of ['', 'permanent', 'threadpool:0:1', 'threadpool:1', 'other:1:1'])
    t.throws(() => poolsOf(mode, limitsByDefault), /not a notification mode/, mode)
})

t.test('even a pool of one has a place for further tries, and one for receivers that do not answer', async t => {
  t.same([retrySendsMax(1), unprovenSendsMax(1)], [1, 1])
  t.same([retrySendsMax(512), unprovenSendsMax(512)], [64, 384])
})
