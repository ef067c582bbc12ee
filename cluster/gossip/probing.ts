// Pings: in each period a node probes one other, in turn. If that one is silent, the node pings it again, and asks
// helpers to ping it, which report when they had no answer either. A member that no node reaches is suspected.
//
// Not here: the end of a suspicion (roster.ts), all other messages (membership.ts).

import { type Conversation, type GossipReply, isAcknowledged } from './conversation.js'
import type { GossipMessage, PingTarget } from './gossip-messages.js'
import { type GossipOptions, helperShare, relaysMax } from './gossip-options.js'
import { isHere, type Member } from './member.js'
import type { Roster } from './roster.js'

interface Probe {
  readonly target: Member
  isIndirect: boolean
  /** The machine has refused the connection for the latest ping of this node. */
  isRefused: boolean
  /** Answers that have not come yet. */
  waiting: number
  helpers: number
  /** Helpers that have reported that they had no answer. */
  noAnswers: number
}

export interface ProbingParts {
  readonly roster: Roster
  readonly conversation: Conversation
  readonly health: LocalHealth
  readonly options: GossipOptions
  readonly chance: () => number
  readonly isActive: () => boolean
}

export class Probing {
  /** The time of the next probe. */
  dueMs: number
  suspicions = 0
  private readonly rounds: Rounds
  private probe: Probe | undefined
  private relays = 0

  constructor(
    private readonly parts: ProbingParts,
    nowMs: number,
  ) {
    this.rounds = new Rounds(parts.chance)
    this.dueMs = nowMs + parts.chance() * parts.options.periodMs
  }

  add(name: string): void {
    this.rounds.add(name)
  }

  /**
   * Another node suspects that member. A suspicion needs some confirmations, so a few nodes probe the member next: each
   * node of a small cluster, and nodes chosen by chance in a large one.
   */
  confirmSoon(name: string): void {
    const { roster, options, chance } = this.parts
    if (roster.isSuspectedHere(name)) return
    const others = Math.max(1, roster.size - 2)
    if (chance() * others < options.confirmations) this.rounds.prefer(name)
  }

  hurry(nowMs: number): void {
    const { chance, options } = this.parts
    this.dueMs = Math.min(this.dueMs, nowMs + chance() * options.periodMs)
  }

  /** Drops the probe in flight without suspecting its target. */
  forget(): void {
    this.probe = undefined
  }

  /** Probes the next member. The last probe fails if it has no answer yet. `mayProbe`: false skips this turn. */
  next(nowMs: number, mayProbe: boolean): void {
    if (this.probe) this.fail(this.probe, nowMs)
    const { options, health, roster } = this.parts
    this.dueMs = nowMs + options.periodMs * health.patience
    const target = this.rounds.next(name => {
      const member = roster.get(name)
      return member !== roster.self && member && isHere(member) ? member : undefined
    })
    if (!target || !mayProbe) return
    this.probe = { target, isIndirect: false, isRefused: false, waiting: 1, helpers: 0, noAnswers: 0 }
    this.ping(this.probe, options.pingTimeoutMs * health.patience)
  }

  private ping(probe: Probe, deadlineMs: number): void {
    const { roster, conversation } = this.parts
    const { name, life, address } = probe.target
    const first = roster.nextRumours(roster.rumoursAbout(probe.target))
    const rumours = [...first, ...roster.doubts(first)]
    conversation.ask(
      address,
      { kind: 'ping', to: { name, life }, rumours },
      deadlineMs,
      (answer, _, nowMs, isRefused) => {
        probe.isRefused = isRefused
        this.onAnswer(probe, answer, nowMs)
      },
    )
  }

  private onAnswer(probe: Probe, answer: GossipReply | undefined, nowMs: number): void {
    if (probe !== this.probe || !this.parts.isActive()) return
    if (isReached(answer, probe.target)) {
      this.probe = undefined
      this.parts.health.improve()
      return
    }
    if (answer?.kind === 'no-answer') probe.noAnswers++
    if (--probe.waiting > 0) return
    if (probe.isIndirect) this.fail(probe, nowMs)
    else this.askHelpers(probe)
  }

