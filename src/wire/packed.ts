// Requests and replies that come with every other request of a client, as bytes that take no parser: [hot] between workers what is asked most is a
// read by id, a change of attributes, and their replies, and as JSON their bytes cost more than their way (bench `workers`).
//
// The form is the version (forms.ts). Bytes that are not whole, or say what this release does not know, fail with `Unreadable`.
//
//   request   u8 form | u8 flags | u16 count of texts | f64 numbers | u32 length of each text, 0xffffffff: undefined | the texts as one, UTF-8
//   found     u8 form | u32 bytes of all before the images | u32 count | per entity u32 length of its path, u32 of its image | paths | images
//   done      u8 form
//
// Lengths of texts are in characters: all texts are written, and read, at once.
//
// Not here: the part of a list (part.ts), which begins with another form; everything else that is asked and answered, which is JSON (wire.ts).

import type { Json } from '../domain/json.js'
import { Unreadable } from '../domain/unreadable.js'
import { isImage } from '../image.js'
import type { Attributes, AttributesRequest, FindRequest, Found, Numbering, ShardReply } from '../messages/messages.js'
import { forms } from './forms.js'

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

/** The texts behind so many numbers. */
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
  if (from !== text.length) throw new Unreadable('its texts are not as long as it says')
  return texts
}

/** A text that has to be there. */
function present(text: Text): string {
  if (text === undefined) throw new Unreadable('a text is missing')
  return text
}

/** More texts than these have a form of their own. */
const textsMax = 0xffff

const numberAt = (bytes: Buffer, index: number): number => bytes.readDoubleLE(headBytes + index * numberBytes)

/** The bytes of a read by id; undefined: it has too many paths. */
export function packFind({ tenant, paths, id, type }: FindRequest): Buffer | undefined {
  const texts = [tenant, id, type, ...paths]
  return texts.length > textsMax ? undefined : pack(forms.find, 0, [], texts)
}

/** The read by id of packed bytes. */
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
/** All that are known. */
const flagsMax = (1 << (kindBits + 5)) - 1
const writeTexts = 9

/** What stands for a number that is undefined. */
const noNumber = Number.NaN
const numberOf = (number: number | undefined): number => number ?? noNumber

/** The bytes of a change of attributes; `wire` are its attributes as JSON. */
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

/** The change of attributes of packed bytes; `attributesOf` makes attributes of what `packWrite` was given. */
export function unpackWrite(bytes: Buffer, attributesOf: (wire: Json) => Attributes): AttributesRequest {
  const texts = unpackTexts(bytes, 3)
  if (texts.length !== writeTexts || bytes[1]! > flagsMax) throw new Unreadable('it has more than is known')
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

/** Shared by all who reply it: its one byte never changes. */
const done = Buffer.of(forms.done)

/** The bytes of a reply to a write that was done. */
export const packDone = (): Buffer => done

const foundHeadBytes = 9
const entityBytes = 8

/** The bytes of found entities. */
export function packFound(entities: readonly Found[]): Buffer {
  let paths = ''
  let imageBytes = 0
  for (const { path, image } of entities) {
    paths += path
    imageBytes += image.length
  }
  const pathsAt = foundHeadBytes + entities.length * entityBytes
  const imagesAt = pathsAt + Buffer.byteLength(paths)
  const bytes = Buffer.allocUnsafe(imagesAt + imageBytes)
  bytes[0] = forms.found
  bytes.writeUInt32LE(imagesAt, 1)
  bytes.writeUInt32LE(entities.length, 5)
  bytes.write(paths, pathsAt)
  let at = foundHeadBytes
  let imageAt = imagesAt
  for (const { path, image } of entities) {
    at = bytes.writeUInt32LE(path.length, at)
    at = bytes.writeUInt32LE(image.length, at)
    bytes.set(image, imageAt)
    imageAt += image.length
  }
  return bytes
}

/** The found entities of packed bytes. Their images share the memory. */
export function unpackFound(bytes: Buffer): ShardReply {
  let imageAt = bytes.readUInt32LE(1)
  const count = bytes.readUInt32LE(5)
  if (foundHeadBytes + count * entityBytes > imageAt || imageAt > bytes.length)
    throw new Unreadable('it has more entities than room for them')
  const paths = bytes.toString('utf8', foundHeadBytes + count * entityBytes, imageAt)
  const entities: Found[] = []
  let from = 0
  for (let at = foundHeadBytes; entities.length < count; at += entityBytes) {
    const to = from + bytes.readUInt32LE(at)
    const end = imageAt + bytes.readUInt32LE(at + 4)
    const image = bytes.subarray(imageAt, end)
    if (!isImage(image)) throw new Unreadable('an entity is of another version, or damaged')
    entities.push({ path: paths.slice(from, to), image })
    from = to
    imageAt = end
  }
  if (from !== paths.length || imageAt !== bytes.length) throw new Unreadable('it is not as long as it says')
  return { kind: 'found', entities }
}
