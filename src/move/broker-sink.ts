// Brings items to a running broker by the public interface.
//
// Entities of one tenant and path in a row are one `op/update`. Entities that the broker already has are compared and
// stay, unless they are to be replaced. Subscriptions and registrations are POSTed one by one, unless the broker has
// them (broker-documents.ts). Times, correlators, and the ids and counters of subscriptions and registrations are lost,
// which the command reports once.
//
// A batch that the broker refuses is halved until the faulty entity is found. A request with an unknown outcome is
// repeated if it may arrive twice. After a kill, the items that arrived before are found at the broker.

import { expiryAttribute, isDateType } from '../domain/entities/entity.js'
import { isArray, isObject, type Json, type JsonObject } from '../domain/json.js'
import { parseJson } from '../http/body.js'
import { AnswerTooLarge, type BrokerClient, type BrokerRequest, refusedBy } from './broker-client.js'
import { BrokerDocuments } from './broker-documents.js'
import { isShown } from './compare.js'
import { type MovedDocument, type MovedEntity, type MovedItem, MoveError, type PlacedItem, type Sink } from './moved.js'

/** Bodies stay below the default limit of brokers: 1 MB. One entity may exceed it. */
const bodyBytesMax = 900 * 1024
/** The maximum that a query can request. */
const entitiesMax = 1000

export class BrokerSink implements Sink {
  readonly name: string
  readonly documentsMax = 1
  private readonly documents: BrokerDocuments

  /** `from` is a position of the same work; undefined: a new start. */
  constructor(
    private readonly client: BrokerClient,
    private readonly overwrites: boolean,
    from?: Json | undefined,
  ) {
    this.name = client.name
    this.documents = new BrokerDocuments(client, overwrites, from)
  }

  async put(items: readonly MovedItem[], stops: boolean): Promise<readonly PlacedItem[]> {
    const placed: PlacedItem[] = []
    for (const group of groupsOf(items)) {
      const [first] = group
      if (first?.kind === 'entity') this.documents.see(first.tenant, first.path)
      const results =
        first?.kind === 'entity'
          ? await this.putEntities(group as Sendable[])
          : [await this.documents.put(first as MovedDocument)]
      const bad = results.findIndex(one => 'fault' in one)
      placed.push(...(stops && bad >= 0 ? results.slice(0, bad + 1) : results))
      if (stops && bad >= 0) break
    }
    return placed
  }

  position(): Json {
    return this.documents.position()
  }

  async finish(): Promise<void> {}

  close(): Promise<void> {
    return this.client.close()
  }

  private async putEntities(group: readonly Sendable[]): Promise<PlacedItem[]> {
    const there = await this.present(group)
    if (typeof there === 'string') {
      if (group.length === 1) return [{ fault: there }]
      const half = group.length >> 1
      return [...(await this.putEntities(group.slice(0, half))), ...(await this.putEntities(group.slice(half)))]
    }
    const isThere = ({ entity: { id, type } }: MovedEntity): boolean => there.has(JSON.stringify([id, type]))
    const placed = new Map<Sendable, PlacedItem>()
    const fresh: Sendable[] = []
    const known: Sendable[] = []
    for (const item of group) {
      const plain = item.entity.attributes.get('dateExpires')
      if (plain?.isPlain && isDateType(plain.type))
        placed.set(item, { fault: `${item.entity.id} has a plain attribute dateExpires, which would end it` })
      else if (!isThere(item)) fresh.push(item)
      else known.push(item)
    }
    await this.update('append', fresh, placed)
    if (this.overwrites) await this.update('replace', known, placed)
    else for (const [item, outcome] of await this.compared(known)) placed.set(item, { outcome })
    return group.map(item => placed.get(item) as PlacedItem)
  }

  /** The names (id and type) of those entities that the broker has; or the reason why it refuses to answer. */
  private async present(group: readonly Sendable[]): Promise<Set<string> | string> {
    const entities = group.map(({ entity: { id, type } }) => ({ id, type }))
    const body = { entities, attrs: ['dateCreated'] }
    const what = `whether ${group.length} entities are there`
    const request = requestOf(group[0]!, `/op/query?limit=${entitiesMax}&options=skipForwarding`, body, what)
    const answer = await this.client.ask(request)
    if (answer.status !== 200) return refusedBy(this.name, answer)
    const payload = parseJson(answer.body)
    const list = payload.ok && isArray(payload.value.value) ? payload.value.value.filter(isObject) : undefined
    if (!list) throw new MoveError(`${this.name}, ${what}: the answer is no list`)
    return new Set(list.map(({ id, type }) => JSON.stringify([id, type])))
  }

