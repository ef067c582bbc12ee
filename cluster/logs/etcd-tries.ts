// The tries of one request: at one member, and at a second one when the first is gone or silent. The first answer
// counts.
//
// Not here: which requests may be tried twice, and at which member (etcd-calls.ts).

import type { ClusterClock } from '../ports.js'
import type { EtcdMember, OnEtcdAnswer } from './etcd-member.js'

export interface TriesParts<Response> {
  readonly clock: Pick<ClusterClock, 'monoMs' | 'after'>
  /** After so long without an answer a member is silent. undefined: there is no second try. */
  readonly secondTryMs: number | undefined
  /** When a member last answered any request. */
  readonly answeredMs: (member: EtcdMember) => number
  /** The member for a second try; undefined: there is none, or too many requests have one. */
  readonly secondMember: () => EtcdMember | undefined
  /** Sends the request to a member; the returned function abandons it. */
  readonly send: (member: EtcdMember, onDone: OnEtcdAnswer<Response>) => () => void
  /** A member is gone or silent. */
  readonly onTrouble: (member: EtcdMember) => void
  readonly onAnswer: OnEtcdAnswer<Response>
}

export class Tries<Response> {
  /** The member that it was last sent to. */
  member: EtcdMember
  private sentMs = 0
  private isSecond = false
  private answersDue = 0
  private readonly abandons: (() => void)[] = []
  private stopWaiting = (): void => {}

  /** Sends the request. */
  constructor(
    private readonly parts: TriesParts<Response>,
    first: EtcdMember,
  ) {
    this.member = first
    this.send(first)
    if (parts.secondTryMs !== undefined) this.waitFor(parts.secondTryMs)
  }

  /** Whether it was sent to a second member. */
  get hasSecond(): boolean {
    return this.isSecond
  }

  /** How long its member has answered nothing since it was sent. */
  silentMs(): number {
    return this.parts.clock.monoMs() - Math.max(this.sentMs, this.parts.answeredMs(this.member))
  }

  /** Abandons all tries: no answer counts any more. */
  end(): void {
    this.stopWaiting()
    for (const abandon of this.abandons) abandon()
  }

  private send(member: EtcdMember): void {
    this.member = member
    this.sentMs = this.parts.clock.monoMs()
    this.answersDue++
    const abandon = this.parts.send(member, (failure, response) => {
      this.answersDue--
      if (failure?.gone) this.parts.onTrouble(member)
      // The other try may still get an answer.
      if (failure?.gone && (this.trySecond() || this.answersDue > 0)) return
      this.parts.onAnswer(failure, response)
    })
    this.abandons.push(abandon)
  }

  private waitFor(ms: number): void {
    this.stopWaiting = this.parts.clock.after(ms, () => {
      const { secondTryMs = 0, onTrouble } = this.parts
      const silentMs = this.silentMs()
      if (this.isSecond) return
      if (silentMs < secondTryMs) return this.waitFor(secondTryMs - silentMs)
      onTrouble(this.member)
      this.trySecond()
    })
  }

  private trySecond(): boolean {
    if (this.isSecond || this.parts.secondTryMs === undefined) return false
    const second = this.parts.secondMember()
    if (!second) return false
    this.isSecond = true
    this.send(second)
    return true
  }
}
