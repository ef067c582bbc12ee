// The event of a change for a reader that may not see everything: docs/interface/access.md#subscriptions and #streams.
//
// The same change happens to the visible part of the entity, and the rules of subscriptions and streams are asked about
// that (reference-subscriptions, reference-watch).

import type { Entity } from '../support/reference-entities.js'
import { notificationBody } from '../support/reference-notifications.js'
import { type Happening, isSelected, type Subscription, verdictOn } from '../support/reference-subscriptions.js'
import { templateNames } from './access-request.js'
import type { AccessRule } from './random-access-file.js'
import { allows, coversAny, visiblePart } from './reference-grant.js'

/**
 * The event for the visible part of the entity. Undefined if there is none: the entity is not covered, or only hidden
 * attributes were changed.
 */
export function visibleHappening(rules: readonly AccessRule[], happening: Happening): Happening | undefined {
  const { class: kind, before, entity, r, v, m } = happening
  if (!coversAny(rules, entity)) return undefined
  const visible = (names: ReadonlySet<string>) => new Set([...names].filter(name => allows(rules, entity, name)))
  const [shownR, shownV, shownM] = [visible(r), visible(v), visible(m)]
  const isChange = kind === 'change' || kind === 'update'
  if (isChange && shownR.size + shownV.size + shownM.size === 0) return undefined
  return {
    class: isChange ? (shownV.size + shownM.size > 0 ? 'change' : 'update') : kind,
    before: before && visiblePart(rules, before),
    entity: visiblePart(rules, entity) as Entity,
    r: shownR,
    v: shownV,
    m: shownM,
  }
}

/** The body of the notification for a visible event; undefined: there is none. `id`: that of the subscription. */
export function notificationFor(
  subscription: Subscription,
  isCustom: boolean,
  happening: Happening,
  id: string,
): string | undefined {
  if (!isSelected(subscription, happening)) return undefined
  if (verdictOn(subscription, happening, undefined, 0) !== 'fires') return undefined
  return isCustom ? customBody(happening.entity) : notificationBody(id, subscription, happening)
}

/** Macros do not find hidden attributes: they are missing in the visible part. */
const customBody = ({ id, attributes }: Entity): string =>
  JSON.stringify({ id, ...Object.fromEntries(templateNames.map(name => [name, attributes.get(name)?.value ?? null])) })
