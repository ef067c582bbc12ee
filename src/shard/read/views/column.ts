// A column: the values of a table's entities at one target of the query language (an attribute, a key within it, a
// metadata), a cell for each row. With nine bytes a row most statements need not read the entity.
//
//   kinds    u8    the kind of the value
//   numbers  f64   a number: itself; a short text: its index in `texts`; another text: its hash; else nothing
//
// A column may know less than the entity does. Of a long or rare text it keeps a hash, and of an object, an array or
// several targets only that a value exists. Then the entity has to be read.

import { xxHash64 } from '../../../domain/hash.js'
import type { Operand } from '../../../domain/queries/query.js'
import type { Path } from '../../../domain/queries/query-parser.js'

export const kinds = {
  absent: 0,
  null: 1,
  false: 2,
  true: 3,
  number: 4,
  /** A text that the column has in `texts`. */
  text: 5,
  /** A text of which the column has the hash. */
  hashed: 6,
  opaque: 7,
} as const

export const kindsCount = 8

/** Bytes of a row in one column. */
export const cellBytes = 9

/** Texts that a column keeps; all others are hashed. A pattern is tried on each of them once per query. */
const textsMax = 1024
const textLengthMax = 64
/** The greatest cost of a kept text, its entry in the map included. */
const textBytes = 2 * textLengthMax + 100

/** A target of the query language with its name: targets of one name have the same values. */
export interface NamedPath {
  readonly name: string
  readonly path: Path
}

export function named(path: Path): NamedPath {
  const { attribute, metadata, builtin, steps } = path
  return { path, name: JSON.stringify([attribute, metadata ?? null, builtin ?? null, ...steps.map(step => step.key)]) }
}

/** The arrays of a column, as they travel between threads. */
export interface ColumnParts extends NamedPath {
  readonly kinds: Uint8Array
  readonly numbers: Float64Array
  readonly texts: readonly string[]
}

export class Column implements NamedPath {
  readonly name: string
  readonly path: Path
  kinds: Uint8Array
  numbers: Float64Array
  readonly texts: string[]
  private readonly codes: Map<string, number>

  constructor({ name, path }: NamedPath, capacity: number, parts?: Omit<ColumnParts, keyof NamedPath>) {
    this.name = name
    this.path = path
    this.kinds = parts ? parts.kinds : new Uint8Array(capacity)
    this.numbers = parts ? parts.numbers : new Float64Array(capacity)
    this.texts = parts ? [...parts.texts] : []
    this.codes = new Map(this.texts.map((text, code) => [text, code]))
  }

  get parts(): ColumnParts {
    const { name, path, kinds, numbers, texts } = this
    return { name, path, kinds, numbers, texts }
  }

  get bytes(): number {
    return this.kinds.length * cellBytes + this.texts.length * textBytes
  }

  // [hot] For every column of every change that a view follows.
  set(row: number, target: Operand): void {
    switch (typeof target) {
      case 'number':
        this.kinds[row] = kinds.number
        this.numbers[row] = target
        return
      case 'string':
        return this.setText(row, target)
      case 'boolean':
        this.kinds[row] = target ? kinds.true : kinds.false
        return
      case 'undefined':
        this.kinds[row] = kinds.absent
        return
      default:
        this.kinds[row] = target === null ? kinds.null : kinds.opaque
    }
  }

  private setText(row: number, text: string): void {
    const code = this.codes.get(text) ?? this.remember(text)
    this.kinds[row] = code === undefined ? kinds.hashed : kinds.text
    this.numbers[row] = code ?? hashOfText(text)
  }

  private remember(text: string): number | undefined {
    if (text.length > textLengthMax || this.texts.length >= textsMax) return undefined
    const code = this.texts.length
    this.texts.push(text)
    this.codes.set(text, code)
    return code
  }

  grow(capacity: number): void {
    this.kinds = grown(this.kinds, new Uint8Array(capacity))
    this.numbers = grown(this.numbers, new Float64Array(capacity))
  }

  picked(rows: Uint32Array, capacity: number): Column {
    return new Column(this, capacity, { texts: this.texts, ...pick(this, rows, capacity) })
  }
}

function pick(column: Column, rows: Uint32Array, capacity: number): Pick<ColumnParts, 'kinds' | 'numbers'> {
  const kinds = new Uint8Array(capacity)
  const numbers = new Float64Array(capacity)
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!
    kinds[at] = column.kinds[row]!
    numbers[at] = column.numbers[row]!
  }
  return { kinds, numbers }
}

/** Copies an array to the beginning of a longer one. */
export function grown<T extends Uint8Array | Uint16Array | Int32Array | Float64Array>(from: T, to: T): T {
  to.set(from)
  return to
}

/** 53 bits of a hash: texts that differ in it differ. */
export function hashOfText(text: string): number {
  const { low, high } = xxHash64(text)
  return (high & 0x1fffff) * 2 ** 32 + low
}
