// Notifications: the message that one change makes for one subscription.
//
// A regular one says what the subscription asks of the entity, in its format; a custom one is built from templates. Either way the
// message depends on the input and the options alone, so a notification that is rendered again after a crash is the same one.
//
// [hot] Once per notification. For an entity of five attributes and 380 bytes: 1.3 us when the text of its image is given, nearly all
// of it headers; 6 us when it has to be rendered, 12 us with templates. Two cores shared with others, best of seven runs.
//
// Not here: whether to notify, what came of it, bytes and sockets.

import { checkTopic, customHttp, customMqtt, malformedUrl, requestUrl } from './custom-notification.js'
import type { HttpMessage, MqttMessage } from './message.js'
import { renderBody } from './notification-body.js'
import { checkValues, jsonType, standardHeaders } from './notification-headers.js'
import type { NotificationInput, NotificationOptions, NotSent } from './notification-input.js'
import type {
  HttpCustomTransport,
  HttpTransport,
  MqttCustomTransport,
  MqttTransport,
  Transport,
} from './subscription.js'

/** The message of a notification, or why there is none (subscriptions.md §7 to §10). */
export function messageOf(input: NotificationInput, options: NotificationOptions): HttpMessage | MqttMessage | NotSent {
  const { transport } = input.subscription.notification
  const isRegular = options.disableCustomNotifications
  switch (transport.kind) {
    case 'http':
      return regularHttp(input, transport, options)
    case 'httpCustom':
      if (!isRegular) return customHttp(input, transport, options)
      // Nobody has checked it if it looks like a template.
      if (requestUrl(transport.url, []) === undefined) return malformedUrl(transport.url)
      return regularHttp(input, transport, options)
    case 'mqtt':
      return regularMqtt(input, transport)
    case 'mqttCustom':
      return isRegular ? regularMqtt(input, transport) : customMqtt(input, transport, options)
  }
}

function regularHttp(
  input: NotificationInput,
  { url, timeoutMs }: HttpTransport | HttpCustomTransport,
  options: NotificationOptions,
): HttpMessage | NotSent {
  const content = { type: jsonType, format: input.subscription.notification.attrsFormat }
  const headers = standardHeaders(input, options, content)
  const refusal = checkValues(headers)
  return refusal ?? { transport: 'http', method: 'POST', url, headers, body: renderBody(input), timeoutMs }
}

function regularMqtt(input: NotificationInput, to: MqttTransport | MqttCustomTransport): MqttMessage | NotSent {
  const { url, topic, qos, retain, login } = to
  return checkTopic(topic) ?? { transport: 'mqtt', url, topic, body: renderBody(input), qos, retain, login }
}

/** A message to the receiver of such notifications, without their content: from it a sender knows where to connect before the first one. */
export function emptyMessage(to: Transport): HttpMessage | MqttMessage {
  const { url } = to
  if (to.kind === 'http' || to.kind === 'httpCustom')
    return { transport: 'http', method: 'POST', url, headers: [], body: undefined, timeoutMs: 0 }
  const { topic, qos, retain, login } = to
  return { transport: 'mqtt', url, topic, body: undefined, qos, retain, login }
}
