// Keys and rows of subscriptions and registrations, and of the progress of notifications: prefixes S, R and P of
// layout.ts.

import { assertVersion } from '../../domain/unreadable.js'
import type { DocumentKind } from '../../messages/messages.js'
import type { Range } from '../../ports.js'
import { KeyReader, prefix, under, writer } from '../keys.js'

export interface DocumentKey {
  /** The number of the register. */
  readonly register: number
  readonly tenant: string
  readonly id: string
}

export const documentKey = (kind: DocumentKind, { register, tenant, id }: DocumentKey): Buffer =>
  writer.begin(prefix[kind]).u16(register).text(tenant).text(id).key()

/** The parts of the key of a document or of its progress. */
export function parseDocumentKey(key: Buffer): DocumentKey {
  const reader = new KeyReader(key)
  return { register: reader.u16(), tenant: reader.text(), id: reader.text() }
}

/** The range of documents of a kind, of all tenants. */
export const documentRange = (kind: DocumentKind, register: number): Range =>
  under(writer.begin(prefix[kind]).u16(register).key())

export const allDocuments = (kind: DocumentKind): Range => under(Buffer.from([prefix[kind]]))

const rowVersion = 1

/** The row of a document: a version, and its text (`Form.encode`). */
export function encodeDocumentRow(text: string): Buffer {
  const row = Buffer.allocUnsafe(1 + Buffer.byteLength(text))
  row[0] = rowVersion
  row.write(text, 1)
  return row
}

/** The text of a row. Fails with `Unreadable` for one of another version. */
export function decodeDocumentRow(row: Buffer): string {
  assertVersion('a stored subscription or registration', row[0], rowVersion)
  return row.toString('utf8', 1)
}

export const progressKey = ({ register, tenant, id }: DocumentKey): Buffer =>
  writer.begin(prefix.progress).u16(register).text(tenant).text(id).key()

/** The range of the progress of all subscriptions. */
export const progressRange = (register: number): Range => under(writer.begin(prefix.progress).u16(register).key())

export const allProgress = (): Range => under(Buffer.from([prefix.progress]))
