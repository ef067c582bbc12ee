// Batches: op/update and op/notify (docs/interface/batch.md#outcome, docs/interface/batch.md#notify).
//
// The items are sent in the order of the payload, without waiting for each other's reply. All items of one id go to one
// shard, which executes them in order, so a later item of an entity sees the effect of earlier ones. A long batch is
// sent in slices, and the event loop runs between them. Items of one owner are sent together. There is no roll-back.
//
// If the outcome of some entities is unknown, the answer names them. It is never a success, and never a refusal without
// them. An owner that does not answer in time makes it a 503, as for a single entity; a failure makes it a 500.

import { type BatchIdentity, type BatchItem, type BatchUpdate, batchOutcome } from '../domain/entities/batch.js'
import { defaultEntityType } from '../domain/entities/entity.js'
import { entityLabel, type UpdateOptions } from '../domain/entities/update.js'
import type { Undone } from '../domain/providers/forwarded-update.js'
import type { ProviderIndex } from '../domain/providers/provider-index.js'
import { done, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import type { Origin, ShardReply, WriteRequest } from '../messages/messages.js'
import type { Clock } from '../ports.js'
import type { BatchQuotas, Release } from './batch-quotas.js'
import { type BatchScope, type ForwardedUpdates, isPartly, missingOf } from './forwarded-updates.js'
import type { Outward } from './forwarding.js'
import { type OnResult, refusalOf } from './replies.js'
import type { ShardClient } from './shard-client.js'

/** Items sent in one step: some 1 ms. A usual batch is one step, which ends before a garbage collection. */
const itemsPerStep = 128

export class BatchOperations {
  /**
   * `updates`: passes attributes on to providers; undefined: nothing is forwarded. `quotas` undefined: tenants may have
   * any number of entities.
   */
  constructor(
    private readonly shards: ShardClient,
    private readonly clock: Clock,
    private readonly updates?: ForwardedUpdates,
    private readonly quotas?: BatchQuotas,
  ) {}

  /** `POST /v2/op/update`. Without `outward` nothing is forwarded. */
  update(
    scope: BatchScope,
    batch: BatchUpdate,
    options: UpdateOptions,
    origin: Origin,
    onResult: OnResult<undefined>,
    outward?: () => Outward,
  ): void {
    const { action } = batch
    if (this.updates && outward && (action === 'update' || action === 'replace')) {
      const index = this.updates.indexOf(scope.tenant)
      if (index) return this.updateEverywhere(this.updates, index, scope, batch, options, origin, outward, onResult)
    }
    const onReplies: OnReplies = answered => {
      onResult(resultOf(answered, known => refusalOfUpdate(action, known)))
    }
    this.writeWithin(batch, scope, options, origin, onReplies, onResult)
  }

  /** An update that providers may execute in part: it keeps the payload until it ends. */
  private updateEverywhere(
    updates: ForwardedUpdates,
    index: ProviderIndex,
    scope: BatchScope,
    batch: BatchUpdate,
    options: UpdateOptions,
    origin: Origin,
    outward: () => Outward,
    onResult: OnResult<undefined>,
  ): void {
    const { action } = batch
    splitAll(updates, index, scope, batch, (items, undone) => {
      this.write({ action, items }, scope, options, origin, answered => {
        const result = resultOf(answered, known => refusalOfUpdate(action, known))
        const missing = undoneOf(items, answered.all)
        const all = missing && [...undone, ...missing]
        if (!all || all.length === 0) return onResult(result)
        const isAnyDone = answered.all.some(
          reply => reply.kind === 'done' || (reply.kind === 'refused' && isPartly(reply.refusal)),
        )
        const refusal = result.ok ? refusals.entityNotFound : result.refusal
        updates.finish(index, scope, all, { isAnyDone, refusal }, outward, onResult)
      })
    })
  }

  /** `POST /v2/op/notify`: the sender gets an error only for changes that were not, or perhaps not, made durable. */
  notify(scope: BatchScope, batch: BatchUpdate, origin: Origin, onResult: OnResult<undefined>): void {
    const options = { overrideMetadata: false, forcedUpdate: false }
    const onReplies: OnReplies = answered => {
      onResult(resultOf(answered, refusalOfNotification))
    }
    this.writeWithin(batch, scope, options, origin, onReplies, onResult)
  }

  /** Writes a batch; if it creates entities, then once they fit into the quota of its tenant. */
  private writeWithin(
    batch: BatchUpdate,
    scope: BatchScope,
    options: UpdateOptions,
    origin: Origin,
    onReplies: OnReplies,
    onResult: OnResult<undefined>,
  ): void {
    const { quotas } = this
    if (!quotas?.isLimited(scope.tenant) || !creates(batch)) return this.write(batch, scope, options, origin, onReplies)
    quotas.reserve(scope, batch.items, reserved => {
      if (reserved.ok) this.write(batch, scope, options, origin, releasedBy(reserved.value, onReplies))
      else onResult(reserved)
    })
  }

  private write(
    batch: BatchUpdate,
    scope: BatchScope,
    options: UpdateOptions,
    origin: Origin,
    onReplies: OnReplies,
  ): void {
    const pending = new Pending(batch.items.length, onReplies)
    if (batch.items.length === 0) return onReplies(pending)
    this.step(batch, 0, item => requestOf(batch.action, item, scope, options, origin), pending)
  }

  /** Sends the next items. The last step releases the payload, while the answers wait for their commits. */
  private step(batch: BatchUpdate, from: number, request: (item: BatchItem) => WriteRequest, pending: Pending): void {
    const { items } = batch
    const until = Math.min(from + itemsPerStep, items.length)
    const step = items.slice(from, until)
    this.shards.writeAll(step.map(request), pending.expect(step))
    if (until < items.length) this.clock.endOfTick(() => this.step(batch, until, request, pending))
  }
}

type OnReplies = (answered: Pending) => void

const creates = ({ action, items }: BatchUpdate): boolean =>
  (action === 'append' || action === 'appendStrict') && items.length > 0

/** A function of its own, so that its closure does not keep the payload. */
const releasedBy =
  (release: Release, onReplies: OnReplies): OnReplies =>
  answered => {
    release()
    onReplies(answered)
  }

/**
 * A batch that waits for its answers. [hot] It waits as long as a commit takes, so it keeps only the parts of the
 * payload that an answer may need. With the whole payload, half of a batch's memory survived the first garbage
 * collection, which cost a fifth of the processor time.
 */
class Pending {
  private readonly ids: string[] = []
  private readonly types: (string | undefined)[] = []
  private readonly replies: ShardReply[] = []
  private open: number

  constructor(
    size: number,
    private readonly onReplies: OnReplies,
  ) {
    this.open = size
  }

  /** Notes more items. The returned function receives the reply to each. */
  expect(items: readonly BatchIdentity[]): (index: number, reply: ShardReply) => void {
    const first = this.ids.length
    for (const { id, type } of items) {
      this.ids.push(id)
      this.types.push(type)
    }
    return (index, reply) => {
      this.replies[first + index] = reply
      if (--this.open === 0) this.onReplies(this)
    }
  }

  get all(): readonly ShardReply[] {
    return this.replies
  }

  identity(index: number): BatchIdentity {
    return { id: this.ids[index] as string, type: this.types[index] }
  }
}

interface Ended {
  readonly item: BatchIdentity
  /** undefined: it succeeded. */
  readonly refusal: Refusal | undefined
}

const refusalOfUpdate = (action: BatchUpdate['action'], all: readonly Ended[]): Refusal | undefined =>
  batchOutcome(
    action,
    all.map(({ item }) => item),
    all.map(({ refusal }) => refusal),
  )

const refusalOfNotification = (all: readonly Ended[]): Refusal | undefined =>
  all.find(({ refusal }) => refusal !== undefined && notDurable.has(refusal.kind))?.refusal

/** Refusals of changes that the rules would have accepted. */
const notDurable: ReadonlySet<Refusal['kind']> = new Set([
  'Unavailable',
  'InternalServerError',
  'InsufficientStorage',
  'QuotaExceeded',
])

/**
 * Divides a batch into items for this broker and items of providers. Only replacements are divided, since they would
 * add the provided attributes here.
 */
function splitAll(
  updates: ForwardedUpdates,
  index: ProviderIndex,
  scope: BatchScope,
  { action, items }: BatchUpdate,
  onSplit: (items: readonly BatchItem[], undone: readonly Undone[]) => void,
): void {
  if (action !== 'replace') return onSplit(items, [])
  const local: (BatchItem | undefined)[] = [...items]
  const undone: Undone[] = []
  let missing = items.length
  for (const [at, item] of items.entries()) {
    const { id, type, attributes } = item
    updates.split(index, { ...scope, id, type }, attributes, split => {
      if (split.undone) {
        undone.push(split.undone)
        local[at] = split.local.size === 0 ? undefined : { ...item, attributes: split.local }
      }
      if (--missing === 0)
        onSplit(
          local.filter(one => one !== undefined),
          undone,
        )
    })
  }
}

/** The items that are missing here; undefined: an item was refused for another reason, or its outcome is unknown. */
function undoneOf(items: readonly BatchItem[], replies: readonly ShardReply[]): readonly Undone[] | undefined {
  const undone: Undone[] = []
  for (const [index, reply] of replies.entries()) {
    if (reply.kind === 'done') continue
    const { id, type, attributes } = items[index] as BatchItem
    const missing = reply.kind === 'refused' ? missingOf(reply.refusal, attributes) : undefined
    if (!missing) return undefined
    undone.push({ id, type, attributes: missing })
  }
  return undone
}

/** The result of a batch, from the reply to each item and the refusal for the items whose outcome is known. */
function resultOf(pending: Pending, refusalOfAll: (known: readonly Ended[]) => Refusal | undefined): Result<undefined> {
  const { all: replies } = pending
  if (replies.every(reply => reply.kind === 'done')) return done
  const known: Ended[] = []
  const unknown: string[] = []
  const reasons = new Set<string>()
  let hasFailed = false
  for (const [index, reply] of replies.entries()) {
    const item = pending.identity(index)
    if (reply.kind === 'unreachable' || reply.kind === 'lost' || reply.kind === 'failed') {
      unknown.push(entityLabel(item.id, item.type))
      reasons.add(reply.reason)
      hasFailed ||= reply.kind === 'failed'
    } else known.push({ item, refusal: reply.kind === 'done' ? undefined : refusalOf(reply, 'write').refusal })
  }
  const refusal = refusalOfAll(known)
  if (unknown.length === 0) return refusal ? refused(refusal) : done
  const kind = hasFailed ? 'InternalServerError' : 'Unavailable'
  const others = known.length === 0 ? 'none' : (refusal ?? 'done')
  return refused(refusals.batchUnknown(kind, unknown, replies.length, [...reasons], others))
}

/** The single operation that corresponds to an action for one entity (docs/interface/batch.md#outcome). */
function requestOf(
  action: BatchUpdate['action'],
  { id, type, attributes, names }: BatchItem,
  { tenant, path, limits }: BatchScope,
  options: UpdateOptions,
  origin: Origin,
): WriteRequest {
  const target = type === undefined && limits ? { tenant, path, id, type, limits } : { tenant, path, id, type }
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
