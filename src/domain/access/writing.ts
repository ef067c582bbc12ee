// Writes under a grant (docs/interface/access.md#writes).
//
// Everything that is refused is refused before the turn, from the request and the rules alone: so nothing of a batch
// has happened, and the refusal tells nothing of stored entities. A write without a type may mean entities of several
// types. Then each attribute that it names has to be allowed for all of them, and in the turn the entities that the
// rules do not cover are as if they were not there: `WriteLimits`.
//
// `refuseChange` looks at a finished change, for tests and assertions: what `decideWrites` lets pass, passes it.

import { defaultEntityType } from '../entities/entity.js'
import { type Change, entityLabel } from '../entities/update.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../refusal.js'
import { type Scope, tenantShown } from '../scope.js'
import type { AccessAction } from './access-rule.js'
import { shows } from './attribute-set.js'
import type { AccessCondition } from './condition.js'
import { type AllowedGrant, type Grant, grantWithin, refuseAction } from './grant.js'
import { entitiesOf, ReachedClauses } from './rule-overlap.js'

/** The kinds of writes, by what rules have to allow for them. */
export const writeKinds = {
  /** `POST /v2/entities`. */
  create: { actions: ['create'], means: 'named' },
  /** The same with `options=upsert`, and `append` and `appendStrict` of a batch: they create what is missing. */
  upsert: { actions: ['create', 'update'], means: 'named' },
  /** POST, PATCH and PUT below `/attrs`, and `update` of a batch. */
  update: { actions: ['update'], means: 'named' },
  /** `PUT .../attrs`, and `replace` of a batch: it deletes the attributes that it does not name. */
  replace: { actions: ['update', 'delete'], means: 'all' },
  /** `DELETE .../attrs/{name}`, and `delete` of a batch with attributes. */
  deleteAttributes: { actions: ['delete'], means: 'named' },
  /** `DELETE /v2/entities/{id}`, and `delete` of a batch without attributes. */
  deleteEntity: { actions: ['delete'], means: 'all' },
  /** `POST /v2/op/notify`. */
  notify: { actions: ['notify'], means: 'named' },
  /** The same for a deletion. */
  notifyDeletion: { actions: ['notify'], means: 'all' },
} as const satisfies Record<string, { readonly actions: readonly AccessAction[]; readonly means: 'named' | 'all' }>

export type WriteKind = keyof typeof writeKinds

/** One entity of a write. */
export interface WrittenEntity {
  readonly id: string
  /** undefined: the request names none. */
  readonly type: string | undefined
  /** The attributes that the request names. */
  readonly names: readonly string[]
}

/**
 * What a write without a type may be about in its turn: entities that all of these cover. Empty: every entity of its
 * id. An entity that they do not cover is as if it were not there.
 */
export type WriteLimits = readonly AccessCondition[]

/** The grants of a principal in a tenant, by action. */
export type GrantByAction = (action: AccessAction) => Grant

/**
 * Whether a write is allowed, for all of its entities: the limits of those without a type, or the refusal for the first
 * entity and attribute that no rule allows.
 */
export function decideWrites(
  grantOf: GrantByAction,
  scope: Scope,
  kind: WriteKind,
  entities: readonly WrittenEntity[],
): Result<WriteLimits> {
  const { actions, means } = writeKinds[kind]
  const grants: (readonly [AccessAction, AllowedGrant])[] = []
  for (const action of actions) {
    const grant = grantWithin(grantOf(action), [scope.path])
    if (grant.kind === 'denied') return refused(refuseAction(action, placeOf(scope)))
    grants.push([action, grant])
  }
  if (grants.every(([, { kind }]) => kind === 'all')) return accepted([])
  for (const entity of entities) {
    for (const [action, grant] of grants) {
      const refusal = refuseEntity(grant, scope, action, means, entity)
      if (refusal) return refused(refusal)
    }
  }
  return accepted(limitsOf(grants, entities))
}

const placeOf = ({ tenant, path }: Scope) => ({ tenant, paths: [path] })

