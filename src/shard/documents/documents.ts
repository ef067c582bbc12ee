// The documents of one kind (subscriptions, registrations) that an owner of shards knows: those of all tenants, in memory and in its store.
//
// Memory says what has been staged; the store follows with the commit that `put` and `remove` name. Whoever tells somebody of what it reads
// here waits for `stagedIn` first. All rows are read at start, and decoded: 100,000 of 600 bytes take about a second, and then 1.2 KB each.
//
// What became of a document is kept beside it, each owner its own part: of a subscription its notifications (progress-book.ts).
//
// Not here: who may change what (home.ts), how owners hear of each other's changes (sharing.ts, learning.ts), what a document is good for.

import type { ShardMap } from '../../domain/scope.js'
import type { DocumentKind } from '../../messages.js'
import type { Store } from '../../ports.js'
import type { GroupCommit } from '../commit.js'
import {
  allDocuments,
  type DocumentKey,
  decodeDocumentRow,
  documentKey,
  encodeDocumentRow,
  parseDocumentKey,
} from '../document-layout.js'

const rowsPerRead = 1000

/** What all kinds have. */
export interface Document {
  /** Increasing with creation. */
  readonly id: string
  readonly tenant: string
  readonly servicePath: string
}

/** What tells one kind from another. `P`: what is kept beside a document. */
export interface Form<T extends Document, P> {
  readonly kind: DocumentKind
  /** Never empty. */
  encode(document: T): string
  decode(text: string): T
  /** What decodes many texts, one after the other. */
  decoder(): (text: string) => T
  /** Of a document of which nothing has become yet. */
  readonly noProgress: P
}

/** Told what documents a tenant has. */
export interface Follower<T extends Document> {
  /** There is a new one, or another in the place of the one with its id. */
  add(document: T): void
  remove(id: string): void
}

/** A row as it was found at start. */
export interface LoadedRow extends DocumentKey {
  readonly kind: DocumentKind
  readonly revision: number
  /** Gives its text; undefined: the row tells of a removal. */
  readonly text: (() => string) | undefined
}

/** A document, and what this owner knows has become of it. */
export interface Known<T extends Document, P> {
  readonly document: T
  readonly progress: P
}

interface Held<T extends Document, P> {
  document: T
  progress: P
}

/** The documents of one tenant. */
export class TenantDocuments<T extends Document, P> {
  private readonly held = new Map<string, Held<T, P>>()
  /** Ascending, which is the order of creation. */
  private readonly ids: string[] = []
  private readonly noProgress: P
  private readonly followers: readonly Follower<T>[]

  constructor(noProgress: P, followers: readonly Follower<T>[]) {
    this.noProgress = noProgress
    this.followers = followers
  }

  get size(): number {
    return this.ids.length
  }

  get(id: string): T | undefined {
    return this.held.get(id)?.document
  }

  /** In the order of ids. */
  *all(): Iterable<T> {
    for (const id of this.ids) yield this.held.get(id)!.document
  }

  /** What this owner knows has become of a document; nothing has of one that is not there. */
  progressOf(id: string): P {
    return this.held.get(id)?.progress ?? this.noProgress
  }

  /** Keeps what became of a document, if it is still there. */
  note(id: string, progress: P): void {
    const held = this.held.get(id)
    if (held) held.progress = progress
  }

  /** Forgets what became of all of them. */
  forgetProgress(): void {
    for (const held of this.held.values()) held.progress = this.noProgress
  }

  /** A page in the order of ids, of those with exactly the path (undefined: of all), and how many these are. */
  page(
    servicePath: string | undefined,
    offset: number,
    limit: number,
  ): { readonly known: readonly Known<T, P>[]; readonly total: number } {
    // Looking at 100,000 takes 10 ms: lists by path are rare, and an index for them would have to be kept by every owner.
    const ids =
      servicePath === undefined
        ? this.ids
        : this.ids.filter(id => this.held.get(id)!.document.servicePath === servicePath)
    const known = ids.slice(offset, offset + limit).map(id => ({ ...this.held.get(id)! }))
    return { known, total: ids.length }
  }

  /** Takes a document in, new or changed; true if it is new. */
  set(document: T): boolean {
    const { id } = document
    const held = this.held.get(id)
    if (held) held.document = document
    else {
      this.held.set(id, { document, progress: this.noProgress })
      const place = placeOf(this.ids, id)
      if (place === this.ids.length) this.ids.push(id)
      else this.ids.splice(place, 0, id)
    }
    for (const follower of this.followers) follower.add(document)
    return !held
  }

  /** Forgets a document; true if it was there. */
  delete(id: string): boolean {
    if (!this.held.delete(id)) return false
    this.ids.splice(placeOf(this.ids, id), 1)
    for (const follower of this.followers) follower.remove(id)
    return true
  }
}

/** How many ids are before this one. Nearly always all of them: new ones come last. */
function placeOf(ids: readonly string[], id: string): number {
  let low = 0
  let high = ids.length
  if (high === 0 || ids[high - 1]! < id) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ids[middle]! < id) low = middle + 1
    else high = middle
  }
  return low
}

