// Writes into the stores of a data directory: the rows that a broker would have written for these entities and
// documents.
//
// Records go through the group commit of turns, which also keeps the indexes, the counts and the stamp
// (shard/commit/commit.ts). The items of one `put` are one batch of each store. A process that dies may leave one store
// with its batch and another without. Then the same items come again, and equal ones are left unchanged.
//
// Two entities of a type and path must not have the same stamp in one shard, because they would share one row of the
// type index. So a taken stamp moves on by one, which is far less than a millisecond.
//
// Every store has all documents, as with workers (shard/documents/register.ts); the keeper's store has the counters.
//
// Not here: faults of an item by itself (entity-line.ts).

import { HybridClock } from '../clock.js'
import { type Attribute, type Entity, expiryAttribute } from '../domain/entities/entity.js'
import { TenantPaths } from '../domain/few-paths.js'
import type { Json, JsonObject } from '../domain/json.js'
import {
  entityRowBytesMax,
  registrationBytesMax,
  registrationsMax,
  subscriptionBytesMax,
  subscriptionsMax,
} from '../domain/limits.js'
import { type Refusal, refusals, refusalText } from '../domain/refusal.js'
import { keeper, workerOf } from '../domain/scope.js'
import { stampMs, stampOf } from '../domain/stamp.js'
import { noProgress, type SubscriptionProgress } from '../domain/subscriptions/subscription.js'
import { encodedRoot, encodeEntity } from '../encoded-entity.js'
import type { DocumentKind } from '../messages/messages.js'
import type { Clock, Store } from '../ports.js'
import { rowsOf } from '../rows.js'
import { GroupCommit } from '../shard/commit/commit.js'
import { lastStamp, StoreLog } from '../shard/commit/commit-log.js'
import { Counts } from '../shard/commit/counts.js'
import {
  allDocuments,
  type DocumentKey,
  decodeDocumentRow,
  documentKey,
  encodeDocumentRow,
  progressKey,
} from '../shard/documents/document-layout.js'
import { registrationForm, subscriptionForm } from '../shard/documents/forms.js'
import { attributeCounts, decodeRow, entityCounts, entityKey, nothing, typeKey } from '../shard/layout.js'
import { encodeProgress } from '../shard/notify/progress-book.js'
import { pathKey, positionKey } from '../shard/replicate/replicated-layout.js'
import { Actor, Variant } from '../shard/turn/actor.js'
import type { AttributeDifference } from '../shard/turn/apply.js'
import { isSameEntity } from './compare.js'
import { isSameDocument } from './compare-documents.js'
import { type OpenDirectory, storedProgress } from './directory.js'
import {
  type ItemOutcome,
  type MovedDocument,
  type MovedEntity,
  type MovedItem,
  type MovedRegistration,
  type MovedSubscription,
  MoveError,
  type PlacedItem,
  type Sink,
} from './moved.js'

/**
 * A creation may be ahead of this machine's clock by this much. Later stamps have to be above it, and would show a
 * wrong time.
 */
const aheadMsMax = 10_000

export interface DirectorySinkOptions {
  readonly clock: Clock
  readonly overwrites: boolean
  /** Called once, when times had to be changed. */
  readonly warn: (line: string) => void
}

/** The store of a worker, with the means to write to it. */
interface Part {
  readonly store: Store
  readonly commit: GroupCommit
}

/** Items that are being written to the stores, and are not yet durable. */
interface Staged {
  readonly actors: Map<string, Actor>
  /** Keys of the type index, each with the id that it is for. */
  readonly holders: Map<string, string>
  readonly documents: Map<string, string>
}

export class DirectorySink implements Sink {
  readonly name: string
  readonly documentsMax = Number.POSITIVE_INFINITY
  private readonly parts: readonly Part[]
  private readonly stamps: HybridClock
  /** The last entity without a stamp of its own: its millisecond, and the stamp that it got. */
  private runMs = 0
  private runStamp = 0
  private hasWarnedOfAhead = false
  /** Service paths that are known to be in all stores. */
  private readonly paths = new TenantPaths()
  /** Number of stored documents of each kind, once it was counted. */
  private readonly documentCounts = new Map<DocumentKind, number>()

