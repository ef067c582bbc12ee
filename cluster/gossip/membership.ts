// The members of the cluster, and which of them are alive. The protocol is SWIM (Das, Gupta, Motivala 2002) with three
// additions of Lifeguard (Dadgar, Phillips, Currey 2018): local health, suspicion and buddies. This file only decides.
// It owns no socket and no timer: each event brings the time, and each decision returns effects.
//
// A node suspects a member that does not answer pings (probing.ts). The suspect learns of it in the next ping, and
// refutes it with a higher incarnation; otherwise its time passes and it is dead. News travels in pings and their
// answers, and in some additional pings while it is new; now and then two nodes exchange all they know. A node whose
// timers come late, or whose helpers are silent, assumes that it is slow itself and waits longer. After a pause of its
// own it suspects no member because of messages that it missed.
//
// Not here: beliefs about others (roster.ts), about this node (own-name.ts), bytes (gossip-messages.ts), transport and
// clock (gossip.ts).

import { Conversation, type Effect, type GossipReply, type OnGossipAnswer } from './conversation.js'
import type { GossipMessage } from './gossip-messages.js'
import { exchangeEveryMs, farewellsMax, type GossipOptions, seedAddressesMax } from './gossip-options.js'
import { believe, isHere, type Member, type Rumour } from './member.js'
import { OwnName } from './own-name.js'
import { LocalHealth, Probing, pickSome } from './probing.js'
import { Roster } from './roster.js'

export interface MembershipSetup {
  readonly self: Pick<Member, 'name' | 'address' | 'domain' | 'life' | 'isJoined'>
  readonly clusterId: string
  /** Whether there are other nodes to ask before it is a member. */
  readonly hasSeeds: boolean
  readonly options: GossipOptions
  /** From 0 up to but without 1. */
  readonly chance: () => number
}

export interface MembershipStats {
  /** 0: healthy; each step makes this node more patient. */
  readonly health: number
  readonly suspicions: number
  /** How often this node had to refute a report that it is not alive. */
  readonly refutations: number
}

export class Membership {
  private readonly options: GossipOptions
  private readonly chance: () => number
  private readonly roster: Roster
  private readonly health: LocalHealth
  private readonly conversation: Conversation
  private readonly ownName: OwnName
  private readonly probing: Probing
  private readonly seeking: Seeking
  /** The earliest time for the next additional ping with news. */
  private spreadDueMs: number
  private exchangeDueMs: number
  private farewell = { round: 0, waiting: 0, isAnswered: false }
  private wakeDueMs: number

  constructor({ self, clusterId, hasSeeds, options, chance }: MembershipSetup, nowMs: number) {
    const { name, address, domain, life, isJoined } = self
    this.options = options
    this.chance = chance
    this.roster = new Roster({ name, address, domain, incarnation: 1, life, status: 'alive', isJoined }, options)
    this.health = new LocalHealth(options)
    this.conversation = new Conversation(clusterId, () => this.ownName.sender)
    const shared = { roster: this.roster, conversation: this.conversation, health: this.health, options }
    this.ownName = new OwnName({ ...shared, onAsserted: atMs => this.exchange(atMs) }, !hasSeeds)
    this.probing = new Probing({ ...shared, chance, isActive: () => this.isActive }, nowMs)
    this.spreadDueMs = nowMs
    this.exchangeDueMs = nowMs + (0.5 + chance()) * options.exchangeMs
    this.seeking = new Seeking(options, chance, nowMs)
    this.wakeDueMs = nowMs
  }

  get members(): readonly Member[] {
    return this.roster.members
  }

  /** Whether the machine of a member that is suspect or dead has refused connections: nobody listens there. */
  isRefusing(name: string): boolean {
    return this.roster.isRefusing(name)
  }

  get stats(): MembershipStats {
    const { suspicions } = this.probing
    const { refutations } = this.ownName
    return { health: this.health.steps, suspicions, refutations }
  }

  get nextWakeMs(): number {
    return this.wakeDueMs
  }

