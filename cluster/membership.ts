// Who is a member, and who is alive: SWIM (Das, Gupta, Motivala 2002) with the local health, the suspicion and the buddies of Lifeguard
// (Dadgar, Phillips, Currey 2018). Decisions only: it owns no socket and no timer, is told the time with each event, and gives effects.
//
// Each period a node pings one other, each in its turn. Who does not answer is pinged again, and by some helpers, who say so when they had no
// answer either; who is reached by nobody is suspected. A suspect is told so in the next ping it gets, and says with a higher
// incarnation that it lives; or its time passes and it is dead. News travels in pings and their answers, and in some more pings as long
// as it is new; now and then two exchange all they know. A node whose own timers come late, or whose helpers are silent, takes itself for slow: it waits longer, and
// what it has missed while it stood still it holds against nobody.
//
// A node becomes a member when another one has answered: only then it knows above which incarnation to begin, and whether somebody of its name
// is there. Of two who live under one name, the one with the lower incarnation gives up, and that is the earlier life.
// Not here: what is believed of others and told of them (roster.ts), where seeds are (seeking.ts), bytes (gossip-messages.ts), the wire and the clock (gossip.ts).

import type { Body, Message, Sender, Target } from './gossip-messages.js'
import {
  exchangeEveryMs,
  farewellsMax,
  type GossipOptions,
  gossipVersion,
  helperShare,
  lifeStride,
  relaysMax,
} from './gossip-options.js'
import { believe, isHere, type Member } from './member.js'
import { Roster } from './roster.js'
import { pickSome, Rounds } from './rounds.js'
import type { Rumour } from './rumours.js'
import { Seeking } from './seeking.js'

export type Effect =
  /** Ask `to`, an address; what it answers within `deadlineMs`, or that it did not, goes to `onReply` with this number. */
  | {
      readonly kind: 'send'
      readonly number: number
      readonly to: string
      readonly message: Message
      readonly deadlineMs: number
    }
  /** The answer to what `onCall` was given with this number. */
  | { readonly kind: 'reply'; readonly number: number; readonly message: Message }
  | { readonly kind: 'changed'; readonly member: Member }
  /** Find out the addresses of the seeds, and tell `onSeeds`. */
  | { readonly kind: 'resolve' }
  /** A seed does not answer this node, or does not want it, and it is no member yet; it tries on. The reason is for the operator. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Another node has this one's name; this one takes no part any more. */
  | { readonly kind: 'superseded'; readonly reason: string }
  /** Those who stay know that this node leaves. */
  | { readonly kind: 'left' }

export interface MembershipSetup {
  readonly self: Pick<Member, 'name' | 'address' | 'domain' | 'life' | 'isJoined'>
  readonly clusterId: string
  /** Whether there is anybody to ask before it is a member. */
  readonly hasSeeds: boolean
  readonly options: GossipOptions
  /** From 0 up to but without 1. */
  readonly chance: () => number
}

/** One member's turn. */
interface Probe {
  readonly target: Member
  isIndirect: boolean
  /** Answers that have not come yet. */
  waiting: number
  helpers: number
  /** Helpers that have said that they had no answer. */
  noAnswers: number
}

/** Somebody else under this node's name. */
interface Rival {
  readonly member: Member
  /** What this node has said of itself in the ping. */
  readonly sent: Sender
  readonly attempt: number
}

/** What a question was asked for. */
type Purpose =
  | { readonly kind: 'probe'; readonly probe: Probe }
  | { readonly kind: 'relay'; readonly number: number; readonly to: Target }
  | { readonly kind: 'telling' | 'exchange' }
  | { readonly kind: 'seek'; readonly address: string }
  | { readonly kind: 'rival'; readonly rival: Rival }
  | { readonly kind: 'farewell' }

export interface MembershipStats {
  /** 0: well; each step makes this node more patient. */
  readonly health: number
  /** Probes that have failed. */
  readonly suspicions: number
  /** How often this node had to say that it lives. */
  readonly refutations: number
}

