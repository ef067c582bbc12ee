// A city of sensors. Every value follows from the number of its sensor, so the right answer to a query is known in
// advance.
//
// One sensor in a thousand is hot, above 30 degrees, each with a temperature of its own; the others spread below in
// steps of a hundredth. Places are points of a sequence whose every part fills the city evenly. `Few` are a thousand of
// the same kind in another city. None is hot, so a query without a type finds the same as one about `Sensor`.
//
// Not here: storing and requesting them (queries).

import { distanceBetween } from '../src/domain/places/distance.js'
import { idHole, stockId, type Template, valueHole, type Workload } from './workloads.js'

export type Kind = 'Few' | 'Sensor'
export type Place = readonly [longitude: number, latitude: number]

const sideDegrees = 0.4
const cornerOf = { Few: [12, 41.2], Sensor: [2, 41.2] } as const
const sensorsPerHot = 1000
const firstHot = 500

export const idOf = (kind: Kind, n: number): string => `urn:${kind.toLowerCase()}:${stockId(n)}`
export const numberOf = (id: string): number => Number(id.slice(id.lastIndexOf(':') + 1))

/** The stored entity: some 320 bytes, normalized. */
export function entityOf(kind: Kind, n: number): string {
  return render(idOf(kind, n), kind, String(temperatureOf(kind, n)), String(placeOf(kind, n)))
}

export const referenceOf = (kind: Kind, n: number): string => `{"id":"${idOf(kind, n)}","type":"${kind}"}`

function render(id: string, type: string, temperature: string, coordinates: string): string {
  return (
    `{"id":"${id}","type":"${type}","temperature":{"type":"Number","value":${temperature}},` +
    `"location":{"type":"geo:json","value":{"type":"Point","coordinates":[${coordinates}]}},` +
    `"humidity":{"type":"Number","value":41.5},"note":{"type":"Text","value":"${'n'.repeat(60)}"}}`
  )
}

const isHot = (n: number): boolean => n % sensorsPerHot === firstHot

export function temperatureOf(kind: Kind, n: number): number {
  if (kind === 'Few' || !isHot(n)) return (((n * 7919) % 5000) - 2000) / 100
  return (3001 + ((Math.floor(n / sensorsPerHot) * 37) % 1000)) / 100
}

/** The numbers of the hot sensors in a range, in order. */
export function hotSensors(from: number, until: number): number[] {
  const numbers: number[] = []
  for (let n = Math.ceil((from - firstHot) / sensorsPerHot) * sensorsPerHot + firstHot; n < until; n += sensorsPerHot)
    numbers.push(n)
  return numbers
}

/**
 * The ids of the hottest sensors, the hottest first. Beyond a million sensors temperatures repeat, and there is no one
 * order.
 */
export function hottest(count: number, limit: number): string[] {
  return hotSensors(0, count)
    .sort((a, b) => temperatureOf('Sensor', b) - temperatureOf('Sensor', a))
    .slice(0, limit)
    .map(n => idOf('Sensor', n))
}

// The sequence that steps by the inverse powers of the plastic number: low discrepancy in two dimensions.
const steps = [0.7548776662466927, 0.5698402909980532] as const

export function placeOf(kind: Kind, n: number): Place {
  const along = (axis: 0 | 1): number =>
    Math.round((cornerOf[kind][axis] + sideDegrees * ((n * steps[axis]) % 1)) * 1e6) / 1e6
  return [along(0), along(1)]
}

/** Returns a function that counts the first `count` sensors near a place. */
export function counterOfNear(count: number): (centre: Place, metres: number) => number {
  const longitudes = Float64Array.from({ length: count }, (_, n) => placeOf('Sensor', n)[0])
  const latitudes = Float64Array.from({ length: count }, (_, n) => placeOf('Sensor', n)[1])
  return (centre, metres) => {
    // A degree of latitude is more than 111 km: sensors that are farther in that direction alone are skipped.
    const degrees = metres / 111_000
    let found = 0
    for (let n = 0; n < count; n++) {
      if (Math.abs(latitudes[n]! - centre[1]) > degrees) continue
      if (distanceBetween([longitudes[n]!, latitudes[n]!], centre) <= metres) found += 1
    }
    return found
  }
}

// Entities that the load writes are not hot either, and spread over the city and its surroundings.
const create: Template = {
  method: 'POST',
  path: '/v2/entities',
  body: render(`urn:sensor:${idHole}`, 'Sensor', `21.${valueHole}`, `2.${valueHole},41.${valueHole}`),
}
const update: Template = {
  method: 'PATCH',
  path: `/v2/entities/urn:sensor:${idHole}/attrs`,
  body: `{"temperature":{"type":"Number","value":21.${valueHole}}}`,
}
export const cityCreates: Workload = [{ template: create, ids: 'new', weight: 1 }]
export const cityUpdates: Workload = [{ template: update, ids: 'stock', weight: 1 }]
