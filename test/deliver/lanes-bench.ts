// Lanes between a fake clock and a sender; a message ends when the test calls `end`.

import { httpAddress } from '../../src/deliver/address.js'
import { type Job, type Lane, untried } from '../../src/deliver/lane.js'
import { Lanes, type LanesOptions } from '../../src/deliver/lanes.js'
import { type Limits, limitsByDefault } from '../../src/deliver/limits.js'
import type { SendResult } from '../../src/deliver/sender.js'
import type { DeliveryOutcome } from '../../src/ports.js'
import { FakeClock } from '../support/fake-clock.js'
import { post } from './messages.js'

export const ok: SendResult = { kind: 'answered', code: 204 }
export const lost: SendResult = { kind: 'failed', reason: 'lost' }
export const answer = (code: number): SendResult => ({ kind: 'answered', code })

type Setting = Partial<Omit<LanesOptions, 'limits'>> & { readonly limits?: Partial<Limits> }

/** The subject of a job. */
export interface Subject {
  readonly key: string
}

export interface Offer {
  readonly key?: string
  readonly subscription?: string
  readonly entity?: string
  readonly tenant?: string
  readonly attempt?: number
  readonly isReplay?: boolean
  readonly dueMs?: number
  /** Total time of the job; such a job has no order. */
  readonly timeMs?: number
}

export class LanesBench {
  readonly clock = new FakeClock()
  readonly lanes: Lanes<Subject>
  /** Jobs in flight, in the order of sending. */
  readonly sending: Job<Subject>[] = []
  /** Keys of all sent jobs. */
  readonly sent: string[] = []
  readonly outcomes: (readonly [key: string, outcome: DeliveryOutcome])[] = []
  readonly rooms: (string | undefined)[] = []
  readonly changes: string[] = []
  /** Receivers that have begun to answer, in that order. */
  readonly answering: string[] = []
  /** The job that was offered last. */
  last: Job<Subject> | undefined
  onRoom = (_lane: string | undefined): void => {}
  onOutcome = (_key: string, _outcome: DeliveryOutcome): void => {}
  private count = 0

  constructor({ limits, ...options }: Setting = {}) {
    const all = { ...limitsByDefault, ...limits }
    this.lanes = new Lanes(
      this.clock,
      { mode: 'transient', retries: true, fraction: () => 0.5, limits: all, ...options },
      {
        send: job => {
          this.sending.push(job)
          this.sent.push(job.subject.key)
        },
        settled: ({ subject: { key } }, outcome) => {
          this.outcomes.push([key, outcome])
          this.onOutcome(key, outcome)
        },
        room: lane => {
          this.rooms.push(lane)
          this.onRoom(lane)
        },
        wake: (lane, atMs) => this.wake(lane, atMs),
        later: () => this.clock.endOfTick(() => this.lanes.onLater()),
        changed: lane => this.changes.push(lane.breaker.state),
        answers: lane => this.answering.push(lane.name),
      },
    )
  }

  private wake(lane: Lane<Subject>, atMs: number): void {
    if (lane.wakeAtMs <= atMs) return
    lane.cancelWake?.()
    lane.wakeAtMs = atMs
    lane.cancelWake = this.clock.after(atMs - this.clock.monoMs(), () => {
      lane.wakeAtMs = Number.POSITIVE_INFINITY
      this.lanes.onWake(lane)
    })
  }

  /** Offers a message to `http://{host}`: of subscription `s`, and of an entity of its own unless one is given. */
  offer(host: string, more: Offer = {}, bytes = 100): 'taken' | 'full' {
    const key = more.key ?? `${++this.count}`
    const { subscription = 's', entity = `e${key}`, tenant = '', attempt = 0, dueMs, timeMs, isReplay = false } = more
    const message = post(`http://${host}`)
    const address = httpAddress(message)!
    const lane = this.lanes.laneFor(tenant, address)
    if (!lane) return 'full'
    const sinceMs = this.clock.monoMs()
    this.last = {
      subject: { key },
      message,
      address,
      lane,
      bytes,
      bodyBytes: 0,
      order: timeMs === undefined ? `${subscription} ${entity}` : undefined,
      context: {},
      endByMs: sinceMs + (timeMs ?? Number.POSITIVE_INFINITY),
      tries: attempt,
      sinceMs,
      ...untried,
      isReplay,
    }
    return this.lanes.offer(this.last, dueMs)
  }

  /** Ends the oldest message in flight, or the oldest of that key. */
  end(result: SendResult, key?: string): void {
    const at = key === undefined ? 0 : this.sending.findIndex(job => job.subject.key === key)
    const [job] = this.sending.splice(at, 1)
    if (!job) throw new Error(`nothing is being sent${key === undefined ? '' : ` with key ${key}`}`)
    this.lanes.onEnd(job, result)
  }

  endAll(result: SendResult): void {
    for (let left = this.sending.length; left > 0; left--) this.end(result)
  }

  /** Keys of the jobs in flight. */
  get underWay(): string[] {
    return this.sending.map(job => job.subject.key)
  }

  /** Sends a message to a receiver and answers it, so that the receiver counts as one that answers. */
  prove(host: string): void {
    this.offer(host, { key: `proof of ${host}` })
    this.end(ok, `proof of ${host}`)
  }

  /** Kinds of the outcomes of a key. */
  kinds(key: string): string[] {
    return this.outcomes.filter(([one]) => one === key).map(([, { kind }]) => kind)
  }
}