export class Membership {
  private readonly setup: MembershipSetup
  private readonly options: GossipOptions
  private readonly roster: Roster
  private readonly rounds: Rounds
  private readonly seeking: Seeking
  private effects: Effect[] = []
  private readonly asked = new Map<number, Purpose>()
  private lastNumber = 0
  private relays = 0
  private health = 0
  private suspicions = 0
  private refutations = 0
  /** Whether this node is a member and may tell of itself. */
  private isMember: boolean
  /** The best that was told of this node's name before it was a member. */
  private namesake: Member | undefined
  private rival: Rival | undefined
  private isOver = false
  private probe: Probe | undefined
  private probeDueMs: number
  /** Not before it is there news to be told besides that in pings. */
  private tellDueMs: number
  private exchangeDueMs: number
  private farewell = { round: 0, waiting: 0, heard: false }
  private wakeDueMs: number

  constructor(setup: MembershipSetup, nowMs: number) {
    this.setup = setup
    this.options = setup.options
    const { name, address, domain, life, isJoined } = setup.self
    this.roster = new Roster({ name, address, domain, incarnation: 1, life, status: 'alive', isJoined }, setup.options)
    this.rounds = new Rounds(setup.chance)
    this.isMember = !setup.hasSeeds
    this.probeDueMs = nowMs + setup.chance() * this.options.periodMs
    this.tellDueMs = nowMs
    this.exchangeDueMs = nowMs + (0.5 + setup.chance()) * this.options.exchangeMs
    this.seeking = new Seeking(setup.options, setup.chance, nowMs)
    this.wakeDueMs = nowMs
  }

  /** This node first; also those who are gone, for a while. */
  get members(): readonly Member[] {
    return this.roster.members
  }

  get stats(): MembershipStats {
    const { health, suspicions, refutations } = this
    return { health, suspicions, refutations }
  }

  /** When `tick` is due. */
  get nextWakeMs(): number {
    return this.wakeDueMs
  }

  /** Time has passed. */
  tick(nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    if (this.isActive) {
      this.roster.expire(nowMs)
      if (nowMs >= this.probeDueMs) this.probeNext(nowMs)
      if (nowMs >= this.tellDueMs && this.roster.hasNews) this.tell(nowMs)
      if (nowMs >= this.exchangeDueMs) this.exchange(nowMs)
      if (nowMs >= this.seeking.dueMs) this.seek()
    }
    return this.done(nowMs)
  }

  /** Somebody asks. One of the effects, or of those of a later event, is the reply with this number. */
  onCall(number: number, message: Message, nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    const objection = this.objection(message)
    if (objection !== undefined || message.kind === 'refusal') this.refuse(number, objection ?? 'this is no question')
    else this.answer(number, message, this.hearAll(message.rumours, nowMs), nowMs)
    return this.done(nowMs)
  }

  /** What was asked with this number is answered, or (undefined) will not be, for a reason that is for people. */
  onReply(number: number, reply: Message | undefined, nowMs: number, reason = 'no answer'): readonly Effect[] {
    this.awake(nowMs)
    const purpose = this.asked.get(number)
    this.asked.delete(number)
    if (!purpose) return this.done(nowMs)
    const objection = reply?.kind === 'refusal' ? reply.reason : reply && this.objection(reply)
    const accepted = objection === undefined && reply?.kind !== 'refusal' ? reply : undefined
    if (accepted) this.hearAll(accepted.rumours, nowMs)
    if (purpose.kind === 'relay') this.onRelayed(purpose, accepted)
    else if (this.isOver) return this.done(nowMs)
    else if (purpose.kind === 'probe') this.onProbed(purpose.probe, accepted, nowMs)
    else if (purpose.kind === 'seek') this.onSought(purpose.address, accepted, objection ?? reason, nowMs)
    else if (purpose.kind === 'rival') this.onRival(purpose.rival, accepted, nowMs)
    else if (purpose.kind === 'farewell') this.onFarewell(accepted)
    return this.done(nowMs)
  }

  /** The addresses of the seeds, as far as they could be found out; in answer to each `resolve`. */
  onSeeds(addresses: readonly string[], nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    this.seeking.begin(addresses, this.roster.members)
    this.seekNext(nowMs)
    return this.done(nowMs)
  }

