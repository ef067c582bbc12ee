// A trigger event: one change of an entity, and a delivery intent for each subscription that it has triggered. The
// outbox keeps it until all of them have ended.
//
// The row holds the entity as it then was, what the request did, and for each intent its subscription by name: after a
// crash the subscription counts as it is by then. A trigger event and the one read from its row render to the same
// messages.
//
// Not here: which subscriptions are triggered (triggers.ts), how long a row stays (outbox.ts).

import { type Attribute, type Entity, ignoresType, noMetadata } from '../../domain/entities/entity.js'
import { quoted } from '../../domain/entities/representation.js'
import type { Json } from '../../domain/json.js'
import type { NamedAttribute, NotificationInput } from '../../domain/subscriptions/message.js'
import { isOfText } from '../../domain/subscriptions/notification-body.js'
import type { AlterationType, Subscription } from '../../domain/subscriptions/subscription.js'
import { assertVersion, Unreadable } from '../../domain/unreadable.js'
import { decodeEntity, encodedJson, isAnswer } from '../../encoded-entity.js'

/** One notification of a trigger event: what the shard has decided. */
export interface DeliveryIntent {
  /** By which the receiver knows it when it comes again: no other notification has it. */
  readonly id: string
  readonly subscription: string
  /** Which notification of its request it is (docs/interface/notifications.md#correlators). */
  readonly number: number
  readonly alteration: AlterationType
  /** Whether the home of the subscription decides about it, and has to be asked first. The row keeps this. */
  readonly needsPermit: boolean
  /**
   * This owner is the home, and has granted it already. The row does not keep this: an owner that finds the row asks
   * again, because the grant may be lost although the row is not.
   */
  readonly isGranted: boolean
  /** How its tries have failed, which is counted already; undefined: none has. */
  readonly failed?: FailedTries | undefined
}

/** The tries of a notification that have failed, as its row keeps them. */
export interface FailedTries {
  /** 0: it was given up, and starts anew. */
  readonly tries: number
  /** Wall clock before which the receiver has asked not to be tried again; undefined: it has not. */
  readonly dueMs: number | undefined
}

export interface TriggerEvent {
  readonly shard: number
  /** Of the turn. */
  readonly stamp: number
  readonly tenant: string
  readonly path: string
  readonly correlator: string
  /**
   * Notifications of the same request that notifications have triggered, with these; undefined: the request has
   * triggered them itself.
   */
  readonly descendants?: number | undefined
  readonly authToken: string | undefined
  readonly entity: Entity
  readonly encoded: Buffer
  readonly named: readonly NamedAttribute[]
  readonly intents: readonly DeliveryIntent[]
}

/** What the message of an intent is rendered from, for its subscription as it is now. */
export function inputOf(event: TriggerEvent, intent: DeliveryIntent, subscription: Subscription): NotificationInput {
  const { tenant, path, correlator, authToken, entity, encoded, named } = event
  const { number, alteration } = intent
  const isOfEncoded = isAnswer(encoded) && isOfText(subscription.notification)
  const normalizedText = isOfEncoded ? encodedJson(encoded).toString() : undefined
  return {
    subscription,
    entity,
    path,
    tenant,
    named,
    alteration,
    correlator,
    number,
    authToken,
    notificationId: intent.id,
    normalizedText,
  }
}

// [hot] A stamp, which is below 2^53, takes half the time when it is written in halves, which are small numbers.
const half = 2 ** 28

/** The id of a notification: which one of a turn it is, in digits that sort. */
export const notificationIdOf = (shard: number, stamp: number, index: number): string =>
  (0x1_0000 + shard).toString(16).slice(1) +
  (half + Math.floor(stamp / half)).toString(16).slice(1) +
  (half + (stamp % half)).toString(16).slice(1) +
  (0x100_0000 + index).toString(16).slice(1)

/** The stamp of the turn in such an id; undefined: it is none. */
export function stampOfNotification(id: string): number | undefined {
  const digits = /^[0-9a-f]{4}([0-9a-f]{7})([0-9a-f]{7})[0-9a-f]{6}$/.exec(id)
  return digits ? Number.parseInt(digits[1]!, 16) * half + Number.parseInt(digits[2]!, 16) : undefined
}

const rowVersion = 1

/** Of an attribute as it was, notifications tell type and value; whether a location is one depends on its metadata. */
type WirePrevious = readonly [type: string, value: Json, ignoresType: 0 | 1]
type WireNamed = readonly [name: string, action: NamedAttribute['action'], previous?: WirePrevious]
/** An older build ignores `tries` and `dueMs`, and begins with the first try again. `dueMs` 0: no time is set. */
type WireIntent = readonly [
  subscription: string,
  number: number,
  alteration: AlterationType,
  claim: 0 | 1,
  id: string,
  tries?: number,
  dueMs?: number,
]

