// The place of an entity in the order of creation, and the parts of the type index that have places.
//
// Not here: reading places (places.ts).

import type { EntityPosition } from '../../messages/messages.js'
import type { TypePosition } from '../layout.js'

/** The place of one entity in the order of creation, with its id. */
export interface EntityPlace extends EntityPosition {
  readonly id: string
}

export const comparePlaces = (a: TypePosition, b: TypePosition): number => a.created - b.created || a.shard - b.shard

export interface PlaceRange {
  readonly path: string
  readonly type: string
}

/** A path and type with its number of entities. */
export interface CountedRange extends PlaceRange {
  readonly count: number
}
