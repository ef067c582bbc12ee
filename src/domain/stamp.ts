// Stamps, and the ids made of them. A stamp is hybrid time in one number, the milliseconds since 1970 times 2048 plus a
// count: it orders events, and still shows their time. A clock with fractions of milliseconds fills the count, which
// orders the events of several processes on one machine.
//
// Stamps are safe integers until the year 2109. A count that overflows carries into the milliseconds, which then run a
// little ahead of the wall clock.
//
// Not here: the source of stamps, and keeping them growing (HybridClock in clock.ts).

/** Stamps within one millisecond before the count carries over. */
export const stampsPerMs = 2048

/** The milliseconds since 1970 of a stamp. */
export const stampMs = (stamp: number): number => Math.floor(stamp / stampsPerMs)

/** The stamp of a time; for whole milliseconds, the first stamp of the millisecond. */
export const stampOf = (wallMs: number): number => Math.floor(wallMs * stampsPerMs)

/** The stamp after `last` at a time of the wall clock, which may stop or go back. */
export const stampAfter = (last: number, wallMs: number): number => Math.max(last + 1, stampOf(wallMs))

/** Characters of the id of a subscription or registration: hexadecimal digits, in the order of creation. */
export const documentIdLength = 24

const secondMs = 1000
const secondDigits = 8
/** Room for every stamp within a second. */
const momentDigits = 6
const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

/**
 * The id of a document that is created at a stamp: its second, its place within the second, and the first ten digits of
 * `random`, which make the ids of several processes different. Grows with the stamp
 * (docs/interface/subscriptions.md#list).
 */
export function documentIdOf(stamp: number, random: string): string {
  const second = Math.floor(stampMs(stamp) / secondMs)
  const moment = stamp - second * secondMs * stampsPerMs
  return `${hex(second, secondDigits)}${hex(moment, momentDigits)}${random.slice(0, documentIdLength - secondDigits - momentDigits)}`
}
