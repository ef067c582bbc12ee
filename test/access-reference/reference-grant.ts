// What rules allow, written from docs/interface/access.md#rules, #the-decision, #filters and #writes, and from nothing
// else.
//
// Plain on purpose: a question about one entity asks each rule. A question about all entities of a request (a filter, a
// write without a type) lists examples: each path, type and id that is named anywhere, and one of each that is named
// nowhere. Rules name things or mean all of them, so an example stands for each kind of entity. An id that only a
// pattern describes is an example, too: the rules for it are those with that pattern and those for all ids.
//
// Not here: which rules a request needs (reference-answers).

import type { Entity } from '../support/reference-entities.js'
import { coversPath, type Selector } from '../support/reference-query.js'
import type { AccessFile, AccessRule } from './random-access-file.js'

/** An entity as far as rules look at it. */
export type Covered = Pick<Entity, 'path' | 'type' | 'id'>

/** docs/interface/access.md#the-decision, steps 1 and 2. */
export function rulesFor(
  file: AccessFile,
  roles: readonly string[],
  action: string,
  tenant: string,
): readonly AccessRule[] {
  const rules = [...new Set(roles)].flatMap(role => file.roles[role] ?? [])
  return rules.filter(rule => allowsAction(rule, action) && allowsTenant(rule, tenant))
}

/** docs/interface/access.md#actions */
export const allowsAction = ({ actions }: AccessRule, action: string): boolean =>
  actions.includes('*') || actions.includes(action)

/** docs/interface/access.md#tenants */
const allowsTenant = ({ tenants = [''] }: AccessRule, tenant: string): boolean =>
  tenants.includes('*') || tenants.includes(tenant)

/** docs/interface/access.md#the-decision, step 3: the rules that have a part of these paths. */
export const inPaths = (rules: readonly AccessRule[], asked: readonly string[]): readonly AccessRule[] =>
  rules.filter(({ paths = ['/#'] }) => paths.some(one => asked.some(other => meet(one, other))))

/** Two paths, perhaps with `/#`, have something in common if one of them has the top of the other. */
const meet = (a: string, b: string): boolean => coversPath([a], topOf(b)) || coversPath([b], topOf(a))

