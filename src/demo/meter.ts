// An electricity meter: the power drifts, and the energy grows with it.

import type { JsonObject } from '../domain/json.js'
import { type CityChance, drifted, numberFrom } from './seeded-chance.js'
import { latitudeOf, longitudeOf, type StreetPoint } from './streets.js'

export class Meter {
  private power: number
  private energy: number
  private readonly usualPower: number

  constructor(
    readonly id: string,
    private readonly place: StreetPoint,
    private readonly chance: CityChance,
  ) {
    this.usualPower = numberFrom(chance, 0.3, 6)
    this.power = this.usualPower
    this.energy = numberFrom(chance, 100, 20_000)
  }

  /** Measures for so long. */
  measure(seconds: number): void {
    this.power = Math.max(drifted(this.chance, this.power, this.usualPower, 0.4), 0)
    this.energy += (this.power * seconds) / 3600
  }

  /** The whole entity. */
  entity(): JsonObject {
    const value = `${latitudeOf(this.place)}, ${longitudeOf(this.place)}`
    return { ...this.change(), location: { type: 'geo:point', value } }
  }

  /** The entity with the attributes that change. */
  change(): JsonObject {
    return {
      id: this.id,
      type: 'Meter',
      power: { type: 'Number', value: Math.round(this.power * 1000) / 1000, metadata: unit('kW') },
      energy: { type: 'Number', value: Math.round(this.energy * 1000) / 1000, metadata: unit('kWh') },
    }
  }
}

const unit = (value: string): JsonObject => ({ unit: { type: 'Text', value } })
