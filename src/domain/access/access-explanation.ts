// Explains a decision for people: which rule allows an action, or why none does
// (docs/interface/access.md#explanations).
//
// The decision is that of grant.ts and its neighbours. The rules are then looked at one by one, in the order of roles
// and of the file, each up to the first part that does not fit.

import { entityLabel } from '../entities/update.js'
import { tenantShown } from '../scope.js'
import type { AccessFile } from './access-file.js'
import { type AccessAction, type AccessRule, type IdSelector, isUnlimited } from './access-rule.js'
import { attributeSetOf, shows } from './attribute-set.js'
import { AccessCondition, type GrantClause } from './condition.js'
import {
  type BrokerAction,
  brokerGrantOf,
  type DenialReason,
  type Grant,
  grantOf,
  grantWithin,
  isInTenant,
  pathsText,
  type RequestPlace,
} from './grant.js'
import { meetingPaths } from './path-patterns.js'
import type { Principal, PrincipalSource } from './principal.js'
import { entitiesOf, ReachedClauses } from './rule-overlap.js'

/** One action, and what it is about. */
export interface AccessQuestion {
  readonly action: AccessAction
  /** `broker`: the whole broker, for `admin`, `metrics`, and the `read` of a backup. */
  readonly place: RequestPlace | 'broker'
  readonly type?: string | undefined
  readonly id?: string | undefined
  /** Attributes that it names. */
  readonly attributes?: readonly string[] | undefined
}

export interface AccessExplanation {
  /** `partly`: some of the entities or attributes. */
  readonly decision: 'allowed' | 'partly' | 'denied'
  /** A sentence. */
  readonly text: string
  readonly rules: readonly ExplainedRule[]
}

export interface ExplainedRule {
  readonly role: string
  /** Its number in its role, from 1 on. */
  readonly number: number
  /** Whether it allows at least a part. */
  readonly allows: boolean
  /** What it allows, or the first part that does not fit. */
  readonly text: string
}

/** Explains what a file says to a question. `principal`: undefined when the file does not have it. */
export function explainAccess(
  file: AccessFile,
  principal: Principal | undefined,
  question: AccessQuestion,
): AccessExplanation {
  const { decision, why } = decide(file, principal, question)
  const who = principal ? principalText(principal.source) : 'an unknown principal'
  const text = `${decisionTexts[decision]}: ${questionText(question)} by ${who}${why === '' ? '' : `: ${why}`}`
  return { decision, text, rules: principal ? explainRules(file, principal, question) : [] }
}

const decisionTexts = { allowed: 'allowed', partly: 'allowed in part', denied: 'denied' } as const

/** The explanation in lines. */
export const explanationLines = ({ text, rules }: AccessExplanation): readonly string[] => [
  text,
  ...rules.map(one => `  ${one.allows ? '+' : '-'} ${one.role}, rule ${one.number}: ${one.text}`),
]

const proofTexts = { key: 'key', token: 'token', certificate: 'certificate', none: 'nothing shown' } as const

const principalText = ({ proof, name }: PrincipalSource): string => `${name} (${proofTexts[proof]})`

function questionText({ action, place, type, id, attributes = [] }: AccessQuestion): string {
  const what = [attributes.length > 0 ? listText('attribute', attributes) : '', entityText(type, id)]
  const of = what.filter(part => part !== '').map(part => ` of ${part}`)
  const where = place === 'broker' ? 'of this broker' : `in ${pathsText(place)} of tenant ${tenantShown(place.tenant)}`
  return `${action}${of.join('')} ${where}`
}

function entityText(type: string | undefined, id: string | undefined): string {
  if (id !== undefined) return entityLabel(id, type)
  return type === undefined ? '' : `entities of type ${type}`
}

interface Decided {
  readonly decision: AccessExplanation['decision']
  readonly why: string
}

function decide(file: AccessFile, principal: Principal | undefined, question: AccessQuestion): Decided {
  const { action, place } = question
  if (place === 'broker') {
    if (!isAboutBroker(action)) return { decision: 'denied', why: notAboutBroker(action) }
    const grant = brokerGrantOf(file, principal, action)
    return grant.kind === 'all' ? allowed : deniedBy(grant.reason, principal, question)
  }
  const grant = grantWithin(grantOf(file, principal, place.tenant, action), place.paths)
  if (grant.kind === 'denied') return deniedBy(grant.reason, principal, question)
  return decideWithin(grant, place, question)
}

const isAboutBroker = (action: AccessAction): action is BrokerAction =>
  action === 'admin' || action === 'metrics' || action === 'read'

const notAboutBroker = (action: AccessAction): string => `${action} is about a tenant`

const allowed: Decided = { decision: 'allowed', why: '' }

function deniedBy(reason: DenialReason, principal: Principal | undefined, { action, place }: AccessQuestion): Decided {
  const allow = `rules allow ${action}`
  switch (reason) {
    case 'roles':
      return { decision: 'denied', why: principal ? 'its roles have no rules' : 'the file does not have it' }
    case 'tokenTenants':
      return { decision: 'denied', why: `its token is for ${tenantsText(principal?.tenants ?? new Set())} only` }
    case 'action':
      return { decision: 'denied', why: `no rule of its roles allows ${action}` }
    case 'tenant':
      return {
        decision: 'denied',
        why: `${allow}, but not ${place === 'broker' ? 'for all tenants and everything in them' : 'in this tenant'}`,
      }
    case 'path':
      return { decision: 'denied', why: `${allow} in this tenant, but not in these paths` }
  }
}

