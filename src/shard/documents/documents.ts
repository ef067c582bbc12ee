// The documents of one kind (subscriptions, registrations) at an owner of shards: those of all tenants, in memory and
// in its store.
//
// Memory has the staged state; the store follows with the commit that `put` and `remove` set in `stagedIn`. A caller
// that passes on what it reads here waits for that commit first. All rows are read at start. Texts that can wait are
// decoded at the first use of the document, because decoding takes longer than all the rest: 100,000 of 600 bytes are
// read in half a second and decoded in 0.7, and then take 1.2 KB each. The progress of a subscription's notifications
// is kept beside it, each owner has its own part (progress-book.ts).
//
// Not here: the decisions about changes (document-owner.ts), how owners receive each other's changes (register.ts), the
// use of documents.

import type { ShardMap } from '../../domain/scope.js'
import { partitionPoint } from '../../domain/search.js'
import type { DocumentKind } from '../../messages/messages.js'
import type { StoreReader } from '../../ports.js'
import { readRow } from '../../rows.js'
import { allDocuments, decodeDocumentRow, documentKey, encodeDocumentRow, parseDocumentKey } from './document-layout.js'
import type { Register } from './register.js'

const rowsPerRead = 1000

/** The fields that all kinds have. */
export interface Document {
  /** Increasing with creation. */
  readonly id: string
  readonly tenant: string
  readonly servicePath: string
}

/** The properties of a kind. `P`: the progress that is kept beside a document. */
export interface Form<T extends Document, P> {
  readonly kind: DocumentKind
  /** Never empty. */
  encode(document: T): string
  decode(text: string): T
  /** A function that decodes many texts, one after the other. */
  decoder(): (text: string) => T
  /** Whether a text that was read at start is certain to be decoded well at any later time; undefined: no text is. */
  readonly canWait?: (text: string) => boolean
  /** The progress of a new document. */
  readonly noProgress: P
}

/** Receives the documents of a tenant, and their changes. */
export interface DocumentFollower<T extends Document> {
  /** There is a new document, or it replaces the one with its id. */
  add(document: T): void
  remove(id: string): void
  /** There is a document that is not decoded yet. */
  recall?(id: string): void
  /** A document that `recall` announced is decoded. */
  read?(document: T): void
}

/** A document, and its progress as far as this owner knows. */
export interface Known<T extends Document, P> {
  readonly document: T
  readonly progress: P
}

/** The present version of a document, or its text until it is decoded. A changed document gets a new object. */
class Held<T extends Document, P> {
  private content: T | string
  progress: P

  constructor(content: T | string, progress: P) {
    this.content = content
    this.progress = progress
  }

  /** Whether it has yet to be decoded. */
  get waits(): boolean {
    return typeof this.content === 'string'
  }

  /** Calls `decode` once, if at all. */
  document(decode: (text: string) => T): T {
    if (typeof this.content === 'string') this.content = decode(this.content)
    return this.content
  }
}

/** The documents of one tenant. */
export class TenantDocuments<T extends Document, P> {
  private readonly held = new Map<string, Held<T, P>>()
  /** Ascending, which is the order of creation. */
  private readonly ids: string[] = []
  private readonly noProgress: P
  private readonly followers: DocumentFollower<T>[] = []
  private readonly read: (text: string) => T

  constructor(noProgress: P, decode: (text: string) => T) {
    this.noProgress = noProgress
    this.read = text => {
      const document = decode(text)
      for (const follower of this.followers) follower.read?.(document)
      return document
    }
  }

  /** Passes a follower all present documents, and every change from now on. */
  follow(follower: DocumentFollower<T>): void {
    this.followers.push(follower)
    for (const [id, held] of this.held)
      if (held.waits) follower.recall?.(id)
      else follower.add(held.document(this.read))
  }

  get size(): number {
    return this.ids.length
  }

  has(id: string): boolean {
    return this.held.has(id)
  }

  /** The first ids, at most `countMax`. */
  firstIds(countMax: number): readonly string[] {
    return this.ids.slice(0, countMax)
  }

  get(id: string): T | undefined {
    return this.held.get(id)?.document(this.read)
  }

  /** In the order of ids. */
  *all(): Iterable<T> {
    for (const id of this.ids) yield this.get(id)!
  }

