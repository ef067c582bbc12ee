// An owner of shards that notifies, over a store of the test's own, with a recorder in the place of the notifier.
//
// The clock does not run by itself: commits begin when the test ends the tick (`rest`), and piggybacked writes go along
// when the test moves the time. A crash is another owner over the same store; the first one is not asked any more.

import assert from 'node:assert/strict'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import type { WantedAttribute } from '../../src/domain/entities/entity.js'
import type { Json, JsonObject } from '../../src/domain/json.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { Subscription, SubscriptionProgress } from '../../src/domain/subscriptions/subscription.js'
import type { EntityTarget, Origin, ShardReply, ShardRequest, WriteRequest } from '../../src/messages/messages.js'
import type { Clock, Deliverer, DeliveryOutcome, PendingNotification, Row, Store } from '../../src/ports.js'
import { allBundles, allOutbox, parseOutboxKey } from '../../src/shard/notify/notification-layout.js'
import { type DeliveryIntent, decodeTriggerEvent } from '../../src/shard/notify/trigger-event.js'
import type { ShardParts } from '../../src/shard/open-shards.js'
import type { LocalShards } from '../../src/shard/shards.js'
import { rowsOf } from '../storage/store-contract.js'
import { HoldingStore } from './changes.js'
import { FakeClock } from './fake-clock.js'
import { localShards } from './local-shards.js'
import { subscription } from './subscriptions.js'

export const tenant = 't'
export const shardMap = new ShardMap({ shards: 16, spread: 16 })

/** Keeps the notifications that it receives. */
export class RecordingDeliverer implements Deliverer {
  readonly taken: PendingNotification[] = []
  readonly expected: string[] = []
  /** The length of its queues, as it reports it. */
  waiting = 0
  /** The receiver of every subscription, as it reports it. */
  receiver: string | undefined = 'http://h:80'

  deliver(pending: PendingNotification): void {
    this.taken.push(pending)
  }

  prepare({ id }: Subscription): void {
    this.expected.push(id)
  }

  receiverOf(): string | undefined {
    return this.receiver
  }

  queueLength(): number {
    return this.waiting
  }

  /** The notifications received since the last call. */
  next(): PendingNotification[] {
    return this.taken.splice(0)
  }
}

export const delivered: DeliveryOutcome = { kind: 'delivered', code: 204 }

/** A failed try, number `attempts`, with more tries to follow. */
export const failed = (attempts: number, code?: number): DeliveryOutcome => ({
  kind: 'failed',
  reason: 'refused',
  code,
  sent: true,
  attempts,
  nextAttemptMs: 0,
  held: true,
})

export const dead = (attempts = 5, code?: number): DeliveryOutcome => ({
  kind: 'dead',
  reason: 'refused',
  cause: code === undefined ? 'noAnswer' : 'notNow',
  code,
  sent: true,
  attempts,
})

/** The content of a notification, in few words. */
export function intentsOf(
  pending: PendingNotification,
): readonly [id: string, entity: string, alteration: string, number: number] | undefined {
  const input = pending.input()
  return input && [pending.id, input.entity.id, input.alteration, input.number]
}

// Requests

export const idOf = (n: number): string => n.toString(16).padStart(24, '0')

interface Wish {
  readonly condition?: JsonObject
  /** Members besides the transport. */
  readonly notification?: JsonObject
  readonly throttling?: number
  readonly status?: string
}

/** Subscription `n`, to all entities; its members as a client writes them. */
export function watching(n: number, { condition, notification, ...more }: Wish = {}, of = tenant): Subscription {
  const body = {
    subject: { entities: [{ idPattern: '.*' }], ...(condition && { condition }) },
    notification: { http: { url: 'http://h' }, ...notification },
    ...more,
  }
  return { ...subscription(JSON.stringify(body)), id: idOf(n), tenant: of }
}

const options = { overrideMetadata: false, forcedUpdate: false }
const targetOf = (id: string): EntityTarget => ({ tenant, path: '/', id, type: undefined })
const wanted = (value: Json): WantedAttribute => ({
  type: 'Number',
  value,
  operator: undefined,
  metadata: undefined,
})
const wantedAll = (values: Readonly<Record<string, Json>>): ReadonlyMap<string, WantedAttribute> =>
  new Map(Object.entries(values).map(([name, value]) => [name, wanted(value)]))

/** The origin of one request, unless `more` makes several requests share it. */
export const originOf = (more: Partial<Origin> = {}): Origin => ({
  correlatorRoot: 'root',
  numbering: { next: 1, step: 1 },
  ...more,
})

type Values = Readonly<Record<string, Json>>

export const create = (id: string, values: Values = { n: 1 }, origin = originOf()): WriteRequest => ({
  kind: 'create',
  target: { ...targetOf(id), type: 'T' },
  origin,
  entity: { id, type: 'T', attributes: wantedAll(values) },
  upsert: false,
  options,
})
/** PATCH. */
export const update = (id: string, values: Values, origin = originOf()): WriteRequest => ({
  kind: 'update',
  target: targetOf(id),
  origin,
  attributes: wantedAll(values),
  options,
})
export const remove = (id: string, origin = originOf()): WriteRequest => ({
  kind: 'deleteEntity',
  target: targetOf(id),
  origin,
})

