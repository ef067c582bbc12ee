// The tenants of an owner, and their sizes: read from the counts that every change keeps, never from a scan of the
// entities.
//
// Names come from one walk through the counts of entities by type, which are as many as there are types of each path,
// and from the register in memory. The bytes of a tenant are an estimate: some entities of its largest types are read,
// and their mean counts for all. One request runs at a time, in steps; some wait, and further ones are refused.
//
// Not here: the sums of several owners (broker/tenants.ts).

import { Pace, type Ticks } from '../../domain/pace.js'
import { type Refusal, refusals } from '../../domain/refusal.js'
import { encodedModifiedMs, encodedType } from '../../encoded-entity.js'
import type { TenantSize } from '../../messages/messages.js'
import type { StoreReader } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import type { Counts } from '../commit/counts.js'
import type { Registrations, Subscriptions } from '../documents/forms.js'
import { decodeNumber, KeyReader } from '../keys.js'
import { decodeRow, entityCounts, entityKey, parseTypeKey, typeRange } from '../layout.js'
import type { LastChanges } from './last-changes.js'
import type { TenantMarks } from './tenant-marks.js'

/** Names that one owner lists, up to 50 bytes each. */
export const tenantsListedMax = 100_000
/** The largest types of a tenant, of one path each, of which entities are read. */
const typesSampledMax = 4
/** Index rows read of such a type, and entities of these. Another thread reads that many rows. */
const rowsPerRead = 200
const entitiesPerType = 8
/** Requests that wait. */
const waitingMax = 16

export interface SizesParts {
  readonly store: StoreReader
  readonly ticks: Ticks
  readonly entities: Pick<Counts, 'rowsNow'>
  readonly subscriptions: Subscriptions
  readonly registrations: Registrations
  readonly marks: TenantMarks
  readonly changes: LastChanges
}

/** Entities of one type in one path. */
interface Counted {
  readonly path: string
  readonly type: string
  count: number
}

/** The results from some entities. */
interface Sample {
  readonly bytesMean: number
  readonly changedMs: number
}

export class TenantSizes {
  private waiting = 0
  private last: Promise<unknown> = Promise.resolve()

  constructor(private readonly parts: SizesParts) {}

  /** In no order; a refusal if there are too many. undefined: too many requests wait. */
  names(): Promise<readonly string[] | Refusal> | undefined {
    return this.inTurn(() => this.readNames())
  }

  /** undefined: too many requests wait. */
  sizes(tenants: readonly string[]): Promise<readonly TenantSize[]> | undefined {
    return this.inTurn(() => this.readSizes(tenants))
  }

  private inTurn<T>(run: () => Promise<T>): Promise<T> | undefined {
    if (this.waiting >= waitingMax) return undefined
    this.waiting++
    const done = this.last.then(run).finally(() => this.waiting--)
    this.last = done.catch(() => undefined)
    return done
  }

  private async readNames(): Promise<readonly string[] | Refusal> {
    const { entities, subscriptions, registrations, marks } = this.parts
    const names = new Set<string>([...subscriptions.tenantNames(), ...registrations.tenantNames()])
    for (const { tenant } of marks.all()) names.add(tenant)
    for await (const rows of entities.rowsNow()) {
      for (const { key } of rows) names.add(new KeyReader(key).text())
      if (names.size > tenantsListedMax) break
    }
    return names.size > tenantsListedMax ? refusals.tenantsTooMany(tenantsListedMax) : [...names]
  }

  private async readSizes(tenants: readonly string[]): Promise<readonly TenantSize[]> {
    const sizes: TenantSize[] = []
    const pace = new Pace(this.parts.ticks)
    for (const tenant of tenants) {
      sizes.push(await this.sizeOf(tenant))
      if (pace.isOver) await pace.breathe()
    }
    return sizes
  }

  private async sizeOf(tenant: string): Promise<TenantSize> {
    const { subscriptions, registrations, marks, changes } = this.parts
    const counted = await this.countedOf(tenant)
    let entities = 0
    for (const { count } of counted) entities += count
    let sampled = 0
    let bytes = 0
    let changedMs = changes.of(tenant) ?? 0
    for (const one of counted.sort((a, b) => b.count - a.count).slice(0, typesSampledMax)) {
      const sample = await this.sampleOf(tenant, one)
      if (!sample) continue
      sampled += one.count
      bytes += one.count * sample.bytesMean
      changedMs = Math.max(changedMs, sample.changedMs)
    }
    return {
      tenant,
      entities,
      bytes: sampled > 0 ? Math.round((bytes * entities) / sampled) : 0,
      subscriptions: subscriptions.of(tenant)?.size ?? 0,
      registrations: registrations.of(tenant)?.size ?? 0,
      changedMs: changedMs || undefined,
      deletion: marks.stampOf(tenant),
    }
  }

  /** The counts of the tenant, by path and type. */
  private async countedOf(tenant: string): Promise<Counted[]> {
    const byName = new Map<string, Counted>()
    for await (const rows of this.parts.entities.rowsNow(entityCounts.range(tenant)))
      for (const { key, value } of rows) {
        const { path, type } = entityCounts.parse(key)
        const name = `${path}\0${type}`
        const known = byName.get(name)
        if (known) known.count += decodeNumber(value)
        else byName.set(name, { path, type, count: decodeNumber(value) })
      }
    return [...byName.values()]
  }

  private async sampleOf(tenant: string, { path, type }: Counted): Promise<Sample | undefined> {
    const { store } = this.parts
    for await (const rows of rowsOf(store, typeRange(tenant, path, type), { rowsPerRead })) {
      const step = Math.max(1, Math.floor(rows.length / entitiesPerType))
      const keys = rows
        .filter((_, index) => index % step === 0)
        .slice(0, entitiesPerType)
        .map(({ key, value }) => entityKey(parseTypeKey(key).shard, tenant, path, value.toString()))
      const encodedEntities = store
        .getMany(keys)
        .flatMap(row => (row ? decodeRow(row).filter(encoded => encodedType(encoded) === type) : []))
      if (encodedEntities.length === 0) return undefined
      const bytes = encodedEntities.reduce((sum, { length }) => sum + length, 0)
      return {
        bytesMean: bytes / encodedEntities.length,
        changedMs: Math.max(...encodedEntities.map(encodedModifiedMs)),
      }
    }
    return undefined
  }
}
