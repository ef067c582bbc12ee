// A grant: what the rules of a principal come to for one tenant and one action (docs/interface/access.md#the-decision).
//
//   roles -> rules that allow the action in the tenant -> clauses -> cut to the paths of the request
//
// It is one of three: denied, all, or narrowed by a condition. It depends only on the file and its arguments, so the
// caller may remember it until the file changes. Rules only allow: what no rule allows is denied.
//
// Not here: what a request names besides its paths (filters.ts, writing.ts, watching.ts), the reasons for people
// (access-explanation.ts).

import { type Refusal, refusals } from '../refusal.js'
import { tenantShown } from '../scope.js'
import type { AccessFile } from './access-file.js'
import { type AccessAction, type AccessRule, isUnlimited } from './access-rule.js'
import { attributeSetOf } from './attribute-set.js'
import { AccessCondition, type GrantClause } from './condition.js'
import { coversPattern, meetingPaths, withoutCovered } from './path-patterns.js'
import type { Principal } from './principal.js'

export type Grant =
  | { readonly kind: 'denied'; readonly reason: DenialReason }
  /** Every entity in these paths, with all attributes. */
  | { readonly kind: 'all'; readonly paths: readonly string[] }
  | { readonly kind: 'narrowed'; readonly condition: AccessCondition }

/** A grant that allows something. */
export type AllowedGrant = Exclude<Grant, { readonly kind: 'denied' }>

/** Why nothing is allowed: the last step that no rule has passed. */
export type DenialReason =
  /** There is no principal, or it has no rules. */
  | 'roles'
  /** Its token is for other tenants. */
  | 'tokenTenants'
  /** No rule allows the action. */
  | 'action'
  /** Rules allow the action, but not in this tenant. */
  | 'tenant'
  /** Rules allow the action in this tenant, but not in these paths. */
  | 'path'

const denied = (reason: DenialReason): Grant => ({ kind: 'denied', reason })

const everywhere: Grant = { kind: 'all', paths: ['/#'] }

/** The rules of a principal, in the order of its roles. */
export const rulesOf = ({ roles }: AccessFile, principal: Principal | undefined): readonly AccessRule[] =>
  principal?.roles.flatMap(role => roles.get(role) ?? []) ?? []

/** What a principal may do in a tenant; undefined: it may do nothing. */
export function grantOf(
  file: AccessFile,
  principal: Principal | undefined,
  tenant: string,
  action: AccessAction,
): Grant {
  const rules = rulesOf(file, principal)
  if (rules.length === 0) return denied('roles')
  if (principal?.tenants && !principal.tenants.has(tenant)) return denied('tokenTenants')
  const ofAction = rules.filter(({ actions }) => actions.has(action))
  if (ofAction.length === 0) return denied('action')
  const fitting = ofAction.filter(rule => isInTenant(rule, tenant))
  if (fitting.length === 0) return denied('tenant')
  if (fitting.some(isUnlimited)) return everywhere
  return { kind: 'narrowed', condition: new AccessCondition(fitting.map(clauseOf)) }
}

/** Whether a rule is about a tenant. */
export const isInTenant = ({ tenants }: AccessRule, tenant: string): boolean => tenants === 'all' || tenants.has(tenant)

const clauseOf = ({ paths, types, ids, attributes }: AccessRule): GrantClause => ({ paths, types, ids, attributes })

/** The part of a grant that is about some paths. */
export function grantWithin(grant: Grant, paths: readonly string[]): Grant {
  switch (grant.kind) {
    case 'denied':
      return grant
    case 'all': {
      const meeting = meetingPaths(grant.paths, paths)
      return meeting.length > 0 ? { kind: 'all', paths: meeting } : denied('path')
    }
    case 'narrowed': {
      const clauses = grant.condition.clauses
        .map(clause => ({ ...clause, paths: meetingPaths(clause.paths, paths) }))
        .filter(clause => clause.paths.length > 0)
      if (clauses.length === 0) return denied('path')
      const whole = clauses.filter(isAboutPaths).flatMap(clause => clause.paths)
      if (paths.every(path => whole.some(one => coversPattern(one, path))))
        return { kind: 'all', paths: withoutCovered(paths) }
      return { kind: 'narrowed', condition: new AccessCondition(clauses) }
    }
  }
}

/** Whether a clause is about everything in its paths. */
const isAboutPaths = ({ types, ids, attributes }: GrantClause): boolean =>
  types === undefined && ids === undefined && attributeSetOf(attributes).kind === 'all'

/** The paths in which there may be something, none within another one. */
export const pathsOf = (grant: AllowedGrant): readonly string[] =>
  grant.kind === 'all' ? grant.paths : grant.condition.paths

/** What may be done to the whole broker. */
export type BrokerAction = Extract<AccessAction, 'admin' | 'metrics' | 'read'>

/**
 * Whether a principal may do something to the whole broker: `admin` and `metrics` on the paths for operators, `read`
 * for a backup (docs/interface/access.md#administration). It needs a rule for all tenants that nothing narrows.
 */
export function brokerGrantOf(
  file: AccessFile,
  principal: Principal | undefined,
  action: BrokerAction,
): Exclude<Grant, { readonly kind: 'narrowed' }> {
  const rules = rulesOf(file, principal)
  if (rules.length === 0) return { kind: 'denied', reason: 'roles' }
  if (principal?.tenants) return { kind: 'denied', reason: 'tokenTenants' }
  const ofAction = rules.filter(({ actions }) => actions.has(action))
  if (ofAction.length === 0) return { kind: 'denied', reason: 'action' }
  return ofAction.some(rule => rule.tenants === 'all' && isUnlimited(rule))
    ? { kind: 'all', paths: ['/#'] }
    : { kind: 'denied', reason: 'tenant' }
}

/** Whether a principal may do everything to the subscriptions and registrations of a tenant. */
export const isAdminOf = (file: AccessFile, principal: Principal | undefined, tenant: string): boolean =>
  grantOf(file, principal, tenant, 'admin').kind === 'all'

/** What a request is about. */
export interface RequestPlace {
  readonly tenant: string
  /** As the request has them, or the default of its kind. */
  readonly paths: readonly string[]
}

/** The paths of a request in a text for people. */
export const pathsText = ({ paths }: RequestPlace): string => paths.join(',')

/** The refusal of a request that no rule allows (docs/interface/access.md#answers). */
export const refuseAction = (action: AccessAction, place: RequestPlace): Refusal =>
  refusals.actionNotAllowed(action, pathsText(place), tenantShown(place.tenant))