/** Conditions for entities without a type. What a creation makes has a type. */
function limitsOf(
  grants: readonly (readonly [AccessAction, AllowedGrant])[],
  entities: readonly WrittenEntity[],
): WriteLimits {
  if (entities.every(({ type }) => type !== undefined)) return []
  return grants.flatMap(([action, grant]) => (action === 'create' || grant.kind === 'all' ? [] : [grant.condition]))
}

function refuseEntity(
  grant: AllowedGrant,
  scope: Scope,
  action: AccessAction,
  means: 'named' | 'all',
  entity: WrittenEntity,
): Refusal | undefined {
  if (grant.kind === 'all') return undefined
  const { id, type, names } = entity
  const label = entityLabel(id, type)
  const place = [label, scope.path, tenantShown(scope.tenant)] as const
  const allowed = attributesAllowed(grant.condition, scope.path, id, action === 'create' ? createdType(type) : type)
  if (!allowed) return refusals.entityNotAllowed(action, ...place)
  for (const name of names) if (!allowed.shows(name)) return refusals.attributeNotAllowed(action, name, ...place)
  if (means === 'all' && !allowed.showsAll()) return refusals.attributesNotAllowed(action, ...place)
  return undefined
}

const createdType = (type: string | undefined): string => type ?? defaultEntityType

interface Allowed {
  shows(name: string): boolean
  showsAll(): boolean
}

/** The attributes that may be written of an entity, or of all entities of an id; undefined: it may not be written. */
function attributesAllowed(
  condition: AccessCondition,
  path: string,
  id: string,
  type: string | undefined,
): Allowed | undefined {
  if (type !== undefined) {
    const set = condition.attributesOf({ path, type, id })
    return set && { shows: name => shows(set, name), showsAll: () => set.kind === 'all' }
  }
  const reached = new ReachedClauses(condition.compiled, entitiesOf(undefined, id))
  if (reached.isEmpty) return undefined
  return { shows: name => reached.showAll(name), showsAll: () => reached.showEverything() }
}

/** Whether a write without a type may be about an entity. */
export const isWithinLimits = (limits: WriteLimits, path: string, type: string, id: string): boolean =>
  limits.every(condition => condition.covers({ path, type, id }))

/**
 * Whether a write without a type may go to a provider, whose entity may have any type
 * (docs/interface/access.md#registrations).
 */
export const mayForward = (limits: WriteLimits, path: string, id: string): boolean =>
  limits.every(condition => condition.attributesOfArea(path, undefined, id) !== undefined)

/**
 * The refusal of a finished change; undefined: all of it is allowed. An entity has the same place, type and id before
 * and after it. `isNotified`: it came as a notification, for which other rules count.
 */
export function refuseChange(
  grantOf: GrantByAction,
  scope: Scope,
  { before, after, alterations }: Change,
  isNotified: boolean,
): Refusal | undefined {
  const { id, type } = (after ?? before)!
  const place = [entityLabel(id, type), scope.path, tenantShown(scope.tenant)] as const
  const refuse = (action: AccessAction, name?: string): Refusal | undefined => {
    const grant = grantWithin(grantOf(action), [scope.path])
    if (grant.kind === 'denied') return refuseAction(action, placeOf(scope))
    if (grant.kind === 'all') return undefined
    const set = grant.condition.attributesOf({ path: scope.path, type, id })
    if (!set) return refusals.entityNotAllowed(action, ...place)
    return name === undefined || shows(set, name) ? undefined : refusals.attributeNotAllowed(action, name, ...place)
  }
  const whole: AccessAction = isNotified ? 'notify' : !before ? 'create' : !after ? 'delete' : 'update'
  const isEmpty = alterations.length === 0
  const first = isEmpty || !before || !after ? refuse(whole) : undefined
  if (first) return first
  for (const { name, action } of alterations) {
    const needed = isNotified || !before || !after ? whole : action === 'delete' ? 'delete' : 'update'
    const refusal = refuse(needed, name)
    if (refusal) return refusal
  }
  return undefined
}