  /** Whether this node may be given shards. */
  setJoined(isJoined: boolean, nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    const { self } = this.roster
    if (self.isJoined !== isJoined && this.isActive)
      this.roster.setSelf({ ...self, isJoined, incarnation: self.incarnation + 1 })
    return this.done(nowMs)
  }

  /** Tells some of the others that this node goes; `left` is the effect at last, here or of a later event. */
  leave(nowMs: number): readonly Effect[] {
    this.awake(nowMs)
    const { self } = this.roster
    if (self.status === 'left') return this.done(nowMs)
    const isKnown = this.isMember && !this.isOver
    this.roster.setSelf({ ...self, status: 'left', isJoined: false, incarnation: self.incarnation + 1 })
    if (isKnown) this.sayFarewell()
    else this.effects.push({ kind: 'left' })
    return this.done(nowMs)
  }

  private get isActive(): boolean {
    return !this.isOver && this.roster.self.status === 'alive'
  }

  /** Before everything: if this node stood still, it begins anew with what it waits for. */
  private awake(nowMs: number): void {
    const lateMs = nowMs - this.wakeDueMs
    if (lateMs <= this.options.periodMs) return
    this.roster.postpone(lateMs)
    this.probe = undefined
    this.worsen(1)
  }

  /** After everything: what has come of it, and when there is more to do. */
  private done(nowMs: number): readonly Effect[] {
    for (const member of this.roster.takeChanges()) {
      if (member.status === 'dead') this.seeking.hurry(nowMs)
      if (isHere(member) && member !== this.roster.self) this.rounds.add(member.name)
      this.effects.push({ kind: 'changed', member })
    }
    // Once a period at least, so that it notices when it stood still.
    const { periodMs } = this.options
    this.wakeDueMs = nowMs + periodMs
    if (this.isActive) {
      const tellDueMs = this.roster.hasNews ? Math.max(this.tellDueMs, nowMs) : this.wakeDueMs
      const { wakeDueMs, probeDueMs, exchangeDueMs, seeking, roster } = this
      this.wakeDueMs = Math.min(wakeDueMs, probeDueMs, tellDueMs, exchangeDueMs, seeking.dueMs, roster.dueMs)
    }
    const { effects } = this
    this.effects = []
    return effects
  }

  /** Why a message is not for this node. */
  private objection({ version, cluster }: Message): string | undefined {
    const { clusterId } = this.setup
    if (version !== gossipVersion) return `version ${version} of gossip, here it is ${gossipVersion}`
    if (cluster !== clusterId)
      return `this is a node of the cluster '${clusterId}', and not of the cluster '${cluster}'`
    return undefined
  }

  /** `newer`: what is known better than it was told. */
  private answer(
    number: number,
    message: Exclude<Message, { kind: 'refusal' }>,
    newer: readonly Rumour[],
    nowMs: number,
  ): void {
    const { self } = this.roster
    const { from } = message
    if (this.isOver) return this.refuse(number, `this node has given up the name ${self.name}`)
    if (message.kind === 'ping') {
      if (message.to.name !== self.name) return this.refuse(number, `this is node ${self.name}, not ${message.to.name}`)
      this.reply(number, {
        kind: 'acknowledgement',
        rumours: this.roster.news([...this.roster.tidings(from), ...newer]),
      })
      if (from.name === self.name && from.life !== self.life && this.isMember && outranks(from, this.sender))
        this.giveUp(undefined)
    } else if (message.kind === 'ping-request') this.relay(number, message)
    else if (message.kind === 'exchange') {
      if (from.incarnation > 0) this.enter(nowMs)
      this.reply(number, { kind: 'exchange', rumours: this.roster.everything(this.isMember) })
    } else this.refuse(number, 'this is no question')
  }

  private relay(number: number, { to, address, waitMs }: Extract<Message, { kind: 'ping-request' }>): void {
    if (this.relays >= relaysMax) return this.reply(number, { kind: 'no-answer', rumours: [] })
    this.relays++
    const { periodMs, healthMax } = this.options
    const deadlineMs = Math.max(1, Math.min(waitMs, periodMs * (healthMax + 1)))
    const rumours = this.roster.news(this.roster.tidings(to))
    this.send(address, { kind: 'ping', to, rumours }, deadlineMs, { kind: 'relay', number, to })
  }

