// A stream over WebSocket: several watches and updates on one connection (docs/interface/live.md#websocket).
//
// Each message is one JSON object. Messages are handled in the order in which they came. Errors of a message are
// answered with a message; only a reader that is too slow, and a client that sends faster than its messages can be
// parsed, lose their connection.

import type { X509Certificate } from 'node:crypto'
import type { Reading, StreamReader } from '../broker/streams/reading.js'
import type { StreamEvent } from '../broker/streams/stream-event.js'
import type { Payload } from '../domain/entities/entity.js'
import { isArray, isObject, type JsonObject } from '../domain/json.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import { parseServicePaths, parseTenant } from '../domain/scope.js'
import { type Watch, watchesMax, watchIdLengthMax } from '../domain/streams/watch.js'
import { type WatchScope, watchOfMessage } from '../domain/streams/watch-parser.js'
import { watchedPath } from '../domain/subscriptions/subscription.js'
import type { Asker, AskerResult, ClientHeaders } from './access-guard.js'
import { parsedInTurnsFrom, parseJson, parseJsonInTurns } from './body.js'
import { EventWriter } from './event-writer.js'
import type { MessageSocket, SocketListener } from './front.js'
import type { InnerRequests } from './inner-requests.js'
import type { MessageHead } from './message-exchange.js'
import {
  beginMsMax,
  type ClosedBy,
  type EndReason,
  endEvent,
  filterUnknown,
  type OpenStream,
  type StreamParts,
} from './open-stream.js'
import { errorText, statusOf } from './reply.js'
import type { MessageAudit } from './request-audit.js'
import { SocketUpdates, type UpdateRef } from './socket-updates.js'
import { StreamRights } from './stream-rights.js'

/** The subprotocol, which a client may ask for. */
export const subprotocol = 'ngsi-v2.stream'

/** Characters of the reference of an update. */
const refLengthMax = 256
/** Characters of a token. */
const tokenLengthMax = 16 * 1024
/** Characters of an unknown `op` that its error repeats. */
const opShownMax = 100
/** Messages that wait behind one that is being parsed have at most so many times the bytes of the largest message. */
const messagesWaiting = 4

/** RFC 6455, 7.4.1: the server goes away; a policy is violated; try again later. */
const closeCodes = { stopping: 1001, 'token over': 1008, 'too slow': 1013, limit: 1013 } as const satisfies Record<
  EndReason,
  number
>

export interface SocketParts extends StreamParts {
  /** The tenant and the path of the request: the default of its watches. */
  readonly scope: WatchScope
  /** The same for its updates, as texts of headers. */
  readonly updateScope: Pick<MessageHead, 'tenant' | 'path'>
  readonly inner: InnerRequests
  readonly origin: Pick<MessageHead, 'client' | 'peer' | 'authToken'>
  /** The certificate of the connection; undefined: there is none. */
  readonly certificate: X509Certificate | undefined
  /** The principal that has opened the connection; undefined: there is no access control. */
  readonly asker: Asker | undefined
  /** The watch that the parameters describe, or the reason why there is none; undefined: they describe none. */
  readonly first: Result<Watch> | undefined
  readonly isMultitenant: boolean
  /** undefined: there is no audit log. */
  readonly messages?: MessageAudit | undefined
}

export class StreamSocket implements SocketListener, OpenStream {
  private readonly writer: EventWriter
  private readonly updates: SocketUpdates
  private readonly watches = new Map<string, SocketWatch>()
  /** When its watches get their bookmarks. */
  private readonly turn: number
  private socket: MessageSocket | undefined
  /** Messages behind one that is being parsed, or whose token is being verified; undefined: there is none. */
  private arrived: { readonly messages: Buffer[]; bytes: number } | undefined
  /** It ends when its updates have been answered. */
  private ending: { readonly reason: EndReason; readonly by: ClosedBy } | undefined
  private isOver = false
  /** undefined: there is no access control. */
  private readonly rights: StreamRights | undefined
  /** Why it has ended, if the server has ended it. */
  private endReason: EndReason | undefined

