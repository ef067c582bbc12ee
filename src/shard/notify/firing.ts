// A firing: one change of an entity, and the subscriptions that it has fired. It is what the outbox keeps until all is sent.
//
// The row holds the entity as it then was, what the request did, and for each notification its subscription by name: who sends it after a
// crash takes the subscription as it is by then. A firing and the one read from its row make the same notifications.
//
// Not here: which subscriptions fire (triggers.ts), how long a row stays (outbox.ts).

import type { Attribute, Entity } from '../../domain/entities/entity.js'
import { ignoresType, noMetadata } from '../../domain/entities/entity.js'
import { quoted } from '../../domain/entities/representation.js'
import type { Json } from '../../domain/json.js'
import { isOfText } from '../../domain/subscriptions/notification-body.js'
import type { NamedAttribute, Occasion } from '../../domain/subscriptions/occasion.js'
import type { AlterationType, Subscription } from '../../domain/subscriptions/subscription.js'
import { assertVersion, Unreadable } from '../../domain/unreadable.js'
import { decodeImage, imageJson, isAnswer } from '../../image.js'

/** One notification of a firing. */
export interface FiredEntry {
  /** By which the receiver knows it when it comes again: no other notification has it. */
  readonly id: string
  readonly subscription: string
  /** Which notification of its request it is (subscriptions.md §8.3). */
  readonly number: number
  readonly alteration: AlterationType
  /** Whether the home of the subscription has to be asked first. */
  readonly isToBeClaimed: boolean
}

export interface Firing {
  readonly shard: number
  /** Of the turn. */
  readonly stamp: number
  readonly tenant: string
  readonly path: string
  readonly correlator: string
  /** Notifications of the same request that notifications have triggered, with these; undefined: the request has triggered them itself. */
  readonly descendants?: number | undefined
  readonly authToken: string | undefined
  readonly entity: Entity
  readonly image: Buffer
  readonly named: readonly NamedAttribute[]
  readonly entries: readonly FiredEntry[]
}

/** The notification of an entry, for its subscription as it is now. */
export function occasionOf(firing: Firing, entry: FiredEntry, subscription: Subscription): Occasion {
  const { tenant, path, correlator, authToken, entity, image, named } = firing
  const { number, alteration } = entry
  const isOfImage = isAnswer(image) && isOfText(subscription.notification)
  const normalizedText = isOfImage ? imageJson(image).toString() : undefined
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
    notificationId: entry.id,
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

const rowVersion = 1

/** Of an attribute as it was, notifications tell type and value; whether a location is one depends on its metadata. */
type WirePrevious = readonly [type: string, value: Json, ignoresType: 0 | 1]
type WireNamed = readonly [name: string, action: NamedAttribute['action'], previous?: WirePrevious]
type WireEntry = readonly [subscription: string, number: number, alteration: AlterationType, claim: 0 | 1, id: string]

interface Head {
  readonly t: string
  readonly p: string
  readonly c: string
  readonly d?: number | undefined
  readonly a?: string | undefined
  readonly n: readonly WireNamed[]
  readonly e: readonly WireEntry[]
}

const rowHeadBytes = 5

// [hot] Once per change that fires.
/** u8 version, u32 length of a JSON head, the head, the image. */
export const encodeFiring = (firing: Firing, entries?: readonly FiredEntry[]): Buffer =>
  rowOf(headText(firing, entries), firing)

/** The same of a firing with this head. */
export function rowOf(head: string, firing: Firing): Buffer {
  const row = Buffer.allocUnsafe(rowBytes(head, firing))
  writeRow(row, 0, head, firing)
  return row
}

/** Bytes of the row of a firing with this head. */
export const rowBytes = (head: string, { image }: Firing): number =>
  rowHeadBytes + Buffer.byteLength(head) + image.length

/** Writes the row of a firing with this head from `at` on; gives where it ends. */
export function writeRow(bytes: Buffer, at: number, head: string, { image }: Firing): number {
  bytes[at] = rowVersion
  const imageAt = at + rowHeadBytes + bytes.write(head, at + rowHeadBytes)
  bytes.writeUInt32BE(imageAt - at - rowHeadBytes, at + 1)
  bytes.set(image, imageAt)
  return imageAt + image.length
}

/** What the row of a firing says besides the image. */
export function headText(firing: Firing, entries: readonly FiredEntry[] = firing.entries): string {
  const { tenant, path, correlator, descendants, authToken, named } = firing
  // Put together by hand: in half the time that it takes to make the lists first.
  let json = `{"t":${quoted(tenant)},"p":${quoted(path)},"c":${quoted(correlator)}`
  if (descendants !== undefined) json += `,"d":${descendants}`
  if (authToken !== undefined) json += `,"a":${quoted(authToken)}`
  json += ',"n":['
  for (let at = 0; at < named.length; at++) json += (at > 0 ? ',' : '') + namedText(named[at]!)
  json += '],"e":['
  for (let at = 0; at < entries.length; at++) json += (at > 0 ? ',' : '') + entryText(entries[at]!)
  return `${json}]}`
}

/** Fails with `Unreadable` unless a row has this release's version, and the frame of one. */
export function assertFiring(row: Buffer): void {
  assertVersion('a notification that is owed', row[0], rowVersion)
  if (row.length < rowHeadBytes || rowHeadBytes + row.readUInt32BE(1) > row.length)
    throw new Unreadable('a notification that is owed is damaged')
}

/** The firing of a row; it shares the row's memory. */
export function decodeFiring(row: Buffer, { shard, stamp }: Pick<Firing, 'shard' | 'stamp'>): Firing {
  assertFiring(row)
  const imageAt = rowHeadBytes + row.readUInt32BE(1)
  const { t, p, c, d, a, n, e }: Head = JSON.parse(row.toString('utf8', rowHeadBytes, imageAt))
  const image = row.subarray(imageAt)
  return {
    shard,
    stamp,
    tenant: t,
    path: p,
    correlator: c,
    descendants: d,
    authToken: a,
    entity: decodeImage(image),
    image,
    named: n.map(([name, action, previous]) => ({ name, action, previous: previous && previousOf(previous) })),
    entries: e.map(([subscription, number, alteration, claim, id]) => ({
      id,
      subscription,
      number,
      alteration,
      isToBeClaimed: claim === 1,
    })),
  }
}

const namedText = ({ name, action, previous }: NamedAttribute): string =>
  previous ? `[${quoted(name)},"${action}",${previousText(previous)}]` : `[${quoted(name)},"${action}"]`

const previousText = ({ type, value, metadata }: Attribute): string =>
  `[${quoted(type)},${JSON.stringify(value)},${ignoresType(metadata) ? 1 : 0}]`

const entryText = ({ subscription, number, alteration, isToBeClaimed, id }: FiredEntry): string =>
  `["${subscription}",${number},"${alteration}",${isToBeClaimed ? 1 : 0},"${id}"]`

const ignoring = new Map([['ignoreType', { type: 'Boolean', value: true }]])

const previousOf = ([type, value, ignores]: WirePrevious): Attribute => ({
  type,
  value,
  metadata: ignores ? ignoring : noMetadata,
  createdMs: Number.NaN,
  modifiedMs: Number.NaN,
})
