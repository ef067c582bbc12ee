// Certificates in PEM files, read for a start and again while the broker runs.

import { X509Certificate } from 'node:crypto'

const pemCertificate = /-----BEGIN (TRUSTED )?CERTIFICATE-----[^-]+-----END (TRUSTED )?CERTIFICATE-----/g

/**
 * The certificates in a text. Throws an error with a sentence when there is none, or one that cannot be read. `what`
 * names the text.
 */
export function certificatesOfText(text: string, what: string): X509Certificate[] {
  const found = text.match(pemCertificate) ?? []
  if (found.length === 0) throw new Error(`${what} holds no certificate`)
  try {
    return found.map(one => new X509Certificate(one.replaceAll('TRUSTED ', '')))
  } catch (error) {
    throw new Error(`${what} holds a certificate that cannot be read: ${(error as Error).message}`)
  }
}

/** The end of a certificate's validity, in milliseconds since 1970. */
export const endOf = ({ validTo }: Pick<X509Certificate, 'validTo'>): number => Date.parse(validTo)
