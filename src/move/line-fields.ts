// Fields that lines of all kinds have: scope, times, texts.
//
// Times are UTC with milliseconds when they are written, and anything the interface takes for a date when they are read; none lies before
// 1970, for there is no room for those (image.ts).

import { parseDateTime, renderDateTime } from '../domain/date-time.js'
import type { Json, JsonObject } from '../domain/json.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import { parseServicePaths, parseTenant } from '../domain/scope.js'

/** A line that is refused, in words of our own. */
export const badLine = (problem: string) => refused(refusals.badLine(problem))

/** A time as it stands in a line. */
export const time = renderDateTime

/** The refusal of a member that nobody would look at: it is most likely misspelt. */
export function checkKeys(json: JsonObject, known: readonly string[]): Refusal | undefined {
  for (const key of Object.keys(json))
    if (!known.includes(key)) return refusals.badLine(`unknown member ${JSON.stringify(key)}`)
  return undefined
}

/** '' when there is none. */
export function optionalText(json: JsonObject, name: string): Result<string> {
  const value = json[name] ?? ''
  return typeof value === 'string' ? accepted(value) : badLine(`${name} is not a text`)
}

export function readTenant(json: JsonObject): Result<string> {
  const text = optionalText(json, 'tenant')
  return text.ok ? parseTenant(text.value) : text
}

/** The path of a line, `/` when there is none; only that of a subscription may end in `#`. */
export function readPath(json: JsonObject, mayBeWildcard: boolean): Result<string> {
  const text = json.servicePath ?? '/'
  if (typeof text !== 'string') return badLine('servicePath is not a text')
  const paths = parseServicePaths(text)
  if (!paths.ok) return paths
  const [path, ...others] = paths.value
  if (path === undefined || others.length > 0) return badLine('servicePath is not one path')
  if (path.endsWith('#') && !mayBeWildcard) return badLine('servicePath ends in #')
  return accepted(path)
}

/** undefined when there is none. */
export function readTime(json: Json | undefined, name: string): Result<number | undefined> {
  if (json === undefined) return accepted(undefined)
  const ms = typeof json === 'string' ? parseDateTime(json) : undefined
  return ms === undefined || ms < 0 ? badLine(`${name} is not a date and time since 1970`) : accepted(ms)
}
