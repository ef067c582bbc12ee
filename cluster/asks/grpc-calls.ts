// Calls over gRPC: one message there, one back, as in proto/calls.proto.
//
// Each address has one connection while it is used. A call is written once. A timer here bounds its wait, and both
// sides bound the number and bytes of calls. A connection that has failed, or was silent for the whole time of a call,
// is not used again: behind it may be a process that has moved, or a machine without power.
//
// Not here: streams (grpc-transport.ts), the meaning of messages.

import assert from 'node:assert/strict'
import { type ServerDuplexStream, type ServiceDefinition, type ServiceError, status } from '@grpc/grpc-js'
import {
  callBytesMax,
  callConnectionsMax,
  callIdleMs,
  callServedMsMax,
  callsMax,
  callsPerConnectionMax,
} from '../options.js'
import type { CallFault, Guests, OnCallReply } from '../ports.js'
import { isAddress, notAnAddress } from './address.js'
import { Channel, channelOptions, rawStream, same } from './grpc-channel.js'
import { codecOf } from './grpc-codec.js'
import type { Identity } from './grpc-tls.js'

/** The most bytes that a packet adds to its message: a tag and a length. */
const packetHeadBytesMax = 8

const packets = codecOf<{ readonly message: Uint8Array }>('calls.proto', 'Packet')

export const encodePacket = (message: Uint8Array): Buffer => packets.encode({ message })

export const decodePacket = (bytes: Buffer): Buffer | undefined => packets.decode(bytes)?.message as Buffer | undefined

const exchange = '/orrery.cluster.Calls/Exchange'

/**
 * The library reports a unary call when its message is complete, and a stream at once. The bytes are the same. So calls
 * that never become complete are counted too, and end in time.
 */
export const callService = { exchange: rawStream(exchange) } satisfies ServiceDefinition

const options = channelOptions(callBytesMax + packetHeadBytesMax)

interface Line {
  readonly address: string
  readonly channel: Channel
  /** Functions that end the calls in flight. */
  readonly calls: Set<(reason: string) => void>
  /** Calls that got an answer. */
  answered: number
  /** It takes no further calls, and is closed after the last one. */
  isLeft: boolean
  idle: NodeJS.Timeout | undefined
}

export class Calls {
  /** The least recently used first. */
  private readonly lines = new Map<string, Line>()
  private underWay = 0
  private isClosed = false

  /** `identity`: for TLS; the others as in options.ts. */
  constructor(
    private readonly identity: Identity | undefined,
    private readonly idleMs = callIdleMs,
    private readonly connectionsMax = callConnectionsMax,
  ) {}

