// The events of a stream as JSON text, without the frame of a transport (docs/interface/live.md#events).
//
// Many readers want the same event in the same form, so a text is rendered once and shared.

import { renderDateTime } from '../date-time.js'
import type { Entity } from '../entities/entity.js'
import { quoted, type View } from '../entities/representation.js'
import type { EventClass } from '../subscriptions/event.js'
import type { AlterationType } from '../subscriptions/subscription.js'
import { changedAttrs } from '../subscriptions/triggering.js'
import type { EventForm } from './watch.js'

/** The facts of a change that an event shows besides its entity. */
export interface ChangeFacts {
  readonly path: string
  readonly class: EventClass
  /** Attributes that got another value, type or metadata, were added or deleted. */
  readonly changed: readonly string[]
  /** Attributes that the request named. */
  readonly named: readonly string[]
  readonly correlator: string
}

export const alterationOf = {
  create: 'entityCreate',
  change: 'entityChange',
  update: 'entityUpdate',
  delete: 'entityDelete',
} as const satisfies Readonly<Record<EventClass, AlterationType>>

/** The data of an event. `entity`: the entity after the change as JSON; of a deletion, its last state. */
export function changeText(change: ChangeFacts, timeMs: number, entity: string): string {
  const { path, changed, correlator } = change
  const alteration = alterationOf[change.class]
  return (
    `{"data":[${entity}],"alterationType":"${alteration}","changed":${JSON.stringify(changed)},` +
    `"servicePath":${quoted(path)},"time":"${renderDateTime(timeMs)}","correlator":${quoted(correlator)}}`
  )
}

/** The view of an event's entity; undefined: `onlyChangedAttrs` leaves nothing to show. */
export function viewOfChange(
  { class: kind, named }: Pick<ChangeFacts, 'class' | 'named'>,
  { view, onlyChangedAttrs }: EventForm,
): View | undefined {
  if (!onlyChangedAttrs) return view
  const attrs = changedAttrs({ attrs: view.attrs ?? [], exceptAttrs: [] }, { named: new Set(named) })
  return attrs.length === 0 && kind !== 'delete' ? undefined : { ...view, attrs }
}

/** The data of an `entityLeave`. */
export const leaveText = ({ id, type }: Pick<Entity, 'id' | 'type'>, path: string): string =>
  `{"id":${quoted(id)},"type":${quoted(type)},"servicePath":${quoted(path)}}`

/** The data of a part of a snapshot, and of its end. */
export const snapshotText = (entities: readonly string[]): string => `{"data":[${entities.join()}]}`
export const snapshotEndText = (count: number): string => `{"end":true,"count":${count}}`

/** Why events between two cursors cannot be sent. */
export type GapReason = 'too old' | 'restarted' | 'owner lost'

/** The data of a `gap`. `sinceMs`: the time from which events may be missing. */
export const gapText = (reason: GapReason, sinceMs: number): string =>
  `{"reason":"${reason}","since":"${renderDateTime(sinceMs)}"}`
