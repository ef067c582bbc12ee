// The entities of tenants at this owner of shards, counted when they are first asked for. From then on the number
// follows each staged change, so a turn sees what earlier turns have staged.
//
// A number is the sum of the counts by path and type in the store (commit/counts.ts), of the changes that were staged
// when the reading began, and of those since then.

import { ownText, Recent } from '../../domain/recent.js'
import type { Counts } from '../commit/counts.js'
import { decodeNumber } from '../keys.js'
import { entityCounts } from '../layout.js'

/** Tenants whose entities are counted in memory, some 200 bytes each; up to twice as many for a moment. */
export const countedTenantsMax = 50_000

/** Waits until something is known, with the number of entities that it may create. */
export interface WaitingCreation {
  readonly creations: number
  readonly take: () => void
}

/** The entities of a tenant, and how much of its quota is left (entity-quotas.ts). */
export class TenantUse {
  /** Creations of batches under way. */
  reserved = 0
  /** Entities at the other owners when they were last asked. */
  others = 0
  /** How many entities this owner may have, with the quota that was divided. */
  allowed = 0
  divided: number | undefined
  /** Monotonic: when the others were last asked. */
  askedMs = Number.NEGATIVE_INFINITY
  isAsking = false
  /** Nothing was left then. */
  isFull = false
  /** Wait for the answer of the others. */
  readonly asking: WaitingCreation[] = []
  /** Wait for the end of a batch. */
  readonly blocked: WaitingCreation[] = []

  /** `own`: entities at this owner, with the staged changes. */
  constructor(public own: number) {}
}

interface Loading {
  /** Changes since the reading began. */
  difference: number
  readonly onKnown: (() => void)[]
}

export class TenantUses {
  private readonly uses: Recent<TenantUse>
  private readonly loading = new Map<string, Loading>()
  /** Grows whenever a shard comes or goes. */
  private generation = 0

  constructor(
    private readonly counts: Pick<Counts, 'rowsNow' | 'stagedOf'>,
    tenantsMax = countedTenantsMax,
  ) {
    this.uses = new Recent(tenantsMax)
  }

  /** undefined: it is not counted yet. */
  get(tenant: string): TenantUse | undefined {
    return this.uses.get(tenant)
  }

  /** The counted tenants. */
  entries(): Iterable<readonly [tenant: string, use: TenantUse]> {
    return this.uses.entries()
  }

  // [hot] Once per creation and deletion with access control.
  /** Notes that a staged record adds or removes an entity. */
  count(tenant: string, difference: 1 | -1): void {
    const use = this.uses.get(tenant)
    if (use) use.own += difference
    if (this.loading.size === 0) return
    const loading = this.loading.get(tenant)
    if (loading) loading.difference += difference
  }

  /** Forgets all numbers: the shards of this owner have changed. */
  forget(): void {
    this.generation++
    this.uses.clear()
  }

  /** Counts the entities of a tenant. If they cannot be read, it is not known afterwards. */
  load(tenant: string, onKnown: () => void): void {
    const known = this.loading.get(tenant)
    if (known) return void known.onKnown.push(onKnown)
    const name = ownText(tenant)
    const loading: Loading = { difference: 0, onKnown: [onKnown] }
    this.loading.set(name, loading)
    const end = (own: number | undefined): void => {
      this.loading.delete(name)
      if (own !== undefined) this.uses.set(name, new TenantUse(own + loading.difference))
      for (const onEnd of loading.onKnown) onEnd()
    }
    // The caller answers that it cannot decide now. A store that cannot be read is reported by the commits.
    this.read(name, loading).then(end, () => end(undefined))
  }

  private async read(tenant: string, loading: Loading): Promise<number> {
    for (;;) {
      const { generation } = this
      loading.difference = 0
      let sum = this.counts.stagedOf(tenant)
      for await (const rows of this.counts.rowsNow(entityCounts.range(tenant)))
        for (const { value } of rows) sum += decodeNumber(value)
      if (generation === this.generation) return sum
    }
  }
}
