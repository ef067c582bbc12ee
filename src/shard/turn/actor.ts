// An actor: everything that lives under one id in one scope, and its single writer. Nearly always that is one entity.
// The types of an id are kept together, so a read by id alone is one look into the store.
//
// A turn loads the actor, decides, and puts the outcome here at once. Later turns see it, while replies wait for commit
// number `stagedIn`. An actor with a change that is not yet durable must stay in memory, because the store does not
// have the change. All others may be forgotten at any time; second chance selects them when there are too many.
//
// Not here: rules (domain/entities/update.ts), when replies leave (commit/commit.ts).

import assert from 'node:assert/strict'
import type { Entity } from '../../domain/entities/entity.js'
import { decodeEntity, encodedCreated, encodedExpiresMs, encodedType } from '../../encoded-entity.js'
import type { Store } from '../../ports.js'
import { decodeRow, type EntityKey, encodeRow, entityKey } from '../layout.js'
import { nested } from '../nested.js'
import type { Before } from './apply.js'
import type { KeyFilter } from './key-filter.js'

/**
 * One entity of an actor: its bytes, and the decoded entity once it was needed. [hot] Objects that it holds get old in
 * the garbage collector.
 */
export class Variant {
  readonly type: string
  readonly encoded: Buffer
  private decoded: Entity | undefined

  /** `keep` remembers the decoded entity. That is worth the memory after an update, because more updates may follow. */
  constructor(encoded: Buffer, entity?: Entity, keep = false) {
    this.type = entity ? entity.type : encodedType(encoded)
    this.encoded = encoded
    this.decoded = keep ? entity : undefined
  }

  /** The facts about it that are in indexes. */
  get known(): Before {
    return { created: encodedCreated(this.encoded), expiresMs: encodedExpiresMs(this.encoded) }
  }

  get entity(): Entity {
    this.decoded ??= decodeEntity(this.encoded)
    return this.decoded
  }
}

export class Actor {
  /** The key of its row. */
  readonly key: Buffer
  /** The parts of the key. */
  readonly place: EntityKey
  /** Its place in the ring of live actors. */
  readonly slot: number
  /** Changed in place. A new array for every change would survive the first garbage collection. */
  private kept: Variant[]
  /** The number of the commit that carries the latest change; 0: none since it was loaded. */
  stagedIn = 0
  /** Second chance: used since the hand last passed. */
  used = true

  constructor(key: Buffer, place: EntityKey, slot: number, variants: Variant[]) {
    this.key = key
    this.place = place
    this.slot = slot
    this.kept = variants
  }

  /** In the order in which they were added. */
  get variants(): readonly Variant[] {
    return this.kept
  }

  variant(type: string): Variant | undefined {
    for (const variant of this.kept) if (variant.type === type) return variant
    return undefined
  }

  /**
   * The row after the variant of a type is replaced, added or (undefined) removed; undefined: there is no row to write.
   */
  rowWith(type: string, after: Variant | undefined): Buffer | undefined {
    const { kept } = this
    const [first] = kept
    if (kept.length < 2 && (!first || first.type === type)) return after?.encoded
    const encodedEntities = kept.flatMap(variant => (variant.type === type ? (after?.encoded ?? []) : variant.encoded))
    if (after && !this.variant(type)) encodedEntities.push(after.encoded)
    return encodeRow(encodedEntities)
  }

  /** Replaces, adds or removes the variant of a type. The order of addition stays. */
  put(type: string, after: Variant | undefined): void {
    const { kept } = this
    const at = kept.findIndex(variant => variant.type === type)
    if (!after) this.kept = kept.filter(variant => variant.type !== type)
    else if (at >= 0) kept[at] = after
    else this.kept = kept.length === 0 ? [after] : [...kept, after]
  }
}

/** The live actors of a node. */
export class Actors {
  private readonly store: Store
  private readonly keyFilter: KeyFilter
  private readonly liveMax: number
  private readonly isDurable: (commit: number) => boolean
  /** By tenant, path and id. */
  private readonly live = new Map<string, Map<string, Map<string, Actor>>>()
  /** The scope of the last lookup, as long as it has actors. */
  private last: { readonly tenant: string; readonly path: string; readonly ids: Map<string, Actor> } | undefined
  private count = 0
  /**
   * The ring of the second chance: live actors, each at its `slot`, and free slots. A walk over the map instead would
   * pass every entry deleted before, and an iterator kept between calls keeps tables in memory that the map no longer
   * uses.
   */
  private readonly ring: (Actor | undefined)[] = []
  private readonly freeSlots: number[] = []
  private hand = 0

