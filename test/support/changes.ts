// Entities that are created, changed and deleted through a group commit, as turns do it, for tests of code that follows
// the commit.
//
// Everything is real except the clock. A commit begins when the tick ends. With `isHeld` it becomes durable when the
// test calls `land`.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import type { Entity } from '../../src/domain/entities/entity.js'
import type { Json } from '../../src/domain/json.js'
import { ShardMap } from '../../src/domain/scope.js'
import { stampOf } from '../../src/domain/stamp.js'
import { encodeEntity } from '../../src/encoded-entity.js'
import type { Batch } from '../../src/ports.js'
import { GroupCommit } from '../../src/shard/commit/commit.js'
import { StoreLog } from '../../src/shard/commit/commit-log.js'
import { Counts } from '../../src/shard/commit/counts.js'
import { attributeCounts, entityCounts, entityKey } from '../../src/shard/layout.js'
import { entityOf } from './entities.js'
import { FakeClock } from './fake-clock.js'
import { MemoryStore } from './memory-store.js'

/** A store that holds the ends of its commits back until the test releases them. */
export class HoldingStore extends MemoryStore {
  isHeld = false
  private held: (() => void)[] = []

  override commit(batch: Batch, onDone: (error?: Error) => void): void {
    super.commit(batch, error => {
      if (this.isHeld) this.held.push(() => onDone(error))
      else onDone(error)
    })
  }

  land(): void {
    const { held } = this
    this.held = []
    for (const end of held) end()
  }
}

interface Living {
  readonly path: string
  readonly entity: Entity
}

export interface Where {
  readonly path?: string
  readonly type?: string
}

export const tenant = 't'

export class Changes {
  readonly store = new HoldingStore()
  readonly clock = new FakeClock()
  readonly shardMap = new ShardMap({ shards: 8, spread: 8 })
  readonly commit: GroupCommit
  private stamp = stampOf(this.clock.wallMs())
  private readonly living = new Map<string, Living>()

  constructor() {
    const directory = new Counts(this.store, entityCounts)
    const attributes = new Counts(this.store, attributeCounts)
    this.commit = new GroupCommit({
      log: new StoreLog(this.store, this.clock, () => this.stamp),
      clock: this.clock,
      directory,
      attributes,
      onFailure: failure => {
        throw failure
      },
    })
  }

  /** Stages the new content of an entity, which may be a new entity. */
  put(id: string, values: Readonly<Record<string, Json>> = {}, { path = '/', type = 'T' }: Where = {}): void {
    const before = this.living.get(nameOf(id, path, type))
    const created = before?.entity.created ?? ++this.stamp
    this.stage(before, { path, entity: entityOf(id, type, created, values) })
  }

  /** Stages the removal of an entity, if it is there. */
  remove(id: string, { path = '/', type = 'T' }: Where = {}): void {
    const before = this.living.get(nameOf(id, path, type))
    if (before) this.stage(before, undefined)
  }

  /** Ends the tick: a commit may begin, and callbacks that wait for the end of the tick run. */
  async step(): Promise<void> {
    this.clock.tick()
    await turnOfTheLoop()
  }

  /** Begins or ends holding the ends of commits back. */
  hold(isHeld: boolean): void {
    this.store.isHeld = isHeld
    if (!isHeld) this.store.land()
  }

  /** Lets all staged changes become durable, and all work that runs in steps end. */
  async settle(): Promise<void> {
    this.hold(false)
    for (let quiet = 0; quiet < 3; quiet++) {
      if (this.clock.waiting > 0) quiet = 0
      await this.step()
    }
  }

  private stage(before: Living | undefined, after: Living | undefined): void {
    const { path, entity } = (after ?? before) as Living
    const { id, type } = entity
    const shard = this.shardMap.shardOf(tenant, path, id)
    const encoded = after && encodeEntity(entity, '')
    const known = before && { created: before.entity.created, expiresMs: undefined }
    const record = { shard, tenant, path, id, type, before: known, attributes: [], encoded }
    this.commit.append(record, entityKey(shard, tenant, path, id), encoded, after?.entity)
    if (after) this.living.set(nameOf(id, path, type), after)
    else this.living.delete(nameOf(id, path, type))
  }
}

const nameOf = (id: string, path: string, type: string): string => `${path} ${type} ${id}`
