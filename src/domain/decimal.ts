// A JSON number in bytes, read without a text: most values of attributes are short decimal numbers.

/**
 * The digits of which a double can represent every number. Such a number divided by a power of ten rounds exactly as in
 * a parser.
 */
const exactDigitsMax = 15
const powersOfTen = Array.from({ length: exactDigitsMax + 1 }, (_, n) => 10 ** n)

// [hot] For every plain number when a view is built.
/** The number between two positions; NaN for anything else, for an exponent and for too many digits. */
export function decimalAt(bytes: Uint8Array, from: number, to: number): number {
  const isNegative = bytes[from] === minus
  let digits = 0
  let behindPoint = -1
  let whole = 0
  for (let at = isNegative ? from + 1 : from; at < to; at++) {
    const byte = bytes[at]!
    if (byte === point && behindPoint < 0) {
      behindPoint = digits
      continue
    }
    if (byte < zeroDigit || byte > nineDigit) return Number.NaN
    whole = whole * 10 + (byte - zeroDigit)
    digits++
  }
  if (digits === 0 || digits > exactDigitsMax) return Number.NaN
  const value = behindPoint < 0 ? whole : whole / powersOfTen[digits - behindPoint]!
  return isNegative ? -value : value
}

const minus = 0x2d
const point = 0x2e
const zeroDigit = 0x30
const nineDigit = 0x39