/** What a grant that allows something says to a type, an id and attributes. */
function decideWithin(
  grant: Exclude<Grant, { kind: 'denied' }>,
  { paths }: RequestPlace,
  { action, type, id, attributes = [] }: AccessQuestion,
): Decided {
  if (grant.kind === 'all') return allowed
  const { condition } = grant
  const [path = ''] = paths
  const isOneEntity = type !== undefined && id !== undefined && paths.length === 1 && !path.endsWith('#')
  const set = isOneEntity ? condition.attributesOf({ path, type, id }) : undefined
  const reached = new ReachedClauses(condition.compiled, entitiesOf(type, id))
  if (isOneEntity ? !set : reached.isEmpty)
    return { decision: 'denied', why: `rules allow ${action} in these paths, but not of such entities` }
  const hidden = attributes.find(name => !(set ? shows(set, name) : reached.showAll(name)))
  if (hidden !== undefined) {
    const whose = set ? 'of this entity' : 'of every entity that may be meant'
    return { decision: 'denied', why: `attribute ${hidden} ${whose} is not allowed` }
  }
  const isWhole = set
    ? set.kind === 'all' || attributes.length > 0
    : paths.every(one => isArea(condition, one, type, id))
  return isWhole ? allowed : { decision: 'partly', why: 'only what the rules below allow' }
}

const isArea = (condition: AccessCondition, path: string, type: string | undefined, id: string | undefined): boolean =>
  condition.attributesOfArea(path, type, id)?.kind === 'all'

// Rules

function explainRules(file: AccessFile, principal: Principal, question: AccessQuestion): readonly ExplainedRule[] {
  return principal.roles.flatMap(role =>
    (file.roles.get(role) ?? []).map((rule, at) => {
      const problem = misfit(rule, principal, question)
      return { role, number: at + 1, allows: problem === undefined, text: problem ?? ruleText(rule) }
    }),
  )
}

/** The first part of a rule that does not fit; undefined: all fit. */
function misfit(rule: AccessRule, principal: Principal, question: AccessQuestion): string | undefined {
  const { action, place, type, id, attributes = [] } = question
  if (!rule.actions.has(action)) return `is not about ${action}, but ${[...rule.actions].join(', ')}`
  if (place === 'broker') {
    if (!isAboutBroker(action)) return notAboutBroker(action)
    if (principal.tenants) return 'is narrowed by the tenants of the token'
    return rule.tenants === 'all' && isUnlimited(rule) ? undefined : 'is not about all tenants and everything in them'
  }
  const { tenant, paths } = place
  if (!isInTenant(rule, tenant)) return `is not about tenant ${tenantShown(tenant)}, but ${tenantsText(rule.tenants)}`
  if (principal.tenants && !principal.tenants.has(tenant)) return 'is narrowed by the tenants of the token'
  const within = meetingPaths(rule.paths, paths)
  if (within.length === 0) return `is not about ${pathsText(place)}, but ${rule.paths.join(', ')}`
  if (type !== undefined && rule.types && !rule.types.includes(type))
    return `is not about type ${type}, but ${listText('type', rule.types)}`
  const condition = new AccessCondition([{ ...rule, paths: within }])
  if (new ReachedClauses(condition.compiled, entitiesOf(type, id)).isEmpty)
    return `is not about id ${id}, but ${idsText(rule.ids)}`
  const [{ attributes: set }] = condition.compiled as [(typeof condition.compiled)[number]]
  const hidden = attributes.find(name => !shows(set, name))
  return hidden === undefined ? undefined : `does not have attribute ${hidden}, but ${rule.attributes.join(', ')}`
}

/** What a rule is about, without its actions and tenants. */
const ruleText = (rule: AccessRule): string => `allows ${clauseText(rule)}`

/** A clause in words: `types Museum in /public/#, attributes *, !cost`. */
export function clauseText({ paths, types, ids, attributes }: GrantClause): string {
  const entities = [types && listText('type', types), ids && idsText(ids)].filter(part => part !== undefined)
  const what = entities.length === 0 ? 'everything' : entities.join(' with ')
  const isWhole = attributeSetOf(attributes).kind === 'all'
  return `${what} in ${cutList(paths)}${isWhole ? '' : `, attributes ${cutList(attributes)}`}`
}

const tenantsText = (tenants: AccessRule['tenants']): string =>
  tenants === 'all' ? 'all tenants' : listText('tenant', [...tenants].map(tenantShown))

const idsText = (ids: readonly IdSelector[] | undefined): string =>
  listText('id', ids?.map(one => (typeof one === 'string' ? one : `/${one.pattern}/`)) ?? [])

const listText = (noun: string, names: readonly string[]): string =>
  names.length === 0 ? `no ${noun}` : `${noun}${names.length > 1 ? 's' : ''} ${cutList(names)}`

const namesMax = 10

const cutList = (names: readonly string[]): string =>
  names.length > namesMax
    ? `${names.slice(0, namesMax).join(', ')} and ${names.length - namesMax} more`
    : names.join(', ')
