// The certificates that clients of the node:http front have shown
// (docs/operations/certificates.md#certificates-of-clients).
//
// TLS verifies a certificate when its connection begins, and a connection may last for months. It is revoked when its
// certificate has ended, and when its authority is not trusted any more: then it serves no further request, and ends.
//
//   authorities so far   A  B       a connection with a certificate of A is revoked
//   new authorities         B  C    one with a certificate of B continues
//
// Only authorities that are in both files count for a connection. So an authority that was replaced by another one of
// its name does not keep the connections of the old one.
//
// Not here: the settings of TLS (tls.ts), the principals of certificates (access/).

import type { X509Certificate } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { certificatesOfText, endOf } from './pem.js'

/** Time between two looks at the ends of certificates. */
const lookMs = 1_000

/** A connection is revoked so long after the end of its certificate: its streams end before that, with the reason. */
const afterEndMs = 1_000

/** Authorities between a certificate and the end of its chain. */
const chainLengthMax = 10

export interface RevocableConnection {
  /** Serves no further request, and ends when those in progress are answered. */
  revoke(): void
}

/** Whether a connection was refused because its client has shown no certificate, or one that could not be verified. */
const isUnverified = (error: NodeJS.ErrnoException, socket: TLSSocket): boolean =>
  error.code === 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE' || Boolean(socket.authorizationError)

interface Followed {
  readonly certificate: X509Certificate
  readonly endsMs: number
}

/** What a front does with connections, as far as certificates need it. */
export interface CertificateRules {
  readonly isRequired: boolean
  /** Called for each connection that is refused or revoked. */
  onDropped(): void
}

export class ClientCertificates {
  /** By the socket of their requests. */
  readonly #shown = new WeakMap<Duplex, X509Certificate>()
  readonly #followed = new Map<RevocableConnection, Followed>()
  readonly #rules: CertificateRules
  #authorities: readonly X509Certificate[]
  #timer: NodeJS.Timeout | undefined

  /** `clientCa`: the authorities, as PEM. */
  constructor(clientCa: Buffer, rules: CertificateRules) {
    this.#authorities = authoritiesIn(clientCa)
    this.#rules = rules
  }

  /**
   * Whether the requests of a new connection may be served. Then it is followed until it is removed, or revoked. A
   * certificate that TLS could not verify is never accepted, even where none is needed.
   */
  admit(socket: TLSSocket, connection: RevocableConnection): boolean {
    const certificate = socket.getPeerX509Certificate()
    const isAccepted = certificate ? socket.authorized : !this.#rules.isRequired
    if (!isAccepted) this.#rules.onDropped()
    else if (certificate) {
      this.#shown.set(socket, certificate)
      this.#followed.set(connection, { certificate, endsMs: endOf(certificate) })
      this.#timer ??= setInterval(() => this.#look(), lookMs).unref()
    }
    return isAccepted
  }

  /** The handshake of a connection has failed. */
  onFailed(error: NodeJS.ErrnoException, socket: TLSSocket): void {
    if (isUnverified(error, socket)) this.#rules.onDropped()
  }

  /** The certificate that the client of a connection has shown; undefined: none. */
  of(socket: Duplex): X509Certificate | undefined {
    return this.#shown.get(socket)
  }

  remove(connection: RevocableConnection): void {
    this.#followed.delete(connection)
    if (this.#followed.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** From now on these authorities are trusted. Revokes the connections that they do not verify. */
  trust(clientCa: Buffer): void {
    const before = this.#authorities
    this.#authorities = authoritiesIn(clientCa)
    const kept = before.filter(one => this.#authorities.some(other => isSame(one, other)))
    if (kept.length < before.length) this.#revoke(({ certificate }) => !isVerifiedBy(certificate, kept))
  }

  #look(): void {
    const nowMs = Date.now()
    this.#revoke(({ endsMs }) => !(nowMs < endsMs + afterEndMs))
  }

  #revoke(isOver: (followed: Followed) => boolean): void {
    const over = [...this.#followed].filter(([, followed]) => isOver(followed))
    for (const [connection] of over) {
      this.remove(connection)
      this.#rules.onDropped()
      connection.revoke()
    }
  }
}

const authoritiesIn = (pem: Buffer): readonly X509Certificate[] => certificatesOfText(String(pem), 'the file')

const isSame = (a: X509Certificate, b: X509Certificate): boolean => a.fingerprint256 === b.fingerprint256

/** Whether a chain leads from a certificate that TLS has verified before to one of these authorities. */
function isVerifiedBy(certificate: X509Certificate, authorities: readonly X509Certificate[]): boolean {
  const sent = sentBehind(certificate)
  let last = certificate
  for (let length = 0; length < chainLengthMax; length++) {
    const child = last
    const authority = authorities.find(one => hasIssued(one, child))
    if (authority && hasIssued(authority, authority)) return true
    const next = authority ?? sent.find(one => hasIssued(one, child))
    if (!next) return false
    last = next
  }
  return false
}

/** Further certificates that the client has sent, which may be part of the chain. */
function sentBehind(certificate: X509Certificate): readonly X509Certificate[] {
  const sent: X509Certificate[] = []
  for (let one = certificate.issuerCertificate; one && sent.length < chainLengthMax; one = one.issuerCertificate)
    sent.push(one)
  return sent
}

const hasIssued = (issuer: X509Certificate, certificate: X509Certificate): boolean =>
  issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
