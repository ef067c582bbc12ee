// A broker over one owner or several, without HTTP. A request to it is a call, and an answer is a text with everything
// that a client could see, by which two brokers can be compared.
//
// Creation and change are shown in milliseconds, as clients see them: the counter within one depends on the number of
// an owner's turns.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { BatchOperations } from '../../src/broker/batch.js'
import { Entities, TypeOperations } from '../../src/broker/entities.js'
import { ShardClient } from '../../src/broker/shard-client.js'
import { HybridClock } from '../../src/clock.js'
import type { BatchUpdate } from '../../src/domain/entities/batch.js'
import type { WantedEntity } from '../../src/domain/entities/entity.js'
import type { Result } from '../../src/domain/refusal.js'
import type { ShardMap } from '../../src/domain/scope.js'
import { stampMs } from '../../src/domain/stamp.js'
import { decodeEntity, encodedJson } from '../../src/encoded-entity.js'
import type { AttributesRequest, FoundEntity, ListRequest, TypeSummary } from '../../src/messages/messages.js'
import type { FakeClock } from './fake-clock.js'
import { ManyShards } from './many-shards.js'

/** A request to a broker, in tenant `t`. */
export type Step =
  | { readonly do: 'create'; readonly path: string; readonly entity: WantedEntity; readonly upsert: boolean }
  | {
      readonly do: 'change'
      readonly kind: AttributesRequest['kind']
      readonly path: string
      readonly entity: WantedEntity
      readonly typed: boolean
    }
  | { readonly do: 'remove'; readonly path: string; readonly id: string; readonly type: string | undefined }
  | { readonly do: 'batch'; readonly path: string; readonly batch: BatchUpdate }
  | { readonly do: 'notify'; readonly path: string; readonly batch: BatchUpdate }
  | { readonly do: 'list'; readonly request: ListRequest }
  | {
      readonly do: 'retrieve'
      readonly paths: readonly string[]
      readonly id: string
      readonly type: string | undefined
    }
  | { readonly do: 'types'; readonly paths: readonly string[]; readonly type: string | undefined }

const tenant = 't'
const origin = { correlatorRoot: 'root' }
const options = { overrideMetadata: false, forcedUpdate: false }

export class World {
  readonly shards: ManyShards
  private readonly clock: FakeClock
  private readonly entities: Entities
  private readonly batches: BatchOperations
  private readonly types: TypeOperations

  private constructor(shards: ManyShards, owners: number, shardMap: ShardMap, clock: FakeClock) {
    this.clock = clock
    this.shards = shards
    const client = new ShardClient(shards, shardMap, owners > 1 ? new HybridClock(clock) : undefined)
    this.entities = new Entities(client)
    this.batches = new BatchOperations(client, clock)
    this.types = new TypeOperations(client)
  }

  static async of(owners: number, shardMap: ShardMap, clock: FakeClock): Promise<World> {
    return new World(await ManyShards.of(owners, shardMap, clock), owners, shardMap, clock)
  }

  /** Asks; the returned list gets the answer when it comes. */
  ask(step: Step): string[] {
    const answers: string[] = []
    const show = <T>(result: Result<T>, render: (value: T) => unknown = () => 'done'): void => {
      answers.push(JSON.stringify(result.ok ? render(result.value) : result.refusal))
    }
    switch (step.do) {
      case 'create': {
        const { path, entity, upsert } = step
        this.entities.create({ tenant, path }, entity, upsert, options, origin, result => show(result))
        break
      }
      case 'change': {
        const { kind, path, entity, typed } = step
        const target = { tenant, path, id: entity.id, type: typed ? entity.type : undefined }
        this.entities.changeAttributes(kind, target, entity.attributes, options, origin, result => show(result))
        break
      }
      case 'remove': {
        const { path, id, type } = step
        this.entities.remove({ tenant, path, id, type }, origin, result => show(result))
        break
      }
      case 'batch':
        this.batches.update({ tenant, path: step.path }, step.batch, options, origin, result => show(result))
        break
      case 'notify':
        this.batches.notify({ tenant, path: step.path }, step.batch, origin, result => show(result))
        break
      case 'list':
        this.entities.list(step.request, result =>
          show(result, ({ entities, total }) => ({ total, entities: entities.map(seen) })),
        )
        break
      case 'retrieve': {
        const { paths, id, type } = step
        this.entities.retrieve({ tenant, paths, id, type, grant: undefined }, result => show(result, seen))
        break
      }
      case 'types': {
        const { paths, type } = step
        if (type === undefined)
          this.types.list({ tenant, paths, grant: undefined }, result => show(result, all => all.map(summary)))
        else this.types.retrieve({ tenant, paths, grant: undefined }, type, result => show(result, summary))
      }
    }
    return answers
  }

  /** Runs all work that proceeds in steps, until it ends or waits for an event. */
  async rest(): Promise<void> {
    for (let quiet = 0; quiet < 4; quiet++) {
      const { waiting } = this.clock
      this.clock.tick()
      if (this.clock.waiting !== waiting) quiet = 0
      await turnOfTheLoop()
    }
  }

  /** Asks, and returns the answer. */
  async end(step: Step): Promise<string> {
    const answers = this.ask(step)
    await this.rest()
    if (answers.length !== 1) throw new Error(`${answers.length} answers to ${JSON.stringify(step)}`)
    return answers[0] as string
  }
}

function seen({ path, encoded }: FoundEntity): readonly unknown[] {
  const { created, modifiedMs, attributes } = decodeEntity(encoded)
  const times = [...attributes.values()].map(one => [one.createdMs, one.modifiedMs])
  return [path, stampMs(created), modifiedMs, encodedJson(encoded).toString(), times]
}

/** As a client sees it: each name and type once, in order. */
const summary = ({ type, count, attributes }: TypeSummary): readonly unknown[] => [
  type,
  count,
  [...new Set(attributes.map(pair => pair.join('\0')))].sort(),
]