  /**
   * `liveMax` trades memory (about 2 KB an actor of usual size) for reads of the store. Actors with changes in flight
   * may exceed it.
   */
  constructor(store: Store, keyFilter: KeyFilter, liveMax: number, isDurable: (commit: number) => boolean) {
    this.store = store
    this.keyFilter = keyFilter
    this.liveMax = liveMax
    this.isDurable = isDurable
  }

  // [hot] Once per request by id.
  /** The actor of an id, from memory or the store; it may have no variant. */
  load(shard: number, tenant: string, path: string, id: string): Actor {
    const known = this.idsOf(tenant, path)?.get(id)
    if (known) {
      known.used = true
      return known
    }
    const key = entityKey(shard, tenant, path, id)
    const row = this.keyFilter.mayHold(key) ? this.store.get(key) : undefined
    const variants = row ? decodeRow(row).map(encoded => new Variant(encoded)) : []
    if (this.count >= this.liveMax) this.forget()
    const slot = this.freeSlots.pop() ?? this.ring.length
    const actor = new Actor(key, { shard, tenant, path, id }, slot, variants)
    this.ring[slot] = actor
    nested(nested(this.live, tenant), path).set(id, actor)
    this.count++
    return actor
  }

  /** The shard of a live actor; undefined: there is none. */
  shardOf(tenant: string, path: string, id: string): number | undefined {
    return this.idsOf(tenant, path)?.get(id)?.place.shard
  }

  /** The live actors of a scope by id. Nearly always the scope is that of the call before. */
  private idsOf(tenant: string, path: string): Map<string, Actor> | undefined {
    const { last } = this
    if (last?.tenant === tenant && last.path === path) return last.ids
    const ids = this.live.get(tenant)?.get(path)
    if (ids) this.last = { tenant, path, ids }
    return ids
  }

  /** Notes that an actor without a row is about to get one. */
  begins(actor: Actor): void {
    actor.used = false
    this.keyFilter.add(actor.key)
  }

  /**
   * Releases an actor whose entity was just created, unless another request used it since. A new entity is seldom
   * needed again soon, and short-lived objects cost the collector next to nothing (bench `create`). Releases an actor
   * without variants, too.
   */
  release(actor: Actor): void {
    if (!actor.used) {
      if (this.isFree(actor)) this.drop(actor)
    } else this.releaseEmpty(actor)
  }

  // [hot] Once per request by id.
  /** Releases an actor without variants. Clients may ask for any id in any scope, so these must not stay. */
  releaseEmpty(actor: Actor): void {
    if (actor.variants.length === 0 && this.isFree(actor)) this.drop(actor)
  }

  /** The number of live actors. */
  get size(): number {
    return this.count
  }

  /** Releases an actor that is not worth its memory. */
  evict(actor: Actor): void {
    if (this.isFree(actor)) this.drop(actor)
  }

  /** Releases all actors of a shard. None may have a change whose commit has not ended. */
  dropShard(shard: number): void {
    for (const actor of this.ring) {
      if (actor?.place.shard !== shard) continue
      assert(this.isFree(actor), 'an actor of a dropped shard has a change whose commit has not ended')
      this.drop(actor)
    }
  }

  /** Releases one actor that was not used since the hand last passed, if there is a free one nearby. */
  private forget(): void {
    for (let looks = 0; looks < looksMax; looks++) {
      this.hand = (this.hand + 1) % this.ring.length
      const actor = this.ring[this.hand]
      if (!actor) continue
      if (!actor.used && this.isFree(actor)) return this.drop(actor)
      actor.used = false
    }
  }

  private isFree(actor: Actor): boolean {
    return this.isDurable(actor.stagedIn) && this.ring[actor.slot] === actor
  }

  private drop(actor: Actor): void {
    const { tenant, path, id } = actor.place
    const paths = this.live.get(tenant)
    const ids = paths?.get(path)
    ids?.delete(id)
    if (ids?.size === 0) {
      paths?.delete(path)
      this.last = undefined
    }
    if (paths?.size === 0) this.live.delete(tenant)
    this.count--
    this.ring[actor.slot] = undefined
    this.freeSlots.push(actor.slot)
  }
}

/** Slots examined per new actor before memory may grow. It bounds a turn when all actors are in use or pinned. */
const looksMax = 16
