// The city of the demo: which entities change, and that a seed decides all of it.

import t from 'tap'
import { City } from '../../src/demo/city.js'
import { seededChance } from '../../src/demo/seeded-chance.js'
import { StreetRoute } from '../../src/demo/street-route.js'
import { streets } from '../../src/demo/streets.js'

const kinds = ['Bus', 'Meter', 'Room', 'WeatherStation'] as const

/** How many entities there are of each kind. */
const numbers = (entities: readonly { readonly type?: unknown }[]): readonly number[] =>
  kinds.map(kind => entities.filter(({ type }) => type === kind).length)

t.test('it has buses, meters, rooms and a weather station, and a second changes every bus', async t => {
  const city = new City(seededChance(1))
  t.strictSame(numbers(city.entities()), [60, 200, 24, 1])
  const changes = [1, 2, 3, 4].flatMap(() => city.step())
  t.strictSame(numbers(changes), [60, 20, 8, 0])
  t.equal(new Set(changes.map(({ id }) => id)).size, changes.length, 'each once')
})

t.test('the same seed gives the same city, another seed another one', async t => {
  const history = (seed: number) => {
    const city = new City(seededChance(seed))
    return JSON.stringify([city.entities(), ...Array.from({ length: 50 }, () => city.step())])
  }
  const first = history(7)
  t.ok(first === history(7))
  t.notOk(first === history(8))
})

t.test('a road leads there and back, and a ring around', async t => {
  const road = new StreetRoute({
    name: 'road',
    isRing: false,
    points: [
      [0, 0],
      [100, 0],
    ],
  })
  t.strictSame(
    [0, 50, 100, 150, 250].map(metres => road.pointAt(metres)[0]),
    [0, 50, 100, 50, 50],
  )
  const ring = new StreetRoute({
    name: 'ring',
    isRing: true,
    points: [
      [0, 0],
      [100, 0],
      [100, 100],
      [0, 100],
    ],
  })
  t.strictSame(
    [50, 150, 350, 450].map(metres => ring.pointAt(metres)),
    [
      [50, 0],
      [100, 50],
      [0, 50],
      [50, 0],
    ],
  )
  for (const street of streets) t.ok(new StreetRoute(street).length > 2_000, street.name)
})
