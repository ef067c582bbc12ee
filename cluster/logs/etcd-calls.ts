// Requests to etcd: each ends in time and is counted. A member that does not answer is left for the next.
//
// A request is written to one member once, and never again: the caller finds out whether it happened. All requests go
// to one member while it answers. When it cannot be reached, is silent, or has not answered at a deadline, the
// following requests go to the next one.
//
// Not here: the content of requests (etcd-requests.ts), connections (etcd-member.ts).

import type { ClusterClock } from '../ports.js'
import {
  type EtcdFailure,
  EtcdMember,
  type EtcdMethod,
  type EtcdMethods,
  type EtcdWatch,
  type OnEtcdAnswer,
  type WatchListener,
} from './etcd-member.js'
import type { EtcdAddress, EtcdOptions, EtcdTls } from './etcd-options.js'

const requestKinds = [
  'takeOver',
  'retake',
  'append',
  'heartbeat',
  'read',
  'takeovers',
  'lacking',
  'trim',
  'createOnce',
  'named',
  'compact',
] as const

export type EtcdRequestKind = (typeof requestKinds)[number]

/** Counters that only grow. */
export interface EtcdRequestStats {
  requests: number
  /** Those of them that ended with an error, or without an answer in time. */
  failures: number
  /** Records in them, in either direction, and their bytes. */
  records: number
  bytes: number
  /** From the request to its end. */
  milliseconds: number
}

export interface EtcdRequest<M extends EtcdMethod> {
  readonly kind: EtcdRequestKind
  readonly method: M
  readonly message: EtcdMethods[M]['request']
  readonly records?: number
  readonly bytes?: number
  /** An error which means that another node has done it already. It is not counted as a failure. */
  readonly doneBefore?: RegExp
}

interface UnderWay {
  readonly member: EtcdMember
  readonly beganMs: number
  end(reason: string): void
}

export class EtcdCalls {
  readonly stats: Readonly<Record<EtcdRequestKind, EtcdRequestStats>>
  rotations = 0
  /** The latest revision of the store that any answer contained. */
  revision = 0
  private readonly members: readonly EtcdMember[]
  private current: number
  private watched: number
  /** When the current member last answered. */
  private answeredMs: number
  /** In the order in which they began. */
  private readonly underWay = new Set<UnderWay>()
  private bytes = 0
  private closed = false
  private readonly idle: (() => void)[] = []

  constructor(
    address: EtcdAddress,
    private readonly clock: ClusterClock,
    private readonly options: EtcdOptions,
  ) {
    this.members = address.members.map(name => new EtcdMember(name, address, clock, options))
    this.current = Math.floor(options.chance() * this.members.length)
    this.watched = this.current
    this.answeredMs = clock.monoMs()
    const zero = (): EtcdRequestStats => ({ requests: 0, failures: 0, records: 0, bytes: 0, milliseconds: 0 })
    this.stats = Object.fromEntries(requestKinds.map(kind => [kind, zero()])) as Record<
      EtcdRequestKind,
      EtcdRequestStats
    >
  }

  get member(): string {
    return this.at(this.current).name
  }

  /**
   * Sends one request. `onAnswer` is called exactly once, at the deadline at the latest, with a response or with a
   * reason.
   */
  call<M extends EtcdMethod>(
    { kind, method, message, records = 0, bytes = 0, doneBefore }: EtcdRequest<M>,
    onAnswer: (
      response: EtcdMethods[M]['response'] | undefined,
      reason: string,
      refusal: EtcdFailure['refusal'],
    ) => void,
  ): void {
    const { clock, options, stats } = this
    stats[kind].requests++
    stats[kind].records += records
    stats[kind].bytes += bytes
    const full = this.underWay.size >= options.requestsMax || this.bytes + bytes > options.requestBytesMax
    if (this.closed || full) {
      stats[kind].failures++
      return clock.endOfTick(() =>
        onAnswer(undefined, full ? 'too many requests are under way' : 'the log is closed', undefined),
      )
    }
    const beganMs = clock.monoMs()
    this.leaveIfSilent(beganMs)
    const member = this.at(this.current)
    const one: UnderWay = { member, beganMs, end: reason => finish(undefined, reason) }
    const finish = (
      response: EtcdMethods[M]['response'] | undefined,
      reason: string,
      refusal?: EtcdFailure['refusal'],
    ): void => {
      if (!this.underWay.delete(one)) return
      stopWaiting()
      giveUp()
      this.bytes -= bytes
      stats[kind].milliseconds += clock.monoMs() - beganMs
      if (!response && !doneBefore?.test(reason)) stats[kind].failures++
      onAnswer(response, reason, refusal)
      if (this.underWay.size === 0) for (const onIdle of this.idle.splice(0)) onIdle()
    }
    const onDone: OnEtcdAnswer<EtcdMethods[M]['response']> = (failure, response) => {
      if (failure?.gone) this.leave(member)
      else if (member === this.at(this.current)) this.answeredMs = clock.monoMs()
      if (response) this.learn(response.header.revision)
      finish(response, failure?.reason ?? '', failure?.refusal)
    }
    const stopWaiting = clock.after(options.deadlineMs, () => {
      this.leave(member)
      finish(undefined, `${member.name}: no answer in ${options.deadlineMs} ms`)
    })
    this.underWay.add(one)
    this.bytes += bytes
    const giveUp = member.call(method, message, onDone)
  }

  /** Watches at one member, each time at the next. */
  watch(request: Parameters<EtcdMember['watch']>[0], listener: WatchListener): EtcdWatch {
    return this.at(this.watched++ % this.members.length).watch(request, listener)
  }

  renew(tls: EtcdTls): void {
    for (const member of this.members) member.renew(tls)
  }

  learn(revision: string): void {
    this.revision = Math.max(this.revision, Number(revision))
  }

  /** Begins no more, resolves when all requests in flight have ended, and then closes the connections. */
  async close(): Promise<void> {
    this.closed = true
    if (this.underWay.size > 0) await new Promise<void>(resolve => this.idle.push(resolve))
    for (const member of this.members) member.close()
  }

  private at(index: number): EtcdMember {
    const member = this.members[index]
    if (!member) throw new RangeError(`there is no member ${index}`)
    return member
  }

  private leaveIfSilent(nowMs: number): void {
    const member = this.at(this.current)
    for (const one of this.underWay) {
      if (one.member !== member) continue
      if (nowMs - Math.max(one.beganMs, this.answeredMs) > this.options.patienceMs) this.leave(member)
      return
    }
  }

  private leave(member: EtcdMember): void {
    if (this.members.length === 1 || member !== this.at(this.current)) return
    this.current = (this.current + 1) % this.members.length
    this.answeredMs = this.clock.monoMs()
    this.rotations++
  }
}
