// The shell around membership: carries messages, keeps its timer, resolves seeds, counts bytes, calls listeners.
//
// The shell gives the machine one event after the other, and executes its effects in order before the next. After it is
// closed, nothing happens any more.
//
// Not here: every decision (membership.ts); the transport and the addresses behind the name of a seed, which are passed
// in.

import assert from 'node:assert/strict'
import { nameLengthMax } from '../options.js'
import type { ClusterClock, Transport } from '../ports.js'
import type { Effect } from './conversation.js'
import { decodeMessage, encodeMessage } from './gossip-messages.js'
import { completeGossipOptions, type GossipOptions, gossipVersion, gossipVersionLowest } from './gossip-options.js'
import type { Member } from './member.js'
import { Membership, type MembershipStats } from './membership.js'

export interface GossipSetup {
  /** `life` must never have been used before. */
  readonly self: Pick<Member, 'name' | 'address' | 'domain' | 'life' | 'isJoined'>
  readonly clusterId: string
  /** Each an address or a name of several; this node's own may be among them. None: this node is the first. */
  readonly seeds: readonly string[]
  readonly options: Partial<GossipOptions>
}

/**
 * A problem for the operator. `superseded`: another node has this one's name, and this one takes no part any more.
 * `unreadable`: bytes that are no message, or a message of a version that this node cannot read, were ignored.
 */
export interface GossipTrouble {
  readonly kind: 'refused' | 'unresolved' | 'superseded' | 'unreadable'
  readonly reason: string
}

export interface GossipStats extends MembershipStats {
  /** Both questions and answers. */
  readonly messagesSent: number
  readonly messagesReceived: number
  readonly bytesSent: number
  readonly bytesReceived: number
  /** Ignored: no message, or of a version that this node cannot read. */
  readonly messagesUnreadable: number
}

/** Different reports of unreadable messages that are remembered. Beyond that, all may be reported again. */
const unreadableMax = 100

/**
 * One node's part in gossip: what it knows of the others, and what it sends them. `resolve` returns the addresses of a
 * seed, or fails.
 */
export class Gossip {
  private readonly machine: Membership
  private readonly changeListeners: ((member: Member) => void)[] = []
  private readonly troubleListeners: ((trouble: GossipTrouble) => void)[] = []
  private readonly callers = new Map<number, (reply: Buffer) => void>()
  private lastCall = 0
  private lastTrouble = ''
  /** Reported already. Several nodes of other versions send several messages a second each. */
  private readonly unreadable = new Set<string>()
  private readonly counts = {
    messagesSent: 0,
    messagesReceived: 0,
    bytesSent: 0,
    bytesReceived: 0,
    messagesUnreadable: 0,
  }
  private stopTimer = (): void => {}
  private timerDueMs = Number.POSITIVE_INFINITY
  private leaving: Promise<void> | undefined
  private onLeft = (): void => {}
  private isClosed = false

  constructor(
    private readonly setup: GossipSetup,
    private readonly wire: Pick<Transport, 'call'>,
    private readonly clock: ClusterClock,
    chance: () => number,
    private readonly resolve: (seed: string) => Promise<readonly string[]>,
  ) {
    const { self, clusterId, seeds } = setup
    for (const text of [self.name, self.address, self.life, clusterId, ...seeds, `${self.domain}.`])
      assert(text !== '' && Buffer.byteLength(text) <= nameLengthMax, `gossip cannot carry '${text}'`)
    const options = completeGossipOptions(setup.options)
    this.machine = new Membership({ self, clusterId, hasSeeds: seeds.length > 0, options, chance }, clock.monoMs())
    this.arm()
  }

  /** This node first, then all that are known. Members that are gone stay in the list for a while. */
  members(): readonly Member[] {
    return this.machine.members
  }

  /** Whether the machine of a member that is suspect or dead has refused connections: nobody listens there. */
  isRefusing(name: string): boolean {
    return this.machine.isRefusing(name)
  }

  /** Calls back with each member that has changed, this node included; also when `suspect` becomes `alive`. */
  onChange(listener: (member: Member) => void): void {
    this.changeListeners.push(listener)
  }

  /** Calls back with problems for the operator, once for each reason until another one comes. */
  onTrouble(listener: (trouble: GossipTrouble) => void): void {
    this.troubleListeners.push(listener)
  }

  setJoined(isJoined: boolean): void {
    this.step(nowMs => this.machine.setJoined(isJoined, nowMs))
  }

  /** Reports to others that this node leaves. Resolves when one of them has acknowledged it, or none can be reached. */
  leave(): Promise<void> {
    this.leaving ??= new Promise(resolve => {
      this.onLeft = resolve
      if (this.isClosed) resolve()
      this.step(nowMs => this.machine.leave(nowMs))
    })
    return this.leaving
  }

