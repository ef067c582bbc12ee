// Batches: op/update and op/notify (entities.md §17.3, §17.4).
//
// Entities are asked for in the order of the payload and without waiting for each other's reply: all asks about one id go to one shard,
// which takes them in order, so an entity that stands several times sees the effect of its earlier items. A long batch is asked in
// slices, between which the event loop has its turn. There is no roll-back: what succeeded stays.

import { type Batch, type BatchItem, batchOutcome } from '../domain/batch.js'
import { defaultEntityType } from '../domain/entity.js'
import { done, type Refusal, refused } from '../domain/refusal.js'
import type { Scope } from '../domain/scope.js'
import type { UpdateOptions } from '../domain/update.js'
import type { Origin, WriteRequest } from '../messages.js'
import type { Clock } from '../ports.js'
import type { OnResult, ShardClient } from './shard-client.js'

/** Entities asked for in one step: some 1 ms. */
const itemsPerStep = 64

export class BatchOperations {
  private readonly shards: ShardClient
  private readonly clock: Clock

  constructor(shards: ShardClient, clock: Clock) {
    this.shards = shards
    this.clock = clock
  }

  /** `POST /v2/op/update`. */
  update(scope: Scope, batch: Batch, options: UpdateOptions, origin: Origin, onResult: OnResult<undefined>): void {
    const requests = batch.items.map(item => requestOf(batch.action, item, scope, options, origin))
    this.write(requests, outcomes => {
      const refusal = batchOutcome(batch, outcomes)
      onResult(refusal ? refused(refusal) : done)
    })
  }

  /** `POST /v2/op/notify`: the sender is not told of what the rules refuse, but of what was not, or perhaps not, made durable. */
  notify(scope: Scope, items: readonly BatchItem[], origin: Origin, onResult: OnResult<undefined>): void {
    const options = { overrideMetadata: false, forcedUpdate: false }
    const requests = items.map(item => requestOf('append', item, scope, options, origin))
    this.write(requests, outcomes => {
      const failure = outcomes.find(
        refusal => refusal?.kind === 'Unavailable' || refusal?.kind === 'InternalServerError',
      )
      onResult(failure ? refused(failure) : done)
    })
  }

  /** Asks for all, in order, and tells the refusal of each. */
  private write(
    requests: readonly WriteRequest[],
    onOutcomes: (outcomes: readonly (Refusal | undefined)[]) => void,
  ): void {
    const outcomes: (Refusal | undefined)[] = new Array(requests.length)
    let open = requests.length
    if (open === 0) return onOutcomes(outcomes)
    const step = (from: number): void => {
      const until = Math.min(from + itemsPerStep, requests.length)
      for (let index = from; index < until; index++) {
        this.shards.write(requests[index] as WriteRequest, result => {
          outcomes[index] = result.ok ? undefined : result.refusal
          if (--open === 0) onOutcomes(outcomes)
        })
      }
      if (until < requests.length) this.clock.endOfTick(() => step(until))
    }
    step(0)
  }
}

/** The single operation that an action is for one entity (entities.md §17.3). */
function requestOf(
  action: Batch['action'],
  { id, type, attributes, names }: BatchItem,
  { tenant, path }: Scope,
  options: UpdateOptions,
  origin: Origin,
): WriteRequest {
  const target = { tenant, path, id, type }
  switch (action) {
    case 'append':
    case 'appendStrict':
      return { kind: action, target, attributes, options, origin, createAs: defaultEntityType }
    case 'update':
    case 'replace':
      return { kind: action, target, attributes, options, origin }
    case 'delete':
      return names.length === 0
        ? { kind: 'deleteEntity', target, origin }
        : { kind: 'deleteAttributes', target, names, origin }
  }
}
