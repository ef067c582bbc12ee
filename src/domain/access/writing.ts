// Writes under a grant (docs/interface/access.md#writes).
//
// Every refusal is decided before the turn, from the request and the rules alone. So no part of a refused batch has
// happened, and the refusal reveals nothing about stored entities. A write without a type may mean entities of several
// types. Then each attribute that it names has to be allowed for all of them, and in the turn the entities that the
// rules do not cover are as if they were not there: `WriteLimits`.

import { defaultEntityType } from '../entities/entity.js'
import { entityLabel } from '../entities/update.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../refusal.js'
import { type Scope, tenantShown } from '../scope.js'
import type { AccessAction } from './access-rule.js'
import { type AttributeSet, shows } from './attribute-set.js'
import type { AccessCondition, EntityInPath } from './condition.js'
import { type AllowedGrant, type Grant, grantWithin, pathsOf, refuseAction } from './grant.js'
import { attributesOfEveryType, entitiesOf, ReachedClauses, RuleComparisons } from './rule-overlap.js'

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
 * What a write without a type may be about in its turn, or create: entities that all of these cover. Empty: every
 * entity of its id. An entity that they do not cover is as if it were not there.
 */
export type WriteLimits = readonly AccessCondition[]

/** The grants of a principal in a tenant, by action. */
export type GrantByAction = (action: AccessAction) => Grant

/**
 * Decides the writes of one request. What does not depend on single entities is done once, and the comparisons of rules
 * have one limit: a batch may have many thousands of entities.
 */
export class WriteDecisions {
  private readonly grants = new Map<AccessAction, Grant>()
  private untyped: UntypedEntities | undefined

  constructor(
    private readonly grantOf: GrantByAction,
    private readonly scope: Scope,
  ) {}

  /**
   * Whether writes of a kind are allowed, for all of their entities: the limits of those without a type, or the refusal
   * for the first entity and attribute that no rule allows.
   */
  decide(kind: WriteKind, entities: readonly WrittenEntity[]): Result<WriteLimits> {
    const { actions, means } = writeKinds[kind]
    const grants: (readonly [AccessAction, AllowedGrant])[] = []
    for (const action of actions) {
      const grant = this.grantHere(action)
      if (grant.kind === 'denied') return refused(refuseAction(action, placeOf(this.scope)))
      grants.push([action, grant])
    }
    if (grants.every(([, grant]) => grant.kind === 'all')) return accepted([])
    for (const entity of entities) {
      for (const [action, grant] of grants) {
        const refusal = this.refuseEntity(grant, action, means, entity)
        if (refusal) return refused(refusal)
      }
    }
    return accepted(limitsOf(grants, entities))
  }

  private untypedAllowed(condition: AccessCondition, id: string): Allowed | undefined {
    const everywhere = attributesOfEveryType(condition)
    if (everywhere) return everywhere === 'none' ? undefined : allowedIn(everywhere)
    this.untyped ??= new UntypedEntities()
    return this.untyped.of(condition, id)
  }

  private grantHere(action: AccessAction): Grant {
    let grant = this.grants.get(action)
    if (!grant) {
      grant = grantAt(this.grantOf(action), this.scope.path)
      this.grants.set(action, grant)
    }
    return grant
  }

  private refuseEntity(
    grant: AllowedGrant,
    action: AccessAction,
    means: 'named' | 'all',
    { id, type, names }: WrittenEntity,
  ): Refusal | undefined {
    if (grant.kind === 'all') return undefined
    const { scope } = this
    const place = [entityLabel(id, type), scope.path, tenantShown(scope.tenant)] as const
    const known = action === 'create' ? createdType(type) : type
    const allowed =
      known === undefined
        ? this.untypedAllowed(grant.condition, id)
        : attributesAllowed(grant.condition, { path: scope.path, type: known, id })
    if (!allowed) return refusals.entityNotAllowed(action, ...place)
    for (const name of names) if (!allowed.showAll(name)) return refusals.attributeNotAllowed(action, name, ...place)
    if (means === 'all' && !allowed.showEverything()) return refusals.attributesNotAllowed(action, ...place)
    return undefined
  }
}

// [hot] Once per write. The grant of a request is nearly always cut to its path already.
function grantAt(grant: Grant, path: string): Grant {
  if (grant.kind === 'denied') return grant
  const paths = pathsOf(grant)
  return paths.length === 1 && paths[0] === path ? grant : grantWithin(grant, [path])
}

const placeOf = ({ tenant, path }: Scope) => ({ tenant, paths: [path] })

/** Conditions for entities without a type, one for each action that a write needs. */
function limitsOf(
  grants: readonly (readonly [AccessAction, AllowedGrant])[],
  entities: readonly WrittenEntity[],
): WriteLimits {
  if (entities.every(({ type }) => type !== undefined)) return []
  return grants.flatMap(([, grant]) => (grant.kind === 'all' ? [] : [grant.condition]))
}

const createdType = (type: string | undefined): string => type ?? defaultEntityType

/** The attributes that may be written of an entity, or of all entities of an id. */
type Allowed = Pick<ReachedClauses, 'showAll' | 'showEverything'>

/** undefined: the entity may not be written. */
function attributesAllowed(condition: AccessCondition, entity: EntityInPath): Allowed | undefined {
  const set = condition.attributesOf(entity)
  return set && allowedIn(set)
}

const allowedIn = (set: AttributeSet): Allowed => ({
  showAll: name => shows(set, name),
  showEverything: () => set.kind === 'all',
})

/** Entities without a type. Those whose ids the same clauses have share what was found out. */
class UntypedEntities {
  private readonly comparisons = new RuleComparisons()
  /** By condition, and by the clauses that have the id. */
  private readonly known = new Map<AccessCondition, Map<string, Allowed | undefined>>()

  /** undefined: entities of this id may not be written. */
  of(condition: AccessCondition, id: string): Allowed | undefined {
    const { compiled } = condition
    // One clause alone names the same attributes for all of its entities, whatever their types.
    const [only, ...others] = compiled
    if (others.length === 0) return only && (only.ids?.has(id) ?? true) ? allowedIn(only.attributes) : undefined
    const clauses = compiled.map(({ ids }) => (ids === undefined || ids.has(id) ? '+' : '-')).join('')
    const known = this.known.get(condition) ?? new Map<string, Allowed | undefined>()
    this.known.set(condition, known)
    if (!known.has(clauses)) {
      const reached = new ReachedClauses(compiled, entitiesOf(undefined, id), this.comparisons)
      known.set(clauses, reached.isEmpty ? undefined : reached)
    }
    return known.get(clauses)
  }
}

/**
 * Whether a write may go to a provider, which may have entities of any type (docs/interface/access.md#registrations):
 * the rules have allowed its type, or they cover every type of its id.
 */
export const mayGoToProvider = (
  limits: WriteLimits | undefined,
  path: string,
  { id, type }: Pick<WrittenEntity, 'id' | 'type'>,
): boolean =>
  limits === undefined || type !== undefined || limits.every(condition => condition.coversArea(path, undefined, id))

/** Whether a write without a type may be about an entity. */
export const isWithinLimits = (limits: WriteLimits, path: string, type: string, id: string): boolean =>
  limits.every(condition => condition.covers({ path, type, id }))
