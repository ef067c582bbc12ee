// Brings subscriptions and registrations to a running broker: a POST for each that it does not have.
//
// An equal one stays. One that differs stays as well, or a PATCH replaces all its content, if requested. A broker shows
// no secrets. So with the request to replace, a document that comes with secrets is replaced even if it looks equal.
//
// The position has the broker's ids of the last documents that came. So after an interruption none of them is taken for
// another one with equal content that comes later. A document whose POST was in flight is found at the broker.
//
// Not here: which of the broker's documents it is (present-documents.ts).

import { isArray, isObject, type Json, type JsonObject } from '../domain/json.js'
import { renderRegistration } from '../domain/providers/registration.js'
import { type BrokerClient, type BrokerRequest, refusedBy } from './broker-client.js'
import { BrokerLists, pathsMax } from './broker-lists.js'
import { hasHidden, statusOf } from './compare-documents.js'
import { subscriptionJson } from './lines.js'
import type { MovedDocument, PlacedItem } from './moved.js'
import { type PresentDocument, PresentDocuments } from './present-documents.js'

/** Ids in a position. It is written down after each document, so more ids take longer. */
const idsKeptMax = 256

const everywhere = '/#'

export class BrokerDocuments {
  private readonly lists: BrokerLists
  /** By kind and tenant. */
  private readonly present = new Map<string, PresentDocuments>()
  /** The broker's ids of the last documents that came, and of those before an interruption. */
  private readonly latest: string[]
  private readonly earlier: ReadonlySet<string>
  /** Service paths of the items that came, by tenant. */
  private readonly paths = new Map<string, Set<string>>()

  constructor(
    private readonly client: BrokerClient,
    private readonly overwrites: boolean,
    from: Json | undefined,
  ) {
    this.lists = new BrokerLists(client)
    this.latest = isObject(from) && isArray(from.latest) ? from.latest.map(String) : []
    this.earlier = new Set(this.latest)
  }

  position(): JsonObject {
    return { latest: [...this.latest] }
  }

  /** Records a service path of a tenant, which its documents may have. */
  see(tenant: string, path: string): void {
    const paths = this.paths.get(tenant) ?? new Set()
    if (paths.size < pathsMax) paths.add(path)
    this.paths.set(tenant, paths)
  }

  async put(item: MovedDocument): Promise<PlacedItem> {
    const { tenant, servicePath } = scopeOf(item)
    this.see(tenant, withoutWildcard(servicePath))
    const present = await this.presentOf(item.kind, tenant)
    const there = await present.take(item, this.paths.get(tenant) ?? new Set())
    if (!there) return this.create(item)
    this.note(there.id)
    if (there.isSame && !(this.overwrites && hasHidden(item))) return { outcome: 'same' }
    return this.overwrites ? this.replace(item, there) : { outcome: 'kept' }
  }

  private note(id: string): void {
    this.latest.push(id)
    if (this.latest.length > idsKeptMax) this.latest.shift()
  }

  private async presentOf(kind: MovedDocument['kind'], tenant: string): Promise<PresentDocuments> {
    const name = `${kind} ${tenant}`
    const known = this.present.get(name)
    if (known) return known
    const present = await PresentDocuments.read(this.lists, kind, tenant, this.earlier)
    this.present.set(name, present)
    return present
  }

  private async create(item: MovedDocument): Promise<PlacedItem> {
    const { id: _, ...content } = documentJson(item)
    const body = { ...content, status: statusOf(item) }
    const answer = await this.client.ask({ ...requestOf(item), method: 'POST', path: `/${item.kind}s`, body })
    if (answer.status !== 201) return { fault: refusedBy(this.client.name, answer) }
    const id = answer.location?.slice(answer.location.lastIndexOf('/') + 1)
    if (id) this.note(id)
    return { outcome: 'written' }
  }

  private async replace(item: MovedDocument, { id, isSame, isAtPath }: PresentDocument): Promise<PlacedItem> {
    const { servicePath } = scopeOf(item)
    const isSubscription = item.kind === 'subscription'
    // A PATCH gives a subscription its own path, and accepts no wildcard; a registration keeps its path.
    if (isSubscription ? servicePath.endsWith('#') && servicePath !== everywhere : !isAtPath) {
      if (isSame) return { outcome: 'same' }
      const why = `NGSIv2 cannot change it to path ${servicePath}: delete it, and import again`
      return { fault: `${item.kind} ${id} differs, and ${why}` }
    }
    const { id: _, ...content } = documentJson(item)
    const nothing = { description: '', expires: '', ...(isSubscription && { throttling: 0 }) }
    // Setting a status anew would trigger a one-shot again.
    const body = { ...nothing, ...content, status: isSame ? undefined : statusOf(item) }
    const path = `/${item.kind}s/${encodeURIComponent(id)}`
    const header = servicePath === everywhere ? undefined : servicePath
    const request = { ...requestOf(item), servicePath: header, isRepeatable: true }
    const answer = await this.client.ask({ ...request, method: 'PATCH', path, body })
    return answer.status === 204 ? { outcome: 'replaced' } : { fault: refusedBy(this.client.name, answer) }
  }
}

const scopeOf = (item: MovedDocument) => (item.kind === 'subscription' ? item.subscription : item.registration)

const withoutWildcard = (path: string): string => path.replace(/\/#$/, '') || '/'

function requestOf(item: MovedDocument): Omit<BrokerRequest, 'method' | 'path'> {
  const { id, tenant, servicePath } = scopeOf(item)
  return { tenant, servicePath, isRepeatable: false, what: `${item.kind} ${id}` }
}

const documentJson = (item: MovedDocument): JsonObject =>
  item.kind === 'registration' ? JSON.parse(renderRegistration(item.registration)) : subscriptionJson(item.subscription)
