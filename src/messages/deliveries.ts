// What is asked about notifications that have been sent, or given up, and the answers (README, "Why did it not fire?").

/** What became of a subscription's notifications of late, as far as the owner of the asked shard has sent them. */
export interface DeliveriesRequest {
  readonly kind: 'deliveries'
  readonly tenant: string
  readonly id: string
  /** Of each of the two lists. */
  readonly limit: number
}

/** To send again what the owner of the asked shard has given up for a subscription. */
export interface RetryDeliveriesRequest {
  readonly kind: 'retryDeliveries'
  readonly tenant: string
  readonly id: string
}

export type DeliveryRequest = DeliveriesRequest | RetryDeliveriesRequest

/** How one try to deliver a notification ended. */
export interface DeliveryRecord {
  /** When, milliseconds since 1970. */
  readonly atMs: number
  /** The entity that it was about. */
  readonly id: string
  readonly type: string
  readonly path: string
  /** By which the receiver knows a notification that comes again. */
  readonly notificationId: string
  /** Which try it was, from 1. */
  readonly attempt: number
  /**
   * `failed`: another try follows. `dead`: none does, and a dead letter is kept. `dropped`: it could not be sent, or there was no room.
   * `simulated`: nothing was sent, on purpose.
   */
  readonly outcome: 'delivered' | 'failed' | 'dead' | 'dropped' | 'simulated'
  /** The status of the HTTP answer; undefined: there was none, or it was no HTTP. */
  readonly code?: number | undefined
  /** Why it was not delivered; '' when it was. */
  readonly reason: string
}

/** What became of a subscription's notifications. Both lists begin with the latest. */
export interface DeliveryReport {
  readonly deliveries: readonly DeliveryRecord[]
  /** The last try of each notification that was given up. */
  readonly deadLetters: readonly DeliveryRecord[]
  /** How many were given up and are kept, listed or not. */
  readonly deadCount: number
}
