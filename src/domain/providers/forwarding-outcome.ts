// How the requests went that were forwarded because of a registration, as a process counts them
// (docs/interface/registrations.md#forwarding-information).
//
// Each process has counted its own requests. Their sum is what a client sees.

import { renderDateTime } from '../date-time.js'

/** The requests of one registration that a process has sent since its start. */
export interface ForwardingOutcome {
  readonly registration: string
  readonly sent: number
  readonly failed: number
  readonly lastMs: number
  /** undefined: none has succeeded. */
  readonly lastSuccessMs?: number | undefined
  /** undefined: none has failed. */
  readonly lastFailure?: { readonly ms: number; readonly reason: string } | undefined
}

/** The sum of what several processes have counted for one registration. */
export function joinOutcomes(a: ForwardingOutcome, b: ForwardingOutcome): ForwardingOutcome {
  const { registration, lastSuccessMs = b.lastSuccessMs, lastFailure = b.lastFailure } = a
  return {
    registration,
    sent: a.sent + b.sent,
    failed: a.failed + b.failed,
    lastMs: Math.max(a.lastMs, b.lastMs),
    lastSuccessMs: lastSuccessMs && Math.max(lastSuccessMs, b.lastSuccessMs ?? 0),
    lastFailure: lastFailure && b.lastFailure && b.lastFailure.ms > lastFailure.ms ? b.lastFailure : lastFailure,
  }
}

/** The member `forwardingInformation` of a registration. */
export const forwardingInformation = ({ sent, failed, lastMs, lastSuccessMs, lastFailure }: ForwardingOutcome) => ({
  timesSent: sent,
  // Ours: the specification of NGSIv2 has the times alone.
  timesFailed: failed,
  lastForwarding: renderDateTime(lastMs),
  lastSuccess: lastSuccessMs && renderDateTime(lastSuccessMs),
  lastFailure: lastFailure && renderDateTime(lastFailure.ms),
  lastFailureReason: lastFailure?.reason,
})
