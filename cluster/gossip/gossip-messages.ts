// Messages of gossip and their bytes, as proto/gossip.proto says: written and read by hand.
//
// Reading trusts nothing: what is cut off, has too long a name, too many members or an incarnation that could not be raised any more is
// no message. Fields that hold nothing (0, false, empty) are not written, and fields that are not known are skipped.
//
// Not here: how fields are written and read (protobuf.ts), what messages mean (membership.ts), how they travel (gossip.ts).

import {
  decode,
  NoMessage,
  nestedLength,
  putBytes,
  putVarint,
  type Reader,
  tag,
  varintLength,
} from '../asks/protobuf.js'
import { membersMax } from './gossip-options.js'
import { type Member, type Status, statuses } from './member.js'
import type { Rumour } from './rumours.js'

/** Who has written a message; its incarnation is 0 as long as it asks to become a member. */
export interface Sender {
  readonly name: string
  readonly life: string
  readonly incarnation: number
}

/** Whom a ping is meant for: at its address somebody else may listen by now. */
export interface Target {
  readonly name: string
  readonly life: string
}

export type Body =
  | { readonly kind: 'ping'; readonly to: Target; readonly rumours: readonly Rumour[] }
  | {
      readonly kind: 'ping-request'
      readonly to: Target
      readonly address: string
      readonly waitMs: number
      readonly rumours: readonly Rumour[]
    }
  | { readonly kind: 'exchange' | 'acknowledgement' | 'no-answer'; readonly rumours: readonly Rumour[] }
  | { readonly kind: 'refusal'; readonly reason: string }

export type Message = Body & { readonly version: number; readonly cluster: string; readonly from: Sender }

/** Bytes of a refusal's reason. */
const reasonLengthMax = 2048

/** Suspicion is confirmed by a few; the names of more are of no use. */
const suspectedByMax = 16

/** An incarnation that can still be raised for as long as anybody lives. */
const incarnationMax = 2 ** 48

/** In the order of their numbers. */
const kinds = ['ping', 'ping-request', 'exchange', 'acknowledgement', 'no-answer', 'refusal'] as const

const tags = {
  message: {
    version: tag(1, 'varint'),
    cluster: tag(2, 'bytes'),
    from: tag(3, 'bytes'),
    kind: tag(4, 'varint'),
    toName: tag(5, 'bytes'),
    toLife: tag(6, 'bytes'),
    toAddress: tag(7, 'bytes'),
    waitMs: tag(8, 'varint'),
    rumour: tag(9, 'bytes'),
    reason: tag(10, 'bytes'),
  },
  sender: { name: tag(1, 'bytes'), life: tag(2, 'bytes'), incarnation: tag(3, 'varint') },
  rumour: { member: tag(1, 'bytes'), suspectedBy: tag(2, 'bytes') },
  member: {
    name: tag(1, 'bytes'),
    address: tag(2, 'bytes'),
    domain: tag(3, 'bytes'),
    incarnation: tag(4, 'varint'),
    life: tag(5, 'bytes'),
    status: tag(6, 'varint'),
    isJoined: tag(7, 'varint'),
  },
} as const

/** A field that is to be written: its tag, and a number, a text, or the fields of a nested message. */
type Field = readonly [fieldTag: number, value: number | string | readonly Field[]]

/** The bytes of a message. */
export function encodeMessage(message: Message): Buffer {
  const fields = fieldsOfMessage(message)
  const bytes = Buffer.allocUnsafe(lengthOf(fields))
  putFields(bytes, 0, fields)
  return bytes
}

/** Bytes that a rumour takes of a message. */
export function rumourLength(rumour: Rumour): number {
  return nestedLength(lengthOf(fieldsOfRumour(rumour)))
}

function fieldsOfMessage(message: Message): Field[] {
  const { message: tagOf, sender } = tags
  const { version, cluster, from } = message
  const head: Field[] = [
    [tagOf.version, version],
    [tagOf.cluster, cluster],
    [
      tagOf.from,
      [
        [sender.name, from.name],
        [sender.life, from.life],
        [sender.incarnation, from.incarnation],
      ],
    ],
    [tagOf.kind, kinds.indexOf(message.kind)],
  ]
  if (message.kind === 'refusal') return [...head, [tagOf.reason, message.reason]]
  if (message.kind === 'ping' || message.kind === 'ping-request')
    head.push([tagOf.toName, message.to.name], [tagOf.toLife, message.to.life])
  if (message.kind === 'ping-request') head.push([tagOf.toAddress, message.address], [tagOf.waitMs, message.waitMs])
  for (const rumour of message.rumours) head.push([tagOf.rumour, fieldsOfRumour(rumour)])
  return head
}

function fieldsOfRumour({ member, suspectedBy }: Rumour): Field[] {
  const { member: tagOf, rumour } = tags
  return [
    [
      rumour.member,
      [
        [tagOf.name, member.name],
        [tagOf.address, member.address],
        [tagOf.domain, member.domain],
        [tagOf.incarnation, member.incarnation],
        [tagOf.life, member.life],
        [tagOf.status, statuses.indexOf(member.status)],
        [tagOf.isJoined, member.isJoined ? 1 : 0],
      ],
    ],
    ...suspectedBy.map((name): Field => [rumour.suspectedBy, name]),
  ]
}

