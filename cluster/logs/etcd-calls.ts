// Requests to etcd: each ends in time and is counted. A member that does not answer is left for another one.
//
// All requests go to one member while it answers. When it cannot be reached, is silent, or has not answered at a
// deadline, the following requests go to the member whose last trouble is longest ago (etcd-health.ts).
//
// A request is written to one member once. One that may be repeated (`isRepeatable`) is written to a second member, once,
// when the first is gone or silent; the first answer counts. Etcd may execute both, and in any order, also long after
// the answer: a stopped member passes on what it finds in its socket. Such a request changes nothing the second time. An
// append compares its epoch, and that its number and all later ones are free, in the transaction that puts the record
// (etcd-requests.ts). A takeover changes something each time, so it is never repeated here: its caller finds out whether
// it happened.
//
// Not here: the content of requests (etcd-requests.ts), connections (etcd-member.ts).

import type { ClusterClock } from '../ports.js'
import { MemberHealth } from './etcd-health.js'
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
  /** Whether etcd may execute it twice. */
  readonly isRepeatable?: boolean
  /** An error which means that another node has done it already. It is not counted as a failure. */
  readonly doneBefore?: RegExp
}

interface UnderWay {
  /** The member that it was last sent to, and when. */
  member: EtcdMember
  sentMs: number
}

export class EtcdCalls {
  readonly stats: Readonly<Record<EtcdRequestKind, EtcdRequestStats>>
  rotations = 0
  /** The latest revision of the store that any answer contained. */
  revision = 0
  private readonly members: readonly EtcdMember[]
  private readonly health: MemberHealth
  private current: number
  /** The member of the latest watch. */
  private watched: number
  private secondTries = 0
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
    this.health = new MemberHealth(this.members.length)
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
    { kind, method, message, records = 0, bytes = 0, isRepeatable = false, doneBefore }: EtcdRequest<M>,
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
    const one: UnderWay = { member: this.at(this.current), sentMs: beganMs }
    const tries: (() => void)[] = []
    let answersDue = 0
    let isSecond = false
    const finish = (
      response: EtcdMethods[M]['response'] | undefined,
      reason: string,
      refusal?: EtcdFailure['refusal'],
    ): void => {
      if (!this.underWay.delete(one)) return
      stopWaiting()
      stopRepeating()
      for (const giveUp of tries) giveUp()
      this.bytes -= bytes
      if (isSecond) this.secondTries--
      stats[kind].milliseconds += clock.monoMs() - beganMs
      if (!response && !doneBefore?.test(reason)) stats[kind].failures++
      onAnswer(response, reason, refusal)
      if (this.underWay.size === 0) for (const onIdle of this.idle.splice(0)) onIdle()
    }
    const send = (member: EtcdMember): void => {
      const onDone: OnEtcdAnswer<EtcdMethods[M]['response']> = (failure, response) => {
        answersDue--
        if (failure?.gone) this.leave(member)
        else this.health.noteAnswer(this.members.indexOf(member), clock.monoMs())
        // The other try may still get an answer.
        if (failure?.gone && (repeat() || answersDue > 0)) return
        if (response) this.learn(response.header.revision)
        finish(response, failure?.reason ?? '', failure?.refusal)
      }
      answersDue++
      one.member = member
      one.sentMs = clock.monoMs()
      tries.push(member.call(method, message, onDone))
    }
    const repeat = (): boolean => {
      if (!isRepeatable || isSecond || this.closed || this.members.length === 1) return false
      if (this.secondTries >= options.secondTriesMax) return false
      isSecond = true
      this.secondTries++
      send(this.at(this.current))
      return true
    }
    const repeatIfSilent = (): void => {
      if (isSecond) return
      const silentMs = this.silentMs(one, clock.monoMs())
      if (silentMs < options.secondTryMs) {
        stopRepeating = clock.after(options.secondTryMs - silentMs, repeatIfSilent)
        return
      }
      this.leave(one.member)
      repeat()
    }
    const stopWaiting = clock.after(options.deadlineMs, () => {
      this.leave(one.member)
      finish(undefined, `${one.member.name}: no answer in ${options.deadlineMs} ms`)
    })
    let stopRepeating = isRepeatable ? clock.after(options.secondTryMs, repeatIfSilent) : () => {}
    this.underWay.add(one)
    this.bytes += bytes
    send(one.member)
  }

  /** Watches at the member whose last trouble is longest ago. */
  watch(request: Parameters<EtcdMember['watch']>[0], listener: WatchListener): EtcdWatch {
    this.watched = this.health.best(this.watched)
    return this.at(this.watched).watch(request, listener)
  }

  /** The latest watch has ended, or was silent: the next one begins at another member. */
  leaveWatched(): void {
    this.health.noteTrouble(this.watched, this.clock.monoMs())
  }

  /** The version of each member that answers in time. */
  async versions(): Promise<ReadonlyMap<string, string>> {
    const { clock, options } = this
    const found = new Map<string, string>()
    const ask = (member: EtcdMember): Promise<void> =>
      new Promise(resolve => {
        const stopWaiting = clock.after(options.deadlineMs, resolve)
        member.version(version => {
          if (version !== undefined) found.set(member.name, version)
          stopWaiting()
          resolve()
        })
      })
    await Promise.all(this.members.map(ask))
    return found
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
      if (this.silentMs(one, nowMs) > this.options.patienceMs) this.leave(member)
      return
    }
  }

  /** How long a member has answered nothing while a request waits for it. */
  private silentMs({ member, sentMs }: UnderWay, nowMs: number): number {
    return nowMs - Math.max(sentMs, this.health.answeredMs(this.members.indexOf(member)))
  }

  private leave(member: EtcdMember): void {
    const index = this.members.indexOf(member)
    this.health.noteTrouble(index, this.clock.monoMs())
    if (this.members.length === 1 || index !== this.current) return
    this.current = this.health.best((index + 1) % this.members.length)
    this.rotations++
  }
}