const topOf = (path: string): string => (path === '/#' ? '/' : path.replace(/\/#$/, ''))

/** docs/interface/access.md#the-decision, step 4. */
export const covers = (rule: AccessRule, { path, type, id }: Covered): boolean =>
  coversPath(rule.paths ?? ['/#'], path) && coversType(rule, type) && coversId(rule, id)

const coversType = ({ types }: AccessRule, type: string): boolean => types === undefined || types.includes(type)

const coversId = ({ ids }: AccessRule, id: string): boolean =>
  ids === undefined || ids.some(one => (typeof one === 'string' ? one === id : new RegExp(one.pattern).test(id)))

/** docs/interface/access.md#attributes */
export function allowsName({ attributes = ['*'] }: AccessRule, name: string): boolean {
  if (attributes.includes(`!${name}`)) return false
  return attributes.includes('*') || attributes.includes(name)
}

export const coversAny = (rules: readonly AccessRule[], entity: Covered): boolean =>
  rules.some(rule => covers(rule, entity))

/** Rules are added up by entity (docs/interface/access.md#the-decision). */
export const allows = (rules: readonly AccessRule[], entity: Covered, name: string): boolean =>
  rules.some(rule => covers(rule, entity) && allowsName(rule, name))

/** docs/interface/access.md#writes: every attribute of the entity, whatever it has. */
export const allowsAll = (rules: readonly AccessRule[], entity: Covered): boolean =>
  coversAny(rules, entity) && exampleNames(rules).every(name => allows(rules, entity, name))

/** Each attribute that a rule names, and one that none does. */
export const exampleNames = (rules: readonly AccessRule[]): readonly string[] => [
  ...new Set(rules.flatMap(({ attributes = [] }) => attributes.map(one => one.replace(/^!/, '')))),
  'named nowhere',
]

/**
 * The entity as a broker would have it that has only what is allowed (docs/interface/access.md#reads); undefined if it
 * is not covered.
 */
export function visiblePart(rules: readonly AccessRule[], entity: Entity): Entity | undefined {
  if (!coversAny(rules, entity)) return undefined
  const attributes = [...entity.attributes].filter(([name]) => allows(rules, entity, name))
  return { ...entity, attributes: new Map(attributes) }
}

// Questions about all entities that a request may be about

/** What a request names; without `selectors` it may be about every entity of its paths. */
export interface About {
  readonly paths: readonly string[]
  readonly selectors: readonly Selector[]
}

/** An id, or all that is known of it: the pattern that it fits; undefined: nothing. */
type ExampleId = { readonly id: string } | { readonly pattern: string | undefined }

const namedNowhere = 'NamedNowhere'

/**
 * docs/interface/access.md#filters: whether the attribute is allowed for every covered entity that the request may be
 * about. Each rule is cut to that; where it does not allow the name, other rules have to.
 */
export function allowsFilter(rules: readonly AccessRule[], about: About, name: string): boolean {
  const paths = examplePaths(rules, about)
  return rules.every(rule =>
    paths
      .filter(path => coversPath(rule.paths ?? ['/#'], path))
      .every(path =>
        exampleTypes(rules, rule, about).every(type =>
          exampleIds(rules, rule, about).every(id =>
            rules.some(other => allowsName(other, name) && coversExample(other, path, type, id)),
          ),
        ),
      ),
  )
}

function coversExample(rule: AccessRule, path: string, type: string, id: ExampleId): boolean {
  if (!coversPath(rule.paths ?? ['/#'], path) || !coversType(rule, type)) return false
  if ('id' in id) return coversId(rule, id.id)
  const { ids } = rule
  return ids === undefined || ids.some(one => typeof one !== 'string' && one.pattern === id.pattern)
}

/** Paths of the request: those that are named, and one below each that has all below it. */
function examplePaths(rules: readonly AccessRule[], about: About): readonly string[] {
  const named = [...about.paths, ...rules.flatMap(({ paths = ['/#'] }) => paths)]
  const examples = named.flatMap(path => {
    const top = topOf(path)
    if (!path.endsWith('/#')) return [path]
    return [top, top === '/' ? `/${namedNowhere}` : `${top}/${namedNowhere}`]
  })
  return [...new Set(examples)].filter(path => coversPath(about.paths, path))
}

/** Types of the rule that the request may be about. A pattern narrows rules that name types. */
function exampleTypes(rules: readonly AccessRule[], rule: AccessRule, { selectors }: About): readonly string[] {
  const isMeant = (type: string) =>
    selectors.length === 0 ||
    selectors.some(
      ({ types, typePattern }) =>
        (!types || types.includes(type)) && (!typePattern || new RegExp(typePattern).test(type)),
    )
  if (rule.types) return rule.types.filter(isMeant)
  const isNamed = selectors.length > 0 && selectors.every(({ types }) => types !== undefined)
  if (isNamed) return selectors.flatMap(({ types = [] }) => types)
  return [...new Set(rules.flatMap(({ types = [] }) => types)), namedNowhere]
}

/** Ids of the rule that the request may be about. A pattern of the request narrows nothing. */
function exampleIds(rules: readonly AccessRule[], rule: AccessRule, { selectors }: About): readonly ExampleId[] {
  const isNamed = selectors.length > 0 && selectors.every(one => one.ids !== undefined)
  if (isNamed)
    return selectors
      .flatMap(one => one.ids ?? [])
      .filter(id => coversId(rule, id))
      .map(id => ({ id }))
  if (rule.ids) return rule.ids.map(one => (typeof one === 'string' ? { id: one } : one))
  const named = rules.flatMap(one => one.ids ?? [])
  return [...named.map(one => (typeof one === 'string' ? { id: one } : one)), { pattern: undefined }]
}

/**
 * docs/interface/access.md#writes, a write without a type: the rules that fit path and id decide, and the attribute has
 * to be allowed for every type that they cover.
 */
export function allowsUntyped(rules: readonly AccessRule[], path: string, id: string, name: string): boolean {
  const about = { paths: [path], selectors: [{ ids: [id] }] }
  return coversUntyped(rules, path, id) && allowsFilter(rules, about, name)
}

export const coversUntyped = (rules: readonly AccessRule[], path: string, id: string): boolean =>
  rules.some(rule => coversPath(rule.paths ?? ['/#'], path) && coversId(rule, id))

export const allowsAllUntyped = (rules: readonly AccessRule[], path: string, id: string): boolean =>
  coversUntyped(rules, path, id) && exampleNames(rules).every(name => allowsUntyped(rules, path, id, name))

// Registrations

/** docs/interface/access.md#registrations: a write without a type may be about an entity that only a provider has. */
export const coversEveryType = (rules: readonly AccessRule[], path: string, id: string): boolean =>
  rules.some(rule => rule.types === undefined && coversPath(rule.paths ?? ['/#'], path) && coversId(rule, id))

/** What an element of a registration provides: every id without `id`, every type without `type`. */
export interface Provided {
  readonly path: string
  readonly id?: string
  readonly type?: string
}

/** docs/interface/access.md#registrations: a rule counts only if it covers the element completely. */
export function allowsProviding(
  rules: readonly AccessRule[],
  { path, id, type }: Provided,
  names: readonly string[],
): boolean {
  const whole = rules.filter(
    rule =>
      coversPath(rule.paths ?? ['/#'], path) &&
      (type === undefined ? rule.types === undefined : coversType(rule, type)) &&
      (id === undefined ? rule.ids === undefined : coversId(rule, id)),
  )
  const asked = names.length === 0 ? exampleNames(whole) : names
  return whole.length > 0 && asked.every(name => whole.some(rule => allowsName(rule, name)))
}

/**
 * docs/interface/access.md#administration: a rule for all tenants, or for this one, that no path, type, id or attribute
 * narrows.
 */
export const isWhole = ({ paths, types, ids, attributes }: AccessRule): boolean =>
  (paths === undefined || paths.includes('/#')) &&
  types === undefined &&
  ids === undefined &&
  (attributes === undefined || (attributes.includes('*') && attributes.every(one => !one.startsWith('!'))))