  private onRelayed({ number, to }: Extract<Purpose, { kind: 'relay' }>, reply: Message | undefined): void {
    this.relays--
    const kind = isAcknowledged(reply, to) ? 'acknowledgement' : 'no-answer'
    this.reply(number, { kind, rumours: this.roster.news() })
  }

  /** The next one's turn; the last one's is over, whatever has been heard of it. */
  private probeNext(nowMs: number): void {
    if (this.probe) this.probeFailed(this.probe, nowMs)
    const { periodMs, pingTimeoutMs } = this.options
    this.probeDueMs = nowMs + periodMs * (this.health + 1)
    const target = this.rounds.next(name => {
      const member = this.roster.get(name)
      return member !== this.roster.self && member && isHere(member) ? member : undefined
    })
    if (!target || !this.isMember) return
    this.probe = { target, isIndirect: false, waiting: 1, helpers: 0, noAnswers: 0 }
    this.ping(this.probe, pingTimeoutMs * (this.health + 1))
  }

  private ping(probe: Probe, deadlineMs: number): void {
    const { name, life, address } = probe.target
    const told = this.roster.news(this.roster.tidings(probe.target))
    const rumours = [...told, ...this.roster.doubts(told)]
    this.send(address, { kind: 'ping', to: { name, life }, rumours }, deadlineMs, { kind: 'probe', probe })
  }

  private onProbed(probe: Probe, reply: Message | undefined, nowMs: number): void {
    if (probe !== this.probe || !this.isActive) return
    if (isReached(reply, probe.target)) {
      this.probe = undefined
      this.health = Math.max(0, this.health - 1)
      return
    }
    if (reply?.kind === 'no-answer') probe.noAnswers++
    if (--probe.waiting > 0) return
    if (probe.isIndirect) this.probeFailed(probe, nowMs)
    else this.probeIndirectly(probe)
  }

  /** By helpers, and once more directly: it may have been a single message that was lost. */
  private probeIndirectly(probe: Probe): void {
    const { periodMs, pingTimeoutMs } = this.options
    const { name, life, address } = probe.target
    const restMs = (periodMs - pingTimeoutMs) * (this.health + 1)
    const waitMs = Math.ceil(restMs * helperShare)
    const able = this.roster.members.filter(member => member.status === 'alive' && member.name !== name)
    const helpers = pickSome(
      able.filter(member => member !== this.roster.self),
      this.options.helpers,
      this.setup.chance,
    )
    probe.isIndirect = true
    probe.helpers = helpers.length
    probe.waiting = helpers.length + 1
    for (const helper of helpers)
      this.send(
        helper.address,
        { kind: 'ping-request', to: { name, life }, address, waitMs, rumours: this.roster.news() },
        restMs,
        { kind: 'probe', probe },
      )
    this.ping(probe, waitMs)
  }

  private probeFailed(probe: Probe, nowMs: number): void {
    this.probe = undefined
    this.suspicions++
    // Helpers that are silent, too: it may be this node that does not hear. Without helpers it cannot tell.
    this.worsen(probe.helpers > 0 ? probe.helpers - probe.noAnswers : 1)
    this.roster.suspect(probe.target.name, probe.target.life, nowMs)
  }

  private worsen(steps: number): void {
    this.health = Math.min(this.options.healthMax, this.health + steps)
  }

  /** There is news: one other hears it at once, who has perhaps other news. */
  private tell(nowMs: number): void {
    this.tellDueMs = nowMs + this.options.tellMs
    const [partner] = this.pickPresent()
    if (!partner || !this.isMember) return
    const { name, life, address } = partner
    const rumours = this.roster.news(this.roster.tidings(partner))
    this.send(address, { kind: 'ping', to: { name, life }, rumours }, this.options.pingTimeoutMs, { kind: 'telling' })
  }

