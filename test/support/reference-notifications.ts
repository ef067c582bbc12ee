// The expected text of a notification, written from docs/interface/notifications.md#content and from nothing else: the
// body of a regular one, normalized.
//
// It shares no line with src/. Subscriptions must not ask for values that a test cannot foresee (dates of this very
// moment).
//
// Not here: whether there is one (reference-subscriptions), other formats, headers.

import type { Attribute } from './reference-entities.js'
import { shownEntity } from './reference-query.js'
import { type AlterationType, type Happening, type Subscription, sentNames } from './reference-subscriptions.js'

/**
 * docs/interface/notifications.md#formats: the expected body for a subscription, which the receiver knows by this id.
 */
export function notificationBody(id: string, subscription: Subscription, happening: Happening): string {
  const { entity } = happening
  const users = [...entity.attributes.keys()]
  const builtins = new Map<string, Attribute>([
    ['alterationType', builtin(alterationType(subscription, happening))],
    ['servicePath', builtin(entity.path)],
  ])
  const { sentAttrs, exceptAttrs, onlyChangedAttrs } = subscription
  const isWhole = sentAttrs.length === 0 || sentAttrs.includes('*')
  const named = sentAttrs.filter(name => !isWhole || builtins.has(name))
  const wanted = isWhole ? [...users.filter(name => !exceptAttrs.includes(name)), ...named] : named
  const changed = onlyChangedAttrs ? sentNames(subscription, happening) : wanted
  const sent = wanted
    .filter(name => changed.includes(name))
    .flatMap(name => {
      const attribute = entity.attributes.get(name) ?? builtins.get(name)
      return attribute ? [[name, attribute] as const] : []
    })
  const data = shownEntity({ ...entity, attributes: new Map(sent) }, { mode: 'normalized' })
  return `{"subscriptionId":"${id}","data":[${data}]}`
}

/**
 * docs/interface/subscriptions.md#alteration-types; a change of metadata alone counts only for a subscription that asks
 * for it (docs/interface/subscriptions.md#attribute-rule).
 */
function alterationType({ notifyOnMetadataChange }: Subscription, { class: kind, v }: Happening): AlterationType {
  if (kind === 'create') return 'entityCreate'
  if (kind === 'delete') return 'entityDelete'
  return kind === 'change' && (v.size > 0 || notifyOnMetadataChange) ? 'entityChange' : 'entityUpdate'
}

const builtin = (value: string): Attribute => ({
  type: 'Text',
  value,
  metadata: new Map(),
  createdMs: 0,
  modifiedMs: 0,
})