/** The shard of a request. */
export function shardOf(request: ShardRequest): number {
  if (request.kind === 'batch') return shardOf(request.items[0]!)
  if (!('target' in request)) return shardMap.register
  const { path, id } = request.target
  return shardMap.shardOf(request.target.tenant, path, id)
}

// An owner

/** A clock of an owner; after the owner was killed, its callbacks do nothing. */
function whileAlive(clock: FakeClock, life: { readonly isOver: boolean }): Clock {
  const alive = (run: () => void) => () => {
    if (!life.isOver) run()
  }
  return {
    monoMs: () => clock.monoMs(),
    wallMs: () => clock.wallMs(),
    fineWallMs: () => clock.fineWallMs(),
    after: (ms, run) => clock.after(ms, alive(run)),
    endOfTick: run => clock.endOfTick(alive(run)),
  }
}

interface OwnerParts extends Partial<ShardParts> {
  readonly deliverer?: RecordingDeliverer
  /** Whether it notifies from its start. */
  readonly begins?: boolean
}

export class NotifyingOwner<S extends Store = HoldingStore> {
  readonly store: S
  readonly clock: FakeClock
  readonly deliverer: RecordingDeliverer
  readonly shards: LocalShards
  /** The lines of its log. */
  readonly lines: readonly string[]
  private readonly life: { isOver: boolean }

  private constructor(
    store: S,
    clock: FakeClock,
    deliverer: RecordingDeliverer,
    shards: LocalShards,
    lines: readonly string[],
    life: { isOver: boolean },
  ) {
    this.store = store
    this.clock = clock
    this.deliverer = deliverer
    this.shards = shards
    this.lines = lines
    this.life = life
  }

  /** An owner over the rows of a store. */
  static async over<S extends Store>(
    store: S,
    { begins = true, deliverer = new RecordingDeliverer(), ...parts }: OwnerParts = {},
    clock = new FakeClock(),
  ): Promise<NotifyingOwner<S>> {
    const lines: string[] = []
    const line = (text: string) => void lines.push(text)
    const logger = { info: line, warn: line, error: line }
    const life = { isOver: false }
    const shards = await localShards(store, shardMap, whileAlive(clock, life), { logger, ...parts })
    const owner = new NotifyingOwner(store, clock, deliverer, shards, lines, life)
    if (begins) await owner.begin()
    return owner
  }

  /** An owner with these subscriptions. */
  static async with(subscriptions: readonly Subscription[], parts: OwnerParts = {}): Promise<NotifyingOwner> {
    const owner = await NotifyingOwner.over(new HoldingStore(), parts)
    for (const one of subscriptions) await owner.end({ kind: 'createSubscription', subscription: one })
    return owner
  }

  begin(): Promise<void> {
    return this.shards.parts.notifications.begin(this.deliverer, this.shards)
  }

  /** Kills this owner now, and starts another one over its store. */
  killed(parts: OwnerParts = {}): Promise<NotifyingOwner<S>> {
    this.life.isOver = true
    return NotifyingOwner.over(this.store, parts, this.clock)
  }

  /** Asks; the returned list gets the reply when it comes. */
  ask(request: ShardRequest): ShardReply[] {
    const replies: ShardReply[] = []
    this.shards.ask(shardOf(request), request, reply => replies.push(reply))
    return replies
  }

  /** Asks, and lets everything become durable. */
  async end(request: ShardRequest): Promise<ShardReply | undefined> {
    const replies = this.ask(request)
    await until(this.clock, () => replies.length > 0)
    return replies[0]
  }

  /** Runs all work that needs no time, and with `ms` also work pending by then: piggybacked writes wait 100 ms. */
  async rest(ms = 0): Promise<void> {
    this.clock.advance(ms)
    for (let turns = 0; turns < 4; turns++) {
      this.clock.tick()
      await turnOfTheLoop()
    }
  }

  /** The notifications that reached the deliverer since the last call, after `rest`. */
  async handed(): Promise<PendingNotification[]> {
    await this.rest()
    return this.deliverer.next()
  }

  /** Unbundled rows of the outbox, in order. */
  rows(): Promise<readonly Row[]> {
    return rowsOf(this.store, allOutbox())
  }

  /** Rows that bundle several ones. */
  bundles(): Promise<readonly Row[]> {
    return rowsOf(this.store, allBundles())
  }

  /** The delivery intents of the rows. */
  async intents(): Promise<DeliveryIntent[]> {
    return (await this.rows()).flatMap(({ key, value }) => decodeTriggerEvent(value, parseOutboxKey(key)).intents)
  }

  progress(n: number): SubscriptionProgress {
    return this.shards.parts.subscriptions.of(tenant)!.progressOf(idOf(n))
  }
}

const turnsMax = 100_000

/** Ends ticks, without moving the time, until the condition holds. */
export async function until(clock: FakeClock, isSo: () => boolean): Promise<void> {
  for (let turns = 0; !isSo(); turns++) {
    assert(turns < turnsMax, 'what was waited for does not happen')
    clock.tick()
    await turnOfTheLoop()
  }
}
