// Messages and jobs for tests of the delivery engine: short to write, without facts that the test is not about.

import { httpAddress } from '../../src/deliver/address.js'
import type { Sendable } from '../../src/deliver/sender.js'
import type { SenderOptions } from '../../src/deliver/transports.js'
import type { HttpMessage, MqttMessage, NotificationMessage } from '../../src/domain/subscriptions/message.js'
import type { NamedText } from '../../src/domain/subscriptions/subscription.js'
import type { DeliveryOutcome, PendingNotification } from '../../src/ports.js'

/** Options of the senders. */
export const timeouts: SenderOptions = {
  httpTimeoutMs: 5000,
  mqttTimeoutMs: 5000,
  mqttIdleMsMax: 3_600_000,
  tls: { insecure: false, caFile: undefined },
}

/** Headers as names and values in turn. */
type MoreHttp = Partial<Omit<HttpMessage, 'headers'>> & { readonly headers?: readonly string[] }

/** A POST of some JSON to `url`. */
export function post(
  url: string,
  { headers = ['Content-Type', 'application/json'], ...more }: MoreHttp = {},
): HttpMessage {
  const named = headers.flatMap((name, at): NamedText[] => (at % 2 === 0 ? [[name, headers[at + 1]!]] : []))
  return { transport: 'http', method: 'POST', url, headers: named, body: '{"data":[]}', timeoutMs: 0, ...more }
}

export const publication = (url: string, more: Partial<MqttMessage> = {}): MqttMessage => ({
  transport: 'mqtt',
  url,
  topic: 'rooms/1',
  body: '21',
  qos: 0,
  retain: false,
  login: undefined,
  ...more,
})

/** A message as a sender gets it. */
export function sendable<M extends NotificationMessage>(message: M, address = httpAddress(message)): Sendable<M> {
  if (!address) throw new Error(`no address: ${message.url}`)
  return { message, address, endByMs: Number.POSITIVE_INFINITY }
}

/** A pending notification, and its outcomes. */
export interface Pending extends PendingNotification {
  attempts: number
  dueMs: number | undefined
  readonly outcomes: DeliveryOutcome[]
}

export type PendingFacts = Partial<Pick<Pending, 'id' | 'tenant' | 'subscription' | 'attempts' | 'dueMs'>>

let count = 0

/** A pending notification of subscription `s`, with these facts; it keeps its outcomes. */
export function pendingOf(facts: PendingFacts = {}): Pending {
  const one: Pending = {
    id: `${++count}`,
    tenant: '',
    subscription: 's',
    attempts: 0,
    dueMs: undefined,
    outcomes: [],
    input: () => undefined,
    onOutcome(outcome) {
      one.outcomes.push(outcome)
    },
    ...facts,
  }
  return one
}
