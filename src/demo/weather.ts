// The provider of the demo: a weather service that the broker asks for attributes which it does not store.

import type { Clock } from '../ports.js'
import { station } from './city.js'
import type { CompanionAnswer } from './companion.js'

/** Metres per second, and millimetres per hour. */
export const weatherAttributes = ['wind', 'rain'] as const

/** Minutes until the weather comes back. */
const periodMinutes = 20

/** The answer to a request of the broker at a path. */
export function weatherAnswer(path: string, clock: Pick<Clock, 'wallMs'>): CompanionAnswer {
  if (!path.startsWith('/op/query')) return { status: 404, json: { error: 'NotFound', description: 'a query only' } }
  const turn = (clock.wallMs() / 60_000 / periodMinutes) * 2 * Math.PI
  const number = (value: number) => ({ type: 'Number', value: Math.round(value * 10) / 10, metadata: {} })
  const entity = { ...station, wind: number(6 + 3 * Math.sin(turn)), rain: number(Math.max(2 * Math.cos(turn), 0)) }
  return { status: 200, json: [entity] }
}