/** Documents of one kind as whoever brings them from owner to owner sees them: as texts. */
export interface Shelf {
  readonly kind: DocumentKind
  /** The commit that carries the latest change: what is read here is durable with it. */
  readonly stagedIn: number
  /** Takes in what another owner tells of. */
  learn(text: string, revision: number): void
  /** Forgets a document. With a revision its row stays and tells of that, until `bury`. */
  remove(tenant: string, id: string, revision?: number): void
  /** Deletes the row of a document that was removed. Nobody need wait for that. */
  bury(tenant: string, id: string): void
  /** Reads what the store has, and tells of each row. To be called once, before anything else is asked. */
  load(onRow: (row: LoadedRow) => void): Promise<void>
  /** Those of all tenants. */
  all(): Iterable<Document>
}

export type Shelves = Readonly<Record<DocumentKind, Shelf>>

export class Documents<T extends Document, P> implements Shelf {
  private readonly form: Form<T, P>
  private readonly store: Store
  private readonly commit: GroupCommit
  private readonly shardMap: ShardMap
  private readonly tenants = new Map<string, TenantDocuments<T, P>>()
  private readonly makers: ((tenant: string) => Follower<T>)[] = []
  private count = 0
  /** Since the start; what was there then is not counted. */
  readonly changes = { inserts: 0, updates: 0, removes: 0 }
  stagedIn = 0
  /** Told of each document that is forgotten. */
  onRemoved: (tenant: string, id: string) => void = () => {}

  constructor(form: Form<T, P>, store: Store, commit: GroupCommit, shardMap: ShardMap) {
    this.form = form
    this.store = store
    this.commit = commit
    this.shardMap = shardMap
  }

  get kind(): DocumentKind {
    return this.form.kind
  }

  /** How many there are, of all tenants. */
  get size(): number {
    return this.count
  }

  /** The documents of a tenant; undefined when it has none. */
  of(tenant: string): TenantDocuments<T, P> | undefined {
    return this.tenants.get(tenant)
  }

  /**
   * Has all documents followed from now on. `make` is asked for a tenant's follower when the tenant gets its first one, and again if it
   * gets one after its last has gone. To be called before `load`.
   */
  follow(make: (tenant: string) => Follower<T>): void {
    this.makers.push(make)
  }

  async load(onRow: (row: LoadedRow) => void): Promise<void> {
    const { form } = this
    const decode = form.decoder()
    const cursor = this.store.cursor(allDocuments(form.kind))
    try {
      let reading = cursor.next(rowsPerRead)
      for (;;) {
        const rows = await reading
        if (rows.length === 0) return
        // Read ahead, while these are decoded: a third less time.
        reading = cursor.next(rowsPerRead)
        // Whoever awaits it is told; if a row cannot be decoded, nobody does.
        reading.catch(() => undefined)
        for (const { key, value } of rows) {
          const { revision, text } = decodeDocumentRow(value)
          if (text === '') onRow({ ...parseDocumentKey(key), kind: form.kind, revision, text: undefined })
          else onRow(this.recall(decode(text), revision))
        }
      }
    } finally {
      await cursor.close()
    }
  }

  // [hot] For each row at start: what the key tells stands in the row as well.
  private recall(document: T, revision: number): LoadedRow {
    const { tenant, id } = document
    this.hold(document)
    return { home: this.shardMap.homeOf(tenant), tenant, id, kind: this.kind, revision, text: this.textOf(document) }
  }

  /** Encodes a document when it is asked to: its text may never be needed, and takes memory. */
  textOf(document: T): () => string {
    return () => this.form.encode(document)
  }

  learn(text: string, revision: number): void {
    this.put(this.form.decode(text), revision, text)
  }

  /** Takes in a document, new or changed, with the text it is stored as. */
  put(document: T, revision: number, text: string): void {
    if (this.hold(document)) this.changes.inserts++
    else this.changes.updates++
    const { tenant, id } = document
    this.stagedIn = this.commit.write(this.keyOf(tenant, id), encodeDocumentRow(revision, text))
  }

  remove(tenant: string, id: string, revision?: number): void {
    this.forget(tenant, id)
    const row = revision === undefined ? undefined : encodeDocumentRow(revision, '')
    this.stagedIn = this.commit.write(this.keyOf(tenant, id), row)
  }

  /** Takes in a document whose row the store has got without anybody's doing here. */
  adopt(text: string): void {
    if (this.hold(this.form.decode(text))) this.changes.inserts++
    else this.changes.updates++
  }

  /** Forgets a document whose row has gone, or is about to. */
  forget(tenant: string, id: string): void {
    const held = this.tenants.get(tenant)
    if (!held?.delete(id)) return
    this.count--
    this.changes.removes++
    this.onRemoved(tenant, id)
    if (held.size === 0) this.tenants.delete(tenant)
  }

  /** Forgets what became of all documents. */
  forgetProgress(): void {
    for (const held of this.tenants.values()) held.forgetProgress()
  }

  bury(tenant: string, id: string): void {
    this.commit.write(this.keyOf(tenant, id), undefined)
  }

  *all(): Iterable<T> {
    for (const held of this.tenants.values()) yield* held.all()
  }

  /** Whether it is a new one. */
  private hold(document: T): boolean {
    const { tenant } = document
    let held = this.tenants.get(tenant)
    if (!held) {
      held = new TenantDocuments(
        this.form.noProgress,
        this.makers.map(make => make(tenant)),
      )
      this.tenants.set(tenant, held)
    }
    const isNew = held.set(document)
    if (isNew) this.count++
    return isNew
  }

  private keyOf(tenant: string, id: string): Buffer {
    return documentKey(this.kind, { home: this.shardMap.homeOf(tenant), tenant, id })
  }
}
