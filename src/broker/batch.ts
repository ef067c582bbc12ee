// Batches: op/update and op/notify (entities.md §17.3, §17.4).
//
// Entities are asked for in the order of the payload and without waiting for each other's reply: all asks about one id go to one shard,
// which takes them in order, so an entity that stands several times sees the effect of its earlier items. A long batch is asked in
// slices, between which the event loop has its turn. There is no roll-back: what succeeded stays.

import { type Batch, type BatchIdentity, type BatchItem, batchOutcome } from '../domain/batch.js'
import { defaultEntityType } from '../domain/entity.js'
import { done, type Refusal, refused } from '../domain/refusal.js'
import type { Scope } from '../domain/scope.js'
import type { UpdateOptions } from '../domain/update.js'
import type { Origin, WriteRequest } from '../messages.js'
import type { Clock } from '../ports.js'
import type { OnResult, ShardClient } from './shard-client.js'

/** Entities asked for in one step: some 1 ms. A batch of usual size is done in one, before the collector looks at it. */
const itemsPerStep = 128

export class BatchOperations {
  private readonly shards: ShardClient
  private readonly clock: Clock

  constructor(shards: ShardClient, clock: Clock) {
    this.shards = shards
    this.clock = clock
  }

  /** `POST /v2/op/update`. */
  update(scope: Scope, batch: Batch, options: UpdateOptions, origin: Origin, onResult: OnResult<undefined>): void {
    const { action } = batch
    this.write(batch, scope, options, origin, (items, outcomes) => {
      const refusal = batchOutcome(action, items, outcomes)
      onResult(refusal ? refused(refusal) : done)
    })
  }

  /** `POST /v2/op/notify`: the sender is not told of what the rules refuse, but of what was not, or perhaps not, made durable. */
  notify(scope: Scope, items: readonly BatchItem[], origin: Origin, onResult: OnResult<undefined>): void {
    const options = { overrideMetadata: false, forcedUpdate: false }
    this.write({ action: 'append', items }, scope, options, origin, (_, outcomes) => {
      const failure = outcomes.find(
        refusal => refusal?.kind === 'Unavailable' || refusal?.kind === 'InternalServerError',
      )
      onResult(failure ? refused(failure) : done)
    })
  }

  private write(batch: Batch, scope: Scope, options: UpdateOptions, origin: Origin, onOutcomes: OnOutcomes): void {
    if (batch.items.length === 0) return onOutcomes([], [])
    const pending = new Pending(batch.items.length, onOutcomes)
    this.step(batch, 0, item => requestOf(batch.action, item, scope, options, origin), pending)
  }

  /** Asks for the next items; the last step lets go of the payload, while the answers wait for their commits. */
  private step(batch: Batch, from: number, request: (item: BatchItem) => WriteRequest, pending: Pending): void {
    const { items } = batch
    const until = Math.min(from + itemsPerStep, items.length)
    for (let index = from; index < until; index++) {
      const item = items[index]!
      this.shards.write(request(item), pending.expect(item))
    }
    if (until < items.length) this.clock.endOfTick(() => this.step(batch, until, request, pending))
  }
}

/** Told which entities were asked for, and the refusal of each (undefined: it succeeded). */
type OnOutcomes = (items: readonly BatchIdentity[], outcomes: readonly (Refusal | undefined)[]) => void

/**
 * A batch whose answers are awaited. [hot] It waits for as long as a commit takes, so it keeps of the payload only what an answer may
 * need: with all of it, half of what a batch allocates outlived the collector's first look, at a fifth of the processor time.
 */
class Pending {
  private readonly items: BatchIdentity[] = []
  private readonly outcomes: (Refusal | undefined)[] = []
  private readonly onOutcomes: OnOutcomes
  private open: number

  constructor(size: number, onOutcomes: OnOutcomes) {
    this.open = size
    this.onOutcomes = onOutcomes
  }

  /** Notes one more item; what is given back is to be told its result. */
  expect({ id, type }: BatchIdentity): OnResult<undefined> {
    const index = this.items.push({ id, type }) - 1
    return result => {
      this.outcomes[index] = result.ok ? undefined : result.refusal
      if (--this.open === 0) this.onOutcomes(this.items, this.outcomes)
    }
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
