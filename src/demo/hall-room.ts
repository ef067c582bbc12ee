// A room of the town hall: people come and go, and it gets warmer with them.

import type { JsonObject } from '../domain/json.js'
import { type CityChance, drifted, numberFrom } from './seeded-chance.js'

const usualPeople = 8
const peopleMax = 30

export class HallRoom {
  private temperature: number
  private people: number

  constructor(
    readonly id: string,
    private readonly name: string,
    private readonly chance: CityChance,
  ) {
    this.temperature = numberFrom(chance, 19, 22)
    this.people = numberFrom(chance, 0, 16)
  }

  /** Something happens in it. */
  live(): void {
    this.people = Math.min(Math.max(drifted(this.chance, this.people, usualPeople, 4), 0), peopleMax)
    this.temperature = drifted(this.chance, this.temperature, 19 + this.people / 5, 0.2)
  }

  /** The whole entity. */
  entity(): JsonObject {
    return { ...this.change(), name: { type: 'Text', value: this.name } }
  }

  /** The entity with the attributes that change. */
  change(): JsonObject {
    return {
      id: this.id,
      type: 'Room',
      temperature: { type: 'Number', value: Math.round(this.temperature * 10) / 10 },
      occupancy: { type: 'Number', value: Math.round(this.people) },
    }
  }
}
