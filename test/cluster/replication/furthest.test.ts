// Which copy of a shard continues when its log is gone.

import t from 'tap'
import { chooseCopy } from '../../../cluster/replication/furthest.js'
import type { LogPosition } from '../../../cluster/replication/shard-host.js'

const at = (sequence: number, epoch = 1, past = 'log'): LogPosition => ({
  sequence,
  epoch,
  hash: Buffer.from(`${past} ${sequence}`),
})
const other = (sequence: number, epoch = 1): LogPosition => at(sequence, epoch, 'other log')

t.test('the furthest copy is taken, wherever it is, and all that are equal to it', async t => {
  t.match(chooseCopy([at(3), at(7), undefined, at(7)]), {
    kind: 'taken',
    position: at(7),
    holders: [1, 3],
    refused: [],
  })
  t.match(chooseCopy([at(0, 0)]), { kind: 'taken', holders: [0] })
})

t.test('a copy of another past than most is refused, also when it is the furthest', async t => {
  t.match(chooseCopy([other(7), at(7), at(7)]), { kind: 'taken', position: at(7), holders: [1, 2], refused: [0] })
  t.match(chooseCopy([at(9, 4), at(7, 5), at(7, 5)]), { kind: 'taken', position: at(7, 5), refused: [0] })
})

t.test('copies that contradict each other without a majority are not chosen from', async t => {
  t.same(chooseCopy([other(7), at(7)]), { kind: 'undecided' })
  t.same(chooseCopy([other(7), at(7), at(5)]), { kind: 'undecided' })
  t.same(chooseCopy([at(9, 4), at(7, 5)]), { kind: 'undecided' })
})

t.test('without a whole copy there is none to take', async t => {
  t.same(chooseCopy([undefined, undefined]), { kind: 'missing' })
  t.same(chooseCopy([]), { kind: 'missing' })
})