  constructor(
    private readonly parts: SocketParts,
    private readonly onOver: () => void,
  ) {
    const { hub, tallies, inner, messageBytesMax, asker, clock } = parts
    this.rights = asker && new StreamRights(asker, clock, () => this.end('token over', 'refused'))
    this.writer = new EventWriter({
      frame,
      texts: hub.texts,
      budget: hub.waiting,
      endOfTick: hub.endOfTick,
      onFolded: count => tallies.fold(count),
      send: texts => this.socket?.send(texts) ?? false,
    })
    this.turn = hub.bookmarks.anyTurn()
    this.updates = new SocketUpdates({
      inner,
      asker: () => this.rights?.asker,
      bytesMax: messagesWaiting * messageBytesMax,
      onDone: text => this.onDone(text),
      onBusy: isBusy => this.socket?.expectsAnswers(isBusy),
    })
  }

  onOpen(socket: MessageSocket): void {
    const { tallies, first } = this.parts
    if (this.endReason) return close(socket, this.endReason)
    this.socket = socket
    tallies.begin('websocket')
    if (first) this.addWatch('', first)
  }

  onMessage(bytes: Uint8Array): void {
    if (this.isOver) return
    const { arrived } = this
    if (!arrived) return this.parse(bytes)
    arrived.bytes += bytes.length
    arrived.messages.push(Buffer.from(bytes))
    if (arrived.bytes > messagesWaiting * this.parts.messageBytesMax) this.end('limit', 'error')
  }

  onRoom(): void {
    this.writer.onRoom()
  }

  onGone(): void {
    this.over('client')
  }

  /** Ends it with an event that gives the reason, when its updates have been answered. */
  end(reason: EndReason, by: ClosedBy): void {
    if (this.isOver) return
    if (reason === 'stopping' && this.updates.unanswered > 0) {
      this.ending = { reason, by }
      return
    }
    const { socket, writer } = this
    writer.flush()
    this.endReason = reason
    this.over(by)
    if (!socket) return
    // The stop of a node does not wait for a client that reads nothing.
    if (writer.hasRoom || reason !== 'stopping') close(socket, reason)
    else socket.destroy()
  }

  lookAtRights(): void {
    this.rights?.look()
  }

  private over(by: ClosedBy): void {
    if (this.isOver) return
    this.isOver = true
    this.rights?.stop()
    if (this.socket) this.parts.tallies.end('websocket', by)
    this.writer.close()
    this.updates.close()
    for (const watch of this.watches.values()) watch.end()
    this.watches.clear()
    this.onOver()
  }

  // Messages

  private parse(bytes: Uint8Array): void {
    const { messageBytesMax } = this.parts
    if (bytes.length < parsedInTurnsFrom) return this.onParsed(parseJson(bytes, messageBytesMax), bytes.length)
    this.arrived = { messages: [], bytes: 0 }
    const { length } = bytes
    parseJsonInTurns(bytes, messageBytesMax, setImmediate, payload => {
      const messages = this.arrived?.messages ?? []
      this.arrived = undefined
      this.onParsed(payload, length)
      for (const message of messages) this.onMessage(message)
    })
  }

  private onParsed(payload: Result<Payload>, length: number): void {
    if (this.isOver) return
    if (!payload.ok) return this.refuse(undefined, payload.refusal)
    const { value } = payload.value
    const isTwice = payload.value.duplicates.some(path => path[0] !== 'body' || path.length === 1)
    if (!isObject(value) || typeof value.op !== 'string' || isTwice)
      return this.refuse(undefined, refusals.socketMessage)
    switch (value.op) {
      case 'watch':
        return this.watch(value)
      case 'unwatch':
        return this.unwatch(value)
      case 'update':
        return this.update(value, payload.value, length)
      case 'token':
        return this.token(value)
      case 'ping':
        return this.write('{"op":"pong"}')
      default:
        return this.refuse(undefined, refusals.socketOp(value.op.slice(0, opShownMax)))
    }
  }

  private watch(message: JsonObject): void {
    const { id } = message
    if (!isName(id)) return this.refuse(undefined, refusals.watchId(watchIdLengthMax))
    if (this.watches.has(id)) return this.refuse(id, refusals.watchTaken(id))
    if (this.watches.size >= watchesMax)
      return this.refuse(id, refusals.tooMany('watches', this.watches.size + 1, watchesMax))
    const scope = this.scopeOf(message)
    if (scope.ok) this.addWatch(id, watchOfMessage(scope.value, message))
    else this.refuse(id, scope.refusal)
  }

