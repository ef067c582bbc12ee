// Keys and rows of subscriptions and registrations, and of what became of notifications: prefixes S, R and P of layout.ts.

import type { DocumentKind } from '../../messages/messages.js'
import type { Range } from '../../ports.js'
import { decodeNumber, encodeNumber, KeyReader, prefix, under, writer } from '../keys.js'

export interface DocumentKey {
  /** The home shard of the tenant. */
  readonly home: number
  readonly tenant: string
  readonly id: string
}

export const documentKey = (kind: DocumentKind, { home, tenant, id }: DocumentKey): Buffer =>
  writer.begin(prefix[kind]).u16(home).text(tenant).text(id).key()

/** What the key of a document says, or that of what became of it. */
export function parseDocumentKey(key: Buffer): DocumentKey {
  const reader = new KeyReader(key)
  return { home: reader.u16(), tenant: reader.text(), id: reader.text() }
}

/** The documents of a kind of all tenants whose home is a shard. */
export const homeRange = (kind: DocumentKind, home: number): Range => under(writer.begin(prefix[kind]).u16(home).key())

export const allDocuments = (kind: DocumentKind): Range => under(Buffer.from([prefix[kind]]))

const revisionBytes = 8

/** The row of a document: its revision and its text (`Form.encode`); without a text it was removed, and others are yet to be told. */
export const encodeDocumentRow = (revision: number, text: string): Buffer =>
  Buffer.concat([encodeNumber(revision), Buffer.from(text)])

export function decodeDocumentRow(row: Buffer): { readonly revision: number; readonly text: string } {
  return { revision: decodeNumber(row), text: row.toString('utf8', revisionBytes) }
}

export const progressKey = ({ home, tenant, id }: DocumentKey): Buffer =>
  writer.begin(prefix.progress).u16(home).text(tenant).text(id).key()

/** The progress of all subscriptions whose home is a shard. */
export const progressRange = (home: number): Range => under(writer.begin(prefix.progress).u16(home).key())

export const allProgress = (): Range => under(Buffer.from([prefix.progress]))
