// Subscriptions and registrations as the interface shows them: the members that the console reads
// (docs/interface/subscriptions.md, docs/interface/registrations.md).

import type { Json } from '../../domain/json.js'

export interface SubjectShape {
  readonly id?: string
  readonly idPattern?: string
  readonly type?: string
  readonly typePattern?: string
}

interface UrlShape {
  readonly url?: string
}

export interface SubscriptionShape {
  readonly id: string
  readonly description?: string
  readonly status: string
  readonly expires?: string
  readonly throttling?: number
  readonly subject: {
    readonly entities: readonly SubjectShape[]
    readonly condition?: { readonly attrs?: readonly string[]; readonly expression?: Readonly<Record<string, Json>> }
  }
  readonly notification: {
    readonly http?: UrlShape
    readonly httpCustom?: UrlShape
    readonly mqtt?: UrlShape
    readonly mqttCustom?: UrlShape
    readonly timesSent?: number
    readonly failsCounter?: number
    readonly lastNotification?: string
    readonly lastSuccess?: string
    readonly lastFailure?: string
    readonly lastFailureReason?: string
  }
}

export interface DeliveryShape {
  readonly time: string
  readonly entity: { readonly id: string; readonly type: string }
  readonly attempt: number
  readonly outcome: string
  readonly code?: number
  readonly reason?: string
  readonly cause?: string
  readonly nextReplay?: string
}

export interface DeliveriesShape {
  readonly deliveries: readonly DeliveryShape[]
  readonly deadLetters: readonly DeliveryShape[]
  readonly deadLettersCount: number
}

export interface RegistrationShape {
  readonly id: string
  readonly description?: string
  readonly expires?: string
  readonly status?: string
  readonly dataProvided: { readonly entities?: readonly SubjectShape[]; readonly attrs?: readonly string[] }
  readonly provider: { readonly http?: UrlShape; readonly supportedForwardingMode?: string }
  readonly forwardingInformation?: {
    readonly timesSent: number
    readonly timesFailed: number
    readonly lastForwarding: string
    readonly lastSuccess?: string
    readonly lastFailure?: string
    readonly lastFailureReason?: string
  }
}

export const receiverOf = ({ notification }: SubscriptionShape): string =>
  (notification.http ?? notification.httpCustom ?? notification.mqtt ?? notification.mqttCustom)?.url ?? ''

/** A subject in words. */
export function subjectText({ id, idPattern, type, typePattern }: SubjectShape): string {
  const ids =
    id !== undefined ? id : idPattern !== undefined && idPattern !== '.*' ? `ids like ${idPattern}` : 'every id'
  const types =
    type !== undefined ? ` of type ${type}` : typePattern !== undefined ? ` of types like ${typePattern}` : ''
  return ids + types
}