  private unwatch({ id }: JsonObject): void {
    const watch = typeof id === 'string' ? this.watches.get(id) : undefined
    if (typeof id !== 'string' || !watch)
      return this.refuse(isName(id) ? id : undefined, refusals.watchUnknown(isName(id) ? id : ''))
    watch.end()
    this.watches.delete(id)
    this.write(`{"op":"unwatched","id":${JSON.stringify(id)}}`)
  }

  /** A new proof. Messages behind it are handled when it is known who has shown it. */
  private token({ token }: JsonObject): void {
    if (typeof token !== 'string' || token.length > tokenLengthMax)
      return this.refuse(undefined, refusals.socketToken(tokenLengthMax))
    const { rights } = this
    const { access, certificate } = this.parts
    if (!rights || !access) return this.write('{"op":"ok"}')
    this.arrived = { messages: [], bytes: 0 }
    const onAnswer = (answer: AskerResult): void => {
      const messages = this.arrived?.messages ?? []
      this.arrived = undefined
      if (this.isOver) return
      const refusal = answer.ok ? rights.renew(answer.asker) : answer.refusal
      const who = answer.ok ? answer.asker.source : answer.shown
      this.parts.messages?.add('token', refusal ? statusOf[refusal.kind] : 200, who)
      if (refusal?.kind === 'Forbidden') access.onForbidden()
      if (refusal) this.refuse(undefined, refusal)
      else this.write('{"op":"ok"}')
      for (const message of messages) this.onMessage(message)
    }
    const now = access.identify(bearerOf(token), certificate, onAnswer)
    if (now) onAnswer(now)
  }

  private update(message: JsonObject, payload: Payload, length: number): void {
    const { ref } = message
    if (!isRef(ref)) return this.refuse(undefined, refusals.updateRef(refLengthMax))
    const { updateScope, origin, isEnding } = this.parts
    if (this.ending || isEnding()) return this.updates.refuse(ref, refusals.stopping)
    const { body, tenant = updateScope.tenant, path = updateScope.path } = message
    const options = optionsOf(message)
    const wrong = typeof tenant !== 'string' ? 'tenant' : typeof path !== 'string' ? 'path' : undefined
    if (wrong !== undefined) return this.updates.refuse(ref, refusals.fieldNotString(wrong))
    if (options === undefined) return this.updates.refuse(ref, refusals.fieldNotString('options'))
    if (!isObject(body)) return this.updates.refuse(ref, refusals.socketBody)
    const head = { tenant: String(tenant), path: String(path), options, length, ...origin }
    this.updates.add(ref, head, payloadOf(payload, body))
  }

  private onDone(text: string): void {
    this.write(text)
    const { ending, updates } = this
    if (ending && updates.unanswered === 0) this.end(ending.reason, ending.by)
  }

  private scopeOf({ tenant, path }: JsonObject): Result<WatchScope> {
    const { scope, isMultitenant } = this.parts
    if (tenant !== undefined && typeof tenant !== 'string') return refused(refusals.fieldNotString('tenant'))
    if (path !== undefined && typeof path !== 'string') return refused(refusals.fieldNotString('path'))
    const named = tenant === undefined ? accepted(scope.tenant) : parseTenant(tenant)
    if (!named.ok) return named
    const paths = path === undefined ? undefined : parseServicePaths(path)
    if (paths && !paths.ok) return paths
    const servicePath = paths ? watchedPath(paths.value) : accepted(scope.servicePath)
    return servicePath.ok
      ? accepted({ tenant: isMultitenant ? named.value : '', servicePath: servicePath.value })
      : servicePath
  }

  // Watches