interface Head {
  readonly t: string
  readonly p: string
  readonly c: string
  readonly d?: number | undefined
  readonly a?: string | undefined
  readonly n: readonly WireNamed[]
  readonly e: readonly WireIntent[]
}

const rowHeadBytes = 5

// [hot] Once per change that triggers notifications.
/** u8 version, u32 length of a JSON head, the head, the image. */
export const encodeTriggerEvent = (event: TriggerEvent, intents?: readonly DeliveryIntent[]): Buffer =>
  rowOf(headText(event, intents), event)

/** The same of a trigger event with this head. */
export function rowOf(head: string, event: TriggerEvent): Buffer {
  const row = Buffer.allocUnsafe(rowBytes(head, event))
  writeRow(row, 0, head, event)
  return row
}

/** Bytes of the row of a trigger event with this head. */
export const rowBytes = (head: string, { encoded }: TriggerEvent): number =>
  rowHeadBytes + Buffer.byteLength(head) + encoded.length

/** Writes the row of a trigger event with this head from `at` on; gives where it ends. */
export function writeRow(bytes: Buffer, at: number, head: string, { encoded }: TriggerEvent): number {
  bytes[at] = rowVersion
  const encodedAt = at + rowHeadBytes + bytes.write(head, at + rowHeadBytes)
  bytes.writeUInt32BE(encodedAt - at - rowHeadBytes, at + 1)
  bytes.set(encoded, encodedAt)
  return encodedAt + encoded.length
}

/** What the row of a trigger event says besides the image. */
export function headText(event: TriggerEvent, intents: readonly DeliveryIntent[] = event.intents): string {
  const { tenant, path, correlator, descendants, authToken, named } = event
  // Put together by hand: in half the time that it takes to make the lists first.
  let json = `{"t":${quoted(tenant)},"p":${quoted(path)},"c":${quoted(correlator)}`
  if (descendants !== undefined) json += `,"d":${descendants}`
  if (authToken !== undefined) json += `,"a":${quoted(authToken)}`
  json += ',"n":['
  for (let at = 0; at < named.length; at++) json += (at > 0 ? ',' : '') + namedText(named[at]!)
  json += '],"e":['
  for (let at = 0; at < intents.length; at++) json += (at > 0 ? ',' : '') + intentText(intents[at]!)
  return `${json}]}`
}

/** Fails with `Unreadable` unless a row has this release's version, and the frame of one. */
export function assertTriggerEvent(row: Buffer): void {
  assertVersion('a pending notification', row[0], rowVersion)
  if (row.length < rowHeadBytes || rowHeadBytes + row.readUInt32BE(1) > row.length)
    throw new Unreadable('a pending notification is damaged')
}

/** The trigger event of a row; it shares the row's memory. */
export function decodeTriggerEvent(row: Buffer, { shard, stamp }: Pick<TriggerEvent, 'shard' | 'stamp'>): TriggerEvent {
  assertTriggerEvent(row)
  const encodedAt = rowHeadBytes + row.readUInt32BE(1)
  const { t, p, c, d, a, n, e }: Head = JSON.parse(row.toString('utf8', rowHeadBytes, encodedAt))
  const encoded = row.subarray(encodedAt)
  return {
    shard,
    stamp,
    tenant: t,
    path: p,
    correlator: c,
    descendants: d,
    authToken: a,
    entity: decodeEntity(encoded),
    encoded,
    named: n.map(([name, action, previous]) => ({ name, action, previous: previous && previousOf(previous) })),
    intents: e.map(([subscription, number, alteration, claim, id, tries, dueMs]) => ({
      id,
      subscription,
      number,
      alteration,
      needsPermit: claim === 1,
      isGranted: false,
      ...(tries !== undefined && { failed: { tries, dueMs: dueMs || undefined } }),
    })),
  }
}

const namedText = ({ name, action, previous }: NamedAttribute): string =>
  previous ? `[${quoted(name)},"${action}",${previousText(previous)}]` : `[${quoted(name)},"${action}"]`

const previousText = ({ type, value, metadata }: Attribute): string =>
  `[${quoted(type)},${JSON.stringify(value)},${ignoresType(metadata) ? 1 : 0}]`

function intentText({ subscription, number, alteration, needsPermit, id, failed }: DeliveryIntent): string {
  const tries = failed ? `,${failed.tries},${failed.dueMs ?? 0}` : ''
  return `["${subscription}",${number},"${alteration}",${needsPermit ? 1 : 0},"${id}"${tries}]`
}

const ignoring = new Map([['ignoreType', { type: 'Boolean', value: true }]])

const previousOf = ([type, value, ignores]: WirePrevious): Attribute => ({
  type,
  value,
  metadata: ignores ? ignoring : noMetadata,
  createdMs: Number.NaN,
  modifiedMs: Number.NaN,
})
