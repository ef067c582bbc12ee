// Flow control: a client that asks for it gets its answer when most of the notifications that its request caused have
// left the queue (docs/interface/notifications.md#flow-control). So a client that writes faster than receivers accept
// is slowed down, and no other client.

import type { Origin, ShardReply } from '../../messages/messages.js'
import type { Clock } from '../../ports.js'
import type { Notifications } from './notifications.js'

export interface FlowControl {
  /** 1: waits until the queue is as long as before; 0: hardly waits at all. */
  readonly gauge: number
  /** The time between two looks at the queue. */
  readonly stepMs: number
  /** The longest time for which a reply waits. */
  readonly waitMsMax: number
}

type OnReply = (reply: ShardReply) => void

export class Pacer {
  private readonly notifications: Notifications
  private readonly clock: Clock
  private readonly control: FlowControl

  constructor(notifications: Notifications, clock: Clock, control: FlowControl) {
    this.notifications = notifications
    this.clock = clock
    this.control = control
  }

  /**
   * A callback that delays the reply to a request of a tenant until the queue is, for the most part, as long as it is
   * now.
   */
  paced({ numbering }: Origin, tenant: string, onReply: OnReply): OnReply {
    if (!numbering) return onReply
    const { gauge, stepMs, waitMsMax } = this.control
    const before = this.notifications.queueLength(tenant)
    const first = numbering.next
    return reply => {
      const sent = (numbering.next - first) / numbering.step
      const target = Math.floor(before + (1 - gauge) * sent)
      const untilMs = this.clock.monoMs() + waitMsMax
      const check = (): void => {
        if (this.notifications.queueLength(tenant) <= target || this.clock.monoMs() > untilMs) onReply(reply)
        else this.clock.after(stepMs, check)
      }
      check()
    }
  }
}
