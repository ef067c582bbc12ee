// `GET /v2/stream`: changes as they happen, as Server-Sent Events or over WebSocket (docs/interface/live.md).
//
// Not here: the two transports (event-stream.ts, stream-socket.ts), what a reader receives (broker/streams/).

import { type Result, refusals } from '../domain/refusal.js'
import type { Watch } from '../domain/streams/watch.js'
import { type WatchScope, watchOfParameters } from '../domain/streams/watch-parser.js'
import { EventStream } from './event-stream.js'
import type { InnerRequests } from './inner-requests.js'
import type { MessageHead } from './message-exchange.js'
import type { OpenStream, StreamParts } from './open-stream.js'
import type { Reply } from './reply.js'
import type { Request, StreamHead } from './request.js'
import { MessageAudit } from './request-audit.js'
import { streamScope } from './stream-scope.js'
import { StreamSocket, subprotocol } from './stream-socket.js'

/** Parameters that do not make a watch: they are the scope of all watches of a connection. */
const scopeNames: ReadonlySet<string> = new Set(['tenant', 'path'])

export class StreamHandlers {
  private readonly open = new Set<OpenStream>()

  constructor(private readonly parts: StreamParts) {
    const { hub, tallies, access } = parts
    tallies.watch(() => hub.waiting.characters)
    access?.onChange(() => {
      for (const stream of [...this.open]) stream.lookAtRights()
    })
  }

  stream(request: Request, reply: Reply, inner: InnerRequests): void {
    const { streamsMax, isEnding } = this.parts
    const { streamHead } = request
    if (streamsMax === 0 || !streamHead) return reply.refuse(refusals.streamsOff)
    const { asksForWebSocket } = streamHead
    if (asksForWebSocket && !streamHead.canUpgrade) return reply.refuse(refusals.webSocketHandshake)
    if (!asksForWebSocket && !streamHead.acceptsEvents) return reply.refuse(refusals.acceptEvents)
    if (asksForWebSocket && streamHead.foreignOrigin !== '')
      return reply.refuse(refusals.foreignOrigin(streamHead.foreignOrigin))
    const scope = streamScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const hasWatch = !asksForWebSocket || describesWatch(request)
    const watch = hasWatch ? watchOf(request, streamHead, scope.value) : undefined
    if (watch && !watch.ok && !asksForWebSocket) return reply.refuse(watch.refusal)
    if (isEnding()) return reply.refuse(refusals.stopping)
    if (this.open.size >= streamsMax) return reply.refuse(refusals.streamsTooMany(streamsMax))
    const { tenant } = scope.value
    const refusal = this.parts.ofTenants?.refusalFor(tenant)
    if (refusal) return reply.refuse(refusal)
    if (asksForWebSocket) this.openSocket(request, streamHead, reply, inner, scope.value, watch)
    else if (watch?.ok) this.openEvents(request, reply, tenant, watch.value)
  }

  /** Ends all streams: the node stops. */
  endAll(): void {
    for (const stream of [...this.open]) stream.end('stopping', 'stopping')
  }

  private begin(stream: OpenStream, tenant: string): void {
    this.open.add(stream)
    this.parts.ofTenants?.begin(tenant)
  }

  private over(stream: OpenStream, tenant: string): void {
    if (this.open.delete(stream)) this.parts.ofTenants?.end(tenant)
  }

  private openEvents({ permit }: Request, reply: Reply, tenant: string, watch: Watch): void {
    const stream = new EventStream(reply, watch, this.parts, () => this.over(stream, tenant), permit?.asker)
    this.begin(stream, tenant)
    stream.begin()
  }

  private openSocket(
    request: Request,
    { protocols, certificate }: StreamHead,
    reply: Reply,
    inner: InnerRequests,
    scope: WatchScope,
    first: Result<Watch> | undefined,
  ): void {
    const { call, permit, authToken, parameters, tenantHeader, paths, tenants: isMultitenant } = request
    const { values } = parameters
    const origin = { client: call?.from() ?? '', peer: call?.peer(), authToken }
    const updateScope = { tenant: values.get('tenant') ?? tenantHeader, path: values.get('path') ?? paths.join() }
    const { audit } = this.parts
    const messages = audit && new MessageAudit(audit, headOf(request, reply, origin, updateScope))
    const asked = {
      scope,
      updateScope,
      inner,
      origin,
      certificate,
      asker: permit?.asker,
      first,
      isMultitenant,
      messages,
    }
    const parts = { ...this.parts, ...asked }
    const socket = new StreamSocket(parts, () => this.over(socket, scope.tenant))
    this.begin(socket, scope.tenant)
    const protocol = protocols.includes(subprotocol) ? subprotocol : ''
    if (!reply.webSocket(protocol, socket)) this.over(socket, scope.tenant)
  }
}

/** What the entries of messages in the audit log have in common. */
function headOf(
  { path }: Request,
  { correlator }: Reply,
  { client, peer }: Pick<MessageHead, 'client' | 'peer'>,
  { tenant, path: servicePath }: Pick<MessageHead, 'tenant' | 'path'>,
) {
  return { address: client, peer, path, query: '', tenant, servicePath, correlator }
}

/** Whether the parameters of a WebSocket describe its first watch. */
const describesWatch = ({ parameters: { values, options } }: Request): boolean =>
  options.size > 0 || [...values.keys()].some(name => !scopeNames.has(name))

function watchOf(request: Request, { lastEventId }: StreamHead, scope: WatchScope): Result<Watch> {
  const { values, options } = request.parameters
  // A browser that comes back sends the cursor of the last event, and its URL may still name an older one.
  const given = lastEventId === '' ? values : new Map([...values, ['from', lastEventId]])
  return watchOfParameters(scope, given, options)
}
