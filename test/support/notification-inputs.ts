// Notification inputs for tests: a subscription as a client writes it, and the change that triggered it.
//
// By default the entity is the room R1 in tenant acme under /b1, with a temperature, a name and a place. A PATCH has
// just set its temperature from 20 to 21.5. Made 2024-05-01T08:00Z, changed 2024-05-02T09:30Z.

import { type Attribute, type Entity, noMetadata, parseEntity } from '../../src/domain/entities/entity.js'
import { createEntity } from '../../src/domain/entities/update.js'
import type { Json, JsonObject } from '../../src/domain/json.js'
import { refusalText } from '../../src/domain/refusal.js'
import { stampOf } from '../../src/domain/stamp.js'
import type {
  HttpMessage,
  MqttMessage,
  NamedAttribute,
  NotificationInput,
  NotificationOptions,
  NotSent,
} from '../../src/domain/subscriptions/message.js'
import { messageOf } from '../../src/domain/subscriptions/notification.js'
import type { Subscription } from '../../src/domain/subscriptions/subscription.js'
import { parseSubscription } from '../../src/domain/subscriptions/subscription-parser.js'

export const createdMs = Date.UTC(2024, 4, 1, 8)
export const changedMs = Date.UTC(2024, 4, 2, 9, 30)

export const subscriptionId = '65f0c2a1b4d3e2f1a0c9b8d7'

export const roomAttributes: JsonObject = {
  temperature: { type: 'Number', value: 21.5, metadata: { unit: { type: 'Text', value: 'CEL' } } },
  name: { type: 'Text', value: 'north' },
  where: { type: 'StructuredValue', value: { floor: 2 } },
}

export const temperatureBefore: Attribute = {
  type: 'Number',
  value: 20,
  metadata: noMetadata,
  createdMs,
  modifiedMs: createdMs,
}

/** The room with these attributes in normalized form; those in `changed` were changed last. */
export function room(attributes: JsonObject, changed: readonly string[] = ['temperature']): Entity {
  const payload = { value: { id: 'R1', type: 'Room', ...attributes }, duplicates: [], deep: true }
  const wanted = parseEntity(payload, false)
  if (!wanted.ok) throw new Error(refusalText(wanted.refusal))
  const entity = createEntity(wanted.value, stampOf(createdMs)).change!.after!
  const dated = [...entity.attributes].map(
    ([name, one]) => [name, changed.includes(name) ? { ...one, modifiedMs: changedMs } : one] as const,
  )
  return { ...entity, attributes: new Map(dated), modifiedMs: changedMs }
}

/** A room whose attributes have these values, also values that a request may not have. */
export function roomOf(values: Readonly<Record<string, Json>>): Entity {
  const attributes = Object.entries(values).map(([name, value]) => [name, { ...temperatureBefore, value }] as const)
  return { ...room({}), attributes: new Map(attributes) }
}

/** The subscription of a `notification` as in a POST. */
export function subscriptionOf(notification: JsonObject): Subscription {
  const value = { subject: { entities: [{ idPattern: '.*' }] }, notification }
  const head = { id: subscriptionId, tenant: 'acme', servicePath: '/#' }
  const parsed = parseSubscription({ value, duplicates: [], deep: true }, head)
  if (!parsed.ok) throw new Error(refusalText(parsed.refusal))
  return parsed.value
}

const named: readonly NamedAttribute[] = [{ name: 'temperature', action: 'update', previous: temperatureBefore }]

/** The notification input of the room's change for a subscription. */
export const inputOf = (notification: JsonObject, facts: Partial<NotificationInput> = {}): NotificationInput => ({
  subscription: subscriptionOf(notification),
  entity: room(roomAttributes),
  path: '/b1',
  tenant: 'acme',
  named,
  alteration: 'entityChange',
  correlator: '0f0e',
  number: 1,
  authToken: undefined,
  notificationId: 'n-1',
  ...facts,
})

export const options: NotificationOptions = {
  vocabulary: 'Ctx',
  userAgent: 'ctxbroker/1.0',
  disableCustomNotifications: false,
  filledLengthMax: 8 * 1024 * 1024,
}

export const sink = 'http://sink.example:9000/in'

type Rendered = ReturnType<typeof messageOf>

/** The message for a regular or custom HTTP subscription; `notification` has all but the plain `http`. */
export const sent = (
  notification: JsonObject,
  facts?: Partial<NotificationInput>,
  changes?: Partial<NotificationOptions>,
): Rendered => {
  const hasTransport = ['http', 'httpCustom', 'mqtt', 'mqttCustom'].some(kind => kind in notification)
  const whole = hasTransport ? notification : { http: { url: sink }, ...notification }
  return messageOf(inputOf(whole, facts), { ...options, ...changes })
}

export function asHttp(made: Rendered): HttpMessage {
  if (!('transport' in made) || made.transport !== 'http') throw new Error(JSON.stringify(made))
  return made
}

export function asMqtt(made: Rendered): MqttMessage {
  if (!('transport' in made) || made.transport !== 'mqtt') throw new Error(JSON.stringify(made))
  return made
}

export function asNotSent(made: Rendered): NotSent {
  if ('transport' in made) throw new Error(JSON.stringify(made))
  return made
}

/** The body that was sent. */
export function bodyOf(made: Rendered): string {
  if (!('transport' in made)) throw new Error(JSON.stringify(made))
  return made.body ?? ''
}
