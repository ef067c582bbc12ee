// The bound on another node's clock: never below what it shows, whatever the frames have been through.

import t from 'tap'
import { PeerClock } from '../../../cluster/asks/peer-clock.js'
import { Random } from '../../support/random.js'

t.test('as long as nothing was heard anything may be', async t => {
  t.equal(new PeerClock().latestMs(5), Number.POSITIVE_INFINITY)
})

t.test('an echo bounds the clock by the way there, and the better of two echoes counts', async t => {
  const clock = new PeerClock()
  // Ours is 1000 ahead: we write at 5000, it answers at 4002 on its own clock, which is 5002 on ours.
  clock.learn(5000, 4002, 5009)
  t.ok(Math.abs(clock.latestMs(5009) - 4011) < 0.1, 'its clock shows 4009')
  clock.learn(6000, 5500, 6510)
  t.ok(Math.abs(clock.latestMs(6510) - 5512) < 2, 'an echo that took 500 ms on the way there says less')
  clock.learn(7000, 6000.5, 7030)
  t.ok(Math.abs(clock.latestMs(7030) - 6030.5) < 0.1, 'one that took 0.5 ms says more')
})

t.test('the bound is never below what the other clock shows', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  for (let runs = 0; runs < 200; runs++) {
    const offset = random.between(-1e6, 1e6)
    const [ours, theirs] = [0, 0].map(() => 1 + random.between(-450, 450) / 1e6)
    const clock = new PeerClock()
    let nowMs = 0
    for (let frames = 0; frames < 50; frames++) {
      const wroteMs = nowMs
      const echoedMs = wroteMs + random.fraction() * random.pick([2, 2, 2, 3000])
      nowMs = echoedMs + random.fraction() * random.pick([2, 2, 2, 3000])
      const sentMs = offset + echoedMs * theirs!
      if (!clock.observe(sentMs, nowMs * ours!)) t.fail('a frame that is in order was found to be impossible')
      clock.learn(wroteMs * ours!, sentMs, nowMs * ours!)
      nowMs += random.fraction() * random.pick([10, 10, 10_000])
      if (clock.latestMs(nowMs * ours!) < offset + nowMs * theirs!) t.fail(`too low in run ${runs}`)
    }
  }
  t.pass('it never was')
})

t.test('a frame that was written later than can be proves the bound wrong', async t => {
  const clock = new PeerClock()
  clock.learn(100, 100, 100)
  t.equal(clock.observe(150, 150), true)
  t.equal(clock.observe(300, 200), false, 'our clock stood still for 100 ms')
  t.equal(clock.latestMs(200), Number.POSITIVE_INFINITY)
  clock.learn(200, 300, 201)
  t.ok(clock.latestMs(201) < 302, 'until the next echo')
})

t.test('an echo of what we have not written yet is nonsense', async t => {
  const clock = new PeerClock()
  clock.learn(500, 100, 400)
  t.equal(clock.latestMs(400), Number.POSITIVE_INFINITY)
})
