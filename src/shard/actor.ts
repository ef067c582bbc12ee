// An actor: everything that lives under one id in one scope, and its single writer. Nearly always that is one entity; ids with
// several types keep them together, so that a read by id alone is one look into the store.
//
// A turn loads the actor, decides, and puts the outcome here at once; later turns see it, while replies wait for commit number
// `stagedIn`. An actor with a change that is not yet durable must stay in memory (the store does not have it); all others may be
// forgotten at any time and are, by second chance, when there are too many.
//
// Not here: rules (domain/update), when replies leave (commit).

import type { Entity } from '../domain/entity.js'
import { expiresMs } from '../domain/update.js'
import { decodeImage, imageCreated, imageExpiresMs, imageType } from '../image.js'
import type { Store } from '../ports.js'
import { decodeRow, type EntityKey, encodeRow, entityKey } from './layout.js'
import { nested } from './nested.js'
import type { Presence } from './presence.js'
import type { Before } from './record.js'

/** One entity of an actor: its image, and the entity once somebody needed to look inside. */
export class Variant {
  readonly type: string
  readonly image: Buffer
  /** What indexes know of it. */
  readonly known: Before
  private decoded: Entity | undefined

  /** `keep` remembers the decoded entity: worth its memory when it has been updated, and may be again. */
  constructor(image: Buffer, entity?: Entity, keep = false) {
    this.type = entity ? entity.type : imageType(image)
    this.image = image
    this.known = entity
      ? { created: entity.created, expiresMs: expiresMs(entity) }
      : { created: imageCreated(image), expiresMs: imageExpiresMs(image) }
    this.decoded = keep ? entity : undefined
  }

  get entity(): Entity {
    this.decoded ??= decodeImage(this.image)
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
  variants: readonly Variant[]
  /** The number of the commit that carries the latest change; 0: none since it was loaded. */
  stagedIn = 0
  /** Second chance: touched since the last look. */
  used = true

  constructor(key: Buffer, place: EntityKey, slot: number, variants: readonly Variant[]) {
    this.key = key
    this.place = place
    this.slot = slot
    this.variants = variants
  }

  variant(type: string): Variant | undefined {
    for (const variant of this.variants) if (variant.type === type) return variant
    return undefined
  }

  /** The variants once one of them is replaced, added or (undefined) removed; the order of addition stays. */
  with(type: string, after: Variant | undefined): readonly Variant[] {
    const { variants } = this
    if (variants.length === 0) return after ? [after] : []
    if (variants.length === 1 && variants[0]!.type === type) return after ? [after] : []
    const others = variants.filter(variant => variant.type !== type)
    if (!after) return others
    if (others.length === variants.length) return [...variants, after]
    return variants.map(variant => (variant.type === type ? after : variant))
  }
}

/** The row of variants; undefined when there is none to write. */
export const rowOf = (variants: readonly Variant[]): Buffer | undefined =>
  variants.length === 0 ? undefined : encodeRow(variants.map(variant => variant.image))

/** The live actors of a node. */
export class Actors {
  private readonly store: Store
  private readonly presence: Presence
  private readonly liveMax: number
  private readonly durable: () => number
  /** By tenant, path and id. */
  private readonly live = new Map<string, Map<string, Map<string, Actor>>>()
  /** The scope looked at last, as long as it has actors. */
  private last: { readonly tenant: string; readonly path: string; readonly ids: Map<string, Actor> } | undefined
  private count = 0
  /**
   * Where the hand of the second chance goes round: live actors, each at its `slot`, and free slots. Walking the map instead would pass
   * every entry deleted before, and an iterator kept between calls holds on to tables that the map has long left.
   */
  private readonly ring: (Actor | undefined)[] = []
  private readonly freeSlots: number[] = []
  private hand = 0

  /** `liveMax` trades memory (about 2 KB an actor of usual size) for reads of the store; pinned actors may exceed it. */
  constructor(store: Store, presence: Presence, liveMax: number, durable: () => number) {
    this.store = store
    this.presence = presence
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
    const row = this.presence.mayHold(key) ? this.store.get(key) : undefined
    const variants = row ? decodeRow(row).map(image => new Variant(image)) : []
    if (this.count >= this.liveMax) this.forget()
    const slot = this.freeSlots.pop() ?? this.ring.length
    const actor = new Actor(key, { shard, tenant, path, id }, slot, variants)
    this.ring[slot] = actor
    nested(nested(this.live, tenant), path).set(id, actor)
    this.count++
    return actor
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
    this.presence.add(actor.key)
  }

  /**
   * Lets go of an actor whose entity was just created, unless somebody has asked for it since: a new entity is seldom needed again
   * soon, and what dies young costs the collector next to nothing (bench `create`).
   */
  release(actor: Actor): void {
    if (!actor.used && this.isFree(actor)) this.drop(actor)
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
