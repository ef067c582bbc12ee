// xxHash64 of an ASCII string, seed 0: the hash that decides the shard of an entity. It must never change: every data
// directory and every cluster depends on it (test vectors: test/domain/hash.test.ts).
//
// Every number is a pair of 32-bit halves; BigInt took ten times as long. Identifiers, tenants and paths are ASCII. Of
// any other text only the low byte of each code unit is used.

/** The low and the high 32 bits of a hash, both unsigned. */
export interface Hash64 {
  readonly low: number
  readonly high: number
}

// The five primes of xxHash64 as (high, low).
const p1h = 0x9e3779b1
const p1l = 0x85ebca87
const p2h = 0xc2b2ae3d
const p2l = 0x27d4eb4f
const p3h = 0x165667b1
const p3l = 0x9e3779f9
const p4h = 0x85ebca77
const p4l = 0xc2b2ae63
const p5h = 0x27d4eb2f
const p5l = 0x165667c5

// The current number. Module-level registers instead of returned objects: this runs for every request.
let h = 0
let l = 0

function multiply(ah: number, al: number, bh: number, bl: number): void {
  const a0 = al & 0xffff
  const a1 = al >>> 16
  const b0 = bl & 0xffff
  const b1 = bl >>> 16
  const low = a0 * b0
  const middle = a1 * b0 + (low >>> 16)
  const middle2 = a0 * b1 + (middle & 0xffff)
  h =
    (a1 * b1 + Math.floor(middle / 0x10000) + Math.floor(middle2 / 0x10000) + Math.imul(ah, bl) + Math.imul(al, bh)) | 0
  l = ((middle2 & 0xffff) << 16) | (low & 0xffff)
}

function add(ah: number, al: number, bh: number, bl: number): void {
  const low = (al >>> 0) + (bl >>> 0)
  l = low | 0
  h = (ah + bh + (low > 0xffffffff ? 1 : 0)) | 0
}

function rotateLeft(ah: number, al: number, bits: number): void {
  if (bits === 32) {
    h = al
    l = ah
  } else if (bits < 32) {
    h = (ah << bits) | (al >>> (32 - bits))
    l = (al << bits) | (ah >>> (32 - bits))
  } else {
    h = (al << (bits - 32)) | (ah >>> (64 - bits))
    l = (ah << (bits - 32)) | (al >>> (64 - bits))
  }
}

function read32(text: string, at: number): number {
  return (
    (text.charCodeAt(at) & 0xff) |
    ((text.charCodeAt(at + 1) & 0xff) << 8) |
    ((text.charCodeAt(at + 2) & 0xff) << 16) |
    ((text.charCodeAt(at + 3) & 0xff) << 24)
  )
}

/** rotl(acc + lane * prime2, 31) * prime1 */
function round(accH: number, accL: number, laneH: number, laneL: number): void {
  multiply(laneH, laneL, p2h, p2l)
  add(accH, accL, h, l)
  rotateLeft(h, l, 31)
  multiply(h, l, p1h, p1l)
}

function mergeRound(accH: number, accL: number, valueH: number, valueL: number): void {
  round(0, 0, valueH, valueL)
  h = accH ^ h
  l = accL ^ l
  multiply(h, l, p1h, p1l)
  add(h, l, p4h, p4l)
}

// [hot] Once per request, over the entity id.
/** xxHash64 (seed 0) of the text's bytes. */
export function xxHash64(text: string): Hash64 {
  const length = text.length
  let at = 0
  if (length >= 32) {
    add(p1h, p1l, p2h, p2l)
    let v1h = h
    let v1l = l
    let v2h = p2h
    let v2l = p2l
    let v3h = 0
    let v3l = 0
    // 0 - prime1
    add(~p1h, ~p1l, 0, 1)
    let v4h = h
    let v4l = l
    for (; at <= length - 32; at += 32) {
      round(v1h, v1l, read32(text, at + 4), read32(text, at))
      v1h = h
      v1l = l
      round(v2h, v2l, read32(text, at + 12), read32(text, at + 8))
      v2h = h
      v2l = l
      round(v3h, v3l, read32(text, at + 20), read32(text, at + 16))
      v3h = h
      v3l = l
      round(v4h, v4l, read32(text, at + 28), read32(text, at + 24))
      v4h = h
      v4l = l
    }
    rotateLeft(v1h, v1l, 1)
    let sumH = h
    let sumL = l
    rotateLeft(v2h, v2l, 7)
    add(sumH, sumL, h, l)
    sumH = h
    sumL = l
    rotateLeft(v3h, v3l, 12)
    add(sumH, sumL, h, l)
    sumH = h
    sumL = l
    rotateLeft(v4h, v4l, 18)
    add(sumH, sumL, h, l)
    mergeRound(h, l, v1h, v1l)
    mergeRound(h, l, v2h, v2l)
    mergeRound(h, l, v3h, v3l)
    mergeRound(h, l, v4h, v4l)
  } else {
    h = p5h
    l = p5l
  }
  add(h, l, 0, length)
  let accH = h
  let accL = l
  for (; at + 8 <= length; at += 8) {
    round(0, 0, read32(text, at + 4), read32(text, at))
    rotateLeft(accH ^ h, accL ^ l, 27)
    multiply(h, l, p1h, p1l)
    add(h, l, p4h, p4l)
    accH = h
    accL = l
  }
  if (at + 4 <= length) {
    multiply(0, read32(text, at), p1h, p1l)
    rotateLeft(accH ^ h, accL ^ l, 23)
    multiply(h, l, p2h, p2l)
    add(h, l, p3h, p3l)
    accH = h
    accL = l
    at += 4
  }
  for (; at < length; at++) {
    multiply(0, text.charCodeAt(at) & 0xff, p5h, p5l)
    rotateLeft(accH ^ h, accL ^ l, 11)
    multiply(h, l, p1h, p1l)
    accH = h
    accL = l
  }
  // avalanche: acc ^= acc >>> 33, * prime2, ^= >>> 29, * prime3, ^= >>> 32
  multiply(accH, accL ^ (accH >>> 1), p2h, p2l)
  multiply(h ^ (h >>> 29), l ^ ((l >>> 29) | (h << 3)), p3h, p3l)
  return { low: (l ^ h) >>> 0, high: h >>> 0 }
}
