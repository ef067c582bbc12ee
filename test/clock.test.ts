// Real time, fake time, and stamps that only grow.

import t from 'tap'
import { FineWallClock, HybridClock, systemChance, systemClock, timerDelayMsMax } from '../src/clock.js'
import { stampMs, stampOf, stampsPerMs } from '../src/domain/stamp.js'
import { FakeClock } from './support/fake-clock.js'
import fc from './support/properties.js'

/** A wall clock that the test sets. */
function wall(ms: number): { ms: number; wallMs(): number } {
  return {
    ms,
    wallMs() {
      return this.ms
    },
  }
}

const now = Date.UTC(2026, 1, 3)

t.test('stamps strictly increase under any sequence of wall-clock readings', async t => {
  const readings = fc.array(
    fc.oneof(fc.integer({ min: now - 5, max: now + 5 }), fc.integer({ min: -10, max: 2 ** 41 })),
  )
  fc.assert(
    fc.property(readings, fc.integer({ min: 0, max: stampOf(now + 1) }), (sequence, before) => {
      const clock = wall(0)
      const stamps = new HybridClock(clock, before)
      let last = before
      for (const ms of sequence) {
        clock.ms = ms
        const stamp = stamps.next()
        if (!Number.isSafeInteger(stamp) || stamp <= last || stamp < stampOf(ms) || stamps.last !== stamp) return false
        last = stamp
      }
      return true
    }),
  )
  t.pass('see the property')
})

t.test('a stamp contains its millisecond', async t => {
  const clock = wall(now)
  const stamps = new HybridClock(clock)
  t.equal(stamps.next(), now * stampsPerMs)
  t.equal(stampMs(stamps.next()), now)
  clock.ms = now + 0.7
  t.equal(stampMs(stamps.next()), now)
})

t.test('a count that overflows carries into the milliseconds, and the clock catches up', async t => {
  const clock = wall(now)
  const stamps = new HybridClock(clock)
  for (let i = 0; i < stampsPerMs; i++) t.equal(stampMs(stamps.next()), now) || t.bailout()
  t.equal(stampMs(stamps.next()), now + 1)
  clock.ms = now + 2
  t.equal(stamps.next(), stampOf(now + 2))
})

t.test('a wall clock that goes back does not take the stamps along', async t => {
  const clock = wall(now)
  const stamps = new HybridClock(clock)
  const before = stamps.next()
  clock.ms -= 60_000
  t.equal(stamps.next(), before + 1)
})

t.test('the next stamp is above every stamp observed', async t => {
  const stamps = new HybridClock(wall(now))
  const received = stampOf(now + 1000) + 3
  stamps.observe(received)
  t.equal(stamps.last, received)
  stamps.observe(received - 100)
  t.equal(stamps.next(), received + 1)
})

t.test('a stamp given elsewhere is taken when it is above all others, though the wall clock is further', async t => {
  const clock = wall(now)
  const stamps = new HybridClock(clock)
  const first = stamps.next()
  clock.ms = now + 20
  t.equal(stamps.next(first + 7), first + 7)
  t.equal(stamps.next(first + 9), first + 9)
})

t.test('a stamp given elsewhere that is not above all others gives way to the next', async t => {
  const stamps = new HybridClock(wall(now))
  const first = stamps.next()
  t.equal(stamps.next(first), first + 1)
  t.equal(stamps.next(first - 5000), first + 2)
})

t.test('a stamp given elsewhere may be ahead of the wall clock, and not far ahead', async t => {
  const aheadMsMax = 10_000
  const stamps = new HybridClock(wall(now))
  t.equal(stamps.next(stampOf(now + aheadMsMax + 1)), stampOf(now))
  t.equal(stamps.next(stampOf(now + aheadMsMax)), stampOf(now + aheadMsMax))
})

t.test('stamps of requests are followed within the bound only', async t => {
  const stamps = new HybridClock(wall(now), 0, 1000)
  stamps.follow(stampOf(now + 1001))
  t.equal(stamps.last, 0)
  t.equal(stamps.next(stampOf(now + 1001)), stampOf(now))
  stamps.follow(stampOf(now + 1000))
  t.equal(stamps.next(), stampOf(now + 1000) + 1)
  stamps.follow(stampOf(now))
  t.equal(stamps.next(), stampOf(now + 1000) + 2, 'and never back')
})

