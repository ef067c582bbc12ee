// Notifications that wait because the rate of their tenant is used up (docs/interface/access.md#quotas). Those of a
// tenant leave in their order, and tenants take turns. Only first tries count: further ones have times of their own.
//
// Only the pending notifications are kept, as in the lines of the dispatcher. Where they are durable, the outbox bounds
// their number. Elsewhere a tenant has at most as many as its queue.

import type { TenantPace } from '../domain/access/quotas.js'
import type { Clock, PendingNotification } from '../ports.js'
import { Fifo } from './fifo.js'

export interface NotificationPace extends TenantPace {
  /** Counts a notification that has to wait. */
  onPaced(tenant: string): void
}

export class PacedNotifications {
  private readonly waiting = new Map<string, Fifo<PendingNotification>>()
  /** Tenants whose rate may allow one more. */
  private readonly due = new Set<string>()
  private size = 0

  /** `onDue`: there may be notifications to take. */
  constructor(
    private readonly pace: NotificationPace,
    private readonly clock: Pick<Clock, 'after'>,
    private readonly onDue: () => void,
  ) {}

  /** Whether a notification that has arrived can leave at once. Otherwise it has to be added. */
  mayLeave({ tenant, attempts }: PendingNotification): boolean {
    if (attempts > 0) return true
    if (this.waiting.has(tenant)) return false
    const waitMs = this.pace.take(tenant)
    if (waitMs === 0) return true
    this.waiting.set(tenant, new Fifo())
    this.wakeAfter(tenant, waitMs)
    return false
  }

  add(pending: PendingNotification): void {
    const { tenant } = pending
    this.waiting.get(tenant)?.push(pending)
    this.size++
    this.pace.onPaced(tenant)
  }

  /** Takes the next one whose tenant has room in its rate. */
  take(): PendingNotification | undefined {
    for (const tenant of this.due) {
      this.due.delete(tenant)
      const fifo = this.waiting.get(tenant)
      if (!fifo?.first) {
        this.waiting.delete(tenant)
        continue
      }
      const waitMs = this.pace.take(tenant)
      if (waitMs > 0) {
        this.wakeAfter(tenant, waitMs)
        continue
      }
      // Behind the others.
      this.due.add(tenant)
      this.size--
      return fifo.shift()
    }
    return undefined
  }

  get hasDue(): boolean {
    return this.due.size > 0
  }

  /** How many wait, of all tenants and of one. */
  get length(): number {
    return this.size
  }

  lengthOf(tenant: string): number {
    return this.waiting.get(tenant)?.size ?? 0
  }

  /** Those that wait, by tenant. */
  lengths(): Iterable<readonly [tenant: string, length: number]> {
    return [...this.waiting].map(([tenant, { size }]) => [tenant, size] as const)
  }

  private wakeAfter(tenant: string, waitMs: number): void {
    this.clock.after(Math.ceil(waitMs), () => {
      this.due.add(tenant)
      this.onDue()
    })
  }
}
