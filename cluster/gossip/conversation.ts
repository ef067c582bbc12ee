// The questions of one node to others in gossip, and its answers. Each question has a number; its asker receives the
// outcome.
//
// Not here: the content of messages (membership.ts), their bytes (gossip-messages.ts), transport and clock (gossip.ts).

import type { Body, GossipMessage, GossipSender, PingTarget } from './gossip-messages.js'
import { gossipVersion, gossipVersionLowest } from './gossip-options.js'
import type { Member } from './member.js'

export type Effect =
  /**
   * Ask `to`, an address. Then call `onReply` with this number: with the answer within `deadlineMs`, or without one.
   */
  | {
      readonly kind: 'send'
      readonly number: number
      readonly to: string
      readonly message: GossipMessage
      readonly deadlineMs: number
    }
  /** The answer to the message that `onCall` got with this number. */
  | { readonly kind: 'reply'; readonly number: number; readonly message: GossipMessage }
  | { readonly kind: 'changed'; readonly member: Member }
  /** Resolve the addresses of the seeds, and call `onSeeds`. */
  | { readonly kind: 'resolve' }
  /**
   * A seed does not answer this node, or refuses it, and this node is no member yet. It keeps trying. The reason is for
   * the operator.
   */
  | { readonly kind: 'refused'; readonly reason: string }
  /** A message of a version that this node cannot read was ignored. The reason is for the operator. */
  | { readonly kind: 'unreadable'; readonly reason: string }
  /** Another node has this one's name; this one takes no part any more. */
  | { readonly kind: 'superseded'; readonly reason: string }
  /** The remaining members know that this node leaves. */
  | { readonly kind: 'left' }

export type GossipReply = Exclude<GossipMessage, { kind: 'refusal' }>

/**
 * Receives the answer; or undefined and the reason, for the operator. `isRefused`: the machine at that address has
 * refused the connection, so no process listens there.
 */
export type OnGossipAnswer = (
  answer: GossipReply | undefined,
  reason: string,
  nowMs: number,
  isRefused: boolean,
) => void

export class Conversation {
  private effects: Effect[] = []
  private readonly asked = new Map<number, OnGossipAnswer>()
  private lastNumber = 0

  /** `sender`: returns the present sender fields of this node. */
  constructor(
    private readonly clusterId: string,
    private readonly sender: () => GossipSender,
  ) {}

  ask(to: string, body: Body, deadlineMs: number, onAnswer: OnGossipAnswer): void {
    const number = ++this.lastNumber
    this.asked.set(number, onAnswer)
    this.add({ kind: 'send', number, to, message: this.message(body), deadlineMs })
  }

  /** The callback that waits for the answer with this number, if any. It is removed, so it is called once. */
  takeAsker(number: number): OnGossipAnswer | undefined {
    const onAnswer = this.asked.get(number)
    this.asked.delete(number)
    return onAnswer
  }

  reply(number: number, body: Body): void {
    this.add({ kind: 'reply', number, message: this.message(body) })
  }

  refuse(number: number, reason: string): void {
    this.reply(number, { kind: 'refusal', reason })
  }

  add(effect: Effect): void {
    this.effects.push(effect)
  }

  /** All effects since the last call. */
  takeEffects(): readonly Effect[] {
    const { effects } = this
    this.effects = []
    return effects
  }

  /** The reason why a message is not for this node, if it is not. A message that it cannot read is reported as well. */
  objection({ version, lowestVersion, cluster, from }: GossipMessage): string | undefined {
    if (lowestVersion > gossipVersion || version < gossipVersionLowest) {
      const own = `this node reads versions ${gossipVersionLowest} to ${gossipVersion} of gossip`
      const reason = `${own}, node ${from.name} writes version ${version} for readers of version ${lowestVersion} and later`
      this.add({ kind: 'unreadable', reason: `a message of gossip was ignored: ${reason}` })
      return reason
    }
    if (cluster !== this.clusterId)
      return `this is a node of the cluster '${this.clusterId}', and not of the cluster '${cluster}'`
    return undefined
  }

  private message(body: Body): GossipMessage {
    const versions = { version: gossipVersion, lowestVersion: gossipVersionLowest }
    return { ...versions, cluster: this.clusterId, from: this.sender(), ...body }
  }
}

/** Whether that very life has answered; at its address there may be another one. */
export function isAcknowledged(reply: GossipMessage | undefined, { name, life }: PingTarget): boolean {
  return reply?.kind === 'acknowledgement' && reply.from.name === name && reply.from.life === life
}
