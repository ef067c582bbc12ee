// The snapshot of a watch: all entities that match, owner by owner (docs/interface/live.md#snapshots).
//
// Each owner first sends the keys of all matching entities, as they are at one moment, and then the entities, some at a
// time, as they are when they are fetched. So none is missing when others are deleted meanwhile. An entity that does
// not exist or match any more is left out; the reader learns of that by an event.
//
// If a shard changes its owner meanwhile, its entities may be read twice, or not at all: the snapshot is worthless
// then.

import type { AccessCondition } from '../../domain/access/condition.js'
import type { Entity } from '../../domain/entities/entity.js'
import {
  compileSelection,
  isAboutIdentity,
  meansContent,
  meansIdentity,
  type Selection,
} from '../../domain/queries/selection.js'
import { accepted, type Refusal, type Result } from '../../domain/refusal.js'
import type { FilterSource } from '../../domain/streams/change-filter.js'
import { decodeEntity } from '../../encoded-entity.js'
import type { EntityPosition, ListKeys, ShardReply, Shards } from '../../messages/messages.js'
import { refusalOf } from '../replies.js'
import type { CatchUpBudget } from './catch-up-budget.js'

/** Entities of one event, and of one fetch. */
export const snapshotEntitiesMax = 100
/** Bytes of encoded entities of one fetch. */
const fetchBytesMax = 1024 * 1024
/** Entities of a snapshot: the keys of a million take 20 MB. */
export const snapshotKeysMax = 1_000_000

/** The entities of a snapshot. */
export interface WatchedEntities {
  readonly source: FilterSource
  /** The entities that its reader may see; undefined: all of them. */
  readonly grant: AccessCondition | undefined
}

/** An entity of a snapshot. */
export interface SnapshotEntity {
  readonly path: string
  readonly entity: Entity
}

/** Selects as the filter does: its subjects one by one, its expression. */
export function selectionOfFilter({ entities, expression }: FilterSource): Result<Selection> {
  const { q, mq, ...geo } = expression
  const selectors = entities.map(({ id, idPattern, type, typePattern }) => ({
    ids: id === undefined ? undefined : [id],
    idPattern: idPattern === '.*' ? undefined : idPattern,
    types: type === undefined ? undefined : [type],
    typePattern,
  }))
  const isAny = selectors.some(
    one => !one.ids && one.idPattern === undefined && !one.types && one.typePattern === undefined,
  )
  return compileSelection({ selectors: isAny ? [] : selectors, q, mq, geo, from: 'payload' })
}

export class Snapshot {
  /** The keys of the owner that is being read. */
  private keys: readonly EntityPosition[] = []
  private next = 0
  private readonly owners: number[]
  /** The owners as they were when it began. */
  private readonly begun: readonly number[]
  private owner = -1
  private isClosed = false

  constructor(
    private readonly shards: Shards,
    private readonly group: WatchedEntities,
    private readonly selection: Selection,
    private readonly budget: CatchUpBudget,
  ) {
    this.begun = shards.owners()
    this.owners = [...this.begun]
  }

  /** Whether no shard has changed its owner since it began. */
  get isSteady(): boolean {
    return this.shards.owners() === this.begun
  }

  /** Reads the next entities, perhaps none; undefined: there are no more. */
  read(onRead: (result: Result<readonly SnapshotEntity[] | undefined>) => void): void {
    if (this.next < this.keys.length) return this.fetch(onRead)
    this.forgetKeys()
    const shard = this.owners.shift()
    if (shard === undefined) return onRead(accepted(undefined))
    this.owner = shard
    this.budget.whenRoom(() => {
      if (this.isClosed) this.budget.listed(0)
      else this.list(shard, onRead)
    })
  }

  /** Call it when no more is read. */
  close(): void {
    this.isClosed = true
    this.forgetKeys()
  }

  private list(shard: number, onRead: (result: Result<readonly SnapshotEntity[] | undefined>) => void): void {
    const { selection, group } = this
    const { tenant, servicePath } = group.source
    this.shards.ask(
      shard,
      {
        kind: 'list',
        tenant,
        paths: [servicePath],
        selection,
        order: [],
        offset: 0,
        limit: snapshotKeysMax,
        part: 'keys',
        grant: group.grant,
      },
      reply => {
        const keys = reply.kind === 'part' ? positionsOf(reply.keys) : []
        this.budget.listed(keys.length)
        if (this.isClosed) return this.budget.release(keys.length)
        if (reply.kind !== 'part') {
          // A later read asks this owner again.
          this.owners.unshift(shard)
          return onRead(refusedBy(reply))
        }
        this.keys = keys
        onRead(accepted([]))
      },
    )
  }

  private forgetKeys(): void {
    this.budget.release(this.keys.length)
    this.keys = []
    this.next = 0
  }

  private fetch(onRead: (result: Result<readonly SnapshotEntity[]>) => void): void {
    const places = this.keys.slice(this.next, this.next + snapshotEntitiesMax)
    const { source, grant } = this.group
    const { tenant } = source
    this.shards.ask(this.owner, { kind: 'fetch', tenant, places, bytesMax: fetchBytesMax }, reply => {
      if (reply.kind !== 'fetched') return onRead(refusedBy(reply))
      const found: SnapshotEntity[] = []
      for (const [at, encoded] of reply.encodedEntities.entries()) {
        if (!encoded) continue
        const { path } = places[at]!
        const whole = decodeEntity(encoded)
        const entity = grant ? grant.seen(whole, path) : whole
        if (entity && this.isMeant({ path, entity })) found.push({ path, entity })
      }
      this.next += reply.encodedEntities.length
      onRead(accepted(found))
    })
  }

  private isMeant({ entity, path }: SnapshotEntity): boolean {
    const { selection } = this
    return (
      meansIdentity(selection, entity.id, entity.type) &&
      (isAboutIdentity(selection) || meansContent(selection, entity, path))
    )
  }
}

const refusedBy = (reply: ShardReply): { readonly ok: false; readonly refusal: Refusal } => refusalOf(reply, 'read')

function positionsOf({ created, shards, rangeOf, ranges }: ListKeys): readonly EntityPosition[] {
  return Array.from(created, (at, index) => {
    const [path, type] = ranges[rangeOf[index]!]!
    return { created: at, shard: shards[index]!, path, type }
  })
}
