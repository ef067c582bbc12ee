// A bus: it drives along its street, and now and then waits at a stop.

import type { JsonObject } from '../domain/json.js'
import { type CityChance, drifted, numberFrom } from './seeded-chance.js'
import { StreetRoute } from './street-route.js'
import { latitudeOf, longitudeOf, type Street } from './streets.js'

/** Metres per second. */
const usualSpeed = 9
const speedMax = 14
const seats = 80

export class Bus {
  private readonly route: StreetRoute
  private metres: number
  private speed = usualSpeed
  private passengers: number
  private stopSeconds = 0

  constructor(
    readonly id: string,
    private readonly street: Street,
    private readonly chance: CityChance,
  ) {
    this.route = new StreetRoute(street)
    this.metres = chance.fraction() * this.route.length
    this.passengers = Math.round(numberFrom(chance, 5, 40))
  }

  /** Drives for so long. */
  move(seconds: number): void {
    const { chance } = this
    if (this.stopSeconds > 0) {
      this.stopSeconds -= seconds
      return
    }
    this.speed = Math.min(Math.max(drifted(chance, this.speed, usualSpeed, 2), 2), speedMax)
    this.metres += this.speed * seconds
    // A stop every 40 seconds or so.
    if (chance.fraction() >= seconds / 40) return
    this.stopSeconds = numberFrom(chance, 4, 12)
    this.passengers = Math.min(Math.max(this.passengers + Math.round(numberFrom(chance, -10, 10)), 0), seats)
  }

  /** The whole entity. */
  entity(): JsonObject {
    return { ...this.change(), line: { type: 'Text', value: this.street.name } }
  }

  /** The entity with the attributes that change. */
  change(): JsonObject {
    const point = this.route.pointAt(this.metres)
    const coordinates = [longitudeOf(point), latitudeOf(point)]
    const speed = this.stopSeconds > 0 ? 0 : Math.round(this.speed * 36) / 10
    return {
      id: this.id,
      type: 'Bus',
      location: { type: 'geo:json', value: { type: 'Point', coordinates } },
      speed: { type: 'Number', value: speed, metadata: { unit: { type: 'Text', value: 'km/h' } } },
      passengers: { type: 'Number', value: this.passengers },
    }
  }
}
