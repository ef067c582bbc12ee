// Selections for tests, from their texts.

import assert from 'node:assert/strict'
import { type OrderKey, parseOrder } from '../../src/domain/queries/order.js'
import {
  compileSelection,
  type Selection,
  type SelectionSource,
  type SelectorSource,
} from '../../src/domain/queries/selection.js'

/** A selection that must compile. */
export function selectionOf(source: Partial<SelectionSource>): Selection {
  const selection = compileSelection({ selectors: [], from: 'url', ...source })
  assert(selection.ok, 'a selection that compiles')
  return selection.value
}

/** All entities, or those of one selector. */
export const meaning = (...selectors: SelectorSource[]): Selection => selectionOf({ selectors })

/** An order that must parse; for an empty text, the order of creation. */
export function orderOf(text: string): readonly OrderKey[] {
  if (text === '') return []
  const order = parseOrder(text)
  assert(order.ok, 'an order that parses')
  return order.value
}
