// The most frequent requests and replies, as bytes that need no parser. [hot] Owners ask each other mostly for reads by
// id, changes of attributes and lists. As JSON, encoding them costs more than sending them (bench `workers`).
//
//   request   u8 form | u8 flags | u16 count of texts | f64 numbers | u32 length of each text, 0xffffffff: undefined
//             | the texts as one, UTF-8
//   found     u8 form | u32 bytes before the entities | u32 count | per entity u32 length of its path, u32 of its bytes
//             | paths | encoded entities
//   done      u8 form
//   part      u8 form | u8 encoded entities: 0 none, 1 all, 2 the first | u32 count | f64 total | u32 bytes of the JSON
//             | u32 number of encoded entities, if 2 | columns: of each entity f64 created, u32 range, u16 shard
//             | ends: of each encoded entity u32, counted from the first | JSON: ranges and values (ListKeys)
//             | encoded entities
//
// Numbers are little endian. Lengths of texts are in characters: all texts are written, and read, at once. The encoded
// entities of a part are cut out only when they are needed: each owner sends as many as the page has, and few of them
// are shown.
//
// Bytes that are incomplete, or that this release does not know, fail with `Unreadable`. All else is JSON (wire.ts).

import type { Json } from '../domain/json.js'
import { Unreadable } from '../domain/unreadable.js'
import { isEncodedEntity } from '../encoded-entity.js'
import type {
  Attributes,
  AttributesRequest,
  EncodedEntities,
  FindRequest,
  FoundEntity,
  ListKeys,
  Numbering,
  ShardReply,
} from '../messages/messages.js'
import { isPartJson } from './shapes.js'

/**
 * The first byte of every request and reply. It identifies the content and its layout.
 *
 * A number always means one layout: it is the version of the form. A release with another layout gives it another
 * number, and uses that only for nodes that know it. A member that an older release may ignore needs no new number.
 *
 * A node answers bytes that it does not understand with `notUnderstood` and the reason. That form stays in every
 * release, so the asking node knows that nothing has happened.
 */
export const forms = {
  find: 0x80,
  write: 0x81,
  found: 0x82,
  done: 0x83,
  part: 0x84,
  request: 0x85,
  reply: 0x86,
  granted: 0x87,
  notUnderstood: 0xff,
} as const

type Text = string | undefined

const headBytes = 4
const numberBytes = 8
const lengthBytes = 4
const absent = 0xffff_ffff

function pack(form: number, flags: number, numbers: readonly number[], texts: readonly Text[]): Buffer {
  let text = ''
  for (const one of texts) if (one !== undefined) text += one
  const textAt = headBytes + numbers.length * numberBytes + texts.length * lengthBytes
  const bytes = Buffer.allocUnsafe(textAt + Buffer.byteLength(text))
  bytes[0] = form
  bytes[1] = flags
  let at = bytes.writeUInt16LE(texts.length, 2)
  for (const number of numbers) at = bytes.writeDoubleLE(number, at)
  for (const one of texts) at = bytes.writeUInt32LE(one === undefined ? absent : one.length, at)
  bytes.write(text, at)
  return bytes
}

/** Reads the texts after this many numbers. */
function unpackTexts(bytes: Buffer, numbers: number): Text[] {
  const count = bytes.readUInt16LE(2)
  const lengthsAt = headBytes + numbers * numberBytes
  const text = bytes.toString('utf8', lengthsAt + count * lengthBytes)
  const texts: Text[] = []
  let from = 0
  for (let at = lengthsAt; texts.length < count; at += lengthBytes) {
    const length = bytes.readUInt32LE(at)
    if (length === absent) texts.push(undefined)
    else {
      texts.push(text.slice(from, from + length))
      from += length
    }
  }
  if (from !== text.length) throw new Unreadable('the lengths of its texts are wrong')
  return texts
}

/** A text that must be present. */
function present(text: Text): string {
  if (text === undefined) throw new Unreadable('a text is missing')
  return text
}

/** The limit of texts in a packed request; with more texts it is sent as JSON. */
const textsMax = 0xffff

