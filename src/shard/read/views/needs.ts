// What a list asks of tables: which columns it needs, and whether it needs places.

import { isByDistance, type OrderKey } from '../../../domain/queries/order.js'
import type { Path, Statement } from '../../../domain/queries/query-parser.js'
import type { ListRequest } from '../../../messages/messages.js'
import { type NamedPath, named } from './column.js'
import type { Layout } from './table.js'

/** What tables have to hold to answer a list; undefined when none could. */
export function layoutFor({ selection, order }: ListRequest): Layout | undefined {
  if (order.some(key => key.name === 'id') || selection.source.anyAttribute) return undefined
  const asked = statementsOf(selection)
    .map(statement => statement.path)
    .filter(path => !isServicePath(path))
  const columns = new Map<string, NamedPath>()
  for (const path of [...asked, ...sortPaths(order)]) {
    const column = named(path)
    columns.set(column.name, column)
  }
  return { columns: [...columns.values()], places: selection.geo !== undefined }
}

/** All statements of a list. */
export const statementsOf = ({ q, mq }: ListRequest['selection']): readonly Statement[] => [
  ...(q?.statements ?? []),
  ...(mq?.statements ?? []),
]

/** Whether a statement is about what all entities of a table have in common. */
export const isServicePath = (path: Path): boolean => path.builtin === 'servicePath' && path.metadata === undefined

/** What an order sorts by, as far as columns hold it: not the distance. */
export const sortPaths = (order: readonly OrderKey[]): readonly Path[] =>
  isByDistance(order) ? [] : order.flatMap(key => pathOfKey(key) ?? [])

/** The target that a key sorts by; undefined for what is the same in all of a table. */
export function pathOfKey({ name }: OrderKey): Path | undefined {
  if (name === 'type' || name === 'servicePath') return undefined
  const builtin = name === 'dateCreated' || name === 'dateModified' ? name : undefined
  return { attribute: name, metadata: undefined, steps: [], builtin }
}
