// An actor: everything that lives under one id in one scope, and its single writer. Nearly always that is one entity;
// ids with several types keep them together, so that a read by id alone is one look into the store.
//
// A turn loads the actor, decides, and puts the outcome here at once; later turns see it, while replies wait for commit
// number `stagedIn`. An actor with a change that is not yet durable must stay in memory (the store does not have it);
// all others may be forgotten at any time and are, by second chance, when there are too many.
//
// Not here: rules (domain/update), when replies leave (commit).

import assert from 'node:assert/strict'
import type { Entity } from '../../domain/entities/entity.js'
import { decodeEntity, encodedCreated, encodedExpiresMs, encodedType } from '../../encoded-entity.js'
import type { Store } from '../../ports.js'
import { decodeRow, type EntityKey, encodeRow, entityKey } from '../layout.js'
import { nested } from '../nested.js'
import type { Before } from './apply.js'
import type { KeyFilter } from './key-filter.js'

/**
 * One entity of an actor: its image, and the entity once somebody needed to look inside. [hot] What it holds outlives
 * the collector's looks.
 */
export class Variant {
  readonly type: string
  readonly encoded: Buffer
  private decoded: Entity | undefined

  /** `keep` remembers the decoded entity: worth its memory when it has been updated, and may be again. */
  constructor(encoded: Buffer, entity?: Entity, keep = false) {
    this.type = entity ? entity.type : encodedType(encoded)
    this.encoded = encoded
    this.decoded = keep ? entity : undefined
  }

  /** What indexes know of it. */
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
  /** What the key is made of. */
  readonly place: EntityKey
  /** Where it stands in the ring of live actors. */
  readonly slot: number
  /** Changed in place: an array of its own for every change would outlive the collector's first look. */
  private kept: Variant[]
  /** The number of the commit that carries the latest change; 0: none since it was loaded. */
  stagedIn = 0
  /** Second chance: touched since the last look. */
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
   * The row once the variant of a type is replaced, added or (undefined) removed; undefined: there is none to write.
   */
  rowWith(type: string, after: Variant | undefined): Buffer | undefined {
    const { kept } = this
    const [first] = kept
    if (kept.length < 2 && (!first || first.type === type)) return after?.encoded
    const encodedEntities = kept.flatMap(variant => (variant.type === type ? (after?.encoded ?? []) : variant.encoded))
    if (after && !this.variant(type)) encodedEntities.push(after.encoded)
    return encodeRow(encodedEntities)
  }

  /** Replaces, adds or removes the variant of a type; the order of addition stays. */
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
  private readonly durable: () => number
  /** By tenant, path and id. */
  private readonly live = new Map<string, Map<string, Map<string, Actor>>>()
  /** The scope looked at last, as long as it has actors. */
  private last: { readonly tenant: string; readonly path: string; readonly ids: Map<string, Actor> } | undefined
  private count = 0
  /**
   * Where the hand of the second chance goes round: live actors, each at its `slot`, and free slots. Walking the map
   * instead would pass every entry deleted before, and an iterator kept between calls holds on to tables that the map
   * has long left.
   */
  private readonly ring: (Actor | undefined)[] = []
  private readonly freeSlots: number[] = []
  private hand = 0

  /**
   * `liveMax` trades memory (about 2 KB an actor of usual size) for reads of the store; pinned actors may exceed it.
   */
  constructor(store: Store, keyFilter: KeyFilter, liveMax: number, durable: () => number) {
    this.store = store
    this.keyFilter = keyFilter
    this.liveMax = liveMax
    this.durable = durable
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

  /** The shard of an actor that lives; undefined: none does. */
  shardOf(tenant: string, path: string, id: string): number | undefined {
    return this.idsOf(tenant, path)?.get(id)?.place.shard
  }

  /** The live actors of a scope by id: nearly always of the same one as before. */
  private idsOf(tenant: string, path: string): Map<string, Actor> | undefined {
    const { last } = this
    if (last?.tenant === tenant && last.path === path) return last.ids
    const ids = this.live.get(tenant)?.get(path)
    if (ids) this.last = { tenant, path, ids }
    return ids
  }

  /** Told of an actor that was without a row and is about to get one. */
  begins(actor: Actor): void {
    actor.used = false
    this.keyFilter.add(actor.key)
  }

  /**
   * Lets go of an actor whose entity was just created, unless somebody has asked for it since: a new entity is seldom
   * needed again soon, and what dies young costs the collector next to nothing (bench `create`). And of one that has
   * nothing any more.
   */
  release(actor: Actor): void {
    if (!actor.used) {
      if (this.isFree(actor)) this.drop(actor)
    } else this.releaseEmpty(actor)
  }

  // [hot] Once per request by id.
  /** Lets go of an actor under whose id there is nothing: anybody may ask for any id, in any scope. */
  releaseEmpty(actor: Actor): void {
    if (actor.variants.length === 0 && this.isFree(actor)) this.drop(actor)
  }

  /** How many live. */
  get size(): number {
    return this.count
  }

  /** Lets go of an actor that is not worth its memory. */
  letGo(actor: Actor): void {
    if (this.isFree(actor)) this.drop(actor)
  }

  /** Lets go of all actors of a shard. None may have a change whose commit has not ended. */
  dropShard(shard: number): void {
    for (const actor of this.ring) {
      if (actor?.place.shard !== shard) continue
      assert(this.isFree(actor), 'what is staged of a shard has ended before it goes')
      this.drop(actor)
    }
  }

  /** Lets go of one actor that was not used since the hand last passed, if there is one nearby that is free to go. */
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
    return actor.stagedIn <= this.durable() && this.ring[actor.slot] === actor
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

/** Slots looked at per new actor before memory is allowed to grow: bounds a turn when all are in use or pinned. */
const looksMax = 16