const numberAt = (bytes: Buffer, index: number): number => bytes.readDoubleLE(headBytes + index * numberBytes)

/** Packs a read by id; undefined: it has too many paths. */
export function packFind({ tenant, paths, id, type }: FindRequest): Buffer | undefined {
  const texts = [tenant, id, type, ...paths]
  return texts.length > textsMax ? undefined : pack(forms.find, 0, [], texts)
}

/** Reads the bytes of `packFind`. */
export function unpackFind(bytes: Buffer): FindRequest {
  const [tenant, id, type, ...paths] = unpackTexts(bytes, 0)
  if (bytes[1] !== 0) throw new Unreadable('it has flags that are not known')
  return { kind: 'find', tenant: present(tenant), paths: paths.map(present), id: present(id), type }
}

const writeKinds = ['append', 'appendStrict', 'update', 'replace'] as const satisfies AttributesRequest['kind'][]

/** The lowest bits are the kind. */
const kindBits = 2
const flags = {
  overrideMetadata: 1 << kindBits,
  forcedUpdate: 2 << kindBits,
  isCustomNotification: 4 << kindBits,
  isPaced: 8 << kindBits,
  isPatchedNotification: 16 << kindBits,
} as const
/** All known flags. */
const flagsMax = (1 << (kindBits + 5)) - 1
const writeTexts = 9

/** Replaces a number that is undefined. */
const noNumber = Number.NaN
const numberOf = (number: number | undefined): number => number ?? noNumber

/** Packs a change of attributes; `wire` are its attributes as JSON. */
export function packWrite(request: AttributesRequest, wire: string): Buffer {
  const { kind, target, options, origin, stamp, createAs } = request
  const { numbering } = origin
  const bits =
    writeKinds.indexOf(kind) |
    (options.overrideMetadata ? flags.overrideMetadata : 0) |
    (options.forcedUpdate ? flags.forcedUpdate : 0) |
    (origin.isCustomNotification ? flags.isCustomNotification : 0) |
    (origin.isPaced ? flags.isPaced : 0) |
    (origin.isPatchedNotification ? flags.isPatchedNotification : 0)
  return pack(
    forms.write,
    bits,
    [numberOf(stamp), numberOf(numbering?.next), numberOf(numbering?.step)],
    [
      target.tenant,
      target.path,
      target.id,
      target.type,
      origin.correlatorRoot,
      origin.correlator,
      origin.authToken,
      createAs,
      wire,
    ],
  )
}

/** Reads the bytes of `packWrite`; `attributesOf` parses its attributes. */
export function unpackWrite(bytes: Buffer, attributesOf: (wire: Json) => Attributes): AttributesRequest {
  const texts = unpackTexts(bytes, 3)
  if (texts.length !== writeTexts || bytes[1]! > flagsMax)
    throw new Unreadable('it has texts or flags that are not known')
  const [tenant, path, id, type, correlatorRoot, correlator, authToken, createAs, wire] = texts
  const bits = bytes[1]!
  const stamp = numberAt(bytes, 0)
  return {
    kind: writeKinds[bits % (1 << kindBits)]!,
    target: { tenant: present(tenant), path: present(path), id: present(id), type },
    attributes: attributesOf(JSON.parse(present(wire)) as Json),
    options: {
      overrideMetadata: (bits & flags.overrideMetadata) !== 0,
      forcedUpdate: (bits & flags.forcedUpdate) !== 0,
    },
    origin: {
      correlatorRoot: present(correlatorRoot),
      correlator,
      authToken,
      isCustomNotification: (bits & flags.isCustomNotification) !== 0 || undefined,
      isPatchedNotification: (bits & flags.isPatchedNotification) !== 0 || undefined,
      isPaced: (bits & flags.isPaced) !== 0 || undefined,
      numbering: numberingOf(numberAt(bytes, 1), numberAt(bytes, 2)),
    },
    stamp: Number.isNaN(stamp) ? undefined : stamp,
    createAs,
  }
}

const numberingOf = (next: number, step: number): Numbering | undefined =>
  Number.isNaN(next) ? undefined : { next, step }

