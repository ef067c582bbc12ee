// The ids of subscriptions and registrations: 24 hexadecimal digits, in the order of creation.

import { stampMs, stampsPerMs } from '../stamp.js'

export const documentIdLength = 24

const secondMs = 1000
const secondDigits = 8
/** Room for every stamp within a second. */
const momentDigits = 6
const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

/**
 * The id of a document that is made at a stamp: its second, its place within that, and ten hexadecimal digits of chance, the first of
 * `random`, by which ids differ that several processes make at once. Grows with the stamp (subscriptions.md §2.5).
 */
export function documentIdOf(stamp: number, random: string): string {
  const second = Math.floor(stampMs(stamp) / secondMs)
  const moment = stamp - second * secondMs * stampsPerMs
  return `${hex(second, secondDigits)}${hex(moment, momentDigits)}${random.slice(0, documentIdLength - secondDigits - momentDigits)}`
}