  /** The progress of a document as far as this owner knows; `noProgress` if it does not exist. */
  progressOf(id: string): P {
    return this.held.get(id)?.progress ?? this.noProgress
  }

  /** Stores the progress of a document, if it still exists. */
  note(id: string, progress: P): void {
    const held = this.held.get(id)
    if (held) held.progress = progress
  }

  /** Forgets the progress of all documents. */
  forgetProgress(): void {
    for (const held of this.held.values()) held.progress = this.noProgress
  }

  /**
   * A page in the order of ids, of those with exactly the path (undefined: of all) that are visible, and how many these
   * are.
   */
  page(
    servicePath: string | undefined,
    offset: number,
    limit: number,
    isVisible?: (document: T) => boolean,
  ): { readonly known: readonly Known<T, P>[]; readonly total: number } {
    // A pass over 100,000 takes 10 ms. Lists by path are rare, and every owner would have to keep an index for them.
    const ofPath =
      servicePath === undefined ? this.ids : this.ids.filter(id => this.get(id)!.servicePath === servicePath)
    const ids = isVisible ? ofPath.filter(id => isVisible(this.get(id)!)) : ofPath
    const known = ids.slice(offset, offset + limit).map(id => {
      const held = this.held.get(id)!
      return { document: held.document(this.read), progress: held.progress }
    })
    return { known, total: ids.length }
  }

  /** Puts a new or changed document; true if it is new. */
  set(document: T): boolean {
    const { id } = document
    const before = this.held.get(id)
    this.hold(id, new Held(document, before?.progress ?? this.noProgress))
    for (const follower of this.followers) follower.add(document)
    return !before
  }

  /** Puts a text that is decoded later; its id must not exist. */
  recall(id: string, text: string): void {
    this.hold(id, new Held<T, P>(text, this.noProgress))
    for (const follower of this.followers) follower.recall?.(id)
  }

  private hold(id: string, held: Held<T, P>): void {
    if (!this.held.has(id)) {
      const place = placeOf(this.ids, id)
      if (place === this.ids.length) this.ids.push(id)
      else this.ids.splice(place, 0, id)
    }
    this.held.set(id, held)
  }

  /** Forgets a document; true if it existed. */
  delete(id: string): boolean {
    if (!this.held.delete(id)) return false
    this.ids.splice(placeOf(this.ids, id), 1)
    for (const follower of this.followers) follower.remove(id)
    return true
  }
}

/** The number of ids before this one. Nearly always all of them: new ones come last. */
function placeOf(ids: readonly string[], id: string): number {
  const { length } = ids
  return length === 0 || ids[length - 1]! < id ? length : partitionPoint(at => ids[at]! < id, 0, length)
}

export class Documents<T extends Document, P> {
  private readonly form: Form<T, P>
  private readonly register: Pick<Register, 'write'>
  private readonly shardMap: ShardMap
  private readonly tenants = new Map<string, TenantDocuments<T, P>>()
  private readonly makers: ((tenant: string) => DocumentFollower<T>)[] = []
  private readonly decode: (text: string) => T
  private count = 0
  /** Since the start, without the documents that the store had then. */
  readonly changes = { inserts: 0, updates: 0, removes: 0 }
  /** The commit that carries the latest change. Documents read here are durable with it. */
  stagedIn = 0
  /** By document, in the order of commits: the changes that not all owners are known to have. */
  private readonly staged = new Map<string, number>()

  private constructor(form: Form<T, P>, register: Pick<Register, 'write'>, shardMap: ShardMap) {
    this.form = form
    this.decode = form.decoder()
    this.register = register
    this.shardMap = shardMap
  }

  /** Reads the documents that a store has. */
  static async read<T extends Document, P>(
    form: Form<T, P>,
    store: StoreReader,
    register: Pick<Register, 'write'>,
    shardMap: ShardMap,
  ): Promise<Documents<T, P>> {
    const documents = new Documents(form, register, shardMap)
    await documents.load(store)
    return documents
  }

  get kind(): DocumentKind {
    return this.form.kind
  }

  /** The shard to which the documents of all tenants belong. */
  get shard(): number {
    return this.shardMap.register
  }