  tick(nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    if (this.isActive) {
      this.roster.expire(nowMs)
      if (nowMs >= this.probing.dueMs) this.probing.next(nowMs, this.ownName.isMember)
      if (nowMs >= this.spreadDueMs && this.roster.hasRumours) this.spread(nowMs)
      if (nowMs >= this.exchangeDueMs) this.exchange(nowMs)
      if (nowMs >= this.seeking.dueMs) this.seek()
    }
    return this.done(nowMs)
  }

  /** Another node asks. One of the effects, or of those of a later event, is the reply with this number. */
  onCall(number: number, message: GossipMessage, nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    const objection = this.conversation.objection(message)
    if (objection !== undefined || message.kind === 'refusal')
      this.conversation.refuse(number, objection ?? 'this is no question')
    else this.answer(number, message, this.receiveAll(message.rumours, nowMs), nowMs)
    return this.done(nowMs)
  }

  /**
   * The question with this number has its answer, or (undefined) will get none, for a reason that is for people.
   * `isRefused`: the machine at that address has refused the connection.
   */
  onReply(
    number: number,
    reply: GossipMessage | undefined,
    nowMs: number,
    reason = 'no answer',
    isRefused = false,
  ): readonly Effect[] {
    this.awake(nowMs)
    const onAnswer = this.conversation.takeAsker(number)
    if (!onAnswer) return this.done(nowMs)
    const objection = reply?.kind === 'refusal' ? reply.reason : reply && this.conversation.objection(reply)
    const answer = objection === undefined && reply?.kind !== 'refusal' ? reply : undefined
    if (answer) this.receiveAll(answer.rumours, nowMs)
    onAnswer(answer, objection ?? reason, nowMs, isRefused)
    return this.done(nowMs)
  }

  /** The addresses of the seeds, as far as they could be resolved; in answer to each `resolve`. */
  onSeeds(addresses: readonly string[], nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    this.seeking.begin(addresses, this.roster.members)
    this.seekNext(nowMs)
    return this.done(nowMs)
  }

  setJoined(isJoined: boolean, nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    const { self } = this.roster
    if (self.isJoined !== isJoined && this.isActive)
      this.roster.setSelf({ ...self, isJoined, incarnation: self.incarnation + 1 })
    return this.done(nowMs)
  }

  /** Reports to some of the others that this node goes. `left` is the last effect, here or of a later event. */
  leave(nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    const { self } = this.roster
    if (self.status === 'left') return this.done(nowMs)
    const isKnown = this.ownName.isMember && !this.ownName.isOver
    this.roster.setSelf({ ...self, status: 'left', isJoined: false, incarnation: self.incarnation + 1 })
    if (isKnown) this.sendFarewell()
    else this.conversation.add({ kind: 'left' })
    return this.done(nowMs)
  }

  private get isActive(): boolean {
    return !this.ownName.isOver && this.roster.self.status === 'alive'
  }

  /**
   * Runs before every event. If this node was stopped, it restarts all that it waits for. Suspicions begin anew after a
   * shorter pause: a node that is often late has work that it does not get done, and other nodes seem slow to it.
   */
  private awake(nowMs: number): void {
    const lateMs = nowMs - this.wakeDueMs
    if (lateMs > this.options.pingTimeoutMs) this.roster.beginAnew(nowMs, lateMs)
    if (lateMs <= this.options.periodMs) return
    this.probing.forget()
    this.health.worsen(1)
  }

  /** Runs after every event: returns the effects, and sets the time of the next wake-up. */
  private done(nowMs: number): readonly Effect[] {
    const { roster, seeking, probing, conversation } = this
    for (const member of roster.takeChanges()) {
      if (member.status === 'dead') seeking.hurry(nowMs)
      if (isHere(member) && member !== roster.self) probing.add(member.name)
      if (member.status === 'suspect') probing.confirmSoon(member.name)
      conversation.add({ kind: 'changed', member })
    }
    // Once a period at least, so that it notices when it was stopped.
    this.wakeDueMs = nowMs + this.options.periodMs
    if (this.isActive) {
      const spreadDueMs = roster.hasRumours ? Math.max(this.spreadDueMs, nowMs) : this.wakeDueMs
      const { wakeDueMs, exchangeDueMs } = this
      this.wakeDueMs = Math.min(wakeDueMs, probing.dueMs, spreadDueMs, exchangeDueMs, seeking.dueMs, roster.dueMs)
    }
    return conversation.takeEffects()
  }

