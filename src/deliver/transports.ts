// The table of transports: the facts about each that the delivery engine needs (sender.ts), and the loading of its
// sender.
//
// Libraries are loaded with the first message, or earlier when one is likely. Each takes 0.1 s, and most processes use
// one of them or none.

import type { Socket } from 'node:net'
import type { HttpMessage, MqttMessage } from '../domain/subscriptions/message.js'
import { withoutSecretEntries } from '../domain/subscriptions/secrets.js'
import { httpAddress, mqttAddress } from './address.js'
import type { HttpSenderOptions } from './http-sender.js'
import type { TransportEntry, Transports } from './sender.js'
import type { Egress } from './sockets/egress.js'
import { openSockets, type TlsOptions } from './sockets/sockets.js'

export interface SenderOptions {
  /** `-httpTimeout` and `-mqttTimeout`; above 0. */
  readonly httpTimeoutMs: number
  readonly mqttTimeoutMs: number
  /** `-mqttMaxAge`; 0: connections do not age. */
  readonly mqttIdleMsMax: number
  readonly tls: TlsOptions
  /** Which messages may end at this broker itself; undefined: the rule for notifications applies. */
  readonly mayReachItself?: HttpSenderOptions['mayReachItself']
}

/** `egress`: which targets are allowed; undefined: all. `openSocket`: opens all sockets to them. */
export function transportsOf(
  options: SenderOptions,
  egress?: Egress,
  openSocket = openSockets(options.tls, egress),
): Transports {
  const { httpTimeoutMs, mqttTimeoutMs, mqttIdleMsMax: idleMsMax, mayReachItself } = options
  const isOwn = egress && ((socket: Socket) => egress.isOwn(socket))

  const http: TransportEntry<HttpMessage> = {
    what: 'notification',
    isInQueueStatistics: true,
    addressOf: httpAddress,
    headBytes: httpHeadBytes,
    lineOf(subscription, { message: { method }, address: { host, port, path } }, payload, result) {
      const end = result.kind === 'answered' ? `response code: ${result.code}` : result.reason
      const target = withoutSecretEntries(path)
      return `Notif delivered (subId: ${subscription}): ${method} ${host}:${port}${target}, ${payload}, ${end}`
    },
    async load(clock, connectionsMax) {
      const { HttpSender } = await import('./http-sender.js')
      return new HttpSender(clock, openSocket, { timeoutMs: httpTimeoutMs, connectionsMax, isOwn, mayReachItself })
    },
  }

  const mqtt: TransportEntry<MqttMessage> = {
    what: 'mqttNotification',
    isInQueueStatistics: false,
    addressOf: mqttAddress,
    headBytes: ({ topic }) => topic.length,
    lineOf(subscription, { message: { topic }, address: { host, port } }, payload, { kind }) {
      if (kind !== 'answered') return undefined
      return `MQTT Notif delivered (subId: ${subscription}): broker: ${host}:${port}, topic: ${topic}, ${payload}`
    },
    async load(clock, connectionsMax) {
      const { MqttSender } = await import('./mqtt-sender.js')
      return new MqttSender(clock, openSocket, { timeoutMs: mqttTimeoutMs, idleMsMax, connectionsMax })
    },
  }

  return new Map<string, TransportEntry>([
    ['http', http],
    ['mqtt', mqtt],
  ])
}

export function httpHeadBytes({ method, url, headers }: HttpMessage): number {
  let bytes = method.length + url.length
  for (const header of headers) bytes += header[0].length + header[1].length + 4
  return bytes
}
