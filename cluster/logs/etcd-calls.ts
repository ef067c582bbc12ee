// Requests to etcd: each ends in time and is counted. A member that does not answer is left for another one.
//
// All requests go to one member while it answers. When it cannot be reached, is silent, or has not answered at a
// deadline, the following requests go to the member whose last trouble is longest ago (etcd-health.ts).
//
// A request is written to one member once. One that may be repeated (`isRepeatable`) is written to a second member,
// once, when the first is gone or silent; the first answer counts. Etcd may execute both, and in any order, also long
// after the answer: a stopped member passes on what it finds in its socket. Such a request changes nothing the second
// time. An append compares its epoch, and that its number and all later ones are free, in the transaction that puts the
// record (etcd-requests.ts). A takeover changes something each time, so it is never repeated here: its caller finds out
// whether it happened.
//
// Not here: the tries of one request (etcd-tries.ts), the content of requests (etcd-requests.ts), connections
// (etcd-member.ts).

import type { ClusterClock } from '../ports.js'
import { MemberHealth } from './etcd-health.js'
import {
  type EtcdFailure,
  EtcdMember,
  type EtcdMethod,
  type EtcdMethods,
  type EtcdWatch,
  type WatchListener,
} from './etcd-member.js'
import type { EtcdAddress, EtcdOptions, EtcdTls } from './etcd-options.js'
import { Tries } from './etcd-tries.js'

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

/** A request in flight, as the others see it. */
type UnderWay = Pick<Tries<never>, 'member' | 'silentMs'>

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
  /** Requests in flight that were sent to a second member. */
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
    this.leaveIfSilent()
    const finish = (
      response: EtcdMethods[M]['response'] | undefined,
      reason: string,
      refusal?: EtcdFailure['refusal'],
    ): void => {
      if (!this.underWay.delete(tries)) return
      stopWaiting()
      tries.end()
      this.bytes -= bytes
      if (tries.hasSecond) this.secondTries--
      stats[kind].milliseconds += clock.monoMs() - beganMs
      if (!response && !doneBefore?.test(reason)) stats[kind].failures++
      onAnswer(response, reason, refusal)
      if (this.underWay.size === 0) for (const onIdle of this.idle.splice(0)) onIdle()
    }
    const mayRepeat = isRepeatable && this.members.length > 1
    const tries = new Tries<EtcdMethods[M]['response']>(
      {
        clock,
        secondTryMs: mayRepeat ? options.secondTryMs : undefined,
        answeredMs: member => this.health.answeredMs(this.members.indexOf(member)),
        secondMember: () => this.secondMember(),
        send: (member, onDone) =>
          member.call(method, message, (failure, response) => {
            if (!failure?.gone) this.health.noteAnswer(this.members.indexOf(member), clock.monoMs())
            onDone(failure, response)
          }),
        onTrouble: member => this.leave(member),
        onAnswer: (failure, response) => {
          if (response) this.learn(response.header.revision)
          finish(response, failure?.reason ?? '', failure?.refusal)
        },
      },
      this.at(this.current),
    )
    const stopWaiting = clock.after(options.deadlineMs, () => {
      this.leave(tries.member)
      finish(undefined, `${tries.member.name}: no answer in ${options.deadlineMs} ms`)
    })
    this.underWay.add(tries)
    this.bytes += bytes
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

  /** The member for the second try of a request. The caller sends it there. */
  private secondMember(): EtcdMember | undefined {
    if (this.closed || this.secondTries >= this.options.secondTriesMax) return undefined
    this.secondTries++
    return this.at(this.current)
  }

  private leaveIfSilent(): void {
    const member = this.at(this.current)
    for (const one of this.underWay) {
      if (one.member !== member) continue
      if (one.silentMs() > this.options.patienceMs) this.leave(member)
      return
    }
  }

  private leave(member: EtcdMember): void {
    const index = this.members.indexOf(member)
    this.health.noteTrouble(index, this.clock.monoMs())
    if (this.members.length === 1 || index !== this.current) return
    this.current = this.health.best((index + 1) % this.members.length)
    this.rotations++
  }
}
