// What of an entity a request wants to see (entities.md §6), and found entities as the bytes of an answer.
//
// The usual answer, an entity as it is stored, is sent without being parsed or rendered.

import type { Shown } from '../broker/replies.js'
import type { Entity } from '../domain/entities/entity.js'
import {
  attributesPieces,
  entityPieces,
  fullView,
  isFullView,
  type Mode,
  renderAttributes,
  renderEntity,
  type View,
} from '../domain/entities/representation.js'
import { decodeImage, imageJson, isAnswer } from '../image.js'
import type { Item, ListItems } from './list-body.js'
import { listParameter, type Parameters } from './url.js'

/** The view of a request: its mode, and the names of its `attrs` and `metadata`. */
export function viewOf(
  options: ReadonlySet<string>,
  attrs: readonly string[] | undefined,
  metadata: readonly string[] | undefined,
): View {
  if (options.size === 0 && !attrs && !metadata) return fullView
  const mode = modes.find(word => options.has(word)) ?? 'normalized'
  return { mode, attrs: withBuiltins(options, attrs), metadata }
}

const modes: readonly Mode[] = ['keyValues', 'values', 'unique']

/** The view that URL parameters ask for. */
export const viewOfParameters = (parameters: Parameters): View =>
  viewOf(parameters.options, listParameter(parameters, 'attrs'), listParameter(parameters, 'metadata'))

/** The deprecated options name a builtin that `attrs` may name as well (entities.md §6.5). */
function withBuiltins(
  options: ReadonlySet<string>,
  named: readonly string[] | undefined,
): readonly string[] | undefined {
  const builtins = ['dateCreated', 'dateModified'].filter(name => options.has(name))
  return builtins.length === 0 ? named : [...(named ?? ['*']), ...builtins]
}

/** The entity that is shown. */
export const entityOf = (shown: Shown): Entity => ('image' in shown ? decodeImage(shown.image) : shown.entity)

/** Entities with more bytes are rendered in steps: those of 16 MB take 70 ms. */
const largeBytes = 1024 * 1024

const isLarge = (shown: Shown): boolean => 'image' in shown && shown.image.length > largeBytes

/** One entity as JSON. */
export function entityItem(shown: Shown, view: View): Item {
  if ('image' in shown && isFullView(view) && isAnswer(shown.image)) return imageJson(shown.image)
  const render = isLarge(shown) ? entityPieces : renderEntity
  return render(entityOf(shown), shown.path, view)
}

/** The attributes of one entity as JSON, as `GET .../attrs` shows them. */
export function attributesItem(shown: Shown, view: View): Item {
  const render = isLarge(shown) ? attributesPieces : renderAttributes
  return render(entityOf(shown), shown.path, view)
}

/** A list of entities as JSON. What was stored is held until all of them are rendered. */
export function entityItems(entities: readonly Shown[], view: View): ListItems {
  const cost = (index: number): number => {
    const shown = entities[index]!
    return 'image' in shown ? shown.image.length : 0
  }
  let heldBytes = 0
  for (let index = 0; index < entities.length; index++) heldBytes += cost(index)
  return { length: entities.length, render: index => entityItem(entities[index]!, view), cost, heldBytes }
}
