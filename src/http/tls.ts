// The certificate of the HTTP port: the TLS settings of both servers, and the check of a key and a certificate.
//
// A certificate may be replaced while clients are connected (`Front.renewTls`). A pair is checked before a server gets
// it, because uWebSockets.js would only report that it cannot be used.
//
// Not here: detecting changed files (src/process/certificate-watch.ts).

import { readFileSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { TlsFiles, TlsPair } from './front.js'

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

/** Reads the two PEM files. Throws an error with a clear text when they cannot be used. */
export function readTls(tls: TlsFiles): SecureContextOptions {
  return usable(tls, () => ({ key: readFileSync(tls.keyFile), cert: readFileSync(tls.certFile) }))
}

/** The same check for files that were already read. */
export const checkTls = (tls: TlsFiles, pair: TlsPair): SecureContextOptions => usable(tls, () => pair)

function usable(tls: TlsFiles, read: () => TlsPair): SecureContextOptions {
  try {
    const options = {
      ...read(),
      minVersion: `TLSv${tls.minVersion}`,
      ciphers: [...suites13, ...suites12].join(':'),
    } as const
    createSecureContext(options)
    return options
  } catch (cause) {
    throw new Error(`cannot use the TLS files ${tls.keyFile} and ${tls.certFile}: ${(cause as Error).message}`, {
      cause,
    })
  }
}