  private addWatch(id: string, watch: Result<Watch>): void {
    if (!watch.ok) return this.refuse(id, watch.refusal)
    const { rights } = this
    const allowed = rights ? rights.add(watch.value) : watch
    if (!allowed.ok) {
      this.parts.access?.onForbidden()
      const { tenant, servicePath } = watch.value.filter
      const status = statusOf[allowed.refusal.kind]
      if (rights) this.parts.messages?.add('watch', status, rights.asker.source, { tenant, servicePath })
      return this.refuse(id, allowed.refusal)
    }
    const { hub, clock, tallies } = this.parts
    const reader = new SocketWatch(clock, {
      onBegun: cursor => this.write(`{"op":"watching","id":${JSON.stringify(id)},"cursor":"${cursor}"}`),
      onEvent: event => {
        tallies.event(event.kind)
        if (!this.writer.event(event, id, watch.value.form)) this.end('too slow', 'slow')
      },
      onRefused: (refusal, hasBegun) => {
        this.watches.delete(id)
        if (!hasBegun) return this.refuse(id, refusal)
        if (!this.writer.event(endEvent('limit'), id, watch.value.form)) this.end('too slow', 'slow')
      },
      whenRoom: next => this.writer.whenRoom(next),
    })
    this.watches.set(id, reader)
    reader.read(hub.open(allowed.value, reader, this.turn))
  }

  private refuse(id: string | undefined, refusal: Refusal): void {
    const name = id === undefined ? '' : `"id":${JSON.stringify(id)},`
    this.write(`{"op":"error",${name}${errorText(refusal).slice(1)}`)
  }

  private write(text: string): void {
    if (!this.isOver && !this.writer.text(text)) this.end('too slow', 'slow')
  }
}

interface WatchListener extends Pick<StreamReader, 'onBegun' | 'onEvent' | 'whenRoom'> {
  readonly onRefused: (refusal: Refusal, hasBegun: boolean) => void
}

/** One watch of a connection. */
class SocketWatch implements StreamReader {
  private reading: Reading | undefined
  private hasBegun = false
  private isOver = false
  private readonly stopWaiting: () => void

  constructor(
    clock: StreamParts['clock'],
    private readonly listener: WatchListener,
  ) {
    this.stopWaiting = clock.after(beginMsMax, () => this.onRefused(refusals.unanswered(filterUnknown)))
  }

  /** The reading may have begun, and may have been refused, before its opener returned it. */
  read(reading: Reading): void {
    this.reading = reading
    if (this.isOver) reading.end()
  }

  onBegun(cursor: string): void {
    this.stopWaiting()
    this.hasBegun = true
    if (!this.isOver) this.listener.onBegun(cursor)
  }

  onEvent(event: StreamEvent): void {
    if (!this.isOver) this.listener.onEvent(event)
  }

  onRefused(refusal: Refusal): void {
    if (this.isOver) return
    this.end()
    this.listener.onRefused(refusal, this.hasBegun)
  }

  whenRoom(next: () => void): void {
    this.listener.whenRoom(next)
  }

  end(): void {
    this.isOver = true
    this.stopWaiting()
    this.reading?.end()
  }
}

/** The headers of a request with this key or token. */
const bearerOf = (token: string): ClientHeaders => ({
  header: name => (name === 'authorization' ? `Bearer ${token}` : ''),
  headerTimes: name => (name === 'authorization' ? 1 : 0),
})

function close(socket: MessageSocket, reason: EndReason): void {
  socket.send([frame(endEvent(reason), '')])
  socket.close(closeCodes[reason], reason)
}

const isName = (id: unknown): id is string => typeof id === 'string' && id.length <= watchIdLengthMax

const isRef = (ref: unknown): ref is UpdateRef =>
  typeof ref === 'number' || (typeof ref === 'string' && ref.length <= refLengthMax)

/** The words of `options`, as in a URL; undefined: they are neither a text nor texts. */
function optionsOf({ options = '' }: JsonObject): string | undefined {
  if (typeof options === 'string') return options
  return isArray(options) && options.every(word => typeof word === 'string') ? options.join(',') : undefined
}

/** The payload of an update, out of that of its message: names that occur twice are known by their position. */
const payloadOf = ({ duplicates, deep }: Payload, body: JsonObject): Payload => ({
  value: body,
  duplicates: duplicates.map(path => path.slice(1)),
  deep,
})

function frame({ kind, cursor, data }: StreamEvent, watch: string): string {
  const place = cursor === undefined ? '' : `,"cursor":"${cursor}"`
  // The entity that a watch has left has an id of its own.
  const rest = kind === 'entityLeave' ? `,"entity":${data}}` : data === '{}' ? '}' : `,${data.slice(1)}`
  return `{"op":"event","id":${JSON.stringify(watch)},"event":"${kind}"${place}${rest}`
}
