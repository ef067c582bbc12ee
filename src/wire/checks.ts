// The parts of which the shapes of JSON are made (shapes.ts, admin-shapes.ts): a shape is a function that says whether
// a value has it.
//
// Members that a shape does not name are ignored: a later release may send some.

export type Check = (value: unknown) => boolean
export type Members = Readonly<Record<string, unknown>>

export const text: Check = value => typeof value === 'string'
export const number: Check = value => Number.isFinite(value)
export const count: Check = value => Number.isSafeInteger(value) && (value as number) >= 0
export const flag: Check = value => typeof value === 'boolean'
/** A value that can be stored. JSON text can hold numbers too large for a double, which could not be stored as JSON. */
export const json: Check = value => {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return value !== undefined
  for (const one of Object.values(value)) if (!json(one)) return false
  return true
}
export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const optional =
  (check: Check): Check =>
  value =>
    value === undefined || check(value)

export const orNull =
  (check: Check): Check =>
  value =>
    value === null || check(value)

export const word = (...words: readonly string[]): Check => {
  const known = new Set<unknown>(words)
  return value => known.has(value)
}

export const list =
  (check: Check): Check =>
  value =>
    Array.isArray(value) && value.every(one => check(one))

export const tuple =
  (...checks: readonly Check[]): Check =>
  value =>
    Array.isArray(value) && value.length === checks.length && checks.every((check, at) => check(value[at]))

/** Named members, each with a shape of its own. */
export function members(shape: Readonly<Record<string, Check>>): Check {
  const checks = Object.entries(shape)
  return value => isMembers(value) && checks.every(([name, check]) => check(value[name]))
}

/** One of several forms, which a member distinguishes. */
export const either =
  (name: string, shapes: Readonly<Record<string, Check>>): Check =>
  value => {
    const found = isMembers(value) ? String(value[name]) : ''
    return Object.hasOwn(shapes, found) && shapes[found]!(value)
  }

/** Members with any names, and values of one shape. */
export const record =
  (check: Check): Check =>
  value =>
    isMembers(value) && Object.values(value).every(one => check(one))

/** A value of one of several shapes, which no member distinguishes. */
export const oneOf =
  (...checks: readonly Check[]): Check =>
  value =>
    checks.some(check => check(value))

export const texts = list(text)
/** An object whose members do not matter. */
export const nothing = members({})
