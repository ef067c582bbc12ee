// Instants: parses the texts that clients write, and renders the one form of the interface.
//
// An instant is a whole number of milliseconds since 1970-01-01T00:00Z, in the years 0000 to 9999 UTC: its rendering
// has four digits of year and is accepted again.
//
// [hot] One call per DateTime value of a request: one pass over character codes, nothing allocated.

/** The longest date-time text, in characters (docs/interface/entities.md#dates). */
const textLengthMax = 29

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

const plus = 0x2b
const dash = 0x2d
const point = 0x2e
const zero = 0x30
const colon = 0x3a
const letterT = 0x54
const letterZ = 0x5a

/** Parses a text to an instant; undefined when it is not a valid date-time (docs/interface/entities.md#dates). */
export function parseDateTime(text: string): number | undefined {
  if (text.length > textLengthMax) return undefined
  const year = digits(text, 0, 4)
  const month = digits(text, 5, 2)
  const day = digits(text, 8, 2)
  if (text.charCodeAt(4) !== dash || text.charCodeAt(7) !== dash) return undefined
  if (year < 0 || month < 1 || month > 12 || day < 1 || day > daysOfMonth(year, month)) return undefined
  const midnight = daysSince1970(year, month, day) * dayMs
  if (text.length === 10) return midnight
  return text.charCodeAt(10) === letterT ? withTime(text, midnight) : undefined
}

/** An instant as the interface writes it, `YYYY-MM-DDThh:mm:ss.sssZ` (docs/interface/entities.md#dates). */
export function renderDateTime(ms: number): string {
  return new Date(ms).toISOString()
}

/** Reads `hh`, `hh:mm[:ss[.f]]` or `hhmm[ss[.f]]` and a zone, from after the T to the end. */
function withTime(text: string, midnight: number): number | undefined {
  let at = 13
  const hour = digits(text, 11, 2)
  if (hour < 0 || hour > 23) return undefined
  const extended = text.charCodeAt(at) === colon
  // The length of the next part: in `hh:mm:ss` there is a colon before its two digits, in `hhmmss` there is not.
  const step = extended ? 3 : 2

  let minute = 0
  let second = 0
  let fraction = 0
  if (extended || isDigit(text.charCodeAt(at))) {
    minute = digits(text, at + step - 2, 2)
    at += step
    if (extended ? text.charCodeAt(at) === colon : isDigit(text.charCodeAt(at))) {
      second = digits(text, at + step - 2, 2)
      at += step
      if (text.charCodeAt(at) === point) {
        const from = at + 1
        for (at = from; isDigit(text.charCodeAt(at)); at++) {
          if (at - from < 3) fraction += (text.charCodeAt(at) - zero) * (at === from ? 100 : at === from + 1 ? 10 : 1)
        }
        if (at === from) return undefined
      }
    }
  }
  if (minute < 0 || minute > 59 || second < 0 || second > 59) return undefined

  const offset = zoneOffsetMs(text, at)
  if (offset === undefined) return undefined
  const instant = midnight + hour * hourMs + minute * minuteMs + second * secondMs + fraction - offset
  // A zone can move the last hours of 9999, or the first of 0000, to a year without four digits.
  return instant >= instantMin && instant <= instantMax ? instant : undefined
}

/** The zone from `at` to the end: nothing, `Z`, or a sign with `hh`, `hhmm` or `hh:mm`. */
function zoneOffsetMs(text: string, at: number): number | undefined {
  const left = text.length - at
  if (left === 0) return 0
  const sign = text.charCodeAt(at)
  if (sign === letterZ) return left === 1 ? 0 : undefined
  if (sign !== plus && sign !== dash) return undefined
  const hour = digits(text, at + 1, 2)
  let minute = 0
  if (left === 5) minute = digits(text, at + 3, 2)
  else if (left === 6 && text.charCodeAt(at + 3) === colon) minute = digits(text, at + 4, 2)
  else if (left !== 3) return undefined
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59) return undefined
  const offset = hour * hourMs + minute * minuteMs
  return sign === plus ? offset : -offset
}

/** The number in the `count` digits from `at`, or -1 when one of them is missing or not a digit. */
function digits(text: string, at: number, count: number): number {
  let n = 0
  for (let end = at + count; at < end; at++) {
    const code = text.charCodeAt(at)
    if (!isDigit(code)) return -1
    n = n * 10 + code - zero
  }
  return n
}

// After the end of a text the code is NaN, which is not a digit.
function isDigit(code: number): boolean {
  return code >= zero && code <= zero + 9
}

function daysOfMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days of the Gregorian calendar. Counts years from March, so that a leap day is the last day of its year. */
function daysSince1970(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year
  const monthsSinceMarch = (month + 9) % 12
  const leapDays = Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400)
  return 365 * y + leapDays + Math.floor((153 * monthsSinceMarch + 2) / 5) + day - daysToEpoch
}

/** The sum in `daysSince1970` for 1970-01-01. */
const daysToEpoch = 719_469

const instantMin = daysSince1970(0, 1, 1) * dayMs
const instantMax = daysSince1970(9999, 12, 31) * dayMs + dayMs - 1
