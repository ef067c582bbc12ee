// The time of the last change of entities in each tenant, as far as this process has seen it. It is in memory alone:
// after a restart a tenant has no time until its next change.

import { ownText } from '../../domain/recent.js'
import type { Clock } from '../../ports.js'
import type { ChangeFollower } from '../commit/change-queue.js'
import type { ShardRecord } from '../turn/apply.js'

/** Tenants that are remembered, some 150 bytes each. With more, all are forgotten at once. */
const tenantsMax = 100_000

interface LastChange {
  readonly tenant: string
  atMs: number
}

export class LastChanges implements ChangeFollower {
  private readonly changes = new Map<string, LastChange>()
  /** Most changes are of the same tenant as the one before. */
  private last: LastChange = { tenant: '', atMs: 0 }

  constructor(private readonly clock: Pick<Clock, 'wallMs'>) {
    this.changes.set('', this.last)
  }

  // [hot] Once per change. Staged changes are enough, so no change is followed later.
  wants({ tenant }: ShardRecord): boolean {
    if (this.last.tenant !== tenant) this.last = this.changeOf(tenant)
    this.last.atMs = this.clock.wallMs()
    return false
  }

  follow(): void {}

  /** Wall clock; undefined: not known. */
  of(tenant: string): number | undefined {
    return this.changes.get(tenant)?.atMs || undefined
  }

  forget(tenant: string): void {
    const known = this.changes.get(tenant)
    if (known) known.atMs = 0
  }

  private changeOf(tenant: string): LastChange {
    const known = this.changes.get(tenant)
    if (known) return known
    if (this.changes.size >= tenantsMax) this.changes.clear()
    const own = ownText(tenant)
    const change = { tenant: own, atMs: 0 }
    this.changes.set(own, change)
    return change
  }
}
