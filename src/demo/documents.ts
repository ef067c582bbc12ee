// The subscriptions and the registration of the demo: their receivers and their provider are companions within it.

import type { JsonObject } from '../domain/json.js'
import { station } from './city.js'
import { weatherAttributes } from './weather.js'

export interface CompanionUrls {
  /** Accepts each notification. */
  readonly receiver: string
  /** Refuses each connection. */
  readonly refusing: string
  readonly provider: string
}

export function subscriptions({ receiver, refusing }: CompanionUrls): readonly JsonObject[] {
  const all = (type: string) => [{ idPattern: '.*', type }]
  return [
    {
      description: 'Rooms that are full',
      subject: { entities: all('Room'), condition: { attrs: ['occupancy'], expression: { q: 'occupancy>10' } } },
      notification: { http: { url: `${receiver}/rooms` }, attrs: ['occupancy', 'temperature'] },
    },
    {
      description: 'Buses that stand',
      subject: { entities: all('Bus'), condition: { attrs: ['speed'], expression: { q: 'speed==0' } } },
      notification: { http: { url: `${receiver}/buses` }, attrs: ['speed', 'location'], attrsFormat: 'keyValues' },
      throttling: 2,
    },
    {
      description: 'High power, at a receiver that refuses',
      subject: { entities: all('Meter'), condition: { attrs: ['power'], expression: { q: 'power>4' } } },
      notification: { http: { url: `${refusing}/power` }, attrs: ['power'] },
      throttling: 2,
    },
    {
      description: 'All meters, paused',
      subject: { entities: all('Meter') },
      notification: { http: { url: `${receiver}/meters` } },
      status: 'inactive',
    },
  ]
}

export const registration = ({ provider }: CompanionUrls): JsonObject => ({
  description: 'Weather service',
  dataProvided: { entities: [station], attrs: [...weatherAttributes] },
  provider: { http: { url: provider }, supportedForwardingMode: 'query' },
})
