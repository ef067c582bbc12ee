// The names of a client certificate, in the form of the access file (docs/interface/access.md#certificates).
//
//   Node.js, in the order of the certificate     O=City\nCN=gateway-9
//   OpenSSL in the form of RFC 2253              CN=gateway-9,O=City
//
// Node.js escapes values as RFC 2253 wants, apart from letters outside ASCII. Names with attributes that have no short
// name are not in the form of OpenSSL, so the file cannot have them.
//
// Not here: whether the certificate is right. TLS has verified it.

import type { X509Certificate } from 'node:crypto'
import type { ShownCertificate } from './proof.js'

/** What a verified certificate shows. */
export const shownCertificate = ({
  subject,
  subjectAltName,
  validTo,
}: Pick<X509Certificate, 'subject' | 'subjectAltName' | 'validTo'>): ShownCertificate => ({
  subject: subjectText(subject ?? ''),
  otherNames: otherNamesIn(subjectAltName ?? ''),
  endsMs: Date.parse(validTo),
})

/** Each line is one part of the name, or several with ` + ` between them. A plus in a value is escaped. */
const subjectText = (lines: string): string =>
  lines
    .split('\n')
    .reverse()
    .map(line => line.split(' + ').reverse().join('+'))
    .join(',')
    .replace(/[^\x20-\x7e]+/g, text => [...Buffer.from(text)].map(escapedByte).join(''))

const escapedByte = (byte: number): string => `\\${byte.toString(16).toUpperCase().padStart(2, '0')}`

/** A kind and a value. Node.js puts values with commas or quotes into quotes, as in JSON. */
const otherName = /(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)/g

function otherNamesIn(text: string): readonly string[] {
  const names: string[] = []
  for (const [, kind, value] of text.matchAll(otherName)) {
    if (kind !== 'DNS' && kind !== 'URI') continue
    names.push(`${kind}:${value!.startsWith('"') ? unquoted(value!) : value}`)
  }
  return names
}

function unquoted(value: string): string {
  try {
    return String(JSON.parse(value))
  } catch {
    return value
  }
}
