// Deletes the tenants that have a mark: a task of every owner, twice a second as long as there are marks.
//
//   every owner   deletes the entities of the tenant in its shards, until a walk finds none
//   the keeper    deletes its subscriptions and registrations. When all owners have nothing left, it deletes the
//                 service paths and the mark in one commit, and the tenant may be used again
//
// The deletion never removes data written after it. Before each walk an owner asks the keeper whether the deletion is
// still under way, because its own copy of the register may be old. The keeper ends a deletion only when every owner
// has confirmed that it has the mark and found nothing. A shard that moves meanwhile changes `generation` at both
// owners, and both walk again. A walk waits for turns that were taken before the mark was known.
//
// A walk works a part of the time and rests for the other part, so that other tenants keep their latency. Deletions
// trigger no notifications, because the turns have no numbering. When a process ends the mark stays, and the next
// process continues.
//
// Not here: writing the mark (tenant-admin.ts), the refusals (tenant-marks.ts).

import { encodedType } from '../../encoded-entity.js'
import type { ShardReply, Shards, TenantDeletion, TenantsStep, WriteReply } from '../../messages/messages.js'
import type { Clock, Logger, Row } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import { askUnused } from '../documents/unused-tenants.js'
import { decodeRow, entityRange, parseEntityKey } from '../layout.js'
import type { Ownership } from '../replicate/ownership.js'
import type { LocalParts } from '../shards.js'
import { markKey } from './deletion-layout.js'

/** Milliseconds between two rounds. */
export const roundMs = 500
/** Rows read at once, by another thread: it may take long to pass deleted rows. */
const rowsPerRead = 256
/**
 * Entities deleted in one step, and subscriptions or registrations: a step of entities takes about half a millisecond
 * of the loop.
 */
const entitiesPerStep = 16
const documentsPerStep = 100
/** After a step, which ends when it is durable, an owner rests as long as it took, within these bounds. */
const restMsMin = 2
const restMsMax = 100
/** Least time between two log lines about failures. */
const troubleLineMs = 60_000

export interface DeletionParts {
  readonly local: LocalParts
  /** The shards of all owners. */
  readonly shards: Shards
  readonly clock: Pick<Clock, 'after' | 'monoMs' | 'endOfTick'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
  /** For tests: entities of a step. */
  readonly entitiesPerStep?: number | undefined
}

export class TenantDeletions {
  private readonly ownership: Ownership | undefined
  private cancel: () => void = () => {}
  private running: Promise<void> = Promise.resolve()
  private hasEnded = false
  private troubleMs = Number.NEGATIVE_INFINITY

  constructor(private readonly parts: DeletionParts) {
    const { role } = parts.local
    this.ownership = role.kind === 'node' ? role.ownership : undefined
    this.pause()
  }

  /** Begins no more rounds; resolves when the present one has ended. */
  async end(): Promise<void> {
    this.hasEnded = true
    this.cancel()
    await this.running
  }

  private pause(): void {
    if (this.hasEnded) return
    this.cancel = this.parts.clock.after(roundMs, () => {
      this.running = this.round()
        .catch((error: Error) => this.logTrouble(error.message))
        .finally(() => this.pause())
    })
  }

  /** Does for each deletion all that can be done now. */
  async round(): Promise<void> {
    const { tenants } = this.parts.local
    const { marks, isKeeper } = tenants.parts
    tenants.forgetEnded()
    if (marks.size === 0) return
    const underWay = await this.underWay()
    for (const deletion of underWay) {
      if (isKeeper()) await this.removeDocuments(deletion)
      if (!tenants.isPurged(deletion)) await this.purge(deletion)
    }
    if (isKeeper()) await this.finish(underWay)
  }

  /** The deletions that both this owner and the keeper know. */
  private async underWay(): Promise<readonly TenantDeletion[]> {
    const { marks, number } = this.parts.local.tenants.parts
    const reply = await this.ask(number, { what: 'deletions' })
    if (reply.kind !== 'tenants' || reply.content.what !== 'deletions') return []
    return reply.content.deletions.filter(({ tenant, stamp }) => marks.stampOf(tenant) === stamp)
  }

  private async removeDocuments({ tenant }: TenantDeletion): Promise<void> {
    const { subscriptions, registrations, tenants } = this.parts.local
    const { register, isKeeper } = tenants.parts
    for (const documents of [subscriptions, registrations])
      for (;;) {
        const ids = documents.of(tenant)?.firstIds(documentsPerStep) ?? []
        if (ids.length === 0) break
        if (this.hasEnded || !isKeeper() || register.obstacle()) return
        const beganMs = this.parts.clock.monoMs()
        for (const id of ids) documents.remove(tenant, id)
        const { stagedIn } = documents
        const failure = await new Promise<ShardReply | undefined>(resolve => register.afterAll(stagedIn, resolve))
        if (failure) return
        documents.onKnown(stagedIn)
        await this.rest(beganMs)
      }
  }