  call(address: string, message: Uint8Array, waitMs: number, onReply: OnCallReply): void {
    assert(message.length <= callBytesMax, `a call of more than ${callBytesMax} bytes`)
    const line = this.lineTo(address)
    if (typeof line === 'string') return void setImmediate(() => onReply(undefined, line))
    const { answered } = line
    let isOver = false
    const end = (reply: Buffer | undefined, reason: string, fault?: CallFault): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      this.underWay--
      line.calls.delete(cut)
      if (line.calls.size === 0) this.rest(line)
      onReply(reply, reason, fault)
    }
    const cut = (reason: string): void => {
      end(undefined, reason)
      request.cancel()
    }
    const giveUp = (): void => {
      if (isOver) return
      if (line.answered === answered) this.leave(line)
      cut('no reply in time')
    }
    // Of a process that was busy, timers run first, and then the data that has arrived meanwhile.
    const timer = setTimeout(() => setImmediate(giveUp), waitMs)
    clearTimeout(line.idle)
    line.calls.add(cut)
    this.underWay++
    const request = line.channel.client.makeUnaryRequest(
      exchange,
      same,
      same,
      encodePacket(message),
      (error, bytes) => {
        if (isOver) return
        if (error) return end(undefined, ...this.failure(line, error))
        line.answered++
        const reply = bytes && decodePacket(bytes)
        if (reply) end(reply, '')
        else end(undefined, 'it sent something that is no packet', 'unreadable')
      },
    )
  }

  close(): void {
    this.isClosed = true
    for (const line of [...this.lines.values()]) {
      this.leave(line)
      for (const cut of [...line.calls]) cut('this node is closing')
    }
  }

  /** The connection for a call, or the reason why there is none. */
  private lineTo(address: string): Line | string {
    if (this.isClosed) return 'this node is closing'
    if (!isAddress(address)) return notAnAddress(address)
    if (this.underWay >= callsMax) return 'too many calls are under way'
    const line = this.lines.get(address) ?? this.open(address)
    if (!line) return 'calls to too many addresses are under way'
    if (line.calls.size >= callsPerConnectionMax) return 'too many calls to this address are under way'
    this.lines.delete(address)
    this.lines.set(address, line)
    return line
  }

  private open(address: string): Line | undefined {
    if (this.lines.size >= this.connectionsMax) {
      const unused = [...this.lines.values()].find(({ calls }) => calls.size === 0)
      if (!unused) return undefined
      this.leave(unused)
    }
    return {
      address,
      channel: new Channel(address, this.identity, options),
      calls: new Set(),
      answered: 0,
      isLeft: false,
      idle: undefined,
    }
  }

  private failure(line: Line, { code, details, message }: ServiceError): [reason: string, fault?: CallFault] {
    const said = details || message
    const { channel } = line
    if (code === status.UNAVAILABLE) this.leave(line)
    else line.answered++
    return channel.isRefused(said) ? [channel.explain(said), 'refused'] : [channel.explain(said)]
  }

  private rest(line: Line): void {
    if (line.isLeft) line.channel.close()
    else line.idle = setTimeout(() => this.leave(line), this.idleMs).unref()
  }

  private leave(line: Line): void {
    if (line.isLeft) return
    line.isLeft = true
    clearTimeout(line.idle)
    this.lines.delete(line.address)
    if (line.calls.size === 0) line.channel.close()
  }
}

/** Accepts calls of other processes for one listener. */
export function callTaker(
  { onCall, onUnreadableCall }: Omit<Guests, 'onStream'>,
  servedMsMax = callServedMsMax,
): (call: ServerDuplexStream<Buffer, Buffer>) => void {
  let underWay = 0
  return call => {
    let isOver = false
    const finish = (): void => {
      if (isOver) return
      isOver = true
      underWay--
      clearTimeout(timer)
    }
    const refuse = (code: status, details: string): void => {
      if (isOver) return
      finish()
      call.emit('error', { code, details })
    }
    const answer = (reply: Uint8Array): void => {
      if (isOver) return
      if (reply.length > callBytesMax) return refuse(status.INTERNAL, `a reply of more than ${callBytesMax} bytes`)
      finish()
      call.write(encodePacket(reply))
      call.end()
    }
    underWay++
    const timer = setTimeout(() => refuse(status.DEADLINE_EXCEEDED, 'no reply in time'), servedMsMax)
    call.on('cancelled', finish)
    call.on('error', finish)
    if (!onCall) return refuse(status.UNIMPLEMENTED, 'this node takes no calls')
    if (underWay > callsMax) return refuse(status.RESOURCE_EXHAUSTED, 'too many calls are running there')
    let isRead = false
    call.on('data', (bytes: Buffer) => {
      if (isRead || isOver) return
      isRead = true
      const message = bytes.length > callBytesMax + packetHeadBytesMax ? undefined : decodePacket(bytes)
      if (message && message.length <= callBytesMax) return onCall(message, answer)
      onUnreadableCall?.()
      refuse(status.INVALID_ARGUMENT, `a call has one packet of up to ${callBytesMax} bytes`)
    })
    call.on('end', () => {
      if (!isRead) refuse(status.INVALID_ARGUMENT, `a call has one packet of up to ${callBytesMax} bytes`)
    })
  }
}
