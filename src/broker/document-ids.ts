// Makes the ids of new subscriptions and registrations, in the order of creation.

import { documentIdOf } from '../domain/stamp.js'
import type { Chance, Stamps } from '../ports.js'

export interface DocumentIds {
  next(): string
}

export const documentIds = (stamps: Pick<Stamps, 'next'>, chance: Pick<Chance, 'uuid'>): DocumentIds => ({
  next: () => documentIdOf(stamps.next(), chance.uuid().slice(-12)),
})
