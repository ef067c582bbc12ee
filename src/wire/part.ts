// What one of several owners answers to a list, as bytes: [hot] with every list of a client one such reply comes from each other owner.
//
//   part   u8 form | u8 images: 0 none, 1 of all, 2 of the first | u32 count | f64 total | u32 bytes of the JSON | u32 number of images, if 2
//          | columns | ends | JSON | images
//
//   columns   of each entity f64 created, u32 range, u16 shard
//   ends      of each image u32, counted from the first
//   JSON      ranges and values (ListKeys)
//
// Numbers are little endian, one after the other. Images stay where they are until one is wanted: each owner sends as many as the page has, and
// of those of n owners one in n is shown.

import { Unreadable } from '../domain/unreadable.js'
import { isImage } from '../image.js'
import type { Images, ListKeys, ShardReply } from '../messages/messages.js'
import { forms } from './forms.js'
import { isPartJson } from './shapes.js'

type Part = Extract<ShardReply, { kind: 'part' }>

const countAt = 2
const totalAt = 6
const jsonBytesAt = 14
const headBytes = 18
/** Behind the head, where not every entity has its image. */
const imageCountBytes = 4
const noImages = 0
const allImages = 1
const firstImages = 2
const keyBytes = 14
const endBytes = 4

/** The bytes of the part of a list. */
export function packPart({ keys, images, total }: Part): Buffer {
  const { created, shards, rangeOf, ranges, values } = keys
  const count = created.length
  const json = JSON.stringify([ranges, values])
  const jsonBytes = Buffer.byteLength(json)
  const imageCount = images?.length ?? 0
  const have = !images ? noImages : imageCount === count ? allImages : firstImages
  const keysAt = headBytes + (have === firstImages ? imageCountBytes : 0)
  const endsAt = keysAt + count * keyBytes
  const jsonAt = endsAt + imageCount * endBytes
  const imagesAt = jsonAt + jsonBytes
  let imageBytes = 0
  if (images) for (let at = 0; at < imageCount; at++) imageBytes += images.at(at)!.length

  const bytes = Buffer.allocUnsafe(imagesAt + imageBytes)
  const view = viewOf(bytes)
  bytes[0] = forms.part
  bytes[1] = have
  view.setUint32(countAt, count, true)
  view.setFloat64(totalAt, total, true)
  view.setUint32(jsonBytesAt, jsonBytes, true)
  if (have === firstImages) view.setUint32(headBytes, imageCount, true)
  for (let at = 0, keyAt = keysAt; at < count; at++, keyAt += keyBytes) {
    view.setFloat64(keyAt, created[at]!, true)
    view.setUint32(keyAt + 8, rangeOf[at]!, true)
    view.setUint16(keyAt + 12, shards[at]!, true)
  }
  bytes.write(json, jsonAt)
  if (!images) return bytes
  let end = 0
  for (let at = 0; at < imageCount; at++) {
    const image = images.at(at)!
    bytes.set(image, imagesAt + end)
    end += image.length
    view.setUint32(endsAt + at * endBytes, end, true)
  }
  return bytes
}

/** The part of a list of the bytes that `packPart` wrote. Its images share their memory. */
export function unpackPart(bytes: Buffer): Part {
  const view = viewOf(bytes)
  const count = view.getUint32(countAt, true)
  const have = bytes[1]!
  const imageCount = have === firstImages ? view.getUint32(headBytes, true) : have === allImages ? count : 0
  const keysAt = headBytes + (have === firstImages ? imageCountBytes : 0)
  const endsAt = keysAt + count * keyBytes
  const jsonAt = endsAt + imageCount * endBytes
  const imagesAt = jsonAt + view.getUint32(jsonBytesAt, true)
  const total = view.getFloat64(totalAt, true)
  const isWhole = have <= firstImages && imageCount <= count && imagesAt <= bytes.length
  if (!isWhole || !Number.isSafeInteger(total) || total < 0) throw new Unreadable('a part of a list is not whole')
  const [ranges, values] = partJson(bytes.toString('utf8', jsonAt, imagesAt))
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
  const images = have === noImages ? undefined : new PackedImages(bytes, imageCount, endsAt, imagesAt)
  return {
    kind: 'part',
    keys: { created, shards, rangeOf, ranges, values },
    images,
    total,
  }
}

function partJson(text: string): [ListKeys['ranges'], ListKeys['values']] {
  const found: unknown = JSON.parse(text)
  if (!isPartJson(found)) throw new Unreadable('a part of a list has other JSON than is known')
  return found as [ListKeys['ranges'], ListKeys['values']]
}

/** One that is of another version, or damaged, counts as not sent: whoever wants it fetches it. */
class PackedImages implements Images {
  readonly length: number
  private readonly bytes: Buffer
  private readonly endsAt: number
  private readonly imagesAt: number

  constructor(bytes: Buffer, length: number, endsAt: number, imagesAt: number) {
    this.bytes = bytes
    this.length = length
    this.endsAt = endsAt
    this.imagesAt = imagesAt
  }

  at(index: number): Buffer | undefined {
    if (index < 0 || index >= this.length) return undefined
    const begin = index === 0 ? 0 : this.endOf(index - 1)
    const image = this.bytes.subarray(this.imagesAt + begin, this.imagesAt + this.endOf(index))
    return isImage(image) ? image : undefined
  }

  private endOf(index: number): number {
    return this.bytes.readUInt32LE(this.endsAt + index * endBytes)
  }
}

const viewOf = ({ buffer, byteOffset, length }: Buffer): DataView => new DataView(buffer, byteOffset, length)
