// Who sees what, as the plainest program would decide it: the sentences of docs/interface/access.md, for one entity and
// one attribute at a time, on the JSON of the rules.

import type { JsonObject } from '../../src/domain/json.js'

/** A rule as the file has it. */
export interface PlainRule extends JsonObject {
  readonly actions: readonly string[]
  readonly tenants?: readonly string[]
  readonly paths?: readonly string[]
  readonly types?: readonly string[]
  readonly ids?: readonly (string | { readonly pattern: string })[]
  readonly attributes?: readonly string[]
}

export interface PlainEntity {
  readonly path: string
  readonly id: string
  readonly type: string
}

/** Whether a rule fits an action on an entity in a tenant. */
export function fits(rule: PlainRule, action: string, tenant: string, { path, id, type }: PlainEntity): boolean {
  const { actions, tenants = [''], paths = ['/#'], types, ids } = rule
  if (!actions.includes(action) && !actions.includes('*')) return false
  if (!tenants.includes(tenant) && !tenants.includes('*')) return false
  if (!paths.some(pattern => isIn(path, pattern))) return false
  if (types && !types.includes(type)) return false
  return !ids || ids.some(one => (typeof one === 'string' ? one === id : new RegExp(one.pattern).test(id)))
}

const levels = (path: string): string[] => path.split('/').filter(level => level !== '')

/** Whether a path is that of a pattern, or below it. */
function isIn(path: string, pattern: string): boolean {
  const wanted = levels(pattern)
  const given = levels(path)
  if (wanted.at(-1) !== '#') return wanted.join('/') === given.join('/')
  return wanted.slice(0, -1).every((level, at) => given[at] === level)
}

/** Whether the entity is there for the principal. */
export const isCovered = (rules: readonly PlainRule[], action: string, tenant: string, entity: PlainEntity): boolean =>
  rules.some(rule => fits(rule, action, tenant, entity))

/** Whether the attribute of the entity is allowed. */
export const isAllowed = (
  rules: readonly PlainRule[],
  action: string,
  tenant: string,
  entity: PlainEntity,
  name: string,
): boolean =>
  rules.some(({ attributes = ['*'], ...rule }) => {
    if (!fits(rule, action, tenant, entity) || attributes.includes(`!${name}`)) return false
    return attributes.includes('*') || attributes.includes(name)
  })