  /** Compares entities that stay with those of the broker. An entity that the broker does not show is different. */
  private async compared(group: readonly Sendable[]): Promise<(readonly [Sendable, 'same' | 'kept'])[]> {
    const [first] = group
    if (!first) return []
    const entities = group.map(({ entity: { id, type } }) => ({ id, type }))
    const body = { entities, attrs: ['*', expiryAttribute] }
    const path = `/op/query?limit=${entitiesMax}&options=skipForwarding`
    const shown = await this.shownBy(requestOf(first, path, body, `${group.length} entities that are there`))
    if (!shown && group.length > 1) {
      const half = group.length >> 1
      return [...(await this.compared(group.slice(0, half))), ...(await this.compared(group.slice(half)))]
    }
    const byName = new Map((shown ?? []).map(json => [JSON.stringify([json.id, json.type]), json]))
    return group.map(item => {
      const json = byName.get(JSON.stringify([item.entity.id, item.entity.type]))
      return [item, json && isShown(item, json) ? 'same' : 'kept'] as const
    })
  }

  /** The entities of an answer; undefined: too many for one answer, or it is no list. */
  private async shownBy(request: BrokerRequest): Promise<readonly JsonObject[] | undefined> {
    try {
      const answer = await this.client.ask(request)
      const payload = answer.status === 200 ? parseJson(answer.body) : undefined
      return payload?.ok && isArray(payload.value.value) ? payload.value.value.filter(isObject) : undefined
    } catch (error) {
      if (error instanceof AnswerTooLarge) return undefined
      throw error
    }
  }

  private async update(
    actionType: 'append' | 'replace',
    items: readonly Sendable[],
    placed: Map<Sendable, PlacedItem>,
  ): Promise<void> {
    const [first] = items
    if (!first) return
    const body = { actionType, entities: items.map(({ json }) => json) }
    const answer = await this.client.ask(
      requestOf(first, '/op/update', body, `${actionType} of ${items.length} entities`),
    )
    if (answer.status === 204) {
      for (const item of items) placed.set(item, { outcome: actionType === 'append' ? 'written' : 'replaced' })
    } else if (items.length === 1) {
      placed.set(first, { fault: refusedBy(this.name, answer) })
    } else {
      const half = items.length >> 1
      await this.update(actionType, items.slice(0, half), placed)
      await this.update(actionType, items.slice(half), placed)
    }
  }
}

/** An entity with its JSON for the request. */
type Sendable = MovedEntity & { readonly json: JsonObject }

function requestOf({ tenant, path }: MovedEntity, to: string, body: unknown, what: string): BrokerRequest {
  return {
    method: 'POST',
    path: to,
    tenant,
    servicePath: path,
    body,
    isRepeatable: true,
    what: `${what} of tenant "${tenant}", path ${path}`,
  }
}

/** Groups items for one request: entities of one scope within its limits, each id and type once; documents alone. */
function* groupsOf(items: readonly MovedItem[]): Iterable<(MovedItem | Sendable)[]> {
  let group: (MovedItem | Sendable)[] = []
  let names = new Set<string>()
  let bytes = 0
  let scope = ''
  for (const item of items) {
    const isEntity = item.kind === 'entity'
    const one = isEntity ? { ...item, json: entityJson(item) } : item
    const size = isEntity ? Buffer.byteLength(JSON.stringify((one as Sendable).json)) : 0
    const itsScope = isEntity ? `${item.tenant} ${item.path}` : ''
    const name = isEntity ? JSON.stringify([item.entity.id, item.entity.type]) : ''
    const fits =
      isEntity && itsScope === scope && group.length < entitiesMax && bytes + size <= bodyBytesMax && !names.has(name)
    if (group.length > 0 && !fits) {
      yield group
      group = []
      names = new Set()
      bytes = 0
    }
    group.push(one)
    names.add(name)
    bytes += size
    scope = itsScope
  }
  if (group.length > 0) yield group
}

function entityJson({ entity: { id, type, attributes } }: MovedEntity): JsonObject {
  const members = [...attributes].map(([name, { type, value, metadata }]): [string, Json] => {
    const elements = Object.fromEntries([...metadata].map(([key, element]) => [key, { ...element }]))
    return [name, { type, value, metadata: elements }]
  })
  return Object.fromEntries([['id', id], ['type', type], ...members])
}
