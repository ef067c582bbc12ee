// Lanes under random load: receivers that answer, refuse and die at random, bounds that are hit all the time, time that
// jumps.
//
// Invariants: no accepted delivery is lost and none ends twice. The order of a subscription and entity is kept until
// the receiver puts a notification off. None is sent before its time. Widths and bounds hold. When all receivers answer
// again, all deliveries end.

import t from 'tap'
import { failuresToOpen } from '../../src/deliver/breaker.js'
import type { Job } from '../../src/deliver/lane.js'
import { Random } from '../support/random.js'
import { answer, LanesBench, lost, ok, type Subject } from './lanes-bench.js'

const modes = ['transient', 'persistent', 'threadpool:20:3', 'threadpool:7:2,acme:5:1'] as const
const hosts = ['a', 'b', 'c', 'd', 'e', 'f'] as const

/** The test's own record of one delivery. */
interface Known {
  readonly delivery: {
    readonly key: string
    readonly subscription: string
    readonly entity: string
    readonly tenant: string
  }
  readonly host: string
  readonly order: string
  tries: number
  /** undefined: the delivery has its place in its order. */
  notBeforeMs: number | undefined
  isTaken: boolean
  hasEnded: boolean
}

class Run {
  readonly bench: LanesBench
  readonly known = new Map<string, Known>()
  readonly faults: string[] = []
  /** Deliveries that their owner must offer again, like rows in an outbox. */
  readonly pending = new Set<Known>()
  private readonly retries: boolean

  constructor(readonly random: Random) {
    this.retries = random.fraction() < 0.8
    this.bench = new LanesBench({
      mode: random.pick(modes),
      retries: this.retries,
      fraction: () => random.fraction(),
      limits: { laneQueueMax: 5, laneBytesMax: 900, laneRetriesMax: 3, bytesMax: 2000, lanesMax: 4, laneSendsMax: 4 },
    })
    this.bench.onOutcome = (key, outcome) => {
      const one = this.known.get(key)!
      if (one.hasEnded || !one.isTaken) this.faults.push(`${key} ends twice, or was not taken`)
      if (outcome.kind !== 'failed') {
        one.hasEnded = true
        return
      }
      one.tries = outcome.attempts
      one.notBeforeMs = outcome.nextAttemptMs
      if (outcome.held) return
      one.isTaken = false
      this.pending.add(one)
    }
    // The owner offers all its pending deliveries again as soon as there is room.
    this.bench.onRoom = () => {
      for (const one of [...this.pending].sort((a, b) => Number(a.delivery.key) - Number(b.delivery.key)))
        this.offer(one)
    }
  }

  fresh(): void {
    const { random } = this
    const host = random.pick(hosts)
    const delivery = {
      key: `${this.known.size}`,
      subscription: random.pick(['s', 't']),
      entity: random.pick(['x', 'y', 'z']),
      tenant: random.pick(['', 'acme']),
    }
    const order = `${host} ${delivery.tenant} ${delivery.subscription} ${delivery.entity}`
    const one = { delivery, host, order, tries: 0, notBeforeMs: undefined, isTaken: false, hasEnded: false }
    this.known.set(delivery.key, one)
    this.offer(one)
  }

  offer(one: Known): void {
    // A refused delivery stays pending: later ones of the same order must not be offered before it.
    const isOrdered = one.notBeforeMs === undefined
    const isEarlier = (other: Known): boolean => Number(other.delivery.key) < Number(one.delivery.key)
    const isBehind = [...this.pending].some(
      other => other.notBeforeMs === undefined && other.order === one.order && isEarlier(other),
    )
    if (isOrdered && isBehind) {
      this.pending.add(one)
      return
    }
    const bytes = this.random.between(50, 400)
    const more = {
      ...one.delivery,
      attempt: one.tries,
      ...(one.notBeforeMs !== undefined && { dueMs: one.notBeforeMs }),
    }
    const before = this.bench.outcomes.length
    if (this.bench.offer(one.host, more, bytes) === 'taken') {
      one.isTaken = true
      this.pending.delete(one)
    } else if (this.retries) this.pending.add(one)
    else this.known.delete(one.delivery.key)
    if (this.bench.outcomes.length > before) this.faults.push('an outcome came before offer returned')
  }

