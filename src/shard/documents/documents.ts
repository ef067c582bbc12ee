// The documents of one kind (subscriptions, registrations) that an owner of shards knows: those of all tenants, in
// memory and in its store.
//
// Memory says what has been staged; the store follows with the commit that `put` and `remove` name. Whoever tells
// somebody of what it reads here waits for `stagedIn` first. All rows are read at start. Texts of a kind that can wait
// are decoded when somebody asks for the document, since that takes longer than all the rest of it: 100,000 of 600
// bytes are read in half a second and decoded in 0.7, and then take 1.2 KB each.
//
// What became of a document is kept beside it, each owner its own part: of a subscription its notifications
// (progress-book.ts).
//
// Not here: who may change what (home.ts), how owners hear of each other's changes (register.ts), what a document is
// good for.

import type { ShardMap } from '../../domain/scope.js'
import { partitionPoint } from '../../domain/search.js'
import type { DocumentKind } from '../../messages/messages.js'
import type { StoreReader } from '../../ports.js'
import { readRow } from '../../rows.js'
import { allDocuments, decodeDocumentRow, documentKey, encodeDocumentRow, parseDocumentKey } from './document-layout.js'
import type { Register } from './register.js'

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
  /** Whether a text that was read at start is certain to be decoded well, whenever that is; undefined: none is. */
  readonly canWait?: (text: string) => boolean
  /** Of a document of which nothing has become yet. */
  readonly noProgress: P
}

/** Told what documents a tenant has. */
export interface DocumentFollower<T extends Document> {
  /** There is a new one, or another in the place of the one with its id. */
  add(document: T): void
  remove(id: string): void
  /** There is one that waits to be decoded. */
  recall?(id: string): void
  /** One that has waited is decoded. */
  read?(document: T): void
}

/** A document, and what this owner knows has become of it. */
export interface Known<T extends Document, P> {
  readonly document: T
  readonly progress: P
}

/** One document as it is now, or its text as long as that waits; when it changes there is another one. */
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

  /** `decode` is called once, if at all. */
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

  /** Has a follower hear of what is here, and of every change from now on. */
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

  /** Some of the ids, the first so many. */
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
    // Looking at 100,000 takes 10 ms: lists by path are rare, and an index for them would have to be kept by every
    // owner.
    const ids = servicePath === undefined ? this.ids : this.ids.filter(id => this.get(id)!.servicePath === servicePath)
    const known = ids.slice(offset, offset + limit).map(id => {
      const held = this.held.get(id)!
      return { document: held.document(this.read), progress: held.progress }
    })
    return { known, total: ids.length }
  }

  /** Takes a document in, new or changed; true if it is new. */
  set(document: T): boolean {
    const { id } = document
    const before = this.held.get(id)
    this.hold(id, new Held(document, before?.progress ?? this.noProgress))
    for (const follower of this.followers) follower.add(document)
    return !before
  }

  /** Takes in a text that waits to be decoded, of an id that is not there. */
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
  /** Since the start; what was there then is not counted. */
  readonly changes = { inserts: 0, updates: 0, removes: 0 }
  /** The commit that carries the latest change: what is read here is durable with it. */
  stagedIn = 0

  private constructor(form: Form<T, P>, register: Pick<Register, 'write'>, shardMap: ShardMap) {
    this.form = form
    this.decode = form.decoder()
    this.register = register
    this.shardMap = shardMap
  }

  /** The documents that a store has. */
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

  /** The shard that they belong to, of all tenants. */
  get shard(): number {
    return this.shardMap.register
  }

  /** How many there are, of all tenants. */
  get size(): number {
    return this.count
  }

  /** Those that have any. */
  tenantNames(): Iterable<string> {
    return this.tenants.keys()
  }

  /** The documents of a tenant; undefined when it has none. */
  of(tenant: string): TenantDocuments<T, P> | undefined {
    return this.tenants.get(tenant)
  }

  /**
   * Has all documents followed, those that are here included. `make` is asked for the follower of each tenant that has
   * documents, and again if the tenant gets one after its last has gone.
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
        // Read ahead, while these are decoded: a third less time.
        reading = cursor.next(rowsPerRead)
        // Whoever awaits it is told; if a row cannot be decoded, nobody does.
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

  /** Takes in a document, new or changed, with the text it is stored as. */
  put(document: T, text: string): void {
    if (this.hold(document)) this.changes.inserts++
    else this.changes.updates++
    const { tenant, id } = document
    this.stagedIn = this.register.write(this.keyOf(tenant, id), encodeDocumentRow(text))
  }

  remove(tenant: string, id: string): void {
    this.forget(tenant, id)
    this.stagedIn = this.register.write(this.keyOf(tenant, id), undefined)
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
    if (held.size === 0) this.tenants.delete(tenant)
  }

  /** Forgets what became of all documents. */
  forgetProgress(): void {
    for (const held of this.tenants.values()) held.forgetProgress()
  }

  *all(): Iterable<T> {
    for (const held of this.tenants.values()) yield* held.all()
  }

  /** Whether it is a new one. */
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
    return documentKey(this.kind, { home: this.shardMap.register, tenant, id })
  }
}