  /** `from` is a position of the same work; undefined: a new start. */
  constructor(
    private readonly open: OpenDirectory,
    private readonly options: DirectorySinkOptions,
    from: Json | undefined,
  ) {
    const { stores, directory } = open
    this.name = `data directory ${directory.path}`
    this.stamps = new HybridClock(options.clock, Math.max(...stores.map(lastStamp)))
    // The caller that waits for the commit reports a failure.
    const onFailure = (): void => {}
    this.parts = stores.map(store => {
      const commit = new GroupCommit({
        log: new StoreLog(store, options.clock, () => this.stamps.last),
        clock: options.clock,
        directory: new Counts(store, entityCounts),
        attributes: new Counts(store, attributeCounts),
        onFailure,
      })
      return { store, commit }
    })
    // A register copy that was written from outside has to be compared row by row (shard/documents/register-copy.ts).
    if (stores.length > 1) for (const { commit } of this.parts) commit.write(positionKey(directory.shards), undefined)
    if (!from) return
    const { runMs, runStamp } = from as JsonObject
    this.runMs = Number(runMs)
    this.runStamp = Number(runStamp)
  }

  async put(items: readonly MovedItem[], stops: boolean): Promise<readonly PlacedItem[]> {
    for (const kind of ['subscription', 'registration'] as const)
      if (!this.documentCounts.has(kind) && items.some(item => item.kind === kind))
        this.documentCounts.set(kind, await this.count(kind))
    // No `await` from here on: the items staged in one tick are one batch.
    const staged: Staged = { actors: this.load(items), holders: new Map(), documents: new Map() }
    const placed: PlacedItem[] = []
    for (const item of items) {
      const result = this.place(item, staged)
      const isRefused = typeof result !== 'string'
      if (isRefused && stops) {
        placed.push({ fault: refusalText(result) })
        break
      }
      placed.push(isRefused ? { fault: refusalText(result) } : { outcome: result })
    }
    for (const { commit } of this.parts) {
      await commit.drain()
      const { failed } = commit
      if (failed) throw new MoveError(`${this.name} cannot be written: ${failed.message}`, { cause: failed })
    }
    return placed
  }

  position(): Json {
    return { runMs: this.runMs, runStamp: this.runStamp }
  }

  async finish(): Promise<void> {}

  close(): Promise<void> {
    return this.open.close()
  }

  private place(item: MovedItem, staged: Staged): ItemOutcome | Refusal {
    switch (item.kind) {
      case 'entity':
        return this.placeEntity(item, staged)
      case 'subscription':
        return this.placeSubscription(item, staged)
      case 'registration':
        return this.placeRegistration(item, staged)
    }
  }

  // Entities

  /** The stored state under the ids of all entities, by key. */
  private load(items: readonly MovedItem[]): Map<string, Actor> {
    const { shardMap } = this.open
    const actors = new Map<string, Actor>()
    const wanted: { readonly key: Buffer; readonly place: Actor['place'] }[][] = this.parts.map(() => [])
    for (const item of items) {
      if (item.kind !== 'entity') continue
      const { tenant, path, entity } = item
      const shard = shardMap.shardOf(tenant, path, entity.id)
      const place = { shard, tenant, path, id: entity.id }
      wanted[this.workerOf(shard)]!.push({ key: entityKey(shard, tenant, path, entity.id), place })
    }
    for (const [worker, keys] of wanted.entries()) {
      const rows = this.parts[worker]!.store.getMany(keys.map(({ key }) => key))
      for (const [index, { key, place }] of keys.entries()) {
        const row = rows[index]
        const variants = row ? decodeRow(row).map(encoded => new Variant(encoded)) : []
        actors.set(nameOf(place), new Actor(key, place, 0, variants))
      }
    }
    return actors
  }

  private workerOf(shard: number): number {
    return workerOf(shard, this.parts.length)
  }

