// Tenants that leave the register, so that names that come and go leave nothing behind: the keeper's task, from time to time.
//
// A tenant leaves when it has no entity at any owner. The keeper asks one owner after the other which tenants it has nothing of. Before an owner replies it
// forgets that their paths were announced, so it announces them anew before it creates an entity there. What is announced while the keeper asks
// stays. The keeper asks in wide requests, which are refused where an owner has other shards than the keeper believes: no shard is left out.
//
// A tenant must be found unused twice, with a pause between: where nothing is flushed, a loss of power may bring back an entity that was deleted just
// before.
//
// Once the register has been full, some tenants are not in it. Then nobody leaves, since a tenant that is not in a register with room counts as one
// that has no path.

import { tenantsOfPathsMax } from '../../domain/few-paths.js'
import type { Shards } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import type { PathRegister } from './path-register.js'

/** Between two rounds. */
export const roundMs = 60_000
/** The same when the register is half full. */
export const crowdedRoundMs = 5_000
/** Tenants that an owner is asked about at once. */
export const tenantsPerAsk = 1000

export interface UnusedParts {
  readonly paths: PathRegister
  /** Of all owners. */
  readonly shards: Shards
  readonly clock: Pick<Clock, 'after'>
  /** Told of a round that failed. */
  readonly onTrouble: (reason: string) => void
}

export class UnusedTenants {
  private readonly parts: UnusedParts
  private cancel: () => void = () => {}
  private hasEnded = false

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
    const { clock, paths, onTrouble } = this.parts
    const pauseMs = paths.size > tenantsOfPathsMax / 2 ? crowdedRoundMs : roundMs
    this.cancel = clock.after(pauseMs, () => {
      this.round()
        .catch((error: Error) => onTrouble(error.message))
        .finally(() => this.pause())
    })
  }

  /** Asks about all tenants, and lets leave who was found unused in the round before as well. */
  async round(): Promise<void> {
    const { paths } = this.parts
    const tenants = paths.canLeave ? [...paths.tenantNames()] : []
    for (let at = 0; at < tenants.length && paths.canLeave && !this.hasEnded; at += tenantsPerAsk) {
      const some = tenants.slice(at, at + tenantsPerAsk)
      await paths.leaveIfUnused(some, () => this.unusedOf(some))
    }
  }

  /** Those that no owner has anything of; none if the owners have changed meanwhile. */
  private async unusedOf(some: readonly string[]): Promise<readonly string[]> {
    const { shards } = this.parts
    const owners = shards.owners()
    let tenants = some
    for (const shard of owners) {
      if (tenants.length === 0) break
      const asked = tenants
      const reply = await new Promise<readonly string[]>(resolve =>
        shards.ask(shard, { kind: 'unused', tenants: asked }, told =>
          resolve(told.kind === 'unused' ? told.tenants : []),
        ),
      )
      const isOne = new Set(reply)
      tenants = asked.filter(tenant => isOne.has(tenant))
      if (shards.owners() !== owners) return []
    }
    return tenants
  }
}