  private pickPresent(): Member[] {
    const present = this.roster.members.filter(member => isHere(member) && member !== this.roster.self)
    return pickSome(present, 1, this.setup.chance)
  }

  private exchange(nowMs: number): void {
    this.exchangeDueMs = nowMs + exchangeEveryMs(this.options, this.roster.size) * (0.75 + this.setup.chance() / 2)
    const [partner] = this.pickPresent()
    if (partner && this.isMember) this.exchangeWith(partner.address, { kind: 'exchange' })
  }

  private exchangeWith(address: string, purpose: Purpose): void {
    this.send(
      address,
      { kind: 'exchange', rumours: this.roster.everything(this.isMember) },
      this.options.exchangeTimeoutMs,
      purpose,
    )
  }

  /** Begins to try the seeds, and those who are dead: some may be there after all, and not know of us. */
  private seek(): void {
    this.seeking.dueMs = Number.POSITIVE_INFINITY
    this.effects.push({ kind: 'resolve' })
  }

  private seekNext(nowMs: number): void {
    const address = this.seeking.next()
    if (address !== undefined && this.isActive) return this.exchangeWith(address, { kind: 'seek', address })
    this.seeking.pause(nowMs, this.roster.size, this.roster.size === 1 || !this.isMember)
  }

  private onSought(address: string, reply: Message | undefined, objection: string, nowMs: number): void {
    // Of a member's dead the operator knows.
    if (!reply && !this.isMember) this.effects.push({ kind: 'refused', reason: `${address}: ${objection}` })
    const { self } = this.roster
    const isOther = reply?.kind === 'exchange' && reply.from.life !== self.life
    if (reply?.kind === 'exchange') this.seeking.onAnswer(address, reply.from.name)
    if (isOther && !this.isMember) {
      this.seeking.stop()
      this.enter(nowMs)
      // So that somebody hears of the new member at once.
      if (this.isMember) this.exchangeWith(address, { kind: 'exchange' })
    }
    this.seekNext(nowMs)
  }

  /** Takes in what is told; gives what is known better, so that who tells old news hears the newer. */
  private hearAll(rumours: readonly Rumour[], nowMs: number): Rumour[] {
    const newer: Rumour[] = []
    for (const rumour of rumours) {
      const { member } = rumour
      if (member.name === this.roster.self.name) this.hearOfSelf(member)
      else this.roster.hear(rumour, nowMs)
      const known = this.roster.recall(member.name)
      const isTold = known && (known.member !== this.roster.self || this.isMember)
      if (!isTold || believe(member, known.member) === member) continue
      newer.push(known)
      // Who has old news of this node may have missed what it said to it.
      if (known.member === this.roster.self) this.roster.retell()
    }
    return newer
  }

  /** Whatever is told of this node, it knows better: and says so with a higher incarnation. */
  private hearOfSelf(heard: Member): void {
    const { self } = this.roster
    if (!this.isMember) {
      this.namesake = this.namesake ? believe(this.namesake, heard) : heard
      return
    }
    if (this.isOver || believe(self, heard) === self) return
    if (self.status === 'left') {
      // Another life of this name is none of its business any more.
      if (heard.life === self.life) this.roster.setSelf({ ...self, incarnation: heard.incarnation + 1 })
    } else if (!this.mayBeRival(heard)) this.refute(heard)
    else if (!this.rival) this.callRival(heard, 1)
  }

  private refute(heard: Member): void {
    const { self } = this.roster
    if (believe(self, heard) === self) return
    if (heard.status === 'suspect' && heard.life === self.life) this.worsen(1)
    this.refutations++
    this.roster.setSelf({ ...self, incarnation: heard.incarnation + 1 })
  }

  /** Whether another process may be alive under this node's name. At this node's address there is nobody else. */
  private mayBeRival(heard: Member): boolean {
    const { self } = this.roster
    return heard.life !== self.life && heard.address !== self.address && isHere(heard)
  }

  private callRival(member: Member, attempt: number): void {
    this.rival = { member, sent: this.sender, attempt }
    const { name, life, address } = member
    const purpose: Purpose = { kind: 'rival', rival: this.rival }
    this.send(address, { kind: 'ping', to: { name, life }, rumours: this.roster.news() }, this.patienceMs, purpose)
  }