/** Shared by all replies: its one byte never changes. */
const done = Buffer.of(forms.done)

/** The bytes of the reply to a successful write. */
export const packDone = (): Buffer => done

const foundHeadBytes = 9
const entityBytes = 8

/** Packs found entities. */
export function packFound(entities: readonly FoundEntity[]): Buffer {
  let paths = ''
  let encodedBytes = 0
  for (const { path, encoded } of entities) {
    paths += path
    encodedBytes += encoded.length
  }
  const pathsAt = foundHeadBytes + entities.length * entityBytes
  const encodedEntitiesAt = pathsAt + Buffer.byteLength(paths)
  const bytes = Buffer.allocUnsafe(encodedEntitiesAt + encodedBytes)
  bytes[0] = forms.found
  bytes.writeUInt32LE(encodedEntitiesAt, 1)
  bytes.writeUInt32LE(entities.length, 5)
  bytes.write(paths, pathsAt)
  let at = foundHeadBytes
  let encodedAt = encodedEntitiesAt
  for (const { path, encoded } of entities) {
    at = bytes.writeUInt32LE(path.length, at)
    at = bytes.writeUInt32LE(encoded.length, at)
    bytes.set(encoded, encodedAt)
    encodedAt += encoded.length
  }
  return bytes
}

/** Reads the bytes of `packFound`. The encoded entities share their memory. */
export function unpackFound(bytes: Buffer): ShardReply {
  let encodedAt = bytes.readUInt32LE(1)
  const count = bytes.readUInt32LE(5)
  if (foundHeadBytes + count * entityBytes > encodedAt || encodedAt > bytes.length)
    throw new Unreadable('it has more entities than room for them')
  const paths = bytes.toString('utf8', foundHeadBytes + count * entityBytes, encodedAt)
  const entities: FoundEntity[] = []
  let from = 0
  for (let at = foundHeadBytes; entities.length < count; at += entityBytes) {
    const to = from + bytes.readUInt32LE(at)
    const end = encodedAt + bytes.readUInt32LE(at + 4)
    const encoded = bytes.subarray(encodedAt, end)
    if (!isEncodedEntity(encoded)) throw new Unreadable('an entity is of another version, or damaged')
    entities.push({ path: paths.slice(from, to), encoded })
    from = to
    encodedAt = end
  }
  if (from !== paths.length || encodedAt !== bytes.length) throw new Unreadable('its length is wrong')
  return { kind: 'found', entities }
}

// The part of a list that one of several owners answers. Each list of a client brings one such reply from each other
// owner.

type Part = Extract<ShardReply, { kind: 'part' }>

const countAt = 2
const totalAt = 6
const jsonBytesAt = 14
const partHeadBytes = 18
/** After the head, when not every entity has its encoded entity. */
const encodedCountBytes = 4
const noEncoded = 0
const allEncoded = 1
const firstEncoded = 2
const keyBytes = 14
const endBytes = 4

/** Packs the part of a list. */
export function packPart({ keys, encodedEntities, total }: Part): Buffer {
  const { created, shards, rangeOf, ranges, values } = keys
  const count = created.length
  const json = JSON.stringify([ranges, values])
  const jsonBytes = Buffer.byteLength(json)
  const encodedCount = encodedEntities?.length ?? 0
  const have = !encodedEntities ? noEncoded : encodedCount === count ? allEncoded : firstEncoded
  const keysAt = partHeadBytes + (have === firstEncoded ? encodedCountBytes : 0)
  const endsAt = keysAt + count * keyBytes
  const jsonAt = endsAt + encodedCount * endBytes
  const encodedEntitiesAt = jsonAt + jsonBytes
  let encodedBytes = 0
  if (encodedEntities) for (let at = 0; at < encodedCount; at++) encodedBytes += encodedEntities.at(at)!.length

  const bytes = Buffer.allocUnsafe(encodedEntitiesAt + encodedBytes)
  const view = viewOf(bytes)
  bytes[0] = forms.part
  bytes[1] = have
  view.setUint32(countAt, count, true)
  view.setFloat64(totalAt, total, true)
  view.setUint32(jsonBytesAt, jsonBytes, true)
  if (have === firstEncoded) view.setUint32(partHeadBytes, encodedCount, true)
  for (let at = 0, keyAt = keysAt; at < count; at++, keyAt += keyBytes) {
    view.setFloat64(keyAt, created[at]!, true)
    view.setUint32(keyAt + 8, rangeOf[at]!, true)
    view.setUint16(keyAt + 12, shards[at]!, true)
  }
  bytes.write(json, jsonAt)
  if (!encodedEntities) return bytes
  let end = 0
  for (let at = 0; at < encodedCount; at++) {
    const encoded = encodedEntities.at(at)!
    bytes.set(encoded, encodedEntitiesAt + end)
    end += encoded.length
    view.setUint32(endsAt + at * endBytes, end, true)
  }
  return bytes
}