  private placeEntity(item: MovedEntity, { actors, holders }: Staged): ItemOutcome | Refusal {
    const { tenant, path, root } = item
    const { id, type } = item.entity
    const shard = this.open.shardMap.shardOf(tenant, path, id)
    const actor = actors.get(nameOf({ tenant, path, id })) as Actor
    const { store, commit } = this.parts[this.workerOf(shard)]!
    const isTaken = (created: number): boolean => {
      const key = typeKey(tenant, path, type, created, shard)
      const holder = holders.get(key.toString('latin1')) ?? store.get(key)?.toString()
      return holder !== undefined && holder !== id
    }
    const isAhead = this.isAhead(item)
    let created = isAhead ? this.inRun(this.options.clock.wallMs()) : this.stampFor(item)
    while (isTaken(created)) created++
    const after: Entity = { ...item.entity, created }
    const encoded = encodeEntity(after, root)
    const before = actor.variant(type)
    if (before && !this.options.overwrites) {
      if (before.encoded.equals(encoded)) return 'same'
      // The time that an earlier import gave it is not known.
      const compared = isAhead ? { ...item, isStamped: false, hasCreated: false } : item
      return isSameEntity(compared, created, { entity: before.entity, root: encodedRoot(before.encoded) })
        ? 'same'
        : 'kept'
    }
    const next = new Variant(encoded, after)
    const row = actor.rowWith(type, next) as Buffer
    if (row.length > entityRowBytesMax) return refusals.entityTooLarge(row.length, entityRowBytesMax)
    this.stamps.observe(created)
    this.notePath(tenant, path)
    holders.set(typeKey(tenant, path, type, created, shard).toString('latin1'), id)
    const place = { shard, tenant, path, id, type }
    const attributes = differences(before?.entity, after)
    const known = before?.known
    actor.put(type, next)
    if (known && known.created !== created) {
      // Indexes identify an entity by its creation: for them it is another one.
      commit.append({ ...place, before: known, attributes: [], encoded: undefined }, actor.key, row, undefined)
      commit.append({ ...place, before: undefined, attributes, encoded }, actor.key, row, after)
    } else commit.append({ ...place, before: known, attributes, encoded }, actor.key, row, after)
    return before ? 'replaced' : 'written'
  }

  /** With several stores each needs every path. The keeper's store gets it first: its commit precedes the others. */
  private notePath(tenant: string, path: string): void {
    if (this.parts.length === 1 || !this.paths.wants(tenant, path)) return
    this.paths.add(tenant, path)
    for (const { commit } of this.parts) commit.write(pathKey(this.open.shardMap.register, tenant, path), nothing)
  }

  /** The stamp of an entity's creation. If only the millisecond is known, stamps follow the order of arrival. */
  private stampFor({ entity: { created }, isStamped }: MovedEntity): number {
    return isStamped ? created : this.inRun(stampMs(created))
  }

  /** Whether an entity was created in the future: it then gets the time of the import. */
  private isAhead({ entity: { created } }: MovedEntity): boolean {
    if (created <= stampOf(this.options.clock.wallMs() + aheadMsMax)) return false
    if (!this.hasWarnedOfAhead) this.options.warn('some were created later than now, and get the time of the import')
    this.hasWarnedOfAhead = true
    return true
  }

  private inRun(ms: number): number {
    // Entities of one millisecond beyond its stamps get stamps ahead of it, as from a clock: they keep their order.
    if (ms === this.runMs) this.runStamp++
    else this.runStamp = ms > this.runMs ? Math.max(stampOf(ms), this.runStamp + 1) : stampOf(ms)
    this.runMs = ms
    return this.runStamp
  }

  // Documents

  private placeSubscription(item: MovedSubscription, staged: Staged): ItemOutcome | Refusal {
    const { subscription, progress } = item
    const text = subscriptionForm.encode(subscription)
    const bytes = Buffer.byteLength(text)
    if (bytes > subscriptionBytesMax) return refusals.subscriptionTooLarge(bytes, subscriptionBytesMax)
    const key = this.documentOf(subscription)
    const outcome = this.placeDocument(item, key, text, staged, subscriptionsMax)
    if (outcome === 'written' || outcome === 'replaced') this.writeProgress(key, progress)
    return outcome ?? refusals.subscriptionsTooMany(subscriptionsMax)
  }