t.test('a clock with fractions of a millisecond makes stamps in between', async t => {
  const clock = wall(now + 0.25)
  const stamps = new HybridClock(clock)
  t.equal(stamps.next(), now * stampsPerMs + stampsPerMs / 4)
  clock.ms = now + 0.75
  t.equal(stamps.next(), now * stampsPerMs + (stampsPerMs / 4) * 3)
})

/** The clocks of a machine, and a fine wall clock over them. */
function machine(beganMs: number) {
  const clocks = { mono: 0, setMs: 0 }
  const coarse = { monoMs: () => clocks.mono, wallMs: () => Math.floor(beganMs + clocks.mono + clocks.setMs) }
  return { clocks, fine: new FineWallClock(coarse, beganMs) }
}

t.test('the fine wall clock has fractions', async t => {
  const { clocks, fine } = machine(now)
  clocks.mono = 12.25
  t.equal(fine.fineWallMs(), now + 12.25)
})

t.test('the fine wall clock follows when the clock of the machine is set, and then has fractions again', async t => {
  for (const setMs of [60_000, -60_000]) {
    const { clocks, fine } = machine(now)
    clocks.mono = 5.5
    clocks.setMs = setMs
    t.ok(Math.abs(fine.fineWallMs() - (now + 5.5 + setMs)) <= 1)
    const before = fine.fineWallMs()
    clocks.mono = 5.75
    t.equal(fine.fineWallMs(), before + 0.25)
  }
})

t.test('the fine wall clock does not take an interruption between two readings for a clock that was set', async t => {
  let interruptedMs = 50
  let mono = 3.5
  const coarse = {
    monoMs: () => mono,
    wallMs: () => {
      mono += interruptedMs
      interruptedMs = 0
      return Math.floor(now + mono)
    },
  }
  t.equal(new FineWallClock(coarse, now).fineWallMs(), now + 53.5)
})

t.test('the fine wall clock of this process is the wall clock', async t => {
  for (let tries = 0; tries < 100; tries++) {
    const [before, ms, after] = [systemClock.wallMs(), systemClock.fineWallMs(), systemClock.wallMs()]
    if (ms >= before && ms < after + 1.1) return void t.pass(`${ms}`)
  }
  t.fail('never')
})

t.test('stamps are good until 2109, and a number that is none is a bug', async t => {
  t.ok(new HybridClock(wall(Date.UTC(2109, 0, 1))).next())
  t.throws(() => new HybridClock(wall(Date.UTC(2110, 0, 1))).next(), /not a stamp/)
  t.throws(() => new HybridClock(wall(now), -1), /not a stamp/)
  t.throws(() => new HybridClock(wall(now)).observe(Number.NaN), /not a stamp/)
})

t.test('the system clock runs due timers, and no cancelled ones', async t => {
  const ran: string[] = []
  await new Promise<void>(resolve => {
    systemClock.after(0, () => ran.push('taken back'))()
    systemClock.after(timerDelayMsMax * 3, () => ran.push('too early'))
    systemClock.after(-5, () => {
      ran.push('timer')
      systemClock.endOfTick(resolve)
    })
    // Timers of the system clock do not keep the process alive; this one does.
    setTimeout(() => {}, 20)
  })
  t.same(ran, ['timer'])
  t.ok(systemClock.wallMs() > now && systemClock.monoMs() > 0)
})

t.test('chance gives lower-case UUIDs, a new one each time', async t => {
  t.match(systemChance.uuid(), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  t.not(systemChance.uuid(), systemChance.uuid())
})

t.test('the fake clock runs timers in the order they fall due, each at its time', async t => {
  const clock = new FakeClock(now)
  const ran: string[] = []
  const note = (name: string) => () => ran.push(`${name}@${clock.monoMs()}`)
  clock.after(20, note('b'))
  clock.after(10, () => {
    note('a')()
    clock.endOfTick(note('end of a'))
    clock.after(10, note('c'))
  })
  clock.after(15, note('taken back'))()
  clock.after(31, note('later'))
  clock.advance(30)
  t.same(ran, ['a@10', 'end of a@10', 'b@20', 'c@20'])
  t.equal(clock.wallMs(), now + 30)
  t.equal(clock.waiting, 1)
  clock.advance(1)
  t.equal(ran.at(-1), 'later@31')
})

t.test('the fake wall clock jumps alone', async t => {
  const clock = new FakeClock(now)
  clock.jumpWall(-1000)
  clock.advance(10)
  t.same([clock.wallMs(), clock.monoMs()], [now - 990, 10])
})
