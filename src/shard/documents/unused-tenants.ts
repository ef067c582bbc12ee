// Tenants that leave the register, so that names that come and go leave nothing behind: the keeper's task, from time to
// time.
//
// A tenant leaves when it has no entity at any owner. The keeper asks one owner after the other which tenants it has
// nothing of. Before an owner replies it forgets that their paths were announced, so it announces them anew before it
// creates an entity there. What is announced while the keeper asks stays. The keeper asks in wide requests, which are
// refused where an owner has other shards than the keeper believes: no shard is left out.
//
// A tenant must be found unused twice, with a pause between: where nothing is flushed, a loss of power may bring back
// an entity that was deleted just before.
//
// An ask of 1,000 tenants takes an owner some 40 ms, in steps. The keeper pauses between two asks, so owners spend
// little on them however many tenants there are.
//
// Once the register has been full, some tenants are not in it. Then nobody leaves, since a tenant that is not in a
// register with room counts as one that has no path. The log says so once.

import { tenantsOfPathsMax } from '../../domain/few-paths.js'
import type { Shards } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import type { PathRegister } from './path-register.js'

/** Between two rounds. */
export const roundMs = 60_000
/** Between two asks of a round. */
export const askPauseMs = 3_000
/** Tenants that an owner is asked about at once. */
export const tenantsPerAsk = 1000

export interface UnusedParts {
  readonly paths: PathRegister
  /** Of all owners. */
  readonly shards: Shards
  readonly clock: Pick<Clock, 'after'>
  /** Told why tenants stay that have nothing any more. */
  readonly onTrouble: (reason: string) => void
}

export class UnusedTenants {
  private readonly parts: UnusedParts
  private cancel: () => void = () => {}
  private hasEnded = false
  private hasToldOfFull = false

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

  /** Asks about all tenants, and lets leave who was found unused in the round before as well. */
  async round(): Promise<void> {
    const { paths, shards, clock } = this.parts
    this.tellOfFull()
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

  private tellOfFull(): void {
    const { paths, onTrouble } = this.parts
    if (paths.size < tenantsOfPathsMax || this.hasToldOfFull) return
    this.hasToldOfFull = true
    onTrouble(`it is full, with ${tenantsOfPathsMax} tenants, so a read by id without a service path asks all owners`)
  }
}

/** Those that no owner has anything of; none if the owners have changed meanwhile. */
export async function askUnused(shards: Shards, some: readonly string[]): Promise<readonly string[]> {
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
