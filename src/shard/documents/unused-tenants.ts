// Removal of unused tenants from the register, so that short-lived names leave nothing behind. The keeper does it from
// time to time.
//
// A tenant is removed when no owner has an entity of it. The keeper asks one owner after the other which tenants it
// does not use. Before an owner replies it forgets that their paths were announced, so it announces them again before
// it creates an entity there. Paths announced while the keeper asks stay. The requests are wide: an owner with other
// shards than the keeper believes refuses them, so no shard is left out.
//
// A tenant must be found unused twice, with a pause between. Where nothing is flushed, a power failure may bring back
// an entity that was deleted just before.
//
// An ask of 1,000 tenants takes an owner some 40 ms, in steps. The keeper pauses between two asks, so owners spend
// little on them however many tenants there are.
//
// Once the register has been full, some tenants are not in it. Then no tenant is removed, because a missing tenant
// would count as one without paths. The log has one line about it.

import { tenantsOfPathsMax } from '../../domain/few-paths.js'
import type { Shards } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import type { PathRegister } from './path-register.js'

/** Milliseconds between two rounds. */
export const roundMs = 60_000
/** Milliseconds between two asks of a round. */
export const askPauseMs = 3_000
/** Tenants in one ask to an owner. */
export const tenantsPerAsk = 1000

export interface UnusedParts {
  readonly paths: PathRegister
  /** The shards of all owners. */
  readonly shards: Shards
  readonly clock: Pick<Clock, 'after'>
  /** Receives the reason why unused tenants stay. */
  readonly onTrouble: (reason: string) => void
}

export class UnusedTenants {
  private readonly parts: UnusedParts
  private cancel: () => void = () => {}
  private hasEnded = false
  private hasReportedFull = false

  constructor(parts: UnusedParts) {
    this.parts = parts
    this.pause()
  }

  end(): void {
    this.hasEnded = true
    this.cancel()
  }

  private pause(): void {
    if (this.hasEnded) return
    const { clock, onTrouble } = this.parts
    this.cancel = clock.after(roundMs, () => {
      this.round()
        .catch((error: Error) => onTrouble(error.message))
        .finally(() => this.pause())
    })
  }

  /** Asks about all tenants, and removes those that were found unused in the round before as well. */
  async round(): Promise<void> {
    const { paths, shards, clock } = this.parts
    this.reportFull()
    const tenants = paths.canLeave ? [...paths.tenantNames()] : []
    for (let at = 0; at < tenants.length && paths.canLeave && !this.hasEnded; at += tenantsPerAsk) {
      if (at > 0)
        await new Promise<void>(resolve => {
          this.cancel = clock.after(askPauseMs, resolve)
        })
      const some = tenants.slice(at, at + tenantsPerAsk)
      await paths.leaveIfUnused(some, () => askUnused(shards, some))
    }
  }

  private reportFull(): void {
    const { paths, onTrouble } = this.parts
    if (paths.size < tenantsOfPathsMax || this.hasReportedFull) return
    this.hasReportedFull = true
    onTrouble(`it is full, with ${tenantsOfPathsMax} tenants, so a read by id without a service path asks all owners`)
  }
}

/** The tenants of which no owner has anything; none if the owners have changed meanwhile. */
export async function askUnused(shards: Shards, some: readonly string[]): Promise<readonly string[]> {
  const owners = shards.owners()
  let tenants = some
  for (const shard of owners) {
    if (tenants.length === 0) break
    const asked = tenants
    const reply = await new Promise<readonly string[]>(resolve =>
      shards.ask(shard, { kind: 'unused', tenants: asked }, answer =>
        resolve(answer.kind === 'unused' ? answer.tenants : []),
      ),
    )
    const isOne = new Set(reply)
    tenants = asked.filter(tenant => isOne.has(tenant))
    if (shards.owners() !== owners) return []
  }
  return tenants
}
