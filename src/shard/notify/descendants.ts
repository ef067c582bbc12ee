// The limit of notifications that descend from one request: those that it triggers, those that their receivers trigger,
// and so on.
//
// The correlator bounds depth, because it grows with each step (domain/providers/registration.ts). It does not bound
// breadth: ten subscriptions that notify the broker itself make ten thousand notifications in four steps. So
// notifications are counted here by the root of the correlator, which is common to all. Notifications that a request
// itself triggers are never dropped, however many they are: of all updates with this root, it has the fewest steps. A
// client's own request has none. A notification from another broker has some, and there may be as many as that broker
// has entities.
//
// A counted trigger event has the count in its row. So the count is as old as the last pending notification, also after
// a crash, or with another owner of the shard. Each owner counts for itself (docs/interface/cascades.md).

import type { Numbering, Origin } from '../../messages/messages.js'

/** Requests that are counted at a time; beyond that the oldest is forgotten. Each takes some 150 bytes. */
const rootsMax = 20_000

const step = /;\s*cbnotif=(\d*)/g

interface Count {
  /** The fewest steps of an update with this root. */
  steps: number
  /** Notifications so far. */
  sum: number
  isReported: boolean
}

export class Descendants {
  private readonly counts = new Map<string, Count>()
  private readonly max: number
  private readonly onDrop: (root: string) => void
  private dropped = 0

  /**
   * `max`: how many notifications may descend from one request; 0: there is no limit. `onDrop` is called once for each
   * request that has too many.
   */
  constructor(max: number, onDrop: (root: string) => void) {
    this.max = max
    this.onDrop = onDrop
  }

  // [hot] Once per update that finds a subscription.
  /** How many notifications an update may trigger; undefined: there is no limit. */
  room({ correlatorRoot, correlator, numbering }: Origin): number | undefined {
    if (this.max === 0) return undefined
    const count = this.counts.get(correlatorRoot)
    const steps = correlator === undefined ? 0 : stepsIn(correlator)
    if (!count) {
      this.keep(correlatorRoot, { steps, sum: 0, isReported: false })
      return undefined
    }
    if (steps > count.steps) return Math.max(0, this.max - count.sum)
    // Clients may give all their requests one correlator.
    if (steps < count.steps || begins(numbering, correlator)) {
      count.steps = steps
      count.sum = 0
      count.isReported = false
    }
    return undefined
  }

  // [hot] Once per update that triggers notifications.
  /** Adds notifications that were triggered. Returns how many there are with these. */
  add(root: string, more: number): number {
    const count = this.counts.get(root)
    if (!count) return more
    count.sum += more
    return count.sum
  }

  /**
   * Restores a count from a row, whose request has pending notifications: there were at least so many. undefined: the
   * request itself has triggered them.
   */
  recall(correlator: string, descendants: number | undefined, last: number): void {
    if (this.max === 0) return
    const root = rootOf(correlator)
    const steps = descendants === undefined ? stepsIn(correlator) : 0
    const count = this.counts.get(root)
    const sum = Math.max(count?.sum ?? 0, descendants ?? last)
    this.keep(root, { steps: Math.min(count?.steps ?? steps, steps), sum, isReported: count?.isReported ?? false })
  }

  /** Counts notifications that were dropped because there were too many. */
  drop(root: string, those: number): void {
    this.dropped += those
    const count = this.counts.get(root)
    if (!count || count.isReported) return
    count.isReported = true
    this.onDrop(root)
  }

  /** Notifications that were dropped. */
  get droppedCount(): number {
    return this.dropped
  }

  private keep(root: string, count: Count): void {
    if (this.counts.size >= rootsMax && !this.counts.has(root)) {
      const [oldest] = this.counts.keys()
      this.counts.delete(oldest!)
    }
    this.counts.set(root, count)
  }
}

const stepsIn = (correlator: string): number => correlator.match(step)?.length ?? 0

/**
 * Whether an update is the first of its request: no notification of it, or of the request that caused it, has a number
 * yet.
 */
function begins(numbering: Numbering | undefined, correlator: string | undefined): boolean {
  if (numbering && numbering.next > numbering.step) return false
  return correlator === undefined || [...correlator.matchAll(step)].every(([, number]) => number === '1')
}

function rootOf(correlator: string): string {
  const semicolon = correlator.indexOf(';')
  return semicolon < 0 ? correlator : correlator.slice(0, semicolon)
}