function lengthOf(fields: readonly Field[]): number {
  let length = 0
  for (const [, value] of fields) {
    if (typeof value === 'number') length += value === 0 ? 0 : 1 + varintLength(value)
    else if (typeof value === 'string') length += value === '' ? 0 : nestedLength(Buffer.byteLength(value))
    else length += nestedLength(lengthOf(value))
  }
  return length
}

function putFields(bytes: Buffer, begin: number, fields: readonly Field[]): number {
  let at = begin
  for (const [fieldTag, value] of fields) {
    if (typeof value === 'number') at = value === 0 ? at : putVarint(bytes, at, fieldTag, value)
    else if (typeof value === 'string') at = value === '' ? at : putBytes(bytes, at, fieldTag, Buffer.from(value))
    else at = putFields(bytes, putVarint(bytes, at, fieldTag, lengthOf(value)), value)
  }
  return at
}

/** The message that has these bytes; undefined when they are none. */
export function decodeMessage(bytes: Buffer): Message | undefined {
  return decode(bytes, readMessage)
}

function readMessage(reader: Reader): Message {
  const { message: tagOf } = tags
  let version = 0
  let cluster = ''
  let from: Sender = { name: '', life: '', incarnation: 0 }
  let kind = 0
  let [name, life, address, waitMs, reason] = ['', '', '', 0, '']
  const rumours: Rumour[] = []
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tagOf.rumour) rumours.push(readRumour(reader))
    else if (fieldTag === tagOf.version) version = reader.varint()
    else if (fieldTag === tagOf.cluster) cluster = reader.text()
    else if (fieldTag === tagOf.from) from = readSender(reader)
    else if (fieldTag === tagOf.kind) kind = reader.varint()
    else if (fieldTag === tagOf.toName) name = reader.text()
    else if (fieldTag === tagOf.toLife) life = reader.text()
    else if (fieldTag === tagOf.toAddress) address = reader.text()
    else if (fieldTag === tagOf.waitMs) waitMs = reader.varint()
    else if (fieldTag === tagOf.reason) reason = reader.bytes().subarray(0, reasonLengthMax).toString()
    else reader.skip(fieldTag)
  }
  if (from.name === '' || rumours.length > membersMax) throw new NoMessage()
  return { version, cluster, from, ...bodyOf(kinds[kind], { name, life }, address, waitMs, rumours, reason) }
}

function bodyOf(
  kind: (typeof kinds)[number] | undefined,
  to: Target,
  address: string,
  waitMs: number,
  rumours: readonly Rumour[],
  reason: string,
): Body {
  if (kind === undefined) throw new NoMessage()
  if (kind === 'refusal') return { kind, reason }
  if (kind === 'ping') return { kind, to, rumours }
  if (kind === 'ping-request') return { kind, to, address, waitMs, rumours }
  return { kind, rumours }
}

function readSender(reader: Reader): Sender {
  const outer = reader.enter()
  let [name, life, incarnation] = ['', '', 0]
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tags.sender.name) name = reader.text()
    else if (fieldTag === tags.sender.life) life = reader.text()
    else if (fieldTag === tags.sender.incarnation) incarnation = readIncarnation(reader)
    else reader.skip(fieldTag)
  }
  reader.leave(outer)
  return { name, life, incarnation }
}

function readRumour(reader: Reader): Rumour {
  const outer = reader.enter()
  let member: Member | undefined
  const suspectedBy: string[] = []
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tags.rumour.member) member = readMember(reader)
    else if (fieldTag === tags.rumour.suspectedBy) suspectedBy.push(reader.text())
    else reader.skip(fieldTag)
  }
  reader.leave(outer)
  if (!member || suspectedBy.length > suspectedByMax) throw new NoMessage()
  return { member, suspectedBy }
}

function readMember(reader: Reader): Member {
  const { member: tagOf } = tags
  const outer = reader.enter()
  let [name, address, domain, life] = ['', '', '', '']
  let incarnation = 0
  let status: Status | undefined = 'alive'
  let isJoined = false
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tagOf.name) name = reader.text()
    else if (fieldTag === tagOf.address) address = reader.text()
    else if (fieldTag === tagOf.domain) domain = reader.text()
    else if (fieldTag === tagOf.incarnation) incarnation = readIncarnation(reader)
    else if (fieldTag === tagOf.life) life = reader.text()
    else if (fieldTag === tagOf.status) status = statuses[reader.varint()]
    else if (fieldTag === tagOf.isJoined) isJoined = reader.varint() !== 0
    else reader.skip(fieldTag)
  }
  reader.leave(outer)
  if (name === '' || status === undefined) throw new NoMessage()
  return { name, address, domain, incarnation, life, status, isJoined }
}

function readIncarnation(reader: Reader): number {
  const incarnation = reader.varint()
  if (incarnation > incarnationMax) throw new NoMessage()
  return incarnation
}
