// Clients of a simulated cluster: their requests to any node, and the answers. All of it is kept for
// replication-checker.ts.
//
// Several clients write the same entities, at different nodes. A read reports every entity that it has seen, or missed.
//
// Not here: what a request does to an entity (simulated-operations.ts).

import assert from 'node:assert/strict'
import { refusalOf } from '../../src/broker/replies.js'
import { done, type Refusal, type Result } from '../../src/domain/refusal.js'
import type { Subscription } from '../../src/domain/subscriptions/subscription.js'
import { decodeEntity } from '../../src/encoded-entity.js'
import { parseJson } from '../../src/http/body.js'
import type { ListRequest, WriteRequest } from '../../src/messages/messages.js'
import { idOf, tenant, watching } from '../support/notifying.js'
import { orderOf, selectionOf } from '../support/selections.js'
import type { SimulatedCluster } from './simulated-cluster.js'
import { register, type SimulatedNode, shardMap } from './simulated-node.js'
import {
  type Change,
  type EntityName,
  keyOf,
  type Operation,
  requestOf,
  type Seen,
  seenIn,
  seenOf,
} from './simulated-operations.js'

const paths = ['/', '/a'] as const
const idsPerPath = 8
const documents = 3
const oneShotsMax = 6
/** The share of changes that set the level, among those that may, to one of a few values: the same one comes back. */
const levelled = 0.7
const levelMax = 3
/** The pause between two tries to create the documents of a run. */
const againMs = 300
/** Clients of a node, each with one request under way, and the time after which a client without an answer gives up. */
const clientsMax = 4
const patienceMs = 3_000

interface ClientRequest {
  readonly operation: Operation
  readonly request: WriteRequest
}

/** All possible entities. */
const entities = paths.flatMap(path => Array.from({ length: idsPerPath }, (_, number) => ({ path, id: `e${number}` })))

/** The id of the subscription that watches all entities. */
export const watcher = idOf(1)
const documentIds = Array.from({ length: documents }, (_, number) => idOf(100 + number))
const documentOf = (n: number): Subscription => watching(n, { status: 'inactive' })

/** Lists that mean all entities, each in another way. */
const lists = ['', 'n>0', 'by!=nobody'].map(q => (q === '' ? selectionOf({}) : selectionOf({ q })))
const orders = ['', 'n'].map(orderOf)

export class Clients {
  readonly operations: Operation[] = []
  /** Answers that no client should get. */
  readonly wrong: string[] = []
  /** The time from which each subscription that triggers once is known to exist. */
  readonly oneShots = new Map<string, number>()
  /** The time from which the watcher is known to exist. */
  watchedMs = Number.POSITIVE_INFINITY
  private readonly cluster: SimulatedCluster
  private readonly hasLevels: boolean
  private asked = 0
  private readonly underWay = new Map<SimulatedNode, number>()
  private oneShotsAsked = 0

  /** `hasLevels`: changes also set levels. */
  constructor(cluster: SimulatedCluster, hasLevels = false) {
    this.cluster = cluster
    this.hasLevels = hasLevels
  }

  /** Starts the creation of the watcher and the documents, with repeated tries. */
  begin(): void {
    this.insist(watching(1), () => {
      this.watchedMs = this.cluster.world.nowMs
    })
    for (const [number] of documentIds.entries()) this.insist(documentOf(100 + number), () => {})
  }

  /** The number of operations that were done. */
  get done(): number {
    return this.operations.filter(({ outcome }) => outcome === 'done').length
  }

  /** A client that has no request under way asks its node for something. */
  operate(): void {
    const { random, nodes } = this.cluster
    const { now } = random.pick(nodes as [(typeof nodes)[0]])
    if (!now || this.underWayAt(now) >= clientsMax) return
    const dice = random.fraction()
    if (dice < 0.3) this.write(now, this.update())
    else if (dice < 0.55) this.write(now, this.requested('append'))
    else if (dice < 0.62) this.write(now, this.requested('create'))
    else if (dice < 0.66) this.write(now, this.requested('delete'))
    else if (dice < 0.72) this.writeSeveral(now)
    else if (dice < 0.82) this.find(now)
    else if (dice < 0.87) this.list(now)
    else if (dice < 0.92) this.describe(now)
    else if (dice < 0.94) this.readDocument(now)
    else if (dice < 0.99) this.observe(now)
    else this.watchOnce()
  }

  /** Asks every node for all entities: each must show every acknowledged change. */
  readAll(): void {
    for (const { now } of this.cluster.nodes) if (now) this.list(now)
  }

