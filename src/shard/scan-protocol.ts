// What the event loop and the reader thread say to each other: scans and their outcomes, as they are cloned or handed over.

import type { Placement } from '../domain/scope.js'
import type { SharedStore } from '../ports.js'
import type { HeadScan, Place } from './places.js'
import type { KeyHashes, KeyScan } from './presence.js'
import type { Owned } from './replicated/ownership.js'
import type { BuildScan, ListScan } from './scans.js'
import type { TableParts } from './views/table.js'

/** What the thread is given when it starts. */
export interface ReaderInput {
  readonly store: SharedStore
  readonly placement: Placement
  /** Whose rows count, in memory that is shared. */
  readonly owned: Owned
}

/** A scan, numbered by whoever asks; the request of a list goes through its bytes. `end`: finish and leave. */
export type ScanCall =
  | {
      readonly kind: 'list'
      readonly number: number
      readonly scan: Omit<ListScan, 'request'>
      readonly request: Uint8Array
    }
  | { readonly kind: 'build'; readonly number: number; readonly scan: BuildScan }
  | { readonly kind: 'head'; readonly number: number; readonly scan: HeadScan }
  | { readonly kind: 'keys'; readonly number: number; readonly scan: KeyScan }
  | { readonly kind: 'end' }

export type ScanAnswer =
  | { readonly kind: 'reply'; readonly number: number; readonly reply: Uint8Array }
  | { readonly kind: 'tables'; readonly number: number; readonly tables: readonly TableParts[] }
  | { readonly kind: 'places'; readonly number: number; readonly places: readonly Place[] }
  | { readonly kind: 'keys'; readonly number: number; readonly keys: KeyHashes }
  | { readonly kind: 'failure'; readonly number: number; readonly reason: string }

/** The memory of tables, to be handed over instead of copied. */
export const buffersOf = (tables: readonly TableParts[]): ArrayBuffer[] =>
  tables
    .flatMap(({ created, shards, alive, columns, places }) => [
      created,
      shards,
      alive,
      ...columns.flatMap(({ kinds, numbers }) => [kinds, numbers]),
      ...(places ? [places.longitudes, places.latitudes, places.next, places.before, places.heads] : []),
    ])
    .map(array => array.buffer as ArrayBuffer)

/** The bytes of a cloned Buffer, which arrive as a Uint8Array, as a Buffer again. */
export const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