  private onRival({ member, sent, attempt }: Rival, reply: Message | undefined, nowMs: number): void {
    this.rival = undefined
    if (!isAcknowledged(reply, member)) {
      if (attempt === 1) return this.callRival(member, 2)
      if (this.isMember) this.refute(member)
      else this.become(member)
      if (this.isMember) this.exchange(nowMs)
    } else if (!this.isMember || outranks(reply!.from, sent)) this.giveUp(member)
    else this.refute({ ...member, incarnation: Math.max(member.incarnation, reply!.from.incarnation) })
  }

  private giveUp(rival: Member | undefined): void {
    this.isOver = true
    const { name } = this.roster.self
    const where = rival ? `, at ${rival.address}` : ''
    this.effects.push({ kind: 'superseded', reason: `a node named ${name} is already there${where}` })
  }

  /** Another node has answered, or has come: now this one can be a member, unless somebody has its name. */
  private enter(nowMs: number): void {
    if (this.isMember || this.rival || !this.isActive) return
    const { namesake } = this
    if (namesake && this.mayBeRival(namesake)) this.callRival(namesake, 1)
    else this.become(namesake)
    if (this.isMember) this.probeDueMs = Math.min(this.probeDueMs, nowMs + this.setup.chance() * this.options.periodMs)
  }

  private become(namesake: Member | undefined): void {
    const { self } = this.roster
    this.isMember = true
    this.roster.setSelf({ ...self, incarnation: namesake ? namesake.incarnation + lifeStride : self.incarnation })
  }

  private sayFarewell(): void {
    const able = this.roster.members.filter(({ status }) => status === 'alive')
    const told = pickSome(able, this.options.farewells, this.setup.chance)
    if (told.length === 0 || this.farewell.round === farewellsMax) {
      this.effects.push({ kind: 'left' })
      return
    }
    this.farewell = { round: this.farewell.round + 1, waiting: told.length, heard: false }
    const rumours = [{ member: this.roster.self, suspectedBy: [] }]
    for (const { name, life, address } of told)
      this.send(address, { kind: 'ping', to: { name, life }, rumours }, this.patienceMs, { kind: 'farewell' })
  }

  private onFarewell(reply: Message | undefined): void {
    this.farewell.heard ||= reply !== undefined
    if (--this.farewell.waiting > 0) return
    if (this.farewell.heard) this.effects.push({ kind: 'left' })
    else this.sayFarewell()
  }

  /** How long a ping that is no probe may take. */
  private get patienceMs(): number {
    return this.options.periodMs * (this.health + 1)
  }

  private get sender(): Sender {
    const { name, life, incarnation } = this.roster.self
    return { name, life, incarnation: this.isMember ? incarnation : 0 }
  }

  private refuse(number: number, reason: string): void {
    this.reply(number, { kind: 'refusal', reason })
  }

  private reply(number: number, body: Body): void {
    this.effects.push({ kind: 'reply', number, message: this.message(body) })
  }

  private send(to: string, body: Body, deadlineMs: number, purpose: Purpose): void {
    const number = ++this.lastNumber
    this.asked.set(number, purpose)
    this.effects.push({ kind: 'send', number, to, message: this.message(body), deadlineMs })
  }

  private message(body: Body): Message {
    return { version: gossipVersion, cluster: this.setup.clusterId, from: this.sender, ...body }
  }
}

/** Whether that very life has answered; at its address there may be another one. */
function isAcknowledged(reply: Message | undefined, { name, life }: Target): boolean {
  return reply?.kind === 'acknowledgement' && reply.from.name === name && reply.from.life === life
}

/** The same, or a helper says that it has. */
function isReached(reply: Message | undefined, target: Target): boolean {
  return isAcknowledged(reply, reply && reply.from.name !== target.name ? reply.from : target)
}

/** Of two who live under one name, whether the first is the one that stays. */
function outranks(one: Sender, other: Sender): boolean {
  if (one.incarnation !== other.incarnation) return one.incarnation > other.incarnation
  // As believe() decides between them.
  return one.life > other.life
}
