// How the others are asked whether they have a change of the register: again, if an answer gets lost, and not for ever.

import t from 'tap'
import { decodePeerRequest, encodePeerMessage } from '../../../cluster/replication/peer-messages.js'
import { RegisterBarrier } from '../../../cluster/replication/register-barrier.js'
import { completeReplicationOptions } from '../../../cluster/replication/replication-options.js'
import { FakeClock } from '../../support/fake-clock.js'

const options = completeReplicationOptions({})

/** How each ask of a node ends: with an answer, or without one after the time that it has. */
type Ends = 'answered' | 'lost' | 'unreachable'

function begin(ends: readonly Ends[]): { readonly clock: FakeClock; readonly asked: number[]; isDone(): boolean } {
  const clock = new FakeClock()
  const startMs = clock.monoMs()
  const asked: number[] = []
  let isDone = false
  const barrier = new RegisterBarrier({
    logs: [{ takeovers: onOutcome => onOutcome({ kind: 'read', takeovers: new Map() }) }],
    clock,
    options,
    takeovers: { mayLackOwner: () => false },
    others: () => ['b'],
    troubleOf: () => undefined,
    onTakeovers: () => {},
    ask: (_, request, waitMs, onReply) => {
      t.match(decodePeerRequest(request)?.message, { kind: 'reached', shard: 4, sequence: 9 })
      const end = ends[asked.length]
      asked.push(clock.monoMs() - startMs)
      if (end === 'answered') onReply(encodePeerMessage({ kind: 'done' }))
      else if (end === 'unreachable') onReply(undefined)
      else clock.after(waitMs, () => onReply(undefined))
    },
  })
  barrier.begin(4, 9, () => {
    isDone = true
  })
  return { clock, asked, isDone: () => isDone }
}

for (const way of ['lost', 'unreachable'] as const)
  t.test(`a node that is ${way} at first is asked again, and the change does not wait for its lease`, async t => {
    const { clock, asked, isDone } = begin([way, 'answered'])
    t.notOk(isDone())
    clock.advance(300)
    t.strictSame(asked, [0, 300])
    t.ok(isDone())
  })

t.test('a node that does not answer counts as one that decides without the change until its lease is over', async t => {
  const { clock, asked, isDone } = begin([])
  clock.advance(1_000)
  t.strictSame(asked, [0, 300, 600, 900])
  t.notOk(isDone())
  clock.advance(60_000)
  t.strictSame(asked.length, 4)
  t.ok(isDone())
})