  /** `newer`: rumours for the sender that are newer than those it sent. */
  private answer(number: number, message: GossipReply, newer: readonly Rumour[], nowMs: number): void {
    const { roster, conversation, ownName } = this
    const { name } = roster.self
    const { from } = message
    if (ownName.isOver) return conversation.refuse(number, `this node has given up the name ${name}`)
    switch (message.kind) {
      case 'ping': {
        if (message.to.name !== name) return conversation.refuse(number, `this is node ${name}, not ${message.to.name}`)
        const rumours = roster.nextRumours([...roster.rumoursAbout(from), ...newer])
        conversation.reply(number, { kind: 'acknowledgement', rumours })
        return ownName.onNamesake(from)
      }
      case 'ping-request':
        return this.probing.relay(number, message)
      case 'exchange':
        if (from.incarnation > 0) this.enter(nowMs)
        return conversation.reply(number, { kind: 'exchange', rumours: roster.everything(ownName.isMember) })
      default:
        conversation.refuse(number, 'this is no question')
    }
  }

  /** There is news: sends it to one other member at once, which may have other news in return. */
  private spread(nowMs: number): void {
    const { roster, conversation, options } = this
    this.spreadDueMs = nowMs + options.spreadMs
    const [partner] = this.pickPresent()
    if (!partner || !this.ownName.isMember) return
    const { name, life, address } = partner
    const rumours = roster.nextRumours(roster.rumoursAbout(partner))
    conversation.ask(address, { kind: 'ping', to: { name, life }, rumours }, options.pingTimeoutMs, ignoreAnswer)
  }

  private pickPresent(): Member[] {
    const present = this.roster.members.filter(member => isHere(member) && member !== this.roster.self)
    return pickSome(present, 1, this.chance)
  }

  private exchange(nowMs: number): void {
    this.exchangeDueMs = nowMs + exchangeEveryMs(this.options, this.roster.size) * (0.75 + this.chance() / 2)
    const [partner] = this.pickPresent()
    if (partner && this.ownName.isMember) this.exchangeWith(partner.address, ignoreAnswer)
  }

  private exchangeWith(address: string, onAnswer: OnGossipAnswer): void {
    const rumours = this.roster.everything(this.ownName.isMember)
    this.conversation.ask(address, { kind: 'exchange', rumours }, this.options.exchangeTimeoutMs, onAnswer)
  }

  /** Begins to try the seeds, and dead members: some may be alive after all, and not know of us. */
  private seek(): void {
    this.seeking.dueMs = Number.POSITIVE_INFINITY
    this.conversation.add({ kind: 'resolve' })
  }

  private seekNext(nowMs: number): void {
    const address = this.seeking.next()
    if (address !== undefined && this.isActive)
      return this.exchangeWith(address, (answer, reason, atMs) => this.onSought(address, answer, reason, atMs))
    this.seeking.pause(nowMs, this.roster.size, this.roster.size === 1 || !this.ownName.isMember)
  }

  private onSought(address: string, answer: GossipReply | undefined, reason: string, nowMs: number): void {
    const { ownName, conversation, roster, seeking } = this
    if (ownName.isOver) return
    // If this node is a member, the operator knows already which members are dead.
    if (!answer && !ownName.isMember) conversation.add({ kind: 'refused', reason: `${address}: ${reason}` })
    const isOther = answer?.kind === 'exchange' && answer.from.life !== roster.self.life
    if (answer?.kind === 'exchange') seeking.onAnswer(address, answer.from.name)
    if (isOther && !ownName.isMember) {
      seeking.stop()
      this.enter(nowMs)
      // So that at least one node learns of the new member at once.
      if (ownName.isMember) this.exchangeWith(address, ignoreAnswer)
    }
    this.seekNext(nowMs)
  }

  private enter(nowMs: number): void {
    if (this.ownName.enter()) this.probing.hurry(nowMs)
  }

