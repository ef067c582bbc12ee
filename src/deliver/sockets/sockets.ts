// Opens the sockets to receivers of notifications and to context providers, plain or TLS, and gives the reason in plain
// words when one could not be opened or broke.
//
// TLS is verified against the certificates of Node, those of the system if it keeps them in one of the usual files, and
// those of the operator's own file. They are read once, for the first connection that needs them: some 60 ms on a quiet
// core, unless Node has them all. They are read once more when the operator's file has changed. The certificate must
// name the host of the URL, whatever a `Host` header contains.
//
// The system's resolver runs on the threads of the process that the store also uses, four by default. A name whose
// server does not answer keeps one of them for ten seconds and more. So two names are looked up at a time, each once.
// Node's other resolver needs no threads but ignores /etc/hosts, so it is not used.
//
// Not here: deadlines and numbers (notifier, forwarder).

import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { readFileSync } from 'node:fs'
import { connect as connectPlain, isIP, type LookupFunction, Socket } from 'node:net'
import { connect as connectTls, createSecureContext, rootCertificates, type SecureContext } from 'node:tls'
import type { buildConnector } from 'undici'
import { type Egress, EgressDenied } from './egress.js'
import { OutgoingConnections } from './outgoing-connections.js'

export interface TlsOptions {
  /** Certificates are not verified (`-insecureNotif`). */
  readonly insecure: boolean
  /** PEM file of certificates that are trusted besides the usual ones. */
  readonly caFile: string | undefined
}

/** The target of a socket. */
export interface Endpoint {
  readonly protocol: string
  /** As written in a URL: an IPv6 address has brackets. */
  readonly host: string
  readonly port: number
}

/** Whether a protocol uses TLS: `https:`, `mqtts:` and others of that form. */
const isTls = ({ protocol }: Pick<Endpoint, 'protocol'>): boolean => protocol.endsWith('s:')

/** The event of a socket that signals that it can be used. */
export const connectedEvent = (endpoint: Endpoint): string => (isTls(endpoint) ? 'secureConnect' : 'connect')

/** Opens a socket; it connects while the caller waits for its events. */
export type OpenSocket = (endpoint: Endpoint) => Socket

/** Files where systems keep the certificates they trust: Debian, Red Hat, SUSE, Alpine and BSD. */
const systemFiles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** Time without traffic before the system checks that the other side is still there. */
const tcpKeepAliveMs = 60_000

/** The certificates that are trusted. */
export class Trust {
  readonly isInsecure: boolean
  /** The content of the operator's own file. */
  private given: string
  private known: SecureContext | undefined

  /** Reads the operator's file now, and throws if it cannot. */
  constructor({ insecure, caFile }: TlsOptions) {
    this.isInsecure = insecure
    this.given = caFile === undefined ? '' : readFileSync(caFile, 'utf8')
  }

  get context(): SecureContext {
    this.known ??= this.isInsecure ? createSecureContext() : trusting(systemCertificates() + this.given)
    return this.known
  }

  /** Sets the present content of the operator's file, for sockets that are opened later. Open sockets go on. */
  renew(pem: string): void {
    this.given = pem
    this.known = undefined
  }
}

/**
 * Returns the function that opens sockets. Throws if the operator's file cannot be read. `egress` undefined: no rules.
 */
export function openSockets(tls: TlsOptions | Trust, egress?: Egress): OpenSocket {
  const trust = tls instanceof Trust ? tls : new Trust(tls)
  const lookupAny = sharedLookup()
  const open = egress && new OutgoingConnections(egress)
  const noted = (socket: Socket, target: Pick<Endpoint, 'host' | 'port'>): Socket => open?.add(socket, target) ?? socket

  return ({ protocol, host: written, port }) => {
    const host = written.startsWith('[') ? written.slice(1, -1) : written
    if (egress && isIP(host) !== 0 && !egress.mayConnect(host, port, host))
      return new Socket().destroy(new EgressDenied())
    const lookup = egress ? lookupAllowed(lookupAny, egress, port) : lookupAny
    const options = { host, port, lookup, noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepAliveMs }
    if (!isTls({ protocol })) return noted(connectPlain(options), options)
    const servername = isIP(host) ? '' : host
    const { context: secureContext, isInsecure } = trust
    return noted(connectTls({ ...options, servername, secureContext, rejectUnauthorized: !isInsecure }), options)
  }
}

/** The connector of an undici client; `onSocket` receives each socket while it is still connecting. */
export const connectorTo =
  (endpoint: Endpoint, openSocket: OpenSocket, onSocket: (socket: Socket) => void): buildConnector.connector =>
  (_options, callback) => {
    const socket = openSocket(endpoint)
    onSocket(socket)
    // The error is wrapped as a cause: undici would retry some errors for ever.
    const onError = (cause: Error): void => callback(new Error('not connected', { cause }), null)
    socket.once('error', onError)
    socket.once(connectedEvent(endpoint), () => {
      // The owner of the socket has given it up; its error gives the reason.
      if (socket.destroyed) return
      socket.off('error', onError)
      callback(null, socket)
    })
  }

/** Lookups at a time. */
const lookupsMax = 2