  /** Probes through helpers, and once more directly, since only a single message may have been lost. */
  private askHelpers(probe: Probe): void {
    const { roster, conversation, options, health, chance } = this.parts
    const { periodMs, pingTimeoutMs } = options
    const { name, life, address } = probe.target
    const restMs = (periodMs - pingTimeoutMs) * health.patience
    const waitMs = Math.ceil(restMs * helperShare)
    const able = roster.members.filter(member => member.status === 'alive' && member.name !== name)
    const helpers = pickSome(
      able.filter(member => member !== roster.self),
      options.helpers,
      chance,
    )
    probe.isIndirect = true
    probe.helpers = helpers.length
    probe.waiting = helpers.length + 1
    for (const helper of helpers)
      conversation.ask(
        helper.address,
        { kind: 'ping-request', to: { name, life }, address, waitMs, rumours: roster.nextRumours() },
        restMs,
        (answer, _, nowMs) => this.onAnswer(probe, answer, nowMs),
      )
    this.ping(probe, waitMs)
  }

  private fail(probe: Probe, nowMs: number): void {
    const { health, roster } = this.parts
    this.probe = undefined
    this.suspicions++
    // When helpers are silent too, this node itself may not receive messages. Without helpers it cannot know.
    health.worsen(probe.helpers > 0 ? probe.helpers - probe.noAnswers : 1)
    roster.suspect(probe.target.name, probe.target.life, nowMs, probe.isRefused)
  }

  /** Helps another node: pings in its place, and answers it with the outcome. */
  relay(number: number, { to, address, waitMs }: Extract<GossipMessage, { kind: 'ping-request' }>): void {
    const { roster, conversation, options } = this.parts
    if (this.relays >= relaysMax) return conversation.reply(number, { kind: 'no-answer', rumours: [] })
    this.relays++
    const deadlineMs = Math.max(1, Math.min(waitMs, options.periodMs * (options.healthMax + 1)))
    const rumours = roster.nextRumours(roster.rumoursAbout(to))
    conversation.ask(address, { kind: 'ping', to, rumours }, deadlineMs, answer => {
      this.relays--
      const kind = isAcknowledged(answer, to) ? 'acknowledgement' : 'no-answer'
      conversation.reply(number, { kind, rumours: roster.nextRumours() })
    })
  }
}

/** Whether that very life has answered, or a helper reports that it has. */
function isReached(reply: GossipMessage | undefined, target: PingTarget): boolean {
  return isAcknowledged(reply, reply && reply.from.name !== target.name ? reply.from : target)
}

/**
 * The order of probes: each member once in each round, in an order of this node's own that changes with the round. The
 * orders of nodes are independent, so at any time some node probes a silent member. A new member gets a turn in the
 * rest of the round.
 */
class Rounds {
  private order: string[] = []
  /** Those before it have had their turn in this round. */
  private position = 0

  /** `chance`: from 0 up to but without 1. */
  constructor(private readonly chance: () => number) {}

  add(name: string): void {
    if (this.order.includes(name)) return
    const place = this.position + Math.floor(this.chance() * (this.order.length - this.position + 1))
    this.order.splice(place, 0, name)
  }

  /** That member has the next turn. */
  prefer(name: string): void {
    const place = this.order.indexOf(name)
    if (place < 0) return
    this.order.splice(place, 1)
    if (place < this.position) this.position--
    this.order.splice(this.position, 0, name)
  }

  /** The next one for which `find` returns something; the others are removed. */
  next<T>(find: (name: string) => T | undefined): T | undefined {
    for (let left = this.order.length; left > 0; left--) {
      if (this.position >= this.order.length) this.begin()
      const found = find(this.order[this.position]!)
      if (found !== undefined) {
        this.position++
        return found
      }
      this.order.splice(this.position, 1)
    }
    return undefined
  }

  private begin(): void {
    this.order = pickSome(this.order, this.order.length, this.chance)
    this.position = 0
  }
}

export function pickSome<T>(all: readonly T[], count: number, chance: () => number): T[] {
  const left = [...all]
  const picked: T[] = []
  while (picked.length < count && left.length > 0) {
    const place = Math.floor(chance() * left.length)
    picked.push(left[place]!)
    left[place] = left.at(-1)!
    left.pop()
  }
  return picked
}

/** This node's estimate of its own health (Lifeguard's local health): the worse, the longer it waits for others. */
export class LocalHealth {
  private readonly max: number
  private score = 0

  constructor({ healthMax }: Pick<GossipOptions, 'healthMax'>) {
    this.max = healthMax
  }

  /** 0: healthy. */
  get steps(): number {
    return this.score
  }

  /** The factor for all waiting times. */
  get patience(): number {
    return this.score + 1
  }

  worsen(steps: number): void {
    this.score = Math.min(this.max, this.score + steps)
  }

  improve(): void {
    this.score = Math.max(0, this.score - 1)
  }
}
