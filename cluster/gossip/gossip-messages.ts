// Messages of gossip and their bytes, as defined in proto/gossip.proto.
//
// Reading trusts nothing. Bytes are no message when they are cut off, have too long a name, too many members, or an
// incarnation that could not be raised any more. Unknown fields are skipped, so that a later build may add some.
//
// Not here: the bytes themselves (grpc-codec.ts), which versions are accepted (conversation.ts), the meaning of
// messages (membership.ts).

import { codecOf } from '../asks/grpc-codec.js'
import { nameLengthMax } from '../options.js'
import { membersMax } from './gossip-options.js'
import { type Member, type Rumour, type Status, statuses } from './member.js'

/** The sender of a message; its incarnation is 0 as long as it asks to become a member. */
export interface GossipSender {
  readonly name: string
  readonly life: string
  readonly incarnation: number
}

/** The node that a ping is meant for: another one may listen at its address by now. */
export interface PingTarget {
  readonly name: string
  readonly life: string
}

export type Body =
  | { readonly kind: 'ping'; readonly to: PingTarget; readonly rumours: readonly Rumour[] }
  | {
      readonly kind: 'ping-request'
      readonly to: PingTarget
      readonly address: string
      readonly waitMs: number
      readonly rumours: readonly Rumour[]
    }
  | { readonly kind: 'exchange' | 'acknowledgement' | 'no-answer'; readonly rumours: readonly Rumour[] }
  | { readonly kind: 'refusal'; readonly reason: string }

export type GossipMessage = Body & {
  readonly version: number
  /** The lowest version whose readers understand this message. */
  readonly lowestVersion: number
  readonly cluster: string
  readonly from: GossipSender
}

const reasonLengthMax = 2048

/** A few nodes confirm a suspicion; the names of more are of no use. */
const suspectedByMax = 16

/** An incarnation that can still be raised for the whole life of any node. */
const incarnationMax = 2 ** 48

/** In the order of their numbers. */
const kinds = ['ping', 'ping-request', 'exchange', 'acknowledgement', 'no-answer', 'refusal'] as const

interface ProtoMessage {
  readonly version: number
  readonly lowestVersion: number
  readonly cluster: string
  readonly from: GossipSender | null
  readonly kind: number
  readonly toName?: string
  readonly toLife?: string
  readonly toAddress?: string
  readonly waitMs?: number
  readonly rumours?: readonly ProtoRumour[]
  readonly reason?: string
}

interface ProtoRumour {
  readonly member: (Omit<Member, 'status'> & { readonly status: number }) | null
  readonly suspectedBy: readonly string[]
}

const messages = codecOf<ProtoMessage>('gossip.proto', 'Message')
const rumoursAlone = codecOf<ProtoRumour>('gossip.proto', 'Rumour')

export function encodeMessage(message: GossipMessage): Buffer {
  const { version, lowestVersion, cluster, from } = message
  const head = { version, lowestVersion, cluster, from, kind: kinds.indexOf(message.kind) }
  if (message.kind === 'refusal') return messages.encode({ ...head, reason: message.reason })
  const rumours = message.rumours.map(toProto)
  if (message.kind !== 'ping' && message.kind !== 'ping-request') return messages.encode({ ...head, rumours })
  const { name: toName, life: toLife } = message.to
  const request = message.kind === 'ping' ? {} : { toAddress: message.address, waitMs: message.waitMs }
  return messages.encode({ ...head, toName, toLife, ...request, rumours })
}

/** Bytes that a rumour takes in a message: a tag, its length in one byte or two, and itself. */
export function rumourLength(rumour: Rumour): number {
  const { length } = rumoursAlone.encode(toProto(rumour))
  return (length < 128 ? 2 : 3) + length
}

const toProto = ({ member, suspectedBy }: Rumour): ProtoRumour => ({
  member: { ...member, status: statuses.indexOf(member.status) },
  suspectedBy,
})

export function decodeMessage(bytes: Buffer): GossipMessage | undefined {
  const read = messages.decode(bytes) as Required<ProtoMessage> | undefined
  if (!read?.from || read.from.name === '' || read.rumours.length > membersMax) return undefined
  const { version, lowestVersion, cluster, from, toName: name, toLife: life, toAddress: address, waitMs, reason } = read
  const rumours = read.rumours.map(fromProto)
  if (!fits(cluster, from.name, from.life, name, life, address) || from.incarnation > incarnationMax) return undefined
  if (!areWhole(rumours)) return undefined
  const body = bodyOf(kinds[read.kind], { name, life }, address, waitMs, rumours, reason.slice(0, reasonLengthMax))
  return body && { version, lowestVersion: lowestVersion || version, cluster, from, ...body }
}

function bodyOf(
  kind: (typeof kinds)[number] | undefined,
  to: PingTarget,
  address: string,
  waitMs: number,
  rumours: readonly Rumour[],
  reason: string,
): Body | undefined {
  if (kind === undefined) return undefined
  if (kind === 'refusal') return { kind, reason }
  if (kind === 'ping') return { kind, to, rumours }
  if (kind === 'ping-request') return { kind, to, address, waitMs, rumours }
  return { kind, rumours }
}

const areWhole = (rumours: readonly (Rumour | undefined)[]): rumours is readonly Rumour[] =>
  !rumours.includes(undefined)

/** undefined: it breaks a limit. */
function fromProto({ member, suspectedBy }: ProtoRumour): Rumour | undefined {
  if (!member || suspectedBy.length > suspectedByMax) return undefined
  const { name, address, domain, incarnation, life, isJoined } = member
  const status: Status | undefined = statuses[member.status]
  if (name === '' || status === undefined || incarnation > incarnationMax) return undefined
  if (!fits(name, address, domain, life, ...suspectedBy)) return undefined
  return { member: { name, address, domain, incarnation, life, status, isJoined }, suspectedBy }
}

const fits = (...texts: readonly string[]): boolean => texts.every(text => Buffer.byteLength(text) <= nameLengthMax)
