// This node's own name: when it may use the name, that reports under it are right, and that no other node has it.
//
// A node becomes a member when another one has answered: only then it knows above which incarnation to begin, and
// whether its name is free. Of two nodes under one name, the one with the lower incarnation gives up: the earlier life.

import { type Conversation, type GossipReply, isAcknowledged } from './conversation.js'
import type { GossipSender } from './gossip-messages.js'
import { type GossipOptions, lifeStride } from './gossip-options.js'
import { believe, isHere, type Member } from './member.js'
import type { LocalHealth } from './probing.js'
import type { Roster } from './roster.js'

/** Another process under this node's name. */
interface Rival {
  readonly member: Member
  /** The sender fields of this node's ping to the rival. */
  readonly sent: GossipSender
  readonly attempt: number
}

export interface OwnNameParts {
  readonly roster: Roster
  readonly conversation: Conversation
  readonly health: LocalHealth
  readonly options: Pick<GossipOptions, 'periodMs'>
  /** A rival did not answer, or gives way: the other members should learn of this node at once. */
  readonly onAsserted: (nowMs: number) => void
}

export class OwnName {
  /** Another node has the name: this one takes no part any more. */
  isOver = false
  /** How often this node had to refute a report that it is not alive. */
  refutations = 0
  private isKnown: boolean
  /** The most credible report of the name from before this node was a member. */
  private namesake: Member | undefined
  private rival: Rival | undefined

  /** `isMember`: true when there is no other node to ask first. */
  constructor(
    private readonly parts: OwnNameParts,
    isMember: boolean,
  ) {
    this.isKnown = isMember
  }

  get isMember(): boolean {
    return this.isKnown
  }

  /** The sender fields of this node's messages; incarnation 0: it is not a member yet. */
  get sender(): GossipSender {
    const { name, life, incarnation } = this.parts.roster.self
    return { name, life, incarnation: this.isKnown ? incarnation : 0 }
  }

  /** Another node has answered: now this one can become a member, unless its name is taken. Returns whether it has. */
  enter(): boolean {
    if (this.isKnown || this.rival || this.isOver || this.parts.roster.self.status !== 'alive') return false
    const { namesake } = this
    if (namesake && this.mayBeRival(namesake)) this.call(namesake, 1)
    else this.become(namesake)
    return this.isKnown
  }

  private become(namesake: Member | undefined): void {
    const { roster } = this.parts
    const { self } = roster
    this.isKnown = true
    roster.setSelf({ ...self, incarnation: namesake ? namesake.incarnation + lifeStride : self.incarnation })
  }

  /** This node knows its own state best: it refutes other reports of itself with a higher incarnation. */
  receive(received: Member): void {
    const { roster } = this.parts
    const { self } = roster
    if (!this.isKnown) {
      this.namesake = this.namesake ? believe(this.namesake, received) : received
      return
    }
    if (this.isOver || believe(self, received) === self) return
    if (self.status === 'left') {
      // This node has left, so another life of this name does not concern it.
      if (received.life === self.life) roster.setSelf({ ...self, incarnation: received.incarnation + 1 })
    } else if (!this.mayBeRival(received)) this.refute(received)
    else if (!this.rival) this.call(received, 1)
  }

  /** Another process with this node's name has sent a ping. */
  onNamesake(from: GossipSender): void {
    const { self } = this.parts.roster
    if (from.name === self.name && from.life !== self.life && this.isKnown && outranks(from, this.sender))
      this.giveUp(undefined)
  }

  private refute(received: Member): void {
    const { roster, health } = this.parts
    const { self } = roster
    if (believe(self, received) === self) return
    if (received.status === 'suspect' && received.life === self.life) health.worsen(1)
    this.refutations++
    roster.setSelf({ ...self, incarnation: received.incarnation + 1 })
  }

  /** Whether another process may be alive under this node's name. At this node's address there can be none. */
  private mayBeRival(received: Member): boolean {
    const { self } = this.parts.roster
    return received.life !== self.life && received.address !== self.address && isHere(received)
  }

  private call(member: Member, attempt: number): void {
    const { roster, conversation, options, health } = this.parts
    const rival = { member, sent: this.sender, attempt }
    this.rival = rival
    const { name, life, address } = member
    const ping = { kind: 'ping', to: { name, life }, rumours: roster.nextRumours() } as const
    conversation.ask(address, ping, options.periodMs * health.patience, (answer, _, nowMs) =>
      this.onAnswer(rival, answer, nowMs),
    )
  }

  private onAnswer({ member, sent, attempt }: Rival, answer: GossipReply | undefined, nowMs: number): void {
    if (this.isOver) return
    this.rival = undefined
    if (!isAcknowledged(answer, member)) {
      if (attempt === 1) return this.call(member, 2)
      if (this.isKnown) this.refute(member)
      else this.become(member)
      this.parts.onAsserted(nowMs)
    } else if (!this.isKnown || outranks(answer!.from, sent)) this.giveUp(member)
    else this.refute({ ...member, incarnation: Math.max(member.incarnation, answer!.from.incarnation) })
  }

  private giveUp(rival: Member | undefined): void {
    const { roster, conversation } = this.parts
    this.isOver = true
    const where = rival ? `, at ${rival.address}` : ''
    conversation.add({
      kind: 'superseded',
      reason: `a node named ${roster.self.name} is already there${where}`,
    })
  }
}

/** Of two processes under one name, whether the first is the one that stays. */
function outranks(one: GossipSender, other: GossipSender): boolean {
  if (one.incarnation !== other.incarnation) return one.incarnation > other.incarnation
  // As believe() decides between them.
  return one.life > other.life
}