  // Writes

  private entity(): EntityName {
    return this.cluster.random.pick(entities as [(typeof entities)[0]])
  }

  private update(given = this.entity()): ClientRequest {
    return this.requested('update', given)
  }

  private requested(form: Change['form'], given = this.entity()): ClientRequest {
    const { random } = this.cluster
    // An update is refused where an attribute is missing.
    const mayLevel = this.hasLevels && (form === 'append' || form === 'create')
    const level = mayLevel && random.fraction() < levelled ? random.between(0, levelMax) : undefined
    const operation = this.begun(form === 'delete' ? 'delete' : 'write', given, { form, level })
    return { operation, request: requestOf(operation, given) }
  }

  private write(node: SimulatedNode, { operation, request }: ClientRequest): void {
    this.at(node, onDone =>
      node.client.write(request, result => {
        this.answerWrite(operation, result)
        onDone()
      }),
    )
  }

  /** Several entities of one path in one request. */
  private writeSeveral(node: SimulatedNode): void {
    const { random } = this.cluster
    const path = random.pick(paths)
    const ids = new Set(Array.from({ length: random.between(2, 4) }, () => `e${random.between(0, idsPerPath - 1)}`))
    const items = [...ids].map(id => this.update({ path, id }))
    const { origin } = items[0]!.request
    const requests = items.map(({ request }) => ({ ...request, origin }))
    let missing = items.length
    this.at(node, onDone =>
      node.client.writeAll(requests, (index, reply) => {
        const { operation } = items[index]!
        this.answerWrite(operation, reply.kind === 'done' ? done : refusalOf(reply, 'write'))
        if (--missing === 0) onDone()
      }),
    )
  }

  private answerWrite(operation: Operation, result: Result<undefined>): void {
    if (result.ok) return this.answer(operation, 'done')
    switch (result.refusal.code) {
      case 'entityNotFound':
        return this.answer(operation, 'refused', { kind: 'absent' })
      case 'entityExists':
        return this.answer(operation, 'refused', { kind: 'present' })
      default:
        this.answerRefusal(operation, result.refusal)
    }
  }

  // Reads

  private find(node: SimulatedNode): void {
    const { path, id } = this.entity()
    const operation = this.begun('read', { path, id })
    this.at(node, onDone =>
      node.client.find({ kind: 'find', tenant, paths: [path], id, type: undefined }, result => {
        onDone()
        if (!result.ok) return this.answerRefusal(operation, result.refusal)
        const [found] = result.value
        this.answer(operation, 'done', found ? seenOf(found.encoded) : { kind: 'absent' })
      }),
    )
  }

  private list(node: SimulatedNode): void {
    const { random } = this.cluster
    const request: ListRequest = {
      kind: 'list',
      tenant,
      paths: random.pick([['/#'], ['/', '/a']]),
      selection: random.pick(lists as [ListRequest['selection']]),
      order: random.pick(orders as [ListRequest['order']]),
      offset: 0,
      limit: entities.length,
    }
    const operations = entities.map(entity => this.begun('read', entity))
    this.at(node, onDone =>
      node.client.list(request, result => {
        onDone()
        if (!result.ok) {
          for (const operation of operations) this.answerRefusal(operation, result.refusal)
          return
        }
        const seen = new Map(
          result.value.entities.map(({ path, encoded }) => [keyOf(path, decodeEntity(encoded).id), seenOf(encoded)]),
        )
        if (seen.size < result.value.entities.length) this.wrong.push(`${operations[0]!.id} shows an entity twice`)
        for (const operation of operations)
          this.answer(operation, 'done', seen.get(operation.key) ?? { kind: 'absent' })
      }),
    )
  }

  // The register

  private describe(node: SimulatedNode): void {
    const id = this.documentId()
    const operation = this.begunDocument('write', id)
    const payload = parseJson(Buffer.from(JSON.stringify({ description: operation.id })))
    assert(payload.ok)
    this.at(node, onDone =>
      node.client.changeDocument(
        { kind: 'changeSubscription', tenant, id, servicePath: '/#', payload: payload.value },
        result => {
          onDone()
          if (result.ok) return this.answer(operation, 'done')
          if (result.refusal.code === 'subscriptionNotFound')
            return this.answer(operation, 'refused', { kind: 'absent' })
          this.answerRefusal(operation, result.refusal)
        },
      ),
    )
  }

