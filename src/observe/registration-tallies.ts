// Counts the forwarded requests of each registration, for the clients that may see it
// (docs/interface/registrations.md#forwarding-information).
//
// Clients choose how many registrations there are, so a process keeps the counts of those that were used lately.
//
// Not here: counts by provider for operators (label-tallies.ts), the sum over processes (domain/providers).

import type { ForwardingOutcome } from '../domain/providers/forwarding-outcome.js'
import { Recent } from '../domain/recent.js'
import type { Clock, EndedTry } from '../ports.js'

/** Registrations with counts in a process: at least as many, at most twice as many, of some 200 bytes each. */
export const registrationsCountedMax = 10_000
/** Characters of a reason. */
const reasonLengthMax = 200

export class RegistrationTallies {
  private readonly outcomes = new Recent<ForwardingOutcome>(registrationsCountedMax)

  constructor(private readonly clock: Pick<Clock, 'wallMs'>) {}

  onEnded({ registration, failure }: Pick<EndedTry, 'registration' | 'failure'>): void {
    if (registration === undefined) return
    const nowMs = this.clock.wallMs()
    const before = this.outcomes.get(registration)
    this.outcomes.set(registration, {
      registration,
      sent: (before?.sent ?? 0) + 1,
      failed: (before?.failed ?? 0) + (failure === undefined ? 0 : 1),
      lastMs: nowMs,
      lastSuccessMs: failure === undefined ? nowMs : before?.lastSuccessMs,
      lastFailure:
        failure === undefined ? before?.lastFailure : { ms: nowMs, reason: failure.slice(0, reasonLengthMax) },
    })
  }

  /** The counts of those among these registrations that have any. */
  of(registrations: readonly string[]): readonly ForwardingOutcome[] {
    return registrations.flatMap(id => this.outcomes.get(id) ?? [])
  }
}