/** Reads the bytes of `packPart`. The encoded entities share their memory. */
export function unpackPart(bytes: Buffer): Part {
  const view = viewOf(bytes)
  const count = view.getUint32(countAt, true)
  const have = bytes[1]!
  const encodedCount = have === firstEncoded ? view.getUint32(partHeadBytes, true) : have === allEncoded ? count : 0
  const keysAt = partHeadBytes + (have === firstEncoded ? encodedCountBytes : 0)
  const endsAt = keysAt + count * keyBytes
  const jsonAt = endsAt + encodedCount * endBytes
  const encodedEntitiesAt = jsonAt + view.getUint32(jsonBytesAt, true)
  const total = view.getFloat64(totalAt, true)
  const isWhole = have <= firstEncoded && encodedCount <= count && encodedEntitiesAt <= bytes.length
  if (!isWhole || !Number.isSafeInteger(total) || total < 0) throw new Unreadable('a part of a list is not whole')
  const [ranges, values] = partJson(bytes.toString('utf8', jsonAt, encodedEntitiesAt))
  if (values.length !== 0 && values.length !== count) throw new Unreadable('a part of a list lacks values')
  const created = new Float64Array(count)
  const shards = new Uint16Array(count)
  const rangeOf = new Uint32Array(count)
  for (let at = 0, keyAt = keysAt; at < count; at++, keyAt += keyBytes) {
    created[at] = view.getFloat64(keyAt, true)
    const range = view.getUint32(keyAt + 8, true)
    if (range >= ranges.length) throw new Unreadable('a part of a list lacks a range')
    rangeOf[at] = range
    shards[at] = view.getUint16(keyAt + 12, true)
  }
  const encodedEntities =
    have === noEncoded ? undefined : new PackedEntities(bytes, encodedCount, endsAt, encodedEntitiesAt)
  return {
    kind: 'part',
    keys: { created, shards, rangeOf, ranges, values },
    encodedEntities,
    total,
  }
}

function partJson(text: string): [ListKeys['ranges'], ListKeys['values']] {
  const found: unknown = JSON.parse(text)
  if (!isPartJson(found)) throw new Unreadable('a part of a list has other JSON than is known')
  return found as [ListKeys['ranges'], ListKeys['values']]
}

/** An entity of another version, or a damaged one, counts as not sent: the code that needs it fetches it. */
class PackedEntities implements EncodedEntities {
  constructor(
    private readonly bytes: Buffer,
    readonly length: number,
    private readonly endsAt: number,
    private readonly encodedEntitiesAt: number,
  ) {}

  at(index: number): Buffer | undefined {
    if (index < 0 || index >= this.length) return undefined
    const begin = index === 0 ? 0 : this.endOf(index - 1)
    const encoded = this.bytes.subarray(this.encodedEntitiesAt + begin, this.encodedEntitiesAt + this.endOf(index))
    return isEncodedEntity(encoded) ? encoded : undefined
  }

  private endOf(index: number): number {
    return this.bytes.readUInt32LE(this.endsAt + index * endBytes)
  }
}

const viewOf = ({ buffer, byteOffset, length }: Buffer): DataView => new DataView(buffer, byteOffset, length)