  /** Applies rumours. Returns those that this node knows better, so that the sender of old news receives the newer. */
  private receiveAll(rumours: readonly Rumour[], nowMs: number): Rumour[] {
    const { roster, ownName } = this
    const newer: Rumour[] = []
    for (const rumour of rumours) {
      const { member } = rumour
      if (member.name === roster.self.name) ownName.receive(member)
      else roster.receive(rumour, nowMs)
      const known = roster.recall(member.name)
      const isReported = known && (known.member !== roster.self || ownName.isMember)
      if (!isReported || believe(member, known.member) === member) continue
      newer.push(known)
      // A node with old news of this one may have missed an earlier refutation.
      if (known.member === roster.self) roster.resendOwn()
    }
    return newer
  }

  private sendFarewell(): void {
    const { roster, conversation, options } = this
    const able = roster.members.filter(({ status }) => status === 'alive')
    const receivers = pickSome(able, options.farewells, this.chance)
    if (receivers.length === 0 || this.farewell.round === farewellsMax) return conversation.add({ kind: 'left' })
    this.farewell = { round: this.farewell.round + 1, waiting: receivers.length, isAnswered: false }
    const rumours = [{ member: roster.self, suspectedBy: [] }]
    const patienceMs = options.periodMs * this.health.patience
    for (const { name, life, address } of receivers)
      conversation.ask(address, { kind: 'ping', to: { name, life }, rumours }, patienceMs, answer =>
        this.onFarewell(answer),
      )
  }

  private onFarewell(answer: GossipReply | undefined): void {
    if (this.ownName.isOver) return
    this.farewell.isAnswered ||= answer !== undefined
    if (--this.farewell.waiting > 0) return
    if (this.farewell.isAnswered) this.conversation.add({ kind: 'left' })
    else this.sendFarewell()
  }
}

/** Ignores the answer, except for the rumours in it. */
const ignoreAnswer: OnGossipAnswer = () => {}

/**
 * The addresses where missing members may be: seeds at which no known member answers, and dead members. They are tried
 * one after the other, and again after a growing pause. A cluster that was split heals only when one side asks the
 * other.
 */
class Seeking {
  /** The time of the next round; infinite while one is running. */
  dueMs: number
  private failures = 0
  private queue: string[] = []
  /**
   * The name of the member that has answered at the address of a seed. Other members may use another address for it.
   */
  private readonly names = new Map<string, string>()

  constructor(
    private readonly options: GossipOptions,
    private readonly chance: () => number,
    nowMs: number,
  ) {
    this.dueMs = nowMs
  }

  /** Begins a round with these seeds and the dead members, except addresses of members that are present. */
  begin(seeds: readonly string[], members: readonly Member[]): void {
    const present = members.filter(isHere)
    const addresses = new Set(present.map(({ address }) => address))
    const names = new Set(present.map(({ name }) => name))
    const dead = members.filter(({ status }) => status === 'dead').map(({ address }) => address)
    const lost = [...new Set([...seeds, ...dead])].filter(
      address => !addresses.has(address) && !names.has(this.names.get(address) ?? ''),
    )
    this.queue = pickSome(lost, seedAddressesMax, this.chance)
    for (const address of this.names.keys()) if (!seeds.includes(address)) this.names.delete(address)
  }

  /** The address to ask next; undefined when all have been asked. */
  next(): string | undefined {
    return this.queue.pop()
  }

  /** Notes the name of the node that has answered at an address. */
  onAnswer(address: string, name: string): void {
    this.names.set(address, name)
  }

  /** Ends the round early: the other addresses are not asked now. */
  stop(): void {
    this.queue = []
  }

  /**
   * Sets the time of the next round, with a growing pause. `isAlone`: this node has no others, so it tries more often.
   */
  pause(nowMs: number, members: number, isAlone: boolean): void {
    const mostMs = isAlone ? this.options.seekMsMax : exchangeEveryMs(this.options, members)
    const pauseMs = Math.min(mostMs, this.options.seekMsMin * 2 ** Math.min(this.failures++, 30))
    this.dueMs = nowMs + pauseMs * (0.5 + this.chance() / 2)
  }

  /** A member was just lost, and may be back soon: shortens the pause. */
  hurry(nowMs: number): void {
    this.failures = 0
    if (this.dueMs !== Number.POSITIVE_INFINITY) this.dueMs = Math.min(this.dueMs, nowMs + this.options.seekMsMin)
  }
}
