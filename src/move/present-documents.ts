// The subscriptions, or the registrations, that a tenant of a running broker has: which of them is one that an import
// brings.
//
// A running broker gives documents ids of its own, so an import that comes again finds them by their content. Each
// document of the broker is claimed once: of two equal ones that come, the second one needs another that is there. A
// document whose id is there is that one, whatever else it has.
//
// The list is read once, when the first document of the tenant comes, and takes some 250 bytes of memory for each. A
// list does not show service paths. So a document that looks alike is looked for in the list of its path; that of a
// subscription to all paths must not be in the list of another path that the import has seen.

import { createHash } from 'node:crypto'
import { isObject, type JsonObject } from '../domain/json.js'
import { registrationsMax, subscriptionsMax } from '../domain/limits.js'
import { type BrokerLists, candidatePaths, nameOf } from './broker-lists.js'
import { isSameStatus, shownContent, statusOf } from './compare-documents.js'
import { readObject } from './lines.js'
import { type ItemKind, type MovedDocument, MoveError } from './moved.js'

/** A document of the broker. */
interface Shown {
  readonly id: string
  readonly status: string
}

/** The document of the broker that an item is. */
export interface PresentDocument {
  readonly id: string
  /** Whether it equals the item in all that a broker shows. */
  readonly isSame: boolean
  /** Whether it has the item's service path. */
  readonly isAtPath: boolean
}

type DocumentItemKind = Exclude<ItemKind, 'entity'>

const countMax = { subscription: subscriptionsMax, registration: registrationsMax } as const
const everywhere = '/#'

export class PresentDocuments {
  private readonly byContent = new Map<string, Shown[]>()
  private readonly ids = new Set<string>()
  /** Ids by service path, of paths that somebody has asked for. */
  private readonly idsAt = new Map<string, Set<string>>()

  private constructor(
    private readonly lists: BrokerLists,
    private readonly kind: DocumentItemKind,
    private readonly tenant: string,
    private readonly claimed: ReadonlySet<string>,
  ) {}

  /** Reads the list of a tenant. `claimed`: ids that are taken, which may become more. */
  static async read(
    lists: BrokerLists,
    kind: DocumentItemKind,
    tenant: string,
    claimed: ReadonlySet<string>,
  ): Promise<PresentDocuments> {
    const present = new PresentDocuments(lists, kind, tenant, claimed)
    for await (const page of lists.pages(`${kind}s`, { tenant, path: undefined })) {
      for (const json of page) if (isObject(json)) present.add(json)
      if (present.ids.size > countMax[kind])
        throw new MoveError(`the ${kind}s of ${nameOf({ tenant, path: undefined })} are more than ${countMax[kind]}`)
    }
    return present
  }

  private add(json: JsonObject): void {
    const { id, status } = json
    if (typeof id !== 'string') return
    this.ids.add(id)
    // Documents of other makes may have what this one cannot read. They equal nothing that comes.
    const item = readObject({ [this.kind]: withoutCounters(json), tenant: this.tenant }, true, 0)
    if (!item.ok || item.value.kind === 'entity') return
    const content = digestOf(shownContent(item.value))
    const alike = this.byContent.get(content) ?? []
    alike.push({ id, status: typeof status === 'string' ? status : statusOf(item.value) })
    this.byContent.set(content, alike)
  }

  /** The one that the item is; undefined: it is not there. `seen`: service paths of the tenant that documents may have. */
  async find(item: MovedDocument, seen: Iterable<string>): Promise<PresentDocument | undefined> {
    const { id, servicePath } = item.kind === 'subscription' ? item.subscription : item.registration
    const status = statusOf(item)
    const rank = (one: Shown): number => (one.id === id ? 0 : isSameStatus(status, one.status) ? 1 : 2)
    const alike = this.byContent.get(digestOf(shownContent(item))) ?? []
    const free = alike.filter(one => !this.claimed.has(one.id)).sort((a, b) => rank(a) - rank(b))
    for (const one of free)
      if (await this.isAt(one.id, servicePath, seen))
        return { id: one.id, isSame: isSameStatus(status, one.status), isAtPath: true }
    if (!this.ids.has(id) || this.claimed.has(id)) return undefined
    return { id, isSame: false, isAtPath: await this.isAt(id, servicePath, seen) }
  }

  private async isAt(id: string, path: string, seen: Iterable<string>): Promise<boolean> {
    if (path !== everywhere) return (await this.at(path)).has(id)
    for (const other of candidatePaths(`${this.kind}s`, seen)) if ((await this.at(other)).has(id)) return false
    return true
  }

  private async at(path: string): Promise<ReadonlySet<string>> {
    const known = this.idsAt.get(path)
    if (known) return known
    const ids = await this.lists.idsAt(`${this.kind}s`, { tenant: this.tenant, path })
    this.idsAt.set(path, ids)
    return ids
  }
}

/** A document without what was counted of notifications: no broker's way of telling that makes it another one. */
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
