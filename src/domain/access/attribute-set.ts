// Sets of attribute names, as rules describe them (docs/interface/access.md#attributes).
//
//   *                 { kind: 'all' }
//   *, !cost          { kind: 'except', names: cost }
//   name, place       { kind: 'only', names: name, place }
//
// The set of several rules is their union. It is in one of these forms again.

import type { Attribute, Entity } from '../entities/entity.js'
import type { Alteration } from '../entities/update.js'

export type AttributeSet =
  | { readonly kind: 'all' }
  | { readonly kind: 'only'; readonly names: ReadonlySet<string> }
  /** Never without names: that is `all`. */
  | { readonly kind: 'except'; readonly names: ReadonlySet<string> }

/** A set as plain data: the list of a rule. */
export type AttributeList = readonly string[]

export const everyAttribute: AttributeSet = { kind: 'all' }

export const noAttribute: AttributeSet = { kind: 'only', names: new Set() }

/** The list of `everyAttribute`. */
export const everyName: AttributeList = ['*']

/** The set that a list describes. An excluded name is excluded wherever it stands, also if it is listed as well. */
export function attributeSetOf(list: AttributeList): AttributeSet {
  const excluded = new Set(list.filter(isExclusion).map(word => word.slice(1)))
  if (list.includes('*')) return exceptFor(excluded)
  return onlyOf(list.filter(word => !isExclusion(word) && !excluded.has(word)))
}

/** Whether a word of a list excludes the name behind its first character. */
export const isExclusion = (word: string): boolean => word.startsWith('!')

/** All but some. */
export const exceptFor = (names: ReadonlySet<string>): AttributeSet =>
  names.size === 0 ? everyAttribute : { kind: 'except', names }

export const onlyOf = (names: Iterable<string>): AttributeSet => ({ kind: 'only', names: new Set(names) })

// [hot] For each attribute of each entity of a narrowed answer.
/** Whether the attribute is in the set. */
export function shows(set: AttributeSet, name: string): boolean {
  switch (set.kind) {
    case 'all':
      return true
    case 'only':
      return set.names.has(name)
    case 'except':
      return !set.names.has(name)
  }
}

/** The attributes that are in any of two sets. */
export function union(a: AttributeSet, b: AttributeSet): AttributeSet {
  if (a === b || a.kind === 'all') return a
  if (b.kind === 'all') return b
  if (a.kind === 'only' && b.kind === 'only') return onlyOf([...a.names, ...b.names])
  // A name is missing in the union when it is missing in both: at least one of them has few missing names.
  const [few, other] = a.kind === 'except' ? [a, b] : [b, a]
  return exceptFor(new Set([...few.names].filter(name => !shows(other, name))))
}

/** Whether every attribute of `inner` is in `outer`. */
export function includesAll(outer: AttributeSet, inner: AttributeSet): boolean {
  if (outer.kind === 'all') return true
  if (inner.kind === 'only') return [...inner.names].every(name => shows(outer, name))
  return outer.kind === 'except' && inner.kind === 'except' && [...outer.names].every(name => inner.names.has(name))
}

/** The list that describes the set. */
export function listOfSet(set: AttributeSet): AttributeList {
  switch (set.kind) {
    case 'all':
      return everyName
    case 'only':
      return [...set.names]
    case 'except':
      return ['*', ...[...set.names].map(name => `!${name}`)]
  }
}

// [hot] For each entity of a narrowed answer.
/**
 * The entity without the attributes that are not in the set; the entity itself when there are none
 * (docs/interface/access.md#reads).
 */
export function asSeen(set: AttributeSet, entity: Entity): Entity {
  if (set.kind === 'all') return entity
  const { attributes } = entity
  let seen: Map<string, Attribute> | undefined
  let at = 0
  for (const [name, attribute] of attributes) {
    const isShown = shows(set, name)
    // Nothing is copied before the first attribute that is left out.
    if (!isShown && !seen) seen = new Map([...attributes].slice(0, at))
    else if (isShown) seen?.set(name, attribute)
    at++
  }
  return seen ? { ...entity, attributes: seen } : entity
}

/** The alterations of attributes in the set. */
export const alterationsAsSeen = (set: AttributeSet, alterations: readonly Alteration[]): readonly Alteration[] =>
  set.kind === 'all' ? alterations : alterations.filter(({ name }) => shows(set, name))

/** The names in the set. */
export const namesAsSeen = (set: AttributeSet, names: ReadonlySet<string>): ReadonlySet<string> =>
  set.kind === 'all' ? names : new Set([...names].filter(name => shows(set, name)))
