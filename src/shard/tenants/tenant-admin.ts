// Answers the requests to an owner about whole tenants. The keeper of the register handles the request to delete one:
// it writes the mark, and replies when every owner has it. From then on no owner admits a request of that tenant.
//
// Not here: the effects of a mark (tenant-deletions.ts), the counts (tenant-sizes.ts).

import { refusals } from '../../domain/refusal.js'
import type { ShardReply, TenantDeletion, TenantsReply, TenantsRequest, TenantsStep } from '../../messages/messages.js'
import type { DiskRoom, Stamps } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { hasLost } from '../commit/deposed.js'
import type { Register } from '../documents/register.js'
import { refusalForRoom } from '../turn/room.js'
import { encodeMark, markKey } from './deletion-layout.js'
import type { EntityQuotas } from './entity-quotas.js'
import type { LastChanges } from './last-changes.js'
import type { MissingCounter } from './missing-entities.js'
import type { TenantMarks } from './tenant-marks.js'
import type { TenantSizes } from './tenant-sizes.js'

type OnReply = (reply: ShardReply) => void

/** Tenants that may be deleted at a time. Each costs its owner a walk through its shards twice a second. */
export const tenantDeletionsMax = 16

export interface TenantAdminParts {
  readonly commit: Pick<GroupCommit, 'afterCommit'>
  readonly register: Register
  /** The number of the register. */
  readonly number: number
  readonly stamps: Pick<Stamps, 'next'>
  readonly room: DiskRoom
  readonly marks: TenantMarks
  readonly sizes: TenantSizes
  readonly changes: LastChanges
  /** undefined: no tenant has quotas. */
  readonly creations: { readonly quotas: EntityQuotas; readonly missing: MissingCounter } | undefined
  /** Whether this owner is the keeper of the register now. */
  readonly isKeeper: () => boolean
  /** Grows whenever this owner gets or loses shards. */
  readonly generation: () => number
}

/** A mark that is not durable yet. */
interface Opening {
  readonly deletion: TenantDeletion
  readonly carriedBy: number
}

export class TenantAdmin {
  private readonly openings = new Map<string, Opening>()
  /** Deletions for which nothing is left in the shards that this owner had then. */
  private readonly purged = new Map<string, { readonly stamp: number; readonly generation: number }>()

  constructor(readonly parts: TenantAdminParts) {}

  onAsk({ step }: TenantsRequest, onReply: OnReply): void {
    const { marks, sizes } = this.parts
    switch (step.what) {
      case 'names':
        return replyWith(sizes.names(), onReply, found =>
          'kind' in found ? { kind: 'refused', refusal: found } : replyOf({ what: 'names', tenants: found }),
        )
      case 'sizes':
        return replyWith(sizes.sizes(step.tenants), onReply, found => replyOf({ what: 'sizes', sizes: found }))
      case 'creations':
        return this.countCreations(step, onReply)
      case 'delete':
        return this.begin(step.tenant, onReply)
      case 'deletions':
        return onReply(replyOf({ what: 'deletions', deletions: marks.all() }))
      case 'purged': {
        const done = step.deletions.filter(deletion => this.isPurged(deletion))
        return onReply(replyOf({ what: 'purged', tenants: done.map(({ tenant }) => tenant) }))
      }
    }
  }

  /** Notes that nothing is left of a tenant in the shards that this owner has had since `generation`. */
  notePurged({ tenant, stamp }: TenantDeletion, generation: number): void {
    this.purged.set(tenant, { stamp, generation })
  }

  isPurged({ tenant, stamp }: TenantDeletion): boolean {
    const { marks, generation } = this.parts
    const known = this.purged.get(tenant)
    return known?.stamp === stamp && known.generation === generation() && marks.stampOf(tenant) === stamp
  }

  /** Forgets deletions that have ended. */
  forgetEnded(): void {
    const { marks, changes } = this.parts
    for (const [tenant, { stamp }] of this.purged)
      if (marks.stampOf(tenant) !== stamp) {
        this.purged.delete(tenant)
        changes.forget(tenant)
      }
  }

  private countCreations(
    { tenant, needsRoom, missing }: Extract<TenantsStep, { what: 'creations' }>,
    onReply: OnReply,
  ): void {
    const { creations } = this.parts
    if (!creations) return onReply({ kind: 'failed', reason: 'this owner has no access file' })
    const hasRoom = creations.quotas.count(tenant, needsRoom, count =>
      onReply(
        count === undefined
          ? { kind: 'busy' }
          : replyOf({ what: 'creations', count, missing: missing ? creations.missing.count(tenant, missing) : 0 }),
      ),
    )
    if (!hasRoom) onReply({ kind: 'busy' })
  }

  private begin(tenant: string, onReply: OnReply): void {
    const { marks, register, room } = this.parts
    const obstacle = register.obstacle()
    if (obstacle) return onReply(obstacle)
    const stamp = marks.stampOf(tenant)
    if (stamp !== undefined) return this.replyWhenAllHave({ deletion: { tenant, stamp }, carriedBy: 0 }, onReply)
    const opening = this.openings.get(tenant)
    if (opening) return this.replyWhenAllHave(opening, onReply)
    if (marks.size + this.openings.size >= tenantDeletionsMax)
      return onReply({ kind: 'refused', refusal: refusals.tenantDeletionsTooMany(tenantDeletionsMax) })
    const refusal = refusalForRoom(room, true)
    if (refusal) return onReply({ kind: 'refused', refusal })
    this.replyWhenAllHave(this.open(tenant), onReply)
  }

  /** Writes a mark. It counts here when it is durable, because a lost one would refuse requests for ever. */
  private open(tenant: string): Opening {
    const { marks, register, commit, number, stamps } = this.parts
    const stamp = stamps.next()
    const key = markKey(number, tenant)
    const row = encodeMark(stamp)
    const opening = { deletion: { tenant, stamp }, carriedBy: register.write(key, row) }
    this.openings.set(tenant, opening)
    commit.afterCommit(opening.carriedBy, failure => {
      this.openings.delete(tenant)
      if (!failure || !hasLost(failure, number)) marks.follow(key, row)
    })
    return opening
  }

  private replyWhenAllHave({ deletion, carriedBy }: Opening, onReply: OnReply): void {
    this.parts.register.afterAll(carriedBy, failure =>
      onReply(failure ?? replyOf({ what: 'deletions', deletions: [deletion] })),
    )
  }
}

const replyOf = (content: TenantsReply): ShardReply => ({ kind: 'tenants', content })

function replyWith<T>(coming: Promise<T> | undefined, onReply: OnReply, render: (found: T) => ShardReply): void {
  if (!coming) return onReply({ kind: 'busy' })
  coming.then(
    found => onReply(render(found)),
    (error: Error) => onReply({ kind: 'failed', reason: error.message }),
  )
}
