// The subscriptions, or the registrations, that a tenant of a running broker has: finds the one that corresponds to an
// item of an import.
//
// A running broker gives documents ids of its own, so a repeated import finds them by their content. Each document of
// the broker is matched once: if two equal items come, the second one needs another document. A document with the id of
// the item is always its match, whatever its content.
//
// The list is read once, when the first document of the tenant comes, and takes some 250 bytes of memory for each. A
// list does not show service paths. So a document with equal content is searched in the list of its path. A
// subscription to all paths must not be in the list of another path that the import has seen.

import { createHash } from 'node:crypto'
import { isObject, type JsonObject } from '../domain/json.js'
import { type BrokerLists, candidatePaths } from './broker-lists.js'
import { isSameStatus, shownContent, statusOf } from './compare-documents.js'
import { readObject } from './lines.js'
import type { MovedDocument } from './moved.js'

/** A document of the broker. */
interface Shown {
  readonly id: string
  readonly status: string
}

/** The document of the broker that corresponds to an item. */
export interface PresentDocument {
  readonly id: string
  /** Whether it equals the item in all that a broker shows. */
  readonly isSame: boolean
  /** Whether it has the item's service path. */
  readonly isAtPath: boolean
}

const everywhere = '/#'

export class PresentDocuments {
  private readonly byContent = new Map<string, Shown[]>()
  /** Ids that no item has matched yet. */
  private readonly free = new Set<string>()
  /** Ids by service path, for requested paths. */
  private readonly idsAt = new Map<string, ReadonlySet<string>>()
  /** Ids of documents that do not watch all paths, the paths of these, and the number of seen paths at that time. */
  private readonly elsewhere = new Set<string>()
  private readonly otherPaths = new Set<string>()
  private seenCount = -1

  private constructor(
    private readonly lists: BrokerLists,
    private readonly kind: MovedDocument['kind'],
    private readonly tenant: string,
  ) {}

  /** Reads the list of a tenant. `taken`: ids that are matched already. */
  static async read(
    lists: BrokerLists,
    kind: MovedDocument['kind'],
    tenant: string,
    taken: ReadonlySet<string>,
  ): Promise<PresentDocuments> {
    const present = new PresentDocuments(lists, kind, tenant)
    for await (const page of lists.pages(`${kind}s`, { tenant, path: undefined }))
      for (const json of page) if (isObject(json) && !taken.has(String(json.id))) present.add(json)
    return present
  }

  private add(json: JsonObject): void {
    const { id, status } = json
    if (typeof id !== 'string' || this.free.has(id)) return
    this.free.add(id)
    // Documents of other makes may have parts that this version cannot read. They equal no item.
    const item = readObject({ [this.kind]: withoutCounters(json), tenant: this.tenant }, true, 0)
    if (!item.ok || item.value.kind === 'entity') return
    const content = digestOf(shownContent(item.value))
    const alike = this.byContent.get(content) ?? []
    alike.push({ id, status: typeof status === 'string' ? status : statusOf(item.value) })
    this.byContent.set(content, alike)
  }

  /**
   * Removes and returns the match of the item; undefined: there is none. `seen`: service paths of the tenant that
   * documents may have; the set may grow.
   */
  async take(item: MovedDocument, seen: ReadonlySet<string>): Promise<PresentDocument | undefined> {
    const { id, servicePath } = item.kind === 'subscription' ? item.subscription : item.registration
    const status = statusOf(item)
    const content = digestOf(shownContent(item))
    const alike = this.byContent.get(content) ?? []
    for (const one of this.ranked(alike, id, status)) {
      if (!(await this.isAt(one.id, servicePath, seen))) continue
      this.free.delete(one.id)
      alike.splice(alike.indexOf(one), 1)
      return { id: one.id, isSame: isSameStatus(status, one.status), isAtPath: true }
    }
    if (!this.free.delete(id)) return undefined
    return { id, isSame: false, isAtPath: await this.isAt(id, servicePath, seen) }
  }

  /** The one with the same id comes first, then those with the same status. */
  private *ranked(alike: readonly Shown[], id: string, status: string): Iterable<Shown> {
    const own = this.free.has(id) ? alike.find(one => one.id === id) : undefined
    if (own) yield own
    for (const isWanted of [true, false])
      for (const one of alike)
        if (one !== own && this.free.has(one.id) && isSameStatus(status, one.status) === isWanted) yield one
  }

  private async isAt(id: string, path: string, seen: ReadonlySet<string>): Promise<boolean> {
    if (path !== everywhere) return (await this.at(path)).has(id)
    if (seen.size !== this.seenCount)
      for (const other of candidatePaths(`${this.kind}s`, seen)) {
        if (this.otherPaths.has(other)) continue
        this.otherPaths.add(other)
        for (const one of await this.at(other)) this.elsewhere.add(one)
      }
    this.seenCount = seen.size
    return !this.elsewhere.has(id)
  }

  private async at(path: string): Promise<ReadonlySet<string>> {
    const known = this.idsAt.get(path)
    if (known) return known
    const ids = await this.lists.idsAt(`${this.kind}s`, { tenant: this.tenant, path })
    this.idsAt.set(path, ids)
    return ids
  }
}

/** A document without its counters of notifications, so that no broker's form of these makes it another one. */
function withoutCounters(json: JsonObject): JsonObject {
  const { notification } = json
  if (!isObject(notification)) return json
  const settings = Object.entries(notification).filter(([name]) => !counters.has(name))
  return { ...json, notification: Object.fromEntries(settings) }
}

const counters: ReadonlySet<string> = new Set([
  'timesSent',
  'failsCounter',
  'lastNotification',
  'lastFailure',
  'lastFailureReason',
  'lastSuccess',
  'lastSuccessCode',
])

/** Short, since there may be a million. */
const digestOf = (content: string): string => createHash('sha256').update(content).digest('base64').slice(0, 24)
