// Publishes to MQTT brokers. All subscriptions with the same broker and credentials share a connection
// (docs/interface/notifications.md#mqtt).
//
// The first message for a connection opens it, or `prepare` does so earlier, with MQTT 3.1.1, a clean session and a
// keep-alive of 60 s. It never reconnects by itself: the next message opens a new one. A QoS 0 message is delivered
// when it is written, QoS 1 and 2 when the broker has acknowledged it, because a message that only the library has
// accepted is lost with the connection. Any failure on a connection ends it, and with it all its messages in flight: a
// connection whose oldest message is not acknowledged in time is of no use to the others.
//
// Not here: how many messages are sent at a time, in which order, and further tries (lanes).

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { MqttClient } from 'mqtt'
import type { MqttMessage } from '../domain/subscriptions/message.js'
import type { Clock } from '../ports.js'
import { type Address, mqttAddress } from './address.js'
import type { OnSent, Sendable, Sender, SenderStats } from './sender.js'
import { isDenied, type OpenSocket, reasonOf, reasons } from './sockets/sockets.js'

export interface MqttSenderOptions {
  /** Time to wait for a connection, and for an acknowledgement (`-mqttTimeout`). */
  readonly timeoutMs: number
  /** Connections that were not used for this time are closed, within twice the time (`-mqttMaxAge`); 0: never. */
  readonly idleMsMax: number
  /** Connections at a time; at least as many as messages at a time. */
  readonly connectionsMax: number
}

/** A message that waits for its connection, or for its acknowledgement. */
interface Sending {
  readonly message: MqttMessage
  readonly onSent: OnSent
  readonly deadlineMs: number
}

const keepAliveSeconds = 60

export class MqttSender implements Sender<MqttMessage> {
  private readonly connections = new Map<string, Connection>()
  private cancelSweep = (): void => {}

  constructor(
    private readonly clock: Pick<Clock, 'monoMs' | 'after'>,
    private readonly openSocket: OpenSocket,
    private readonly options: MqttSenderOptions,
  ) {
    this.sweepLater()
  }

  stats(): SenderStats {
    return { connections: this.connections.size }
  }

  send({ address, message }: Sendable<MqttMessage>, onSent: OnSent): void {
    const connection = this.connections.get(address.receiver) ?? this.open(address, message)
    connection.send({ message, onSent, deadlineMs: this.clock.monoMs() + this.options.timeoutMs })
  }

  /** Connects, if there is room for one more connection. The result is not reported. */
  prepare(message: MqttMessage): void {
    const address = mqttAddress(message)
    if (!address || this.connections.has(address.receiver)) return
    if (this.connections.size < this.options.connectionsMax) this.open(address, message)
  }

  private open(address: Address, { login }: MqttMessage): Connection {
    if (this.connections.size >= this.options.connectionsMax) this.dropLongestIdle()
    const connection = new Connection(this.clock, () => this.openSocket(address), {
      login,
      onGone: () => this.connections.delete(address.receiver),
    })
    this.connections.set(address.receiver, connection)
    return connection
  }

  private dropLongestIdle(): void {
    let longest: Connection | undefined
    for (const connection of this.connections.values())
      if (connection.isIdle && (!longest || connection.usedAtMs < longest.usedAtMs)) longest = connection
    assert(longest, 'every connection is in use')
    longest.close()
  }

  private sweepLater(): void {
    const { idleMsMax } = this.options
    if (idleMsMax === 0) return
    this.cancelSweep = this.clock.after(idleMsMax, () => {
      const nowMs = this.clock.monoMs()
      for (const connection of [...this.connections.values()])
        if (connection.isIdle && nowMs - connection.usedAtMs > idleMsMax) connection.close()
      this.sweepLater()
    })
  }

  /** Closes all connections; messages in flight get no result. */
  close(): void {
    this.cancelSweep()
    for (const connection of [...this.connections.values()]) connection.close()
  }
}

interface ConnectionOptions {
  readonly login: MqttMessage['login']
  readonly onGone: () => void
}

class Connection {
  usedAtMs: number
  private readonly client: MqttClient
  private isUp = false
  private isGone = false
  /** In the order of arrival, which is also that of their deadlines. */
  private readonly sending = new Set<Sending>()
  private cancelTimer: (() => void) | undefined

  constructor(
    private readonly clock: Pick<Clock, 'monoMs' | 'after'>,
    openSocket: () => ReturnType<OpenSocket>,
    private readonly options: ConnectionOptions,
  ) {
    const { login } = options
    this.usedAtMs = clock.monoMs()
    this.client = new MqttClient(openSocket, {
      protocolVersion: 4,
      clean: true,
      clientId: `orrery${randomBytes(8).toString('hex')}`,
      keepalive: keepAliveSeconds,
      reconnectPeriod: 0,
      resubscribe: false,
      ...(login && { username: login.user, password: login.passwd }),
    })
    this.client.on('connect', () => this.onUp())
    this.client.on('error', error => this.fail(reasonOf(error), isDenied(error)))
    this.client.on('close', () => this.fail(reasons.empty))
  }

  get isIdle(): boolean {
    return this.sending.size === 0
  }

  send(sending: Sending): void {
    this.usedAtMs = this.clock.monoMs()
    this.sending.add(sending)
    if (this.isUp) this.publish(sending)
    if (!this.cancelTimer) this.arm(sending.deadlineMs)
  }

  private onUp(): void {
    this.isUp = true
    for (const sending of this.sending) this.publish(sending)
  }

  private publish(sending: Sending): void {
    const { topic, body = '', qos, retain } = sending.message
    this.client.publish(topic, body, { qos, retain }, error => {
      // The library may call back before `publish` returns.
      queueMicrotask(() => {
        if (error) this.fail(reasonOf(error))
        else if (this.sending.delete(sending)) sending.onSent({ kind: 'answered', code: undefined })
      })
    })
  }

  private arm(atMs: number): void {
    this.cancelTimer = this.clock.after(Math.max(0, atMs - this.clock.monoMs()), () => {
      this.cancelTimer = undefined
      const [oldest] = this.sending
      if (!oldest) return
      if (oldest.deadlineMs <= this.clock.monoMs()) this.fail(reasons.timeout)
      else this.arm(oldest.deadlineMs)
    })
  }

  private fail(reason: string, isFinal = false): void {
    const failed = [...this.sending]
    this.close()
    for (const { onSent } of failed) onSent({ kind: isFinal ? 'unsendable' : 'failed', reason })
  }

  close(): void {
    this.sending.clear()
    this.cancelTimer?.()
    if (this.isGone) return
    this.isGone = true
    this.options.onGone()
    this.client.end(true)
    this.client.stream.destroy()
  }
}
