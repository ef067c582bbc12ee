// One member of an etcd: connections to it, and single requests over them.
//
// A request is written at most once. The package's own way to send requests retries, so this file does not use it; it
// uses only the package's messages, its channels, and its way to open them. Channels dial again by themselves, at least
// once a second.
//
// Not here: deadlines, and when to leave a member for another one (etcd-calls.ts).

import {
  Etcd3,
  type ICompactionRequest,
  type ICompactionResponse,
  type IDeleteRangeRequest,
  type IDeleteRangeResponse,
  type IPutRequest,
  type IPutResponse,
  type IRangeRequest,
  type IRangeResponse,
  type ITxnRequest,
  type ITxnResponse,
  type IWatchRequest,
  type IWatchResponse,
} from 'etcd3'
import type { ClusterClock } from '../ports.js'
import type { EtcdAddress, EtcdOptions, EtcdTls } from './etcd-options.js'
import { appendBytesMax, readRecordsMax } from './etcd-requests.js'

export interface EtcdMethods {
  readonly range: { readonly request: IRangeRequest; readonly response: IRangeResponse }
  readonly put: { readonly request: IPutRequest; readonly response: IPutResponse }
  readonly txn: { readonly request: ITxnRequest; readonly response: ITxnResponse }
  readonly deleteRange: { readonly request: IDeleteRangeRequest; readonly response: IDeleteRangeResponse }
  readonly compact: { readonly request: ICompactionRequest; readonly response: ICompactionResponse }
}

export type EtcdMethod = keyof EtcdMethods

/**
 * `gone`: the member cannot be reached, or has no leader. `refused`: it rejects us, or forbids the request. `full`: it
 * takes no changes, since its quota is exceeded (the alarm NOSPACE).
 */
export interface EtcdFailure {
  readonly gone: boolean
  readonly refusal?: 'refused' | 'full' | undefined
  readonly reason: string
}

export type OnEtcdAnswer<Response> = (failure: EtcdFailure | undefined, response: Response | undefined) => void

/** The events of a watch; `onEnd` comes last, and not after `cancel`. */
export interface WatchListener {
  onResponse(response: IWatchResponse): void
  onEnd(reason: string): void
}

export interface EtcdWatch {
  write(request: IWatchRequest): void
  cancel(): void
}

/** The part of the package's channels that is needed here; the package does not export their types. */
interface GrpcError extends Error {
  readonly code?: number
  readonly details?: string
}
interface GrpcMetadata {
  set(key: string, value: string): void
  clone(): GrpcMetadata
}
interface GrpcCall {
  cancel(): void
}
interface GrpcStream extends GrpcCall {
  write(request: unknown): void
  on(event: 'data', listener: (response: IWatchResponse) => void): void
  on(event: 'error', listener: (error: GrpcError) => void): void
  on(event: 'end', listener: () => void): void
}
type GrpcUnary = (
  request: unknown,
  metadata: GrpcMetadata,
  onDone: (error: GrpcError | null, response: unknown) => void,
) => GrpcCall
type Service = 'KV' | 'Watch' | 'Auth' | 'Maintenance'
interface Opened {
  readonly client: Readonly<Record<EtcdMethod, GrpcUnary>> & {
    authenticate(
      request: unknown,
      metadata: GrpcMetadata,
      options: { readonly deadline: number },
      onDone: (error: GrpcError | null, response: { readonly token: string }) => void,
    ): void
    watch(metadata: GrpcMetadata): GrpcStream
    status(
      request: unknown,
      metadata: GrpcMetadata,
      onDone: (error: GrpcError | null, response: { readonly version: string } | undefined) => void,
    ): void
    getChannel(): { getConnectivityState(tryToConnect: boolean): number }
  }
  readonly metadata: GrpcMetadata
}

/** gRPC's codes for failures, such as those of a member that is away or has no leader. */
const deadlineExceeded = 4
const permissionDenied = 7
const resourceExhausted = 8
const unavailable = 14

