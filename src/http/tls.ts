// The certificates of the HTTP port: the TLS settings of both servers, and the check of a key and a certificate, and of
// the authorities of clients.
//
// A certificate may be replaced while clients are connected (`Front.renewTls`). A pair is checked before a server gets
// it, because uWebSockets.js would only report that it cannot be used.
//
// Where clients show certificates, no session of TLS is resumed or negotiated anew: the certificate of each connection
// is verified, at its beginning, by the authorities of that moment.
//
// Not here: detecting changed files (src/process/certificate-watch.ts), the certificates of clients
// (client-certificates.ts).

import { constants } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { TlsContents, TlsFiles } from './front.js'
import { certificatesOfText } from './pem.js'

/** The only suites that are offered: with forward secrecy and authenticated encryption, like all suites of TLS 1.3. */
const suites13 = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256']
export const suites12 = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

/** TLS settings, with the contents of the files. */
export interface UsableTls {
  readonly contents: TlsContents
  readonly options: SecureContextOptions
}

/** Reads the PEM files. Throws an error with a clear text when they cannot be used. */
export const readTls = (tls: TlsFiles): UsableTls =>
  usable(tls, () => ({
    key: readFileSync(tls.keyFile),
    cert: readFileSync(tls.certFile),
    clientCa: tls.clients && readFileSync(tls.clients.caFile),
  }))

/** The same check for files that were already read. */
export const checkTls = (tls: TlsFiles, contents: TlsContents): UsableTls => usable(tls, () => contents)

function usable(tls: TlsFiles, read: () => TlsContents): UsableTls {
  const { keyFile, certFile, clients } = tls
  try {
    const contents = read()
    const { key, cert, clientCa } = contents
    const options = {
      key,
      cert,
      minVersion: `TLSv${tls.minVersion}`,
      ciphers: [...suites13, ...suites12].join(':'),
      ...(clients && askingClients(clients.caFile, clientCa)),
    } as const
    createSecureContext(options)
    return { contents, options }
  } catch (cause) {
    const files = [keyFile, ...(clients ? [certFile, clients.caFile] : [certFile])]
    throw new Error(`cannot use the TLS files ${files.join(' and ')}: ${(cause as Error).message}`, { cause })
  }
}

/** Without a file node would trust all authorities that it knows. */
function askingClients(caFile: string, ca: Buffer | undefined): SecureContextOptions {
  certificatesOfText(String(ca ?? ''), caFile)
  return { ca, secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION }
}
