// Random changes of the entities of a reference, one by one and in batches: they create, append, update, replace and
// delete. Most are of existing entities, some of missing ones, and a few are refused. Removed entities often come
// again.
//
// Not here: the looks of attributes (random-entity), the requests for changes (reference-requests).

import type { Random } from './random.js'
import {
  anyAttributes,
  attributeNames,
  attributeOf,
  chance,
  dateText,
  expiryOf,
  given,
  identity,
  instant,
  location,
  paths,
  someAttributes,
  sometimes,
  withMetadata,
} from './random-entity.js'
import {
  type Attribute,
  type Change,
  type Entity,
  type GivenAttribute,
  isDateType,
  isDue,
  isLocationType,
  type Json,
  type Reference,
  type Target,
} from './reference-entities.js'
import type { BatchAction } from './reference-requests.js'

const plain = { override: false, forced: false }

/** New entities in one path: the changes of a batch that creates them. */
export function firstEntities(random: Random, reference: Reference, size: number, idsPerStem: number, nowMs: number) {
  const path = random.pick(paths)
  const changes: Change[] = []
  for (let tries = 0; tries < 2 * size && changes.length < size; tries++) {
    const target = { ...identity(random, idsPerStem), path }
    if (reference.get(target)) continue
    const attributes = someAttributes(random, 0.3, nowMs).filter(([name]) => name !== 'dateExpires')
    const creation: Change = { ...target, action: 'append', creates: true, given: attributes, ...plain }
    // An entity with two locations is refused.
    reference.apply(creation, nowMs)
    changes.push(creation)
  }
  return changes
}

// Changes

/** The entities and rules for the next change. */
export interface Scene {
  readonly reference: Reference
  readonly random: Random
  readonly nowMs: number
  /** Ids per stem; a created entity has one of them. */
  readonly idsPerStem: number
  /** Which ids a lane changes, when several lanes write at the same time; only the first lane creates. */
  readonly isMine: (id: string) => boolean
  readonly creates: boolean
}

/** A change whose outcome can be foreseen: not of an entity that may expire at any moment. */
export function nextChange(scene: Scene): Change {
  for (;;) {
    const change = scene.creates && chance(scene.random, 0.2) ? creation(scene) : alteration(scene)
    if (change && isForeseeable(scene, change)) return change
  }
}

function isForeseeable({ reference, nowMs, isMine }: Scene, change: Change): boolean {
  const stored = reference.get(change)
  return isMine(change.id) && !(stored && isDue(stored, nowMs))
}

function creation({ random, reference: { gone }, idsPerStem, nowMs }: Scene): Change {
  const again = sometimes(random, 0.4, () => gone[random.between(0, gone.length - 1)])
  const { path, id, type } = again ?? identity(random, idsPerStem)
  const target = { path, id, type }
  const attributes = someAttributes(random, 0.3, nowMs)
  if (chance(random, 0.5)) return { ...target, action: 'create', given: attributes }
  return { ...target, action: 'append', creates: true, given: attributes, ...options(random) }
}

const options = (random: Random) => ({ override: chance(random, 0.1), forced: chance(random, 0.1) })

function alteration(scene: Scene): Change | undefined {
  const { random, nowMs } = scene
  const entity = anyEntity(scene)
  if (!entity) return undefined
  const { path, id, type } = entity
  const target = { path, id, type: chance(random, 0.01) ? 'Nothing' : type }
  const name = someName(random, entity)
  const append = { ...target, action: 'append', creates: false } as const
  const few = () => anyAttributes(random, 0.1, nowMs)
  const next = () => nextAttribute(random, name, entity, nowMs)
  const updateOne = (): Change => ({ ...target, action: 'updateOne', name, given: next(), ...options(random) })
  return random.pick<() => Change | undefined>([
    () => ({ ...append, given: few(), ...options(random) }),
    () => ({ ...append, given: [['loc', location(random)]], ...options(random) }),
    () => ({ ...append, given: [['dateExpires', expiryOf(random, nowMs)]], ...plain }),
    () => ({ ...append, action: 'appendStrict', given: few(), ...plain }),
    () => ({ ...target, action: 'update', given: few(), ...options(random) }),
    () => ({ ...target, action: 'update', given: [[name, next()]], ...options(random) }),
    updateOne,
    updateOne,
    () => nextValue(random, target, name, entity),
    () => nextValue(random, target, name, entity),
    () => ({ ...target, action: 'replace', given: anyAttributes(random, 0.3, nowMs) }),
    () => ({ ...target, action: 'deleteSome', names: [name] }),
    () => ({ ...target, action: 'deleteSome', names: [random.pick(['loc', 'dateExpires'])] }),
    () => ({ ...target, action: 'deleteEntity' }),
  ])()
}