  /** Checks all jobs in flight, and the bounds of pools and lanes. */
  check(): void {
    const { sending } = this.bench
    for (const job of sending) this.checkJob(job)
    // Jobs that had no answer wait beside the bound: some for each lane until its breaker opens.
    const lostMax = 4 * failuresToOpen
    for (const { waiting, sending: first, resending, limits, retrySendsMax } of this.bench.lanes.table.pools)
      if (first > limits.sendsMax || resending > retrySendsMax || waiting > limits.queueMax + lostMax || waiting < 0)
        this.faults.push(`a pool is beyond its bounds: ${first} ${resending} ${waiting}`)
    for (const lane of this.bench.lanes.table.all())
      if (lane.waiting < 0 || lane.holding < 0 || lane.waitingBytes < 0 || lane.holdingBytes < 0)
        this.faults.push('a lane is beyond its bounds')
    if (this.bench.lanes.table.size > 4) this.faults.push('too many lanes')
  }

  private checkJob(job: Job<Subject>): void {
    const { key } = job.subject
    const one = this.known.get(key)!
    if (!one.isTaken || one.hasEnded) this.faults.push(`${key} is sent and should not be`)
    if (this.bench.clock.wallMs() < (one.notBeforeMs ?? 0) - 1e-3) this.faults.push(`${key} is sent before its time`)
    if (job.tries > 4) this.faults.push(`${key} is sent too often`)
    if (one.notBeforeMs !== undefined || !this.retries) return
    for (const other of this.known.values()) {
      if (Number(other.delivery.key) >= Number(key)) break
      const isBefore = other.order === one.order && other.notBeforeMs === undefined && !other.hasEnded
      if (isBefore) this.faults.push(`${key} is sent before ${other.delivery.key}`)
    }
  }
}

t.test('under random load nothing is lost, doubled, out of order or out of bounds', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const ends = { sent: 0, heldBack: 0, opened: 0, full: 0 }
  for (let round = 0; round < 150; round++) {
    const run = new Run(random)
    const { bench } = run
    const dead = new Set<string>()
    for (let step = 0; step < 400; step++) {
      const draw = random.fraction()
      if (draw < 0.4) run.fresh()
      else if (draw < 0.85 && bench.sending.length > 0) {
        const job = random.pick(bench.sending as [Job<Subject>, ...Job<Subject>[]])
        const other = random.pick([ok, ok, ok, ok, answer(503), answer(404), lost, { kind: 'unsendable', reason: '' }])
        bench.end(dead.has(job.address.host) ? lost : other, job.subject.key)
      } else if (draw < 0.9) {
        const host = random.pick(hosts)
        if (!dead.delete(host)) dead.add(host)
      } else bench.clock.advance(random.pick([1, 50, 800, 5000, 60_000]))
      if (draw > 0.3) bench.clock.tick()
      run.check()
    }
    for (let left = 4000; left > 0 && [...run.known.values()].some(one => !one.hasEnded); left--) {
      while (bench.sending.length > 0) {
        run.check()
        bench.end(ok)
      }
      bench.clock.advance(200)
    }
    const open = [...run.known.values()].filter(one => !one.hasEnded)
    if (run.faults.length > 0 || open.length > 0) {
      t.same(run.faults.slice(0, 5), [])
      t.same(open.slice(0, 5), [])
      return
    }
    ends.sent += bench.sent.length
    ends.heldBack += bench.lanes.counters.heldBack
    ends.opened += bench.lanes.counters.opened
    ends.full += bench.rooms.length
  }
  t.comment(JSON.stringify(ends))
  t.ok(ends.heldBack > 0 && ends.opened > 0 && ends.full > 0, 'all of it has happened')
})
