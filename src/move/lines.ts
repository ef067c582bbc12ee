// The form of an export: a file of lines, each a JSON object of its own, with a first and a last one.
//
//   {"orrery-export":1,"by":"orrery 0.1.0"}
//   one line for each entity, then for each registration, then for each subscription
//   {"orrery-export-end":1,"entities":2,"registrations":0,"subscriptions":1}
//
// A file without its last line was cut. Entities come first, so that subscriptions do not fire when it is brought to a running broker.
//
// Not here: what stands in a line (entity-line.ts, document-lines.ts).

import { isObject, type JsonObject } from '../domain/json.js'
import { accepted, type Result, refused } from '../domain/refusal.js'
import { parseJson } from '../http/body.js'
import { readRegistration, readSubscription, writeRegistration, writeSubscription } from './document-lines.js'
import { readEntity, writeEntity } from './entity-line.js'
import { badLine } from './line-fields.js'
import type { Item, ItemKind } from './moved.js'

/** Of the form: a new one is needed when an older release would misread it. */
const version = 1

/**
 * Bytes of a line. An entity of the largest size has 16 MB and may have a time for each attribute; raising it costs memory, as much as the
 * longest line has.
 */
export const lineBytesMax = 48 * 1024 * 1024

export const firstLine = (by: string): string => JSON.stringify({ 'orrery-export': version, by })

export type ItemCounts = Readonly<Record<ItemKind, number>>

export const lastLine = ({ entity, registration, subscription }: ItemCounts): string =>
  JSON.stringify({
    'orrery-export-end': version,
    entities: entity,
    registrations: registration,
    subscriptions: subscription,
  })

export function writeItem(item: Item): string {
  switch (item.kind) {
    case 'entity':
      return writeEntity(item)
    case 'subscription':
      return writeSubscription(item)
    case 'registration':
      return writeRegistration(item)
  }
}

/** What is wrong with a first line; undefined: nothing. */
export function checkFirstLine(bytes: Uint8Array): string | undefined {
  const json = objectOf(bytes)
  const found = json.ok ? json.value['orrery-export'] : undefined
  if (found === version) return undefined
  return found === undefined
    ? 'is not an export: its first line has no "orrery-export"'
    : `has version ${JSON.stringify(found)}, and this release reads version ${version}`
}

/** The counts of a last line; undefined: it is none. */
export function parseLastLine(bytes: Uint8Array): ItemCounts | undefined {
  const json = objectOf(bytes)
  if (!json.ok || json.value['orrery-export-end'] !== version) return undefined
  const { entities, registrations, subscriptions } = json.value
  const counts = [entities, registrations, subscriptions].map(count =>
    Number.isSafeInteger(count) ? Number(count) : 0,
  )
  return { entity: counts[0]!, registration: counts[1]!, subscription: counts[2]! }
}

/** The item of a line, or what is wrong with it. */
export function readLine(bytes: Uint8Array, nowMs: number): Result<Item> {
  const payload = parseJson(bytes)
  if (!payload.ok) return payload
  const { value, duplicates, deep } = payload.value
  if (!isObject(value)) return badLine('it is not an object')
  const [twice] = duplicates
  if (twice) return badLine(`${JSON.stringify(twice.at(-1))} stands twice`)
  return readObject(value, deep, nowMs)
}

/** The same of a line that has been parsed. */
export function readObject(json: JsonObject, isDeep: boolean, nowMs: number): Result<Item> {
  if ('entity' in json) return readEntity(json, nowMs)
  if ('subscription' in json) return readSubscription(json, isDeep)
  if ('registration' in json) return readRegistration(json, isDeep)
  return badLine('it holds no entity, no subscription and no registration')
}

function objectOf(bytes: Uint8Array): Result<JsonObject> {
  const payload = parseJson(bytes)
  if (!payload.ok) return refused(payload.refusal)
  return isObject(payload.value.value) ? accepted(payload.value.value) : badLine('it is not an object')
}
