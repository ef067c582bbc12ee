// What the event loop and the reader thread say to each other: scans and their outcomes, as they are cloned or handed over.

import type { Placement } from '../../domain/scope.js'
import type { SharedStore } from '../../ports.js'
import type { Owned } from '../replicate/ownership.js'
import type { KeyHashes, KeyScan } from '../turn/presence.js'
import type { CountedRange, HeadScan, Place } from './places.js'
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
      readonly scan: Omit<ListScan, 'request' | 'ranges'>
      readonly ranges: RangeColumns
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

/** Ranges as columns: to clone an object for each of 40,000 takes 50 ms, and paths and types come again and again. */
export interface RangeColumns {
  readonly paths: readonly string[]
  readonly types: readonly string[]
  /** For each range, where its path and its type are. */
  readonly pathOf: Uint32Array
  readonly typeOf: Uint32Array
  readonly counts: Float64Array
}

export function columnsOf(ranges: readonly CountedRange[]): RangeColumns {
  const paths = new Map<string, number>()
  const types = new Map<string, number>()
  const numberOf = (texts: Map<string, number>, text: string): number => {
    const known = texts.get(text)
    if (known !== undefined) return known
    texts.set(text, texts.size)
    return texts.size - 1
  }
  const [pathOf, typeOf] = [new Uint32Array(ranges.length), new Uint32Array(ranges.length)]
  const counts = new Float64Array(ranges.length)
  for (const [at, { path, type, count }] of ranges.entries()) {
    pathOf[at] = numberOf(paths, path)
    typeOf[at] = numberOf(types, type)
    counts[at] = count
  }
  return { paths: [...paths.keys()], types: [...types.keys()], pathOf, typeOf, counts }
}

export const rangesOf = ({ paths, types, pathOf, typeOf, counts }: RangeColumns): readonly CountedRange[] =>
  Array.from(counts, (count, at) => ({ path: paths[pathOf[at]!]!, type: types[typeOf[at]!]!, count }))

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
