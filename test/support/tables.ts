// The content of a table, as texts by which two tables can be compared.

import type { Geometry } from '../../src/domain/places/location.js'
import type { Operand } from '../../src/domain/queries/query.js'
import { type Column, hashOfText, kinds } from '../../src/shard/read/views/column.js'
import type { Cells, Table } from '../../src/shard/read/views/table.js'

/**
 * The row of each living entity of a table, in its order: stamp, shard, a cell for each column by name, and the point.
 */
export function contentOf(table: Table): string[] {
  const columns = [...table.columns].sort((a, b) => (a.name < b.name ? -1 : 1))
  const rows: string[] = []
  for (let row = 0; row < table.rows; row++) {
    if (table.alive[row] === 0) continue
    const cells = columns.map(column => cellAt(column, row))
    rows.push(line(table.created[row]!, table.shards[row]!, cells, table.places?.pointOf(row)))
  }
  return rows
}

function cellAt({ kinds: kind, numbers, texts }: Column, row: number): string {
  switch (kind[row]) {
    case kinds.number:
      return `number ${numbers[row]}`
    case kinds.text:
      return `text ${texts[numbers[row]!]}`
    case kinds.hashed:
      return `hash ${numbers[row]}`
    default:
      return `kind ${kind[row]}`
  }
}

const line = (created: number, shard: number, cells: readonly string[], point: Geometry | undefined): string =>
  `${created}/${shard} ${cells.join(', ')} ${point ? JSON.stringify(point.coordinates) : ''}`

/** The line of an entity in a table of one column. `isKept`: whether the column keeps a text. */
export function lineOf(created: number, shard: number, cells: Cells, isKept: (text: string) => boolean): string {
  const { geometry, targets } = cells
  const point = geometry?.type === 'Point' ? geometry : undefined
  return line(
    created,
    shard,
    targets.map(target => cellOf(target, isKept)),
    point,
  )
}

function cellOf(target: Operand, isKept: (text: string) => boolean): string {
  switch (typeof target) {
    case 'number':
      return `number ${target}`
    case 'string':
      return isKept(target) ? `text ${target}` : `hash ${hashOfText(target)}`
    case 'boolean':
      return `kind ${target ? kinds.true : kinds.false}`
    case 'undefined':
      return `kind ${kinds.absent}`
    default:
      return `kind ${target === null ? kinds.null : kinds.opaque}`
  }
}