  /** Deletes the entities that this owner has. */
  private async purge(deletion: TenantDeletion): Promise<void> {
    const { commit, tenants, shards } = this.parts.local
    const { generation } = tenants.parts
    const before = generation()
    // Turns that were taken before the mark was known may not have been written yet.
    await commit.drain()
    let found = 0
    for (const [shard] of shards.entries()) {
      if (!this.isOurs(shard)) continue
      const deleted = await this.purgeShard(shard, deletion, before)
      if (deleted === undefined) return
      found += deleted
      await new Promise<void>(resolve => this.parts.clock.endOfTick(resolve))
    }
    if (found === 0) tenants.notePurged(deletion, before)
    // Probably nothing is left: the walk that finds nothing follows at once.
    else if (before === generation()) await this.purge(deletion)
  }

  private isOurs(shard: number): boolean {
    return this.ownership?.admits(shard) ?? true
  }

  /**
   * Returns how many rows it has deleted; undefined: it could not continue. A shard that was lost and gained again
   * meanwhile may have seen the end of the deletion elsewhere, so nothing is deleted in another generation than
   * `before`.
   */
  private async purgeShard(
    shard: number,
    { tenant, stamp }: TenantDeletion,
    before: number,
  ): Promise<number | undefined> {
    const { store, tenants } = this.parts.local
    const { marks, generation } = tenants.parts
    const mayContinue = (): boolean =>
      !this.hasEnded && marks.stampOf(tenant) === stamp && this.isOurs(shard) && generation() === before
    const step = this.parts.entitiesPerStep ?? entitiesPerStep
    let found = 0
    for await (const rows of rowsOf(store, entityRange(shard, tenant), { rowsPerRead }))
      for (let at = 0; at < rows.length; at += step) {
        if (!mayContinue()) return undefined
        const some = rows.slice(at, at + step)
        const beganMs = this.parts.clock.monoMs()
        const replies = await Promise.all(some.flatMap(row => this.deleteRow(row)))
        const failed = replies.find(({ kind }) => kind !== 'done')
        if (failed) {
          if (failed.kind === 'failed' || failed.kind === 'lost') this.logTrouble(failed.reason)
          return undefined
        }
        found += some.length
        await this.rest(beganMs)
      }
    return found
  }

  /** Each type of an id has a turn of its own. Without numbering no notification is triggered. */
  private deleteRow({ key, value }: Row): Promise<WriteReply>[] {
    const { shard, tenant, path, id } = parseEntityKey(key)
    return decodeRow(value).map(
      encoded =>
        new Promise(resolve => {
          const target = { tenant, path, id, type: encodedType(encoded) }
          const request = { kind: 'deleteEntity', target, origin: { correlatorRoot: '' } } as const
          this.parts.local.shards[shard]!.onAsk(request, resolve)
        }),
    )
  }

  private rest(beganMs: number): Promise<void> {
    const { clock } = this.parts
    const restMs = Math.min(restMsMax, Math.max(restMsMin, clock.monoMs() - beganMs))
    return new Promise(resolve => clock.after(restMs, resolve))
  }

  /** Ends the deletions of which nothing is left at any owner. */
  private async finish(underWay: readonly TenantDeletion[]): Promise<void> {
    const { shards, local } = this.parts
    const { subscriptions, registrations, role, tenants } = local
    const owners = shards.owners()
    let left = underWay.filter(
      deletion =>
        tenants.isPurged(deletion) && !subscriptions.of(deletion.tenant) && !registrations.of(deletion.tenant),
    )
    for (const shard of owners) {
      if (left.length === 0) return
      const reply = await this.ask(shard, { what: 'purged', deletions: left })
      const isPurged = new Set(reply.kind === 'tenants' && reply.content.what === 'purged' ? reply.content.tenants : [])
      left = left.filter(({ tenant }) => isPurged.has(tenant))
    }
    if (shards.owners() !== owners) return
    if (role.kind !== 'alone') {
      // After this, owners announce its paths again.
      const names = left.map(({ tenant }) => tenant)
      const unused = new Set(await askUnused(shards, names))
      left = left.filter(({ tenant }) => unused.has(tenant))
    }
    for (const deletion of left) await this.forget(deletion)
    tenants.forgetEnded()
  }

  /** Deletes the rest, the mark included, in one commit. The mark is forgotten when that is durable. */
  private async forget({ tenant, stamp }: TenantDeletion): Promise<void> {
    const { role, tenants, commit } = this.parts.local
    const { marks, register, number, isKeeper } = tenants.parts
    const paths = role.kind === 'alone' ? [] : await role.paths.rowsOfTenant(tenant)
    if (this.hasEnded || !isKeeper() || register.obstacle() || marks.stampOf(tenant) !== stamp) return
    if (role.kind !== 'alone') role.paths.delete(paths)
    const key = markKey(number, tenant)
    const carriedBy = register.write(key, undefined)
    await new Promise<void>(resolve =>
      commit.afterCommit(carriedBy, failure => {
        if (!failure) {
          marks.follow(key, undefined)
          this.parts.logger.info('a tenant has been deleted', { tenant })
        }
        resolve()
      }),
    )
  }

  private ask(shard: number, step: TenantsStep): Promise<ShardReply> {
    return new Promise(resolve => this.parts.shards.ask(shard, { kind: 'tenants', step }, resolve))
  }

  private logTrouble(reason: string): void {
    const { clock, logger } = this.parts
    const nowMs = clock.monoMs()
    if (nowMs - this.troubleMs < troubleLineMs) return
    this.troubleMs = nowMs
    logger.warn(`the deletion of a tenant could not go on, it is tried again: ${reason}`)
  }
}