type Found = (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void
type SystemLookup = (name: string, found: Found) => void

const bySystem: SystemLookup = (name, found) => systemLookup(name, { all: true, order: 'verbatim' }, found)

/** A `lookup` for sockets. Concurrent callers that ask for the same name share the answer. */
export function sharedLookup(lookup: SystemLookup = bySystem): LookupFunction {
  const asking = new Map<string, Found[]>()
  const waiting: string[] = []
  let running = 0

  const run = (): void => {
    while (running < lookupsMax && waiting.length > 0) {
      const name = waiting.shift()!
      running++
      lookup(name, (error, addresses) => {
        running--
        const askers = asking.get(name) ?? []
        asking.delete(name)
        for (const found of askers) found(error, addresses)
        run()
      })
    }
  }

  return (name, { all }, found) => {
    const answer: Found = (error, addresses) => {
      const [first] = addresses ?? []
      if (error || !first) found(error ?? new Error(`no address for ${name}`), '')
      else if (all) found(null, [...addresses])
      else found(null, first.address, first.family)
    }
    const askers = asking.get(name)
    if (askers) askers.push(answer)
    else {
      asking.set(name, [answer])
      waiting.push(name)
      run()
    }
  }
}

/** Like `lookup`, without the denied addresses: the socket connects only to an address that is left. */
function lookupAllowed(lookup: LookupFunction, egress: Egress, port: number): LookupFunction {
  return (name, options, found) =>
    lookup(name, { ...options, all: true }, (error, addresses) => {
      if (error) return found(error, '')
      const allowed = (addresses as LookupAddress[]).filter(({ address }) => egress.mayConnect(name, port, address))
      const [first] = allowed
      if (!first) found(new EgressDenied(), '')
      else if (options.all) found(null, allowed)
      else found(null, first.address, first.family)
    })
}

/** Trusts the certificates of Node, and those in this text. */
function trusting(pem: string): SecureContext {
  const bare = (certificate: string): string => certificate.replace(/\s+/g, '')
  const known = new Set(rootCertificates.map(bare))
  const found = pem.match(/-----BEGIN (TRUSTED )?CERTIFICATE-----[^-]+-----END (TRUSTED )?CERTIFICATE-----/g) ?? []
  const others = found.filter(certificate => !known.has(bare(certificate)))
  return createSecureContext(others.length === 0 ? {} : { ca: [...rootCertificates, ...others] })
}

function systemCertificates(): string {
  for (const file of systemFiles) {
    try {
      return readFileSync(file, 'utf8')
    } catch {
      // Try the next one.
    }
  }
  return ''
}

/** The reasons listed in docs/interface/notifications.md#outcomes. */
export const reasons = {
  timeout: 'Timeout was reached',
  connect: "Couldn't connect to server",
  resolve: "Couldn't resolve host name",
  certificate: 'Peer certificate cannot be authenticated with given CA certificates',
  empty: 'Server returned nothing (no headers, no data)',
  denied: 'The target is denied here',
  own: 'This broker takes only /v2/entities, /v2/op/update and /v2/op/notify from itself, in the tenant and path of the subscription',
  tooBig: 'total outgoing message size is too big',
} as const

// Codes of the system, of OpenSSL's verification, of TLS and of the HTTP parser, in this order.
const reasonsByCode: readonly (readonly [RegExp, string])[] = [
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|EADDRNOTAVAIL)$/, reasons.connect],
  [/^(ENOTFOUND|EAI_\w+)$/, reasons.resolve],
  [/^ETIMEDOUT$/, reasons.timeout],
  [/^ERR_EGRESS_DENIED$/, reasons.denied],
  [/^ERR_OWN_LISTENER_DENIED$/, reasons.own],
  [/^(CERT_|CRL_|ERR_TLS_CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERROR_IN_C)/, reasons.certificate],
  [/^(INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH)$/, reasons.certificate],
  [/^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET)$/, reasons.empty],
  [/^(EPROTO|ERR_SSL_|ERR_TLS_)/, 'SSL connect error'],
  [/^HPE_HEADER_OVERFLOW|^UND_ERR_HEADERS_OVERFLOW/, 'The header of the answer is too large'],
  [/^(HPE_|HTTPParserError)/, 'The answer is not HTTP'],
  [/^(EMFILE|ENFILE)$/, 'No more files can be opened here'],
]

/** Characters of a library's message in a reason that has no words of its own. */
const detailLengthMax = 100

/** The reason of a failed connection, in the words that a subscription shows as `lastFailureReason`. */
export function reasonOf(error: Error): string {
  const code = codeOf(error)
  const known = reasonsByCode.find(([codes]) => codes.test(code))
  if (known) return known[1]
  const said = error.message.slice(0, detailLengthMax)
  // The text with which an MQTT broker refuses a connection.
  return code === 'ErrorWithReasonCode' ? said : `Failed to send or receive (${code}: ${said})`
}

/** The message was not sent because its target is denied: another try would end in the same way. */
export const isDenied = (error: Error): boolean => /^ERR_(EGRESS|OWN_LISTENER)_DENIED$/.test(codeOf(error))

/** The connection was lost without a reason from the other side. */
export const isLost = (error: Error): boolean => /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/.test(codeOf(error))

function codeOf(error: Error): string {
  const { code, name } = (error.cause ?? error) as NodeJS.ErrnoException
  return typeof code === 'string' ? code : name
}
