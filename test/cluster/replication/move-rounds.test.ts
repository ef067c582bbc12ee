// When a node asks for further shards (cluster/replication/move-rounds.ts).

import t from 'tap'
import { MoveRounds } from '../../../cluster/replication/move-rounds.js'
import { FakeClock } from '../../support/fake-clock.js'

const options = { moveRestMs: 250, moveRoundMs: 5_000, holdMs: 1_000, holdMsMax: 4_000 }

/** `rests`: the moments at which a rest was over. */
function scene() {
  const clock = new FakeClock()
  const rests: number[] = []
  const beganMs = clock.monoMs()
  const rounds = new MoveRounds(clock, options, () => rests.push(clock.monoMs() - beganMs))
  return { clock, rests, rounds }
}

t.test('a round is open until a shard is on its way', async t => {
  const { rounds } = scene()
  t.ok(rounds.isOpen(0))
  t.notOk(rounds.isOpen(1))
})

t.test('the next round begins when a rest after the latest takeover of any node is over', async t => {
  const { clock, rests, rounds } = scene()
  rounds.noteTakeover()
  clock.advance(200)
  rounds.noteTakeover()
  clock.advance(249)
  t.notOk(rounds.isOpen(0))
  clock.advance(1)
  t.ok(rounds.isOpen(0))
  t.strictSame(rests, [450], 'its end is reported once')
})

t.test(
  'it does not begin while a shard is on its way, but a shard that takes long does not hold the others up',
  async t => {
    const { clock, rounds } = scene()
    rounds.noteTakeover()
    clock.advance(4_999)
    t.notOk(rounds.isOpen(1))
    clock.advance(1)
    t.ok(rounds.isOpen(1))
    t.ok(rounds.isOpen(0), 'when it has arrived, a new round begins')
    t.notOk(rounds.isOpen(1))
  },
)

t.test('takeovers without an end do not hold a node up for ever', async t => {
  const { clock, rounds } = scene()
  for (let passedMs = 0; passedMs < 5_000; passedMs += 100) {
    rounds.noteTakeover()
    t.notOk(rounds.isOpen(0))
    clock.advance(100)
  }
  t.ok(rounds.isOpen(0))
})

t.test('no round begins while a node asks for a longer rest, and then one does', async t => {
  const { clock, rounds } = scene()
  rounds.hold()
  clock.advance(999)
  t.notOk(rounds.isOpen(0))
  clock.advance(1)
  t.ok(rounds.isOpen(0))
  for (let passedMs = 0; passedMs < 4_000; passedMs += 200) {
    rounds.hold()
    clock.advance(100)
    t.notOk(rounds.isOpen(0))
    clock.advance(100)
  }
  t.ok(rounds.isOpen(0), 'who asks without an end does not stop moves')
  rounds.hold()
  t.notOk(rounds.isOpen(0))
})

t.test('a longer rest counts from the latest takeover, so that all nodes rest as long', async t => {
  const { clock, rounds } = scene()
  const holdFor = (ms: number): void => {
    for (let passedMs = 0; passedMs < ms; passedMs += 200) {
      rounds.hold()
      t.notOk(rounds.isOpen(0))
      clock.advance(200)
    }
  }
  holdFor(3_000)
  rounds.noteTakeover()
  holdFor(4_000)
  t.ok(rounds.isOpen(0))
})

t.test('takeovers and lists without an end together do not stop moves either', async t => {
  const { clock, rounds } = scene()
  const beganMs = clock.monoMs()
  const isOpen = (): boolean => {
    rounds.hold()
    rounds.noteTakeover()
    clock.advance(100)
    return rounds.isOpen(0)
  }
  while (!isOpen()) if (clock.monoMs() - beganMs > 60_000) return t.fail('no round begins')
  t.equal(clock.monoMs() - beganMs, 9_000, 'moveRoundMs and holdMsMax')
})
