// Follows the rows of the register, which all owners need: subscriptions, registrations, service paths, and marks of
// tenants that are being deleted. When the store has a row, or is about to, memory gets its content, whichever owner
// decided about it.
//
// The progress of subscriptions (P) stays in the store until this node becomes the register's owner.

import type { StoreReader } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import { prefix } from '../keys.js'
import type { RowOperation } from '../replicate/row-operations.js'
import { isMarkKey } from '../tenants/deletion-layout.js'
import type { TenantMarks } from '../tenants/tenant-marks.js'
import { decodeDocumentRow, documentRange, parseDocumentKey } from './document-layout.js'
import type { Registrations, Subscriptions } from './forms.js'
import type { PathRegister } from './path-register.js'

/** The parts that receive the rows. */
export interface RegisterBooks {
  readonly subscriptions: Subscriptions
  readonly registrations: Registrations
  readonly paths: PathRegister
  readonly marks: TenantMarks
}

const rowsPerRead = 1000

export class RegisterFollower {
  private readonly store: StoreReader
  private readonly books: RegisterBooks
  private readonly register: number

  constructor(store: StoreReader, books: RegisterBooks, register: number) {
    this.store = store
    this.books = books
    this.register = register
  }

  /** Takes rows that have been written into memory. */
  follow(operations: readonly RowOperation[]): void {
    const { subscriptions, registrations, paths, marks } = this.books
    for (const { key, value } of operations)
      switch (key[0]) {
        case prefix.subscription:
          follow(subscriptions, key, value)
          break
        case prefix.registration:
          follow(registrations, key, value)
          break
        case prefix.path:
          if (isMarkKey(key)) marks.follow(key, value)
          else if (value) paths.note(key)
          else paths.leave(key)
      }
  }

  /**
   * Discards what memory has of some rows, and reads them from the store. Memory has no path before the store has it.
   */
  revert(keys: readonly Buffer[]): void {
    const rows = keys.map(key => ({ key, value: this.store.get(key) }))
    this.follow(rows.filter(({ key, value }) => value !== undefined || key[0] !== prefix.path || isMarkKey(key)))
  }

  /** Forgets documents and marks whose rows were deleted without a call: a snapshot has replaced the rows. */
  async reconcile(): Promise<void> {
    await this.books.marks.reconcile()
    for (const documents of [this.books.subscriptions, this.books.registrations]) {
      const there = new Set<string>()
      const range = documentRange(documents.kind, this.register)
      for await (const rows of rowsOf(this.store, range, { rowsPerRead, parts: 'keys' }))
        for (const { key } of rows) {
          const { tenant, id } = parseDocumentKey(key)
          there.add(`${tenant}\0${id}`)
        }
      for (const { tenant, id } of [...documents.all()])
        if (!there.has(`${tenant}\0${id}`)) documents.forget(tenant, id)
    }
  }
}

function follow(documents: Subscriptions | Registrations, key: Buffer, value: Buffer | undefined): void {
  const { tenant, id } = parseDocumentKey(key)
  const text = value && decodeDocumentRow(value)
  if (text !== undefined) documents.adopt(text)
  else documents.forget(tenant, id)
}