/** gRPC's states of channels that take requests at once, or begin to connect with the first. */
const idle = 0
const ready = 2

/** How long it may take to get a token, which etcd makes slow on purpose. */
const enterMs = 5000

/** After so long no request begins on a channel that was replaced: longer than it takes to get a token. */
const retireMs = 2 * enterMs

const invalidToken = /invalid auth token|user name is empty/
/** etcd's error for a client without credentials, when authentication is on. */
const namelessRefused = /user name is empty/
/** etcd's error when its quota is exceeded; other exhausted resources have the same code. */
const spaceExceeded = /database space exceeded/

const reasonLengthMax = 300

const channelOptions = {
  'grpc.max_receive_message_length': (readRecordsMax + 1) * appendBytesMax,
  'grpc.max_send_message_length': 2 * appendBytesMax,
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // etcd treats more than one ping in 5 s as an attack.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5000,
}

export class EtcdMember {
  private readonly channels = new Map<Service, ServiceChannel>()
  /** Channels of earlier certificates, and stuck ones: requests may still be about to use them. */
  private readonly retired = new Set<ServiceChannel>()
  private token: string | undefined
  private entering: ((failure: EtcdFailure | undefined) => void)[] = []
  private closed = false
  private tls: EtcdTls

  constructor(
    readonly name: string,
    private readonly address: EtcdAddress,
    private readonly clock: ClusterClock,
    private readonly options: EtcdOptions,
  ) {
    this.tls = options.tls
  }

  /**
   * Sends one request. The returned function abandons it: `onDone` is not called any more, but etcd may still execute
   * the request.
   */
  call<M extends EtcdMethod>(
    method: M,
    request: EtcdMethods[M]['request'],
    onDone: OnEtcdAnswer<EtcdMethods[M]['response']>,
  ): () => void {
    let call: GrpcCall | undefined
    let wanted = true
    const fail = (failure: EtcdFailure): void => {
      if (wanted) onDone(failure, undefined)
    }
    this.open('KV', fail, ({ client, metadata }) => {
      if (!wanted) return
      call = client[method](request, metadata, (error, response) => {
        if (!wanted) return
        wanted = false
        if (error) onDone(this.failureOf(error), undefined)
        else onDone(undefined, response as EtcdMethods[M]['response'])
      })
    })
    return () => {
      wanted = false
      call?.cancel()
    }
  }

  /**
   * Begins to watch. The watch ends when this member has no leader, since it would then miss the changes of the others.
   */
  watch(request: IWatchRequest, listener: WatchListener): EtcdWatch {
    let stream: GrpcStream | undefined
    let wanted = true
    const end = (reason: string): void => {
      if (!wanted) return
      wanted = false
      stream?.cancel()
      listener.onEnd(reason)
    }
    this.open(
      'Watch',
      ({ reason }) => end(reason),
      ({ client, metadata }) => {
        if (!wanted) return
        const own = metadata.clone()
        own.set('hasleader', 'true')
        stream = client.watch(own)
        stream.on('data', response => {
          if (wanted) listener.onResponse(response)
        })
        stream.on('error', error => end(this.failureOf(error).reason))
        stream.on('end', () => end('it has ended the watch'))
        stream.write(request)
      },
    )
    return {
      write: next => {
        if (wanted) stream?.write(next)
      },
      cancel: () => {
        wanted = false
        stream?.cancel()
      },
    }
  }

  /** Asks for the version of the member, once; undefined: it has not answered. */
  version(onDone: (version: string | undefined) => void): void {
    this.open(
      'Maintenance',
      () => onDone(undefined),
      ({ client, metadata }) =>
        client.status({}, metadata, (error, response) => onDone(error ? undefined : response?.version)),
    )
  }

  /** Later requests get connections of their own. A request or a watch in flight keeps its connection. */
  renew(tls: EtcdTls): void {
    this.tls = tls
    for (const channel of this.channels.values()) this.retire(channel)
    this.channels.clear()
  }

