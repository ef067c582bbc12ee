// How many notifications descend from one request: those that it triggers, those that are triggered by whoever they
// notify, and so on.
//
// Depth is bounded by the correlator, which grows with each step (domain/providers/registration.ts). Breadth is not:
// ten subscriptions that notify the broker itself make ten thousand notifications in four steps. So they are counted
// here, by the root of the correlator, which all of them have. What a request triggers itself is never dropped, however
// much it is: it has the fewest steps behind it of all that come with this root. For a client's own request these are
// none; what another broker notifies us of has some, and may be as much as that broker has entities.
//
// A trigger event that is counted carries the count in its row. So the count is as old as the last pending
// notification, also after a crash, or with another owner of the shard. Each owner counts for itself
// (docs/interface/cascades.md).

import type { Numbering, Origin } from '../../messages/messages.js'

/** Requests that are counted at a time; of more, the oldest is forgotten. Each takes some 150 bytes. */
const rootsMax = 20_000

const step = /;\s*cbnotif=(\d*)/g

interface Count {
  /** Fewest steps with which a request of this root came. */
  steps: number
  /** Notifications so far. */
  sum: number
  isTold: boolean
}

export class Descendants {
  private readonly counts = new Map<string, Count>()
  private readonly max: number
  private readonly onDrop: (root: string) => void
  private dropped = 0

  /**
   * `max`: how many notifications may descend from one request; 0: there is no limit. `onDrop` hears once of each
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
      this.keep(correlatorRoot, { steps, sum: 0, isTold: false })
      return undefined
    }
    if (steps > count.steps) return Math.max(0, this.max - count.sum)
    // Clients may give all their requests one correlator.
    if (steps < count.steps || begins(numbering, correlator)) {
      count.steps = steps
      count.sum = 0
      count.isTold = false
    }
    return undefined
  }

  // [hot] Once per update that fires.
  /** Some more were triggered. Gives how many it has been with these. */
  add(root: string, more: number): number {
    const count = this.counts.get(root)
    if (!count) return more
    count.sum += more
    return count.sum
  }

  /**
   * What a row tells of a request whose notifications go on: at least so many it has been. undefined: it has triggered
   * them itself.
   */
  recall(correlator: string, descendants: number | undefined, last: number): void {
    if (this.max === 0) return
    const root = rootOf(correlator)
    const steps = descendants === undefined ? stepsIn(correlator) : 0
    const count = this.counts.get(root)
    const sum = Math.max(count?.sum ?? 0, descendants ?? last)
    this.keep(root, { steps: Math.min(count?.steps ?? steps, steps), sum, isTold: count?.isTold ?? false })
  }

  /** Some were not made, for there were too many. */
  drop(root: string, those: number): void {
    this.dropped += those
    const count = this.counts.get(root)
    if (!count || count.isTold) return
    count.isTold = true
    this.onDrop(root)
  }

  /** Notifications that were not made. */
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
 * Whether an update is the first of its request: none of its notifications, or of those of the request that it comes
 * from, has a number yet.
 */
function begins(numbering: Numbering | undefined, correlator: string | undefined): boolean {
  if (numbering && numbering.next > numbering.step) return false
  return correlator === undefined || [...correlator.matchAll(step)].every(([, number]) => number === '1')
}

function rootOf(correlator: string): string {
  const semicolon = correlator.indexOf(';')
  return semicolon < 0 ? correlator : correlator.slice(0, semicolon)
}
