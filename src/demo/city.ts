// The living city of the demo: what is in it, and what changes with time.
//
// A step changes a part of the entities, so that changes come evenly: each bus moves every second, each meter measures
// every ten seconds, each room changes every three. Only the chance that it gets decides what happens.

import type { JsonObject } from '../domain/json.js'
import { Bus } from './bus.js'
import { HallRoom } from './hall-room.js'
import { Meter } from './meter.js'
import { type CityChance, numberFrom } from './seeded-chance.js'
import { StreetRoute } from './street-route.js'
import { latitudeOf, longitudeOf, type StreetPoint, streets } from './streets.js'

/** Time between two steps. */
export const stepMs = 250

const busesCount = 60
const metersCount = 200
const floorsCount = 3
const roomsPerFloor = 8

/** Every so many steps, an entity of a kind changes. */
const stepsOf = { bus: 4, meter: 40, room: 12 } as const

/** The entity that has attributes of a provider. */
export const station = { id: 'WeatherStation1', type: 'WeatherStation' } as const

export class City {
  private readonly buses: readonly Bus[]
  private readonly meters: readonly Meter[]
  private readonly rooms: readonly HallRoom[]
  private steps = 0

  constructor(chance: CityChance) {
    const routes = streets.map(street => new StreetRoute(street))
    this.buses = numbered(busesCount, nth => new Bus(`Bus${padded(nth, 2)}`, turn(streets, nth), chance))
    this.meters = numbered(metersCount, nth => {
      const route = turn(routes, nth)
      return new Meter(`Meter${padded(nth, 3)}`, besides(route, chance), chance)
    })
    this.rooms = numbered(floorsCount * roomsPerFloor, nth => {
      const [floor, door] = [Math.floor(nth / roomsPerFloor) + 1, (nth % roomsPerFloor) + 1]
      return new HallRoom(`Room${floor}${padded(door - 1, 2)}`, `Town hall, floor ${floor}, room ${door}`, chance)
    })
  }

  /** All entities, as they are now. */
  entities(): readonly JsonObject[] {
    const weather = { ...station, location: { type: 'geo:json', value: pointJson([120, 380]) } }
    return [...this.buses, ...this.meters, ...this.rooms].map(one => one.entity()).concat(weather)
  }

  /** A quarter of a second passes: returns the entities that have changed. */
  step(): readonly JsonObject[] {
    const nth = this.steps++
    const secondsOf = (steps: number): number => (steps * stepMs) / 1000
    const buses = due(this.buses, nth, stepsOf.bus)
    for (const bus of buses) bus.move(secondsOf(stepsOf.bus))
    const meters = due(this.meters, nth, stepsOf.meter)
    for (const meter of meters) meter.measure(secondsOf(stepsOf.meter))
    const rooms = due(this.rooms, nth, stepsOf.room)
    for (const room of rooms) room.live()
    return [...buses, ...meters, ...rooms].map(one => one.change())
  }
}

const pointJson = (point: StreetPoint): JsonObject => ({
  type: 'Point',
  coordinates: [longitudeOf(point), latitudeOf(point)],
})

/** A house on one side of a street. */
function besides(route: StreetRoute, chance: CityChance): StreetPoint {
  const [east, north] = route.pointAt(chance.fraction() * route.length)
  return [east + numberFrom(chance, -40, 40), north + numberFrom(chance, -40, 40)]
}

const numbered = <T>(count: number, make: (nth: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, n) => make(n))
const padded = (nth: number, digits: number): string => String(nth + 1).padStart(digits, '0')
const turn = <T>(all: readonly T[], nth: number): T => all[nth % all.length] as T
const due = <T>(all: readonly T[], nth: number, steps: number): readonly T[] =>
  all.filter((_, index) => index % steps === nth % steps)
