// A trigger event: one change of an entity, and a delivery intent for each subscription that it has triggered. The
// outbox keeps it until all intents have ended.
//
// The row has the entity after the change, the changed attributes, and for each intent the id of its subscription.
// After a crash the subscription is used as it is by then. A trigger event and the one read from its row render to the
// same messages.
//
// Not here: which subscriptions are triggered (triggers.ts), how long a row stays (outbox.ts).

import { asSeen, everyAttribute, shows } from '../../domain/access/attribute-set.js'
import { attributesUnder, type GrantOfOwner } from '../../domain/access/watching.js'
import { type Attribute, type Entity, ignoresType, noMetadata } from '../../domain/entities/entity.js'
import { quoted } from '../../domain/entities/representation.js'
import type { Json } from '../../domain/json.js'
import type { NamedAttribute, NotificationInput } from '../../domain/subscriptions/message.js'
import { isOfText } from '../../domain/subscriptions/notification-body.js'
import type { AlterationType, Subscription } from '../../domain/subscriptions/subscription.js'
import { assertVersion, Unreadable } from '../../domain/unreadable.js'
import { decodeEntity, encodedJson, isAnswer } from '../../encoded-entity.js'

/** One notification of a trigger event, as the shard has decided it. */
export interface DeliveryIntent {
  /** The receiver recognizes a repeated notification by it: no other notification has it. */
  readonly id: string
  readonly subscription: string
  /** The number of the notification in its request (docs/interface/notifications.md#correlators). */
  readonly number: number
  readonly alteration: AlterationType
  /** Whether the document owner decides about the notification, and has to be asked first. The row keeps this. */
  readonly needsPermit: boolean
  /**
   * Whether this owner is the document owner and has already granted the permit. The row does not keep this: an owner
   * that finds the row asks again, because the permit may be lost although the row is not.
   */
  readonly isGranted: boolean
  /** Its failed tries, which are counted already; undefined: there are none. */
  readonly failed?: FailedTries | undefined
}

/** The tries of a notification that have failed, as its row keeps them. */
export interface FailedTries {
  /** 0: it was given up, and starts again. */
  readonly tries: number
  /** Wall clock before which the receiver has asked for no further try; undefined: it has not asked. */
  readonly dueMs: number | undefined
}

export interface TriggerEvent {
  readonly shard: number
  /** The stamp of the turn. */
  readonly stamp: number
  readonly tenant: string
  readonly path: string
  readonly correlator: string
  /**
   * The number of notifications of the same request that notifications have triggered, these included; undefined: the
   * request itself has triggered them.
   */
  readonly descendants?: number | undefined
  readonly authToken: string | undefined
  readonly entity: Entity
  readonly encoded: Buffer
  readonly named: readonly NamedAttribute[]
  readonly intents: readonly DeliveryIntent[]
}

/**
 * The input from which the message of an intent is rendered, with its subscription as it is now; undefined: the present
 * rules of the owner of the subscription do not cover the entity. `grantOfOwner` undefined: there is no access control.
 */
export function inputOf(
  event: TriggerEvent,
  intent: DeliveryIntent,
  subscription: Subscription,
  grantOfOwner: GrantOfOwner | undefined,
): NotificationInput | undefined {
  const { tenant, path, correlator, authToken, encoded } = event
  const { number, alteration } = intent
  const shown = grantOfOwner ? attributesUnder(grantOfOwner(subscription), event.entity, path) : everyAttribute
  if (!shown) return undefined
  const isWhole = shown.kind === 'all'
  const entity = asSeen(shown, event.entity)
  const named = isWhole ? event.named : event.named.filter(({ name }) => shows(shown, name))
  const isOfEncoded = isWhole && isAnswer(encoded) && isOfText(subscription.notification)
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

/** The id of a notification: turn and index, in digits that sort. */
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

/**
 * The type and value of an attribute before the change, as notifications need them. Its metadata decides whether a
 * location is one.
 */
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
/** The row of a trigger event: u8 version, u32 length of a JSON head, the head, the encoded entity. */
export const encodeTriggerEvent = (event: TriggerEvent, intents?: readonly DeliveryIntent[]): Buffer =>
  rowOf(headText(event, intents), event)

/** The row of a trigger event with this head. */
export function rowOf(head: string, event: TriggerEvent): Buffer {
  const row = Buffer.allocUnsafe(rowBytes(head, event))
  writeRow(row, 0, head, event)
  return row
}

/** Bytes of the row of a trigger event with this head. */
export const rowBytes = (head: string, { encoded }: TriggerEvent): number =>
  rowHeadBytes + Buffer.byteLength(head) + encoded.length

/** Writes the row of a trigger event with this head from `at` on; returns its end. */
export function writeRow(bytes: Buffer, at: number, head: string, { encoded }: TriggerEvent): number {
  bytes[at] = rowVersion
  const encodedAt = at + rowHeadBytes + bytes.write(head, at + rowHeadBytes)
  bytes.writeUInt32BE(encodedAt - at - rowHeadBytes, at + 1)
  bytes.set(encoded, encodedAt)
  return encodedAt + encoded.length
}

/** The head of a trigger event's row: everything except the encoded entity. */
export function headText(event: TriggerEvent, intents: readonly DeliveryIntent[] = event.intents): string {
  const { tenant, path, correlator, descendants, authToken, named } = event
  // The text is joined by hand, in half the time that it takes to make the lists first.
  let json = `{"t":${quoted(tenant)},"p":${quoted(path)},"c":${quoted(correlator)}`
  if (descendants !== undefined) json += `,"d":${descendants}`
  if (authToken !== undefined) json += `,"a":${quoted(authToken)}`
  json += ',"n":['
  for (let at = 0; at < named.length; at++) json += (at > 0 ? ',' : '') + namedText(named[at]!)
  json += '],"e":['
  for (let at = 0; at < intents.length; at++) json += (at > 0 ? ',' : '') + intentText(intents[at]!)
  return `${json}]}`
}

/** Fails with `Unreadable` unless a row has this release's version, and a valid frame. */
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
