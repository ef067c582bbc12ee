// Bytes that no build has ever written: noise, and messages that were cut, lengthened, spliced, or changed in a few
// bytes.

import type { Random } from '../support/random.js'

/** Bytes that have a meaning at the beginning or the end of a number. */
const specialBytes = [0, 1, 2, 5, 0x22, 0x7b, 0x7d, 0x7f, 0x80, 0x85, 0x86, 0xfe, 0xff] as const

const noise = (random: Random, length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => random.between(0, 255)))

/** One more message, made of valid ones. */
export function hostileBytes(random: Random, valid: readonly Buffer[]): Buffer {
  const one = (): Buffer => valid[random.between(0, valid.length - 1)]!
  const at = (bytes: Buffer): number => random.between(0, bytes.length)
  const message = Buffer.from(one())
  switch (random.between(0, 7)) {
    case 0:
      return noise(random, random.between(0, 60))
    case 1:
      return message.subarray(0, at(message))
    case 2:
      return Buffer.concat([message, noise(random, random.between(1, 20))])
    case 3: {
      const other = one()
      return Buffer.concat([message.subarray(0, at(message)), other.subarray(at(other))])
    }
    case 4: {
      const place = at(message)
      return Buffer.concat([message.subarray(0, place), noise(random, random.between(1, 4)), message.subarray(place)])
    }
    case 5:
      return wordChanged(random, message)
    default:
      for (let times = random.between(1, 4); times > 0 && message.length > 0; times--)
        message[random.between(0, message.length - 1)] =
          random.fraction() < 0.5 ? random.pick(specialBytes) : random.between(0, 255)
      return message
  }
}

const words = ['null', '-1', '1e400', '[]', '{}', '"x"', 'true', '9007199254740993', '"__proto__"', '""'] as const

/**
 * Replaces one value of the JSON in the message, if there is any. All other bytes stay in their place if the length is
 * the same.
 */
function wordChanged(random: Random, message: Buffer): Buffer {
  const text = message.toString('latin1')
  const values = [...text.matchAll(/"[^"]*"|-?\d+(?:\.\d+)?|true|false|null|\[\]|\{\}/g)]
  if (values.length === 0) return message
  const { index, 0: found } = values[random.between(0, values.length - 1)]!
  return Buffer.from(text.slice(0, index) + random.pick(words) + text.slice(index + found.length), 'latin1')
}