  private placeRegistration(item: MovedRegistration, staged: Staged): ItemOutcome | Refusal {
    const { registration } = item
    const text = registrationForm.encode(registration)
    const bytes = Buffer.byteLength(text)
    if (bytes > registrationBytesMax) return refusals.registrationTooLarge(bytes, registrationBytesMax)
    const key = this.documentOf(registration)
    const outcome = this.placeDocument(item, key, text, staged, registrationsMax)
    return outcome ?? refusals.registrationsTooMany(registrationsMax)
  }

  private documentOf({ tenant, id }: { readonly tenant: string; readonly id: string }): DocumentKey {
    return { register: this.open.shardMap.register, tenant, id }
  }

  /** undefined: there is no room. */
  private placeDocument(
    item: MovedDocument,
    place: DocumentKey,
    text: string,
    { documents }: Staged,
    countMax: number,
  ): ItemOutcome | undefined {
    const { kind } = item
    const { overwrites } = this.options
    const key = documentKey(kind, place)
    const name = key.toString('latin1')
    const texts = this.parts.map(({ store }) => documents.get(name) ?? textIn(store, key))
    // The keeper's row decides. A row that only some others have was in flight when the work was interrupted.
    const known = texts[keeper]
    const isStaged = documents.has(name) && known === text
    if (!overwrites && known !== undefined && !isStaged && !this.isThere(item, place, known)) return 'kept'
    const wanted = overwrites ? text : (known ?? text)
    if (!overwrites && texts.every(one => one === wanted)) return 'same'
    const count = this.documentCounts.get(kind) as number
    if (known === undefined && count >= countMax) return undefined
    if (known === undefined) this.documentCounts.set(kind, count + 1)
    const row = encodeDocumentRow(wanted)
    for (const { commit } of this.parts) commit.write(key, row)
    documents.set(name, wanted)
    if (known === undefined) return 'written'
    return overwrites ? 'replaced' : 'same'
  }

  /**
   * Whether a stored document equals the incoming one. Their texts may differ: after another release, or after its
   * status was set again.
   */
  private isThere(item: MovedDocument, place: DocumentKey, text: string): boolean {
    if (item.kind === 'registration')
      return isSameDocument(item, { kind: item.kind, registration: registrationForm.decode(text) })
    const progress = storedProgress(this.open.stores, place)
    return isSameDocument(item, { kind: item.kind, subscription: subscriptionForm.decode(text), progress })
  }

  private async count(kind: DocumentKind): Promise<number> {
    let count = 0
    const { store } = this.parts[0]!
    for await (const rows of rowsOf(store, allDocuments(kind), { parts: 'keys' })) count += rows.length
    return count
  }

  private writeProgress(place: DocumentKey, progress: SubscriptionProgress): void {
    const key = progressKey(place)
    const row = isNone(progress) ? undefined : encodeProgress(progress)
    for (const [worker, { commit }] of this.parts.entries()) commit.write(key, worker === keeper ? row : undefined)
  }
}

const nameOf = ({ tenant, path, id }: Omit<Actor['place'], 'shard'>): string => `${tenant}\0${path}\0${id}`

const isNone = (progress: SubscriptionProgress): boolean => JSON.stringify(progress) === JSON.stringify(noProgress)

function textIn(store: Store, key: Buffer): string | undefined {
  const row = store.get(key)
  return row && decodeDocumentRow(row)
}

/**
 * The differences of attributes, by name and type, for the counts. `dateExpires` is never counted
 * (docs/interface/types.md#all-types).
 */
function differences(before: Entity | undefined, after: Entity): AttributeDifference[] {
  const found: AttributeDifference[] = []
  const add = (name: string, attribute: Attribute, other: Attribute | undefined, difference: 1 | -1): void => {
    if (name !== expiryAttribute && attribute.type !== other?.type) found.push([name, attribute.type, difference])
  }
  for (const [name, attribute] of before?.attributes ?? []) add(name, attribute, after.attributes.get(name), -1)
  for (const [name, attribute] of after.attributes) add(name, attribute, before?.attributes.get(name), 1)
  return found
}
