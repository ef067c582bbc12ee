// A client's requests about one entity or document of a simulated cluster, and what their answers show.
//
// An entity is a counter and a register: each change raises `n` by one, `by` names the operation that did it, and some
// changes set `level`, which the others leave as it is. A document is a subscription that sends nothing, and its
// description names the operation.

import type { WantedAttribute } from '../../src/domain/entities/entity.js'
import { operatorOf } from '../../src/domain/entities/operators.js'
import type { Json } from '../../src/domain/json.js'
import type { Subscription } from '../../src/domain/subscriptions/subscription.js'
import { decodeEntity } from '../../src/encoded-entity.js'
import type { WriteRequest } from '../../src/messages/messages.js'
import { tenant } from '../support/notifying.js'

const type = 'T'

/** The state of an entity or document, as an answer shows it. */
export type Seen =
  | { readonly kind: 'value'; readonly value: number; readonly by: string; readonly level: number | undefined }
  | { readonly kind: 'absent' }
  /** It exists, and nothing else is known. */
  | { readonly kind: 'present' }

/** What a request changes in an entity; `append` creates the entity if it is not there. */
export interface Change {
  readonly form: 'update' | 'append' | 'create' | 'delete'
  /** undefined: the level stays as it is. */
  readonly level: number | undefined
}

/** A client's request about one entity or document, and the answer. */
export interface Operation {
  readonly id: string
  /** `observe`: looks at a copy of the register, on any node that answers for some shard. */
  readonly kind: 'write' | 'delete' | 'read' | 'observe'
  /** The entity or document. */
  readonly key: string
  readonly shard: number
  /** undefined: it is no change of an entity. */
  readonly change: Change | undefined
  readonly askedMs: number
  /** `refused`: it certainly had no effect. Without an answer the outcome is unknown. */
  outcome: 'done' | 'refused' | undefined
  answeredMs: number
  seen: Seen | undefined
}

export interface EntityName {
  readonly path: string
  readonly id: string
}

/** The key of an entity, in readable form. */
export const keyOf = (path: string, id: string): string => `${path} ${id}`

const options = { overrideMetadata: false, forcedUpdate: false }

/** The request of an operation that changes an entity. */
export function requestOf(operation: Operation, { path, id }: EntityName): WriteRequest {
  const { form } = operation.change!
  const origin = { correlatorRoot: operation.id, numbering: { next: 1, step: 1 } }
  const target = { tenant, path, id, type: form === 'append' || form === 'create' ? type : undefined }
  const attributes = attributesOf(operation)
  switch (form) {
    case 'update':
      return { kind: 'update', target, origin, attributes, options }
    case 'append':
      return { kind: 'append', target, origin, createAs: type, attributes, options }
    case 'create':
      return { kind: 'create', target, origin, upsert: false, options, entity: { id, type, attributes } }
    case 'delete':
      return { kind: 'deleteEntity', target, origin }
  }
}

function attributesOf({ id, change }: Operation): Map<string, WantedAttribute> {
  const attributes = new Map([
    ['n', wanted({ $inc: 1 }, 'Number')],
    ['by', wanted(id, 'Text')],
  ])
  if (change?.level !== undefined) attributes.set('level', wanted(change.level, 'Number'))
  return attributes
}

const wanted = (value: Json, ofType: string): WantedAttribute => ({
  type: ofType,
  value,
  operator: operatorOf(value),
  metadata: undefined,
})

export function seenOf(encoded: Buffer): Seen {
  const { attributes } = decodeEntity(encoded)
  const [n, by, level] = ['n', 'by', 'level'].map(name => attributes.get(name)?.value)
  return { kind: 'value', value: Number(n), by: String(by), level: level === undefined ? undefined : Number(level) }
}

export const seenIn = (document: Subscription | undefined): Seen =>
  document ? { kind: 'value', value: 0, by: document.description, level: undefined } : { kind: 'absent' }
