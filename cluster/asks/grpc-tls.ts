// The nodes that may take part when TLS is on: exactly those with a certificate of the cluster's CA.
//
// Both sides show a certificate and verify the other's against that CA alone. The name in it does not count, since
// nodes move. So every certificate of this CA is a member, under any node's name, and may read and change everything. A
// CA that also signs for others lets them in. A CA whose key was lost has to be replaced: there are no revocation lists
// here. A certificate with extended key usage must allow both server and client.
//
// Certificates may be replaced while connections are open (`Identity.renew`). Open connections keep the certificates
// that they have verified; later ones show and verify the new ones.
//
// Not here: sockets (grpc-transport.ts, grpc-channel.ts).

import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext, type TlsOptions } from 'node:tls'

/** PEM texts: this node's certificate with the chain to the CA, its key, and the CA. */
export interface Certificates {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

/** Certificates in the forms in which connections need them. */
interface Readable {
  /** For connections to others. */
  readonly context: SecureContext
  /** For a server for others. */
  readonly server: TlsOptions
  /** When our own certificate ends. */
  readonly endsMs: number
}

/** The present certificates of this node. */
export class Identity {
  private current: Readable
  private readonly listeners = new Set<() => void>()

  /** Fails as `readCertificates` does. */
  constructor(certificates: Certificates) {
    this.current = readCertificates(certificates)
  }

  get context(): SecureContext {
    return this.current.context
  }

  get server(): TlsOptions {
    return this.current.server
  }

  get endsMs(): number {
    return this.current.endsMs
  }

  /** New connections get these certificates. Fails as `readCertificates` does, and then keeps the old ones. */
  renew(certificates: Certificates): void {
    this.current = readCertificates(certificates)
    for (const listener of this.listeners) listener()
  }

  /** Calls back after each `renew`, until the returned function is called. */
  onRenew(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
}

const minVersion = 'TLSv1.2'

/** The protocols that may be spoken over TLS, by their ALPN names. */
export const protocols = ['h2']

/** How long the TLS handshake of another process may take. */
const handshakeMsMax = 5_000

/** Reads certificates. Fails with a sentence for the operator when they are none, or do not belong together. */
export function readCertificates({ cert, key, ca }: Certificates): Readable {
  const material = { cert, key, ca, minVersion } as const
  try {
    const server = {
      ...material,
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: protocols,
      handshakeTimeout: handshakeMsMax,
    }
    for (const pem of [cert, ca]) new X509Certificate(pem)
    return { context: createSecureContext(material), server, endsMs: Date.parse(new X509Certificate(cert).validTo) }
  } catch (error) {
    const said = (error as Error).message
    throw new Error(`the cluster's certificate, key and CA cannot be used: ${said}`, { cause: error })
  }
}

/** Why a node does not listen at an address that other machines reach. */
export const unprotected = (address: string): string =>
  `without TLS every process that can connect to ${address} could join the cluster: give -clusterCert, -clusterKey and -clusterCa, or -clusterInsecure if the network is protected otherwise`

const notOfOurs = "its certificate is not of this cluster's CA"
const noTls = 'it does not speak TLS'

const words: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  INVALID_PURPOSE: 'its certificate is not for servers',
  CERT_SIGNATURE_FAILURE: notOfOurs,
  DEPTH_ZERO_SELF_SIGNED_CERT: notOfOurs,
  SELF_SIGNED_CERT_IN_CHAIN: notOfOurs,
  UNABLE_TO_GET_ISSUER_CERT: notOfOurs,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: notOfOurs,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: notOfOurs,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
}

/** The meaning of a failed TLS handshake, if this is one. */
export function inWords(failure: NodeJS.ErrnoException): string | undefined {
  return words[failure.code ?? '']
}

/** Why the other side may have closed a connection before its first word. `identity`: ours, when TLS is on. */
export function whyClosed(identity: Identity | undefined): string {
  if (!identity) return 'it has closed the connection before a word: perhaps it wants TLS'
  if (identity.endsMs < Date.now()) return 'it has closed the connection: the certificate of this node has expired'
  return 'it has closed the connection: perhaps it does not accept the certificate of this node'
}