  /** Closes a channel once no request can be about to use it: a closed one throws. */
  private retire(channel: ServiceChannel): void {
    this.retired.add(channel)
    this.clock.after(retireMs, () => {
      this.retired.delete(channel)
      channel.close()
    })
  }

  close(): void {
    this.closed = true
    for (const channel of [...this.channels.values(), ...this.retired]) channel.close()
  }

  private open(service: Service, onFailure: (failure: EtcdFailure) => void, onOpen: (opened: Opened) => void): void {
    this.channelTo(service).opened.then(
      opened => {
        if (this.closed) return onFailure({ gone: true, reason: 'closed' })
        if (this.address.user === undefined || service === 'Auth') return onOpen(opened)
        this.enter(failure => {
          if (failure) return onFailure(failure)
          const metadata = opened.metadata.clone()
          metadata.set('token', this.token ?? '')
          onOpen({ client: opened.client, metadata })
        })
      },
      (error: Error) => onFailure(this.failureOf(error)),
    )
  }

  private channelTo(service: Service): ServiceChannel {
    const known = this.channels.get(service)
    if (known && !known.isStuck(this.clock.monoMs(), this.options.connectMs)) return known
    if (known) this.retire(known)
    const channel = new ServiceChannel(service, this.name, this.address.secure, this.tls)
    this.channels.set(service, channel)
    return channel
  }

  private enter(onDone: (failure: EtcdFailure | undefined) => void): void {
    if (this.token !== undefined) return onDone(undefined)
    this.entering.push(onDone)
    if (this.entering.length > 1) return
    const settle = (failure: EtcdFailure | undefined): void => {
      for (const waiting of this.entering.splice(0)) waiting(failure)
    }
    this.open('Auth', settle, ({ client, metadata }) => {
      const request = { name: this.address.user, password: this.address.password }
      client.authenticate(request, metadata, { deadline: Date.now() + enterMs }, (error, response) => {
        if (error) {
          const failure = this.failureOf(error)
          // The member answers and gives no token: it has refused the name or the password.
          return settle({ ...failure, refusal: failure.gone ? undefined : 'refused' })
        }
        this.token = response.token
        settle(undefined)
      })
    })
  }

  private failureOf(error: GrpcError): EtcdFailure {
    const said = error.details || error.message
    // etcd checks tokens before anything else; the next request gets a new one.
    if (invalidToken.test(said)) this.token = undefined
    const gone = this.closed || error.code === unavailable || error.code === deadlineExceeded
    const refused = error.code === permissionDenied || namelessRefused.test(said)
    const full = error.code === resourceExhausted && spaceExceeded.test(said)
    const refusal = refused ? 'refused' : full ? 'full' : undefined
    return { gone, refusal, reason: `${this.name}: ${said}`.slice(0, reasonLengthMax) }
  }
}

/** Uses the package to open a channel to one service. Each channel has a connection of its own. */
class ServiceChannel extends Etcd3 {
  readonly opened: Promise<Opened>
  private client: Opened['client'] | undefined
  /** The moment since when it is known not to be connected. */
  private awayMs: number | undefined

  constructor(service: Service, name: string, secure: boolean, { ca, cert, key }: EtcdTls) {
    super({
      hosts: `${secure ? 'https' : 'http'}://${name}`,
      grpcOptions: channelOptions,
      ...(secure &&
        ca && {
          credentials: { rootCertificate: ca, ...(key && { privateKey: key }), ...(cert && { certChain: cert }) },
        }),
    })
    this.opened = this.pool.withConnection(service, ({ client, metadata }) => {
      this.client = client as unknown as Opened['client']
      return { client: this.client, metadata: metadata as GrpcMetadata }
    })
  }

  /** Ask this before each use: whether the channel was unconnected at every such moment for more than `connectMs`. */
  isStuck(nowMs: number, connectMs: number): boolean {
    const state = this.client?.getChannel().getConnectivityState(false) ?? idle
    if (state === idle || state === ready) this.awayMs = undefined
    else this.awayMs ??= nowMs
    return this.awayMs !== undefined && nowMs - this.awayMs > connectMs
  }
}
