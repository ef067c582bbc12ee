// Entities that come, change and go through a group commit, as turns make them do, for whoever follows it.
//
// Everything is real but the clock. A commit begins when the tick ends, and with `isHeld` it is durable when the test
// says so.

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

/** A store whose commits end when the test lets them land. */
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

  /** Stages an entity as it is from now on: a new one, or another content. */
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

  /** Ends the tick: a commit may begin, and whoever waits for the end of the tick goes on a step. */
  async step(): Promise<void> {
    this.clock.tick()
    await turnOfTheLoop()
  }

  /** Holds the end of commits back, or no more. */
  hold(isHeld: boolean): void {
    this.store.isHeld = isHeld
    if (!isHeld) this.store.land()
  }

  /** Lets all that is staged become durable, and all that runs in steps end. */
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