  /** Ends all questions, answers and listener calls. */
  close(): void {
    this.isClosed = true
    this.stopTimer()
    this.callers.clear()
    this.onLeft()
  }

  /** Handles a question of another node. `onReply` is called once, now or later, and not at all once this is closed. */
  onCall(bytes: Buffer, onReply: (reply: Buffer) => void): void {
    if (this.isClosed) return
    this.received(bytes)
    const message = decodeMessage(bytes)
    if (!message) {
      this.noteUnreadable('a question in gossip was ignored: its bytes are no message')
      return onReply(this.refusal())
    }
    const number = ++this.lastCall
    this.callers.set(number, onReply)
    this.step(nowMs => this.machine.onCall(number, message, nowMs))
  }

  stats(): GossipStats {
    return { ...this.machine.stats, ...this.counts }
  }

  private step(event: (nowMs: number) => readonly Effect[]): void {
    if (this.isClosed) return
    for (const effect of event(this.clock.monoMs())) this.carryOut(effect)
    this.arm()
  }

  private carryOut(effect: Effect): void {
    if (effect.kind === 'send') this.send(effect)
    else if (effect.kind === 'reply') {
      const onReply = this.callers.get(effect.number)
      this.callers.delete(effect.number)
      onReply?.(this.sent(encodeMessage(effect.message)))
    } else if (effect.kind === 'changed') for (const listener of this.changeListeners) listener(effect.member)
    else if (effect.kind === 'resolve') void this.resolveSeeds()
    else if (effect.kind === 'left') this.onLeft()
    else if (effect.kind === 'unreadable') this.noteUnreadable(effect.reason)
    else this.reportTrouble(effect)
  }

  private send({ number, to, message, deadlineMs }: Extract<Effect, { kind: 'send' }>): void {
    this.wire.call(to, this.sent(encodeMessage(message)), deadlineMs, (bytes, reason, fault) => {
      if (bytes && !this.isClosed) this.received(bytes)
      const reply = bytes && decodeMessage(bytes)
      if (fault === 'unreadable' || (bytes && !reply))
        this.noteUnreadable(`the answer of ${to} in gossip was ignored: its bytes are no message`)
      const why = bytes ? 'bytes that are no message' : reason
      this.step(nowMs => this.machine.onReply(number, reply, nowMs, why, fault === 'refused'))
    })
  }

  private async resolveSeeds(): Promise<void> {
    const answers = await Promise.allSettled(this.setup.seeds.map(seed => this.resolve(seed)))
    for (const [at, answer] of answers.entries()) {
      if (answer.status === 'fulfilled') continue
      this.reportTrouble({ kind: 'unresolved', reason: `${this.setup.seeds[at]} has no address: ${answer.reason}` })
    }
    const addresses = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []))
    this.step(nowMs => this.machine.onSeeds(addresses, nowMs))
  }

  /** Counts a message of another node that was ignored, since its bytes cannot be read. */
  noteUnreadable(reason: string): void {
    this.counts.messagesUnreadable++
    if (this.isClosed || this.unreadable.has(reason)) return
    if (this.unreadable.size >= unreadableMax) this.unreadable.clear()
    this.unreadable.add(reason)
    for (const listener of this.troubleListeners) listener({ kind: 'unreadable', reason })
  }

  private reportTrouble(trouble: GossipTrouble): void {
    if (this.isClosed || trouble.reason === this.lastTrouble) return
    this.lastTrouble = trouble.reason
    for (const listener of this.troubleListeners) listener(trouble)
  }

  /** A timer that comes too early does no harm, so it is only set again when it would come too late. */
  private arm(): void {
    const dueMs = this.machine.nextWakeMs
    if (this.isClosed || dueMs >= this.timerDueMs) return
    this.stopTimer()
    this.timerDueMs = dueMs
    this.stopTimer = this.clock.after(Math.max(0, dueMs - this.clock.monoMs()), () => {
      this.timerDueMs = Number.POSITIVE_INFINITY
      this.step(nowMs => this.machine.tick(nowMs))
    })
  }

  private refusal(): Buffer {
    const { name, life } = this.setup.self
    const from = { name, life, incarnation: 0 }
    const reason = `bytes that are no message of version ${gossipVersion} of gossip`
    const versions = { version: gossipVersion, lowestVersion: gossipVersionLowest }
    return this.sent(encodeMessage({ ...versions, cluster: this.setup.clusterId, from, kind: 'refusal', reason }))
  }

  private sent(bytes: Buffer): Buffer {
    this.counts.messagesSent++
    this.counts.bytesSent += bytes.length
    return bytes
  }

  private received(bytes: Buffer): void {
    this.counts.messagesReceived++
    this.counts.bytesReceived += bytes.length
  }
}
