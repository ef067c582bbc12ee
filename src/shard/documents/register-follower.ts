// What all owners need is in the register: subscriptions, registrations, service paths, and marks of tenants that are
// being deleted. Here it is followed: what a row says is known in memory as soon as the store has it, or is about to,
// whoever decided about it.
//
// What became of notifications (P) stays in the store until this node becomes the register's owner.

import type { StoreReader } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import { prefix } from '../keys.js'
import type { RowOperation } from '../replicate/row-operations.js'
import { isMarkKey } from '../tenants/deletion-layout.js'
import type { TenantMarks } from '../tenants/tenant-marks.js'
import { decodeDocumentRow, documentRange, parseDocumentKey } from './document-layout.js'
import type { Registrations, Subscriptions } from './forms.js'
import type { PathRegister } from './path-register.js'

/** What it tells. */
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

  /** Rows have been written. */
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
          else if (value) paths.hear(key)
          else paths.leave(key)
      }
  }

  /**
   * What was known of some rows is lost, and the store has what is true. Of a path nothing is known before the store
   * has it.
   */
  revert(keys: readonly Buffer[]): void {
    const rows = keys.map(key => ({ key, value: this.store.get(key) }))
    this.follow(rows.filter(({ key, value }) => value !== undefined || key[0] !== prefix.path || isMarkKey(key)))
  }

  /**
   * Forgets documents and marks whose rows have gone without anybody having told of it: a snapshot has replaced what
   * was there.
   */
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
