// Notifications: the message that one subscription is owed for one change.
//
// A regular one says what the subscription asks of the entity, in its format; a custom one is built from templates. Either way the
// outcome depends on the occasion and the options alone, so a notification that is made again after a crash is the same one.
//
// [hot] Once per notification. For an entity of five attributes and 380 bytes: 1.3 us when the text of its image is given, nearly all
// of it headers; 6 us when it has to be rendered, 12 us with templates. Two cores shared with others, best of seven runs.
//
// Not here: whether to notify, what came of it, bytes and sockets.

import { checkTopic, customHttp, customMqtt, malformedUrl, requestUrl } from './custom-notification.js'
import { renderBody } from './notification-body.js'
import { checkValues, jsonType, standardHeaders } from './notification-headers.js'
import type { NotificationMessage, NotificationOptions, Occasion } from './occasion.js'
import type { HttpCustomTransport, HttpTransport, MqttCustomTransport, MqttTransport } from './subscription.js'

/** The message of an occasion, or why there is none (subscriptions.md §7 to §10). */
export function notificationOf(occasion: Occasion, options: NotificationOptions): NotificationMessage {
  const { transport } = occasion.subscription.notification
  const isRegular = options.disableCustomNotifications
  switch (transport.kind) {
    case 'http':
      return regularHttp(occasion, transport, options)
    case 'httpCustom':
      if (!isRegular) return customHttp(occasion, transport, options)
      // Nobody has checked it if it looks like a template.
      if (requestUrl(transport.url, []) === undefined) return malformedUrl(transport.url)
      return regularHttp(occasion, transport, options)
    case 'mqtt':
      return regularMqtt(occasion, transport)
    case 'mqttCustom':
      return isRegular ? regularMqtt(occasion, transport) : customMqtt(occasion, transport, options)
  }
}

function regularHttp(
  occasion: Occasion,
  { url, timeoutMs }: HttpTransport | HttpCustomTransport,
  options: NotificationOptions,
): NotificationMessage {
  const content = { type: jsonType, format: occasion.subscription.notification.attrsFormat }
  const headers = standardHeaders(occasion, options, content)
  const refusal = checkValues(headers)
  return refusal ?? { kind: 'http', method: 'POST', url, headers, body: renderBody(occasion), timeoutMs }
}

function regularMqtt(occasion: Occasion, transport: MqttTransport | MqttCustomTransport): NotificationMessage {
  const { url, topic, qos, retain, login } = transport
  return checkTopic(topic) ?? { kind: 'mqtt', url, topic, payload: renderBody(occasion), qos, retain, login }
}
