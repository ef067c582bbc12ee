// The first rows of a search by the keys of an order.
//
// Only as many are kept as the page needs. [hot] Most of a million rows are no match for those kept already, and the first value tells,
// if it is a number, without more than two loads.

import type { Json } from '../../../domain/json.js'
import { distanceTo } from '../../../domain/places/geo.js'
import { compareSortValues, isByDistance, type OrderKey } from '../../../domain/queries/order.js'
import type { ListRequest } from '../../../messages/messages.js'
import { Heap } from '../../turn/heap.js'
import type { SortValues } from '../matches.js'
import { type Column, kinds, named } from './column.js'
import { pathOfKey } from './needs.js'
import { compareRows, type Part, type Row } from './part.js'

/** A row, and what it is ordered by. */
export interface Sorted extends Row {
  readonly values: SortValues
}

/** The first rows of all that have been offered. */
export class First {
  private readonly order: readonly OrderKey[]
  private readonly count: number
  /** The last of those kept stands at the top: whoever comes before it takes its place. */
  private readonly kept: Heap<Sorted>

  constructor({ order }: ListRequest, count: number) {
    this.order = order
    this.count = count
    this.kept = new Heap<Sorted>((a, b) => this.compare(b, a))
  }

  /** Keeps a row if it is among the first; whether it is. */
  offer(candidate: Sorted): boolean {
    const { kept } = this
    if (kept.size < this.count) kept.push(candidate)
    else if (this.compare(candidate, kept.top as Sorted) < 0) kept.replaceTop(candidate)
    else return false
    return true
  }

  /** The first value of the last row kept: behind it nobody comes in. NaN, which keeps nobody out, when there is room or it is no number. */
  get bound(): number {
    const value = this.kept.size < this.count ? undefined : this.kept.top?.values[0]
    return typeof value === 'number' ? value : Number.NaN
  }

  get inOrder(): readonly Sorted[] {
    return [...this.kept.all()].sort((a, b) => this.compare(a, b))
  }

  private compare(a: Sorted, b: Sorted): number {
    return compareSortValues(this.order, a.values, b.values) || compareRows(a, b)
  }
}

/** What the rows of one table are ordered by. */
export class Sorter {
  private readonly part: Part
  private readonly keys: readonly ((row: number) => Json | undefined)[]
  private readonly descending: boolean
  /** The column of the first key; undefined when no column holds it. */
  private readonly column: Column | undefined
  private readonly distance: ((row: number) => number) | undefined

  constructor(request: ListRequest, part: Part) {
    const { order } = request
    this.part = part
    this.descending = order[0]!.descending
    if (isByDistance(order)) {
      this.distance = distanceIn(request, part)
      this.keys = [this.distance]
    } else {
      this.keys = order.map(key => keyOf(part, key))
      this.column = columnOfKey(part, order[0]!)
    }
  }

  /** Offers rows to the first. */
  sort(rows: Uint32Array, first: First): void {
    const { column, distance, descending } = this
    let { bound } = first
    if (column) {
      const { kinds: kind, numbers } = column
      for (let at = 0; at < rows.length; at++) {
        const row = rows[at]!
        const number = numbers[row]!
        if ((descending ? number < bound : number > bound) && kind[row] === kinds.number) continue
        if (this.offer(row, first)) bound = first.bound
      }
      return
    }
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at]!
      if (distance && !this.part.known.has(row) && distance(row) > bound) continue
      if (this.offer(row, first)) bound = first.bound
    }
  }

  private offer(row: number, first: First): boolean {
    const { part } = this
    return first.offer({ part, row, values: part.known.get(row) ?? this.keys.map(key => key(row)) })
  }
}

function keyOf(part: Part, key: OrderKey): (row: number) => Json | undefined {
  const { range } = part
  if (key.name === 'type') return () => range.type
  if (key.name === 'servicePath') return () => range.path
  const column = columnOfKey(part, key) as Column
  return row => valueAt(column, row)
}

function columnOfKey({ table }: Part, key: OrderKey): Column | undefined {
  const path = pathOfKey(key)
  return path && table.column(named(path).name)
}

/** Metres; without a `near` all are equal (order.ts). */
function distanceIn({ selection: { geo } }: ListRequest, { table }: Part): (row: number) => number {
  if (geo?.relation !== 'near') return () => 0
  return row => {
    const point = table.places?.pointOf(row)
    return point ? distanceTo(geo, point) : 0
  }
}

/** What a column holds; an entity of which it holds less has been looked into. */
function valueAt({ kinds: kind, numbers, texts }: Column, row: number): Json | undefined {
  switch (kind[row]) {
    case kinds.null:
      return null
    case kinds.false:
      return false
    case kinds.true:
      return true
    case kinds.number:
      return numbers[row]!
    case kinds.text:
      return texts[numbers[row]!]!
    default:
      return undefined
  }
}
