// Lanes between a fake clock and a sender that does nothing until the test says how a message ended.

import { type Address, addressOf } from '../../src/deliver/address.js'
import type { Delivery, SendResult } from '../../src/deliver/delivery.js'
import type { Job, Lane } from '../../src/deliver/lane.js'
import { Lanes, type LanesOptions } from '../../src/deliver/lanes.js'
import { type Limits, limitsByDefault } from '../../src/deliver/limits.js'
import type { DeliveryOutcome } from '../../src/ports.js'
import { FakeClock } from '../support/fake-clock.js'
import { deliveryOf, post } from './deliveries.js'

export const ok: SendResult = { kind: 'answered', code: 204 }
export const lost: SendResult = { kind: 'failed', reason: 'lost' }
export const answer = (code: number): SendResult => ({ kind: 'answered', code })

type Setting = Partial<Omit<LanesOptions, 'limits'>> & { readonly limits?: Partial<Limits> }

export class LanesBench {
  readonly clock = new FakeClock()
  readonly lanes: Lanes
  /** What is being sent, in the order of sending. */
  readonly sending: Job[] = []
  /** Keys of all that was sent. */
  readonly sent: string[] = []
  readonly outcomes: (readonly [key: string, outcome: DeliveryOutcome])[] = []
  readonly rooms: (string | undefined)[] = []
  readonly changes: string[] = []
  onRoom = (_lane: string | undefined): void => {}
  onOutcome = (_delivery: Delivery, _outcome: DeliveryOutcome): void => {}

  constructor({ limits, ...options }: Setting = {}) {
    const all = { ...limitsByDefault, ...limits }
    this.lanes = new Lanes(
      this.clock,
      { mode: 'transient', retries: true, fraction: () => 0.5, limits: all, ...options },
      {
        send: job => {
          this.sending.push(job)
          this.sent.push(job.delivery.key)
        },
        settled: (job, outcome) => {
          this.outcomes.push([job.delivery.key, outcome])
          this.onOutcome(job.delivery, outcome)
        },
        room: lane => {
          this.rooms.push(lane)
          this.onRoom(lane)
        },
        wake: (lane, atMs) => this.wake(lane, atMs),
        later: () => this.clock.endOfTick(() => this.lanes.onLater()),
        changed: lane => this.changes.push(lane.breaker.state),
      },
    )
  }

  private wake(lane: Lane, atMs: number): void {
    if (lane.wakeAtMs <= atMs) return
    lane.cancelWake?.()
    lane.wakeAtMs = atMs
    lane.cancelWake = this.clock.after(atMs - this.clock.monoMs(), () => {
      lane.wakeAtMs = Number.POSITIVE_INFINITY
      this.lanes.onWake(lane)
    })
  }

  /** Offers a delivery to `http://{host}`. */
  offer(host: string, more: Partial<Delivery> = {}, bytes = 100): 'taken' | 'full' {
    const delivery = deliveryOf(post(`http://${host}`), more)
    return this.lanes.offer(delivery, addressOf(delivery.message) as Address, bytes)
  }

  /** Ends the oldest message under way, or the oldest of that key. */
  end(result: SendResult, key?: string): void {
    const at = key === undefined ? 0 : this.sending.findIndex(job => job.delivery.key === key)
    const [job] = this.sending.splice(at, 1)
    if (!job) throw new Error(`nothing is being sent${key === undefined ? '' : ` with key ${key}`}`)
    this.lanes.onEnd(job, result)
  }

  endAll(result: SendResult): void {
    for (let left = this.sending.length; left > 0; left--) this.end(result)
  }

  /** Keys of what is being sent. */
  get underWay(): string[] {
    return this.sending.map(job => job.delivery.key)
  }

  /** Makes a receiver one that answers. */
  prove(host: string): void {
    this.offer(host, { key: `proof of ${host}` })
    this.end(ok, `proof of ${host}`)
  }

  /** Kinds of the outcomes of a key. */
  kinds(key: string): string[] {
    return this.outcomes.filter(([one]) => one === key).map(([, { kind }]) => kind)
  }
}