/** Often one of the youngest entities, so that the same ones change often. */
function anyEntity({ reference, random, isMine }: Scene): Entity | undefined {
  const all = [...reference.entities].filter(({ id }) => isMine(id))
  return all[random.between(chance(random, 0.3) ? Math.max(0, all.length - 20) : 0, all.length - 1)]
}

/** Mostly a name that the entity has. */
function someName(random: Random, { attributes }: Entity): string {
  const there = [...attributes.keys()]
  return there.length > 0 && chance(random, 0.9)
    ? there[random.between(0, there.length - 1)]!
    : random.pick(attributeNames)
}

function nextAttribute(random: Random, name: string, entity: Entity, nowMs: number): GivenAttribute {
  if (name === 'dateExpires') return expiryOf(random, nowMs)
  if (name === 'loc' || name === 'spot') return location(random)
  const stored = entity.attributes.get(name)
  const draw = random.fraction()
  if (stored && draw < 0.1) return given(stored.value, stored.type)
  if (typeof stored?.value === 'number' && draw < 0.3) return given({ $inc: random.pick([1, 2.5, -7]) }, 'Number')
  return withMetadata(random, attributeOf(random, name))
}

/** A new value for an attribute that keeps its type; the value fits the type. */
function nextValue(random: Random, target: Target, name: string, { attributes }: Entity): Change | undefined {
  const stored = attributes.get(name)
  if (name === 'dateExpires' || !stored) return undefined
  const value = valueFor(random, name, stored)
  return { ...target, action: 'updateValue', name, value, forced: chance(random, 0.1) }
}

function valueFor(random: Random, name: string, stored: Attribute): Json {
  if (isDateType(stored.type)) return dateText(random, instant(random))
  for (;;) {
    const drawn = isLocationType(stored.type) ? location(random) : attributeOf(random, name)
    const isOfTheType =
      drawn.type === stored.type || !(isLocationType(stored.type) || drawn.type === 'TextUnrestricted')
    if (isOfTheType) return drawn.value ?? null
  }
}

// Batches

const batchActions = ['append', 'append', 'append', 'appendStrict', 'update', 'replace', 'delete'] as const

/** The changes of a batch, of one kind and path. The caller applies each to the reference before it draws the next. */
export function* batchChanges(scene: Scene, action: BatchAction): Generator<Change> {
  const { random } = scene
  const path = random.pick(paths)
  const both = options(random)
  for (let left = random.between(1, 30); left > 0; left--) {
    const change = batchItem(scene, action, path, both)
    if (change && isForeseeable(scene, change)) yield change
  }
}

export const batchAction = (random: Random): BatchAction => random.pick(batchActions)

function batchItem(scene: Scene, action: BatchAction, path: string, both: typeof plain): Change | undefined {
  const { random, reference, idsPerStem, nowMs } = scene
  const drawn = { ...identity(random, idsPerStem), path }
  const entity = chance(random, 0.8) ? anyEntityOf(scene, path) : reference.get(drawn)
  if (!entity && !scene.creates) return undefined
  const { id, type } = entity ?? drawn
  const target = { path, id, type }
  switch (action) {
    case 'append':
    case 'appendStrict':
      return { ...target, action, creates: true, given: someAttributes(random, entity ? 0.1 : 0.3, nowMs), ...both }
    case 'update':
      return { ...target, action, given: anyAttributes(random, 0.1, nowMs), ...both }
    case 'replace':
      return { ...target, action, given: someAttributes(random, 0.3, nowMs) }
    case 'delete': {
      if (!entity || chance(random, 0.3)) return { ...target, action: 'deleteEntity' }
      const names = [...entity.attributes.keys()].filter(() => chance(random, 0.3))
      return names.length === 0 ? undefined : { ...target, action: 'deleteSome', names }
    }
  }
}

function anyEntityOf({ reference, random, isMine }: Scene, path: string): Entity | undefined {
  const all = [...reference.entities].filter(entity => entity.path === path && isMine(entity.id))
  return all[random.between(0, all.length - 1)]
}
