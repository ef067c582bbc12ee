// Deliveries as tests of the notifier want them: short to write, and with nothing that the test is not about.

import type { Delivery, HttpMessage, MqttMessage } from '../../src/deliver/delivery.js'

/** A POST of some JSON to `url`. */
export const post = (url: string, more: Partial<HttpMessage> = {}): HttpMessage => ({
  transport: 'http',
  method: 'POST',
  url,
  headers: ['Content-Type', 'application/json'],
  body: Buffer.from('{"data":[]}'),
  timeoutMs: 0,
  ...more,
})

export const publication = (url: string, more: Partial<MqttMessage> = {}): MqttMessage => ({
  transport: 'mqtt',
  url,
  topic: 'rooms/1',
  payload: Buffer.from('21'),
  qos: 0,
  retain: false,
  user: undefined,
  password: undefined,
  ...more,
})

let count = 0

/** A delivery of subscription `s`, of an entity of its own unless one is given. */
export function deliveryOf(message: HttpMessage | MqttMessage, more: Partial<Delivery> = {}): Delivery {
  const key = `${++count}`
  return { key, subscription: 's', tenant: '', entity: `e${key}`, attempt: 0, message, context: {}, ...more }
}