  /** The number of documents, of all tenants. */
  get size(): number {
    return this.count
  }

  /** The tenants that have documents. */
  tenantNames(): Iterable<string> {
    return this.tenants.keys()
  }

  /** The documents of a tenant; undefined when it has none. */
  of(tenant: string): TenantDocuments<T, P> | undefined {
    return this.tenants.get(tenant)
  }

  /**
   * Adds followers for all documents, those already here included. `make` is called for each tenant that has documents,
   * and again if the tenant gets one after its last has gone.
   */
  follow(make: (tenant: string) => DocumentFollower<T>): void {
    this.makers.push(make)
    for (const [tenant, documents] of this.tenants) documents.follow(make(tenant))
  }

  private async load(store: StoreReader): Promise<void> {
    const cursor = store.cursor(allDocuments(this.kind))
    try {
      let reading = cursor.next(rowsPerRead)
      for (;;) {
        const rows = await reading
        if (rows.length === 0) return
        // Reads ahead while these are decoded: a third less time.
        reading = cursor.next(rowsPerRead)
        // The rejection reaches the code that awaits it. If a row cannot be decoded, no code awaits it.
        reading.catch(() => undefined)
        for (const { key, value } of rows) {
          const { tenant, id } = parseDocumentKey(key)
          readRow(key, () => this.recall(tenant, id, decodeDocumentRow(value)))
        }
      }
    } finally {
      await cursor.close()
    }
  }

  // [hot] For each row at start.
  private recall(tenant: string, id: string, text: string): void {
    if (this.form.canWait?.(text)) {
      this.count++
      this.ofTenant(tenant).recall(id, text)
    } else this.hold(this.decode(text))
  }

  /** Puts a new or changed document, with the text that is stored. */
  put(document: T, text: string): void {
    if (this.hold(document)) this.changes.inserts++
    else this.changes.updates++
    const { tenant, id } = document
    this.write(tenant, id, encodeDocumentRow(text))
  }

  remove(tenant: string, id: string): void {
    this.forget(tenant, id)
    this.write(tenant, id, undefined)
  }

  private write(tenant: string, id: string, row: Buffer | undefined): void {
    this.stagedIn = this.register.write(this.keyOf(tenant, id), row)
    const name = nameOf(tenant, id)
    this.staged.delete(name)
    this.staged.set(name, this.stagedIn)
  }

  /** The commit that carries the latest change of a document, if not all owners are known to have it; 0 otherwise. */
  changedIn(tenant: string, id: string): number {
    return this.staged.get(nameOf(tenant, id)) ?? 0
  }

  /** All owners have the changes up to a commit. */
  onKnown(upTo: number): void {
    for (const [name, carriedBy] of this.staged) {
      if (carriedBy > upTo) return
      this.staged.delete(name)
    }
  }

  /** Puts a document whose row was written to the store by other code. */
  adopt(text: string): void {
    if (this.hold(this.form.decode(text))) this.changes.inserts++
    else this.changes.updates++
  }

  /** Forgets a document whose row was deleted, or will be. */
  forget(tenant: string, id: string): void {
    const held = this.tenants.get(tenant)
    if (!held?.delete(id)) return
    this.count--
    this.changes.removes++
    if (held.size === 0) this.tenants.delete(tenant)
  }

  /** Forgets the progress of all documents. */
  forgetProgress(): void {
    for (const held of this.tenants.values()) held.forgetProgress()
  }

  *all(): Iterable<T> {
    for (const held of this.tenants.values()) yield* held.all()
  }

  /** Returns whether it is a new one. */
  private hold(document: T): boolean {
    const isNew = this.ofTenant(document.tenant).set(document)
    if (isNew) this.count++
    return isNew
  }

  private ofTenant(tenant: string): TenantDocuments<T, P> {
    let documents = this.tenants.get(tenant)
    if (!documents) {
      documents = new TenantDocuments(this.form.noProgress, this.decode)
      for (const make of this.makers) documents.follow(make(tenant))
      this.tenants.set(tenant, documents)
    }
    return documents
  }

  private keyOf(tenant: string, id: string): Buffer {
    return documentKey(this.kind, { register: this.shardMap.register, tenant, id })
  }
}

const nameOf = (tenant: string, id: string): string => `${tenant} ${id}`
