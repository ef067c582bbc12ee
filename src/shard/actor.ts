// An actor: everything that lives under one id in one scope, and its single writer. Nearly always that is one entity; ids with
// several types keep them together, so that a read by id alone is one look into the store.
//
// A turn loads the actor, decides, and puts the outcome here at once; later turns see it, while replies wait for commit number
// `stagedIn`. An actor with a change that is not yet durable must stay in memory (the store does not have it); all others may be
// forgotten at any time and are, by second chance, when there are too many.
//
// Not here: rules (domain/update), when replies leave (commit).

import type { Entity } from '../domain/entity.js'
import { decodeImage, imageType } from '../image.js'
import type { Store } from '../ports.js'
import { decodeRow, encodeRow, entityKey } from './layout.js'

/** One entity of an actor: its image, and the entity once somebody needed to look inside. */
export class Variant {
  readonly type: string
  readonly image: Buffer
  private decoded: Entity | undefined

  constructor(image: Buffer, entity?: Entity) {
    this.type = entity ? entity.type : imageType(image)
    this.image = image
    this.decoded = entity
  }

  get entity(): Entity {
    this.decoded ??= decodeImage(this.image)
    return this.decoded
  }
}

export class Actor {
  readonly shard: number
  readonly tenant: string
  readonly path: string
  readonly id: string
  variants: readonly Variant[]
  /** The number of the commit that carries the latest change; 0: none since it was loaded. */
  stagedIn = 0
  /** Second chance: touched since the last look. */
  used = true

  constructor(shard: number, tenant: string, path: string, id: string, variants: readonly Variant[]) {
    this.shard = shard
    this.tenant = tenant
    this.path = path
    this.id = id
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
  private readonly liveMax: number
  private readonly durable: () => number
  private readonly live = new Map<string, Actor>()

  /** `liveMax` trades memory (about 2 KB an actor of usual size) for reads of the store; pinned actors may exceed it. */
  constructor(store: Store, liveMax: number, durable: () => number) {
    this.store = store
    this.liveMax = liveMax
    this.durable = durable
  }

  // [hot] Once per request by id.
  /** The actor of an id, from memory or the store; it may have no variant. */
  load(shard: number, tenant: string, path: string, id: string): Actor {
    const name = `${tenant}\0${path}\0${id}`
    const known = this.live.get(name)
    if (known) {
      known.used = true
      return known
    }
    const row = this.store.get(entityKey(shard, tenant, path, id))
    const variants = row ? decodeRow(row).map(image => new Variant(image)) : []
    const actor = new Actor(shard, tenant, path, id, variants)
    if (this.live.size >= this.liveMax) this.forget()
    this.live.set(name, actor)
    return actor
  }

  /** Lets go of one actor that was not used lately, if any is free to go. */
  private forget(): void {
    let looks = Math.min(this.live.size, looksMax)
    for (const [name, actor] of this.live) {
      if (looks-- === 0) return
      this.live.delete(name)
      if (!actor.used && actor.stagedIn <= this.durable()) return
      actor.used = false
      this.live.set(name, actor)
    }
  }
}

/** Actors looked at per new one before memory is allowed to grow: bounds a turn when all are pinned. */
const looksMax = 64