  private readDocument(node: SimulatedNode): void {
    const id = this.documentId()
    const operation = this.begunDocument('read', id)
    this.at(node, onDone =>
      node.client.readSubscriptions({ kind: 'findSubscription', tenant, id }, result => {
        onDone()
        if (result.ok) this.answer(operation, 'done', seenIn(result.value.subscriptions[0]?.subscription))
        else this.answerRefusal(operation, result.refusal)
      }),
    )
  }

  /** The register's state on a node that answers for any shard. */
  private observe(node: SimulatedNode): void {
    const id = this.documentId()
    const operation = this.begunDocument('observe', id)
    this.at(node, onDone => {
      onDone()
      const isOwner = Array.from({ length: register }, (_, shard) => shard).some(shard => node.serves(shard))
      if (!isOwner) return this.answer(operation, 'refused')
      this.answer(operation, 'done', seenIn(node.local.parts.subscriptions.of(tenant)?.get(id)))
    })
  }

  /** A new subscription that triggers once, for all entities. */
  private watchOnce(): void {
    if (this.oneShotsAsked === oneShotsMax) return
    const n = 200 + this.oneShotsAsked++
    this.insist(watching(n, { status: 'oneshot' }), () => this.oneShots.set(idOf(n), this.cluster.world.nowMs))
  }

  /** Creates a subscription, with as many tries as it takes, and calls back when it certainly exists. */
  private insist(subscription: Subscription, onDone: () => void): void {
    const { random, nodes, world } = this.cluster
    const { now } = random.pick(nodes as [(typeof nodes)[0]])
    const again = (): void => world.at(world.nowMs + againMs, () => this.insist(subscription, onDone))
    if (!now) return again()
    let isAnswered = false
    const answer = (run: () => void): void => {
      if (isAnswered) return
      isAnswered = true
      run()
    }
    world.at(world.nowMs + 10 * againMs, () => answer(again))
    const { id } = subscription
    now.process.at(world.nowMs, () =>
      now.client.readSubscriptions({ kind: 'findSubscription', tenant, id }, found => {
        if (found.ok && found.value.total === 1) return answer(onDone)
        if (!found.ok) return answer(again)
        now.client.changeDocument({ kind: 'createSubscription', subscription }, result =>
          answer(result.ok ? onDone : again),
        )
      }),
    )
  }

  private documentId(): string {
    return this.cluster.random.pick(documentIds as [string])
  }

  // Operations

  private begun(kind: Operation['kind'], { path, id }: EntityName, change?: Change): Operation {
    return this.keep(kind, keyOf(path, id), shardMap.shardOf(tenant, path, id), change)
  }

  private begunDocument(kind: Operation['kind'], id: string): Operation {
    return this.keep(kind, id, register)
  }

  private keep(kind: Operation['kind'], key: string, shard: number, change?: Change): Operation {
    const operation: Operation = {
      id: `op${this.asked++}`,
      kind,
      key,
      shard,
      change,
      askedMs: this.cluster.world.nowMs,
      outcome: undefined,
      answeredMs: Number.POSITIVE_INFINITY,
      seen: undefined,
    }
    this.operations.push(operation)
    return operation
  }

  /** A request arrives at a node; the client waits until the node calls back, or gives up. */
  private at(node: SimulatedNode, run: (onDone: () => void) => void): void {
    const { world } = this.cluster
    const { process } = node
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      this.underWay.set(node, this.underWayAt(node) - 1)
    }
    this.underWay.set(node, this.underWayAt(node) + 1)
    world.at(world.nowMs + patienceMs, end)
    process.at(world.nowMs, () => run(end))
  }

  private underWayAt(node: SimulatedNode): number {
    return this.underWay.get(node) ?? 0
  }

  /** Handles a refusal that is not about the entity. */
  private answerRefusal(operation: Operation, { code }: Refusal): void {
    switch (code) {
      case 'requestsTooMany':
      case 'ownerChanging':
      case 'unreachable':
        return this.answer(operation, 'refused')
      case 'unanswered':
      case 'outcomeUnknown':
      case 'failure':
        return
      default:
        this.wrong.push(`${operation.id} is refused with ${code}`)
    }
  }

  private answer(operation: Operation, outcome: 'done' | 'refused', seen?: Seen): void {
    const { world, network } = this.cluster
    // Some answers get lost.
    if (world.chance(network.faults.lost)) return
    operation.outcome = outcome
    operation.answeredMs = world.nowMs
    operation.seen = seen
    this.cluster.note(`${operation.id} ${outcome} ${JSON.stringify(seen)}`)
  }
}
