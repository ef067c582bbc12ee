// The events of streams: changes rendered as text, once for all readers that want the same form.

import { asSeen, shows } from '../../domain/access/attribute-set.js'
import type { AccessCondition } from '../../domain/access/condition.js'
import type { Entity } from '../../domain/entities/entity.js'
import { isFullView, renderEntity, type View } from '../../domain/entities/representation.js'
import { stampMs } from '../../domain/stamp.js'
import { alterationOf, changeText, leaveText, viewOfChange } from '../../domain/streams/event-text.js'
import type { EventForm } from '../../domain/streams/watch.js'
import type { AlterationType } from '../../domain/subscriptions/subscription.js'
import { decodeEntity, encodedJson, encodeEntity, isAnswer } from '../../encoded-entity.js'
import type { SentChange } from '../../messages/streams.js'

export type EventKind = AlterationType | 'entityLeave' | 'snapshot' | 'bookmark' | 'gap' | 'coalesced' | 'end'

/** An event for one reader. */
export interface StreamEvent {
  readonly kind: EventKind
  /** undefined: the reader keeps the cursor that it has. */
  readonly cursor: string | undefined
  /** JSON of an object. */
  readonly data: string
  /** Of a change: it may be folded with a later one about the same entity. */
  readonly change?: ReadChange | undefined
}

/** A change as one watch reads it. */
export interface ReadChange {
  readonly change: SentChange
  /** `left`: its entity does not match any more. */
  readonly how: 'found' | 'left'
  /** Identifies the entity. */
  readonly key: string
  /** Of a deletion: the names of what was folded into it. It does not show them, but a later change will. */
  readonly overtaken?: ChangedNames
}

type ChangedNames = Pick<SentChange, 'changed' | 'named'>

/** A change as readers under a condition see it; undefined: the entity is not there for them. */
export function changeAsSeen(condition: AccessCondition, change: SentChange): SentChange | undefined {
  const { path, class: kind } = change
  const entity = decodeEntity(change.encoded)
  const set = condition.attributesOf({ path, type: entity.type, id: entity.id })
  if (!set || set.kind === 'all') return set && change
  const changed = change.changed.filter(name => shows(set, name))
  const named = change.named.filter(name => shows(set, name))
  const isUpdate = kind === 'change' && changed.length === 0
  return {
    ...change,
    class: isUpdate ? 'update' : kind,
    changed,
    named,
    encoded: encodeEntity(asSeen(set, entity), ''),
  }
}

/** The entity of the last change, and its texts: readers get one change after the other. */
export class ChangeTexts {
  private change: SentChange | undefined
  private entity: Entity | undefined
  private key = ''
  /** By the key of a form: watches with the same parameters have forms of their own. */
  private readonly texts = new Map<string, string | undefined>()
  private readonly keys = new WeakMap<EventForm, string>()
  private leave: string | undefined

  /** Identifies the entity of a change within its tenant. */
  keyOf(change: SentChange): string {
    this.entityOf(change)
    return this.key
  }

  /** The kind and the data of a change; undefined: this form shows nothing of it. */
  textOf({ change, how }: ReadChange, form: EventForm): Pick<StreamEvent, 'kind' | 'data'> | undefined {
    const entity = this.entityOf(change)
    if (how === 'left') {
      this.leave ??= leaveText(entity, change.path)
      return { kind: 'entityLeave', data: this.leave }
    }
    const key = this.formKeyOf(form)
    if (!this.texts.has(key)) this.texts.set(key, render(change, entity, form))
    const data = this.texts.get(key)
    return data === undefined ? undefined : { kind: alterationOf[change.class], data }
  }

  /** Equal forms have equal keys. */
  private formKeyOf(form: EventForm): string {
    const known = this.keys.get(form)
    if (known !== undefined) return known
    const key = JSON.stringify(form)
    this.keys.set(form, key)
    return key
  }

  private entityOf(change: SentChange): Entity {
    if (change !== this.change || !this.entity) {
      this.change = change
      this.entity = decodeEntity(change.encoded)
      this.key = `${change.path}\0${this.entity.id}\0${this.entity.type}`
      this.texts.clear()
      this.leave = undefined
    }
    return this.entity
  }
}

function render(change: SentChange, entity: Entity, form: EventForm): string | undefined {
  const view = viewOfChange(change, form)
  if (!view) return undefined
  return changeText(change, stampMs(change.stamp), entityText(entity, change, view))
}

function entityText(entity: Entity, { encoded, path }: SentChange, view: View): string {
  if (isFullView(view) && isAnswer(encoded)) return encodedJson(encoded).toString()
  return renderEntity(entity, path, view)
}

/**
 * One change instead of two about the same entity: the later state, with the names of both. An entity that the reader
 * has not seen yet stays a new one. If it has left or was deleted in between, the reader may still show what the
 * earlier change was about.
 */
export function folded(earlier: ReadChange, later: ReadChange): ReadChange {
  const { change: first, overtaken = noNames } = earlier
  const { change } = later
  const changed = union(union(overtaken.changed, first.changed), change.changed)
  const named = union(union(overtaken.named, first.named), change.named)
  if (change.class === 'delete') return { ...later, overtaken: { changed, named } }
  const isNew = first.class === 'create' && earlier.how === 'found' && later.how === 'found'
  return { ...later, change: { ...change, class: isNew ? 'create' : change.class, changed, named } }
}

const noNames: ChangedNames = { changed: [], named: [] }

const union = (a: readonly string[], b: readonly string[]): readonly string[] =>
  a.length === 0 ? b : [...new Set([...a, ...b])]
