// The conditions for a run of a simulated cluster, checked by the answers of clients, the log, and the disks.
//
// The log gives each entity and document one history of states. Then each is linearizable if
//
//   an acknowledged change is in it once, a refused one is not, and any other one is in it at most once
//   a change that was acknowledged before another operation was asked for precedes that one
//   a read returns a state of the history, and none older than any acknowledged or read before it was asked for
//   a node that answers for any shard has all acknowledged changes of the register
//   each record is of the owner by the latest takeover
//
// If a superseded owner answered once, it would break one of these. In peace, every change was notified, no
// subscription that triggers once has been triggered by two changes, and all copies of a shard are the same rows, with
// the indexes and counts that their entities call for.

import type { LogRecord } from '../../cluster/logs/shard-log.js'
import { decodeRecord } from '../../cluster/replication/log-record.js'
import { decodeDocumentRow, parseDocumentKey } from '../../src/shard/documents/document-layout.js'
import { subscriptionForm } from '../../src/shard/documents/forms.js'
import { prefix } from '../../src/shard/keys.js'
import { decodeRow, parseEntityKey, parseIdKey } from '../../src/shard/layout.js'
import { mayBeOf, shardRanges } from '../../src/shard/replicate/replicated-layout.js'
import { decodeOperations, type RowOperation } from '../../src/shard/replicate/row-operations.js'
import { compareIndexes } from '../support/compare-indexes.js'
import { MemoryStore } from '../support/memory-store.js'
import { SortedRows } from '../support/sorted-rows.js'
import { type Clients, watcher } from './simulated-clients.js'
import type { SimulatedCluster } from './simulated-cluster.js'
import { register, shardMap } from './simulated-node.js'
import { keyOf, type Operation, type Seen, seenOf } from './simulated-operations.js'
import type { Place } from './simulated-place.js'

const allShards = Array.from({ length: register + 1 }, (_, shard) => shard)

/** The errors, in words; empty when all is well. */
export function check(cluster: SimulatedCluster, clients: Clients): readonly string[] {
  const wrong = [...clients.wrong]
  const histories = allHistories(cluster)
  for (const key of new Set(clients.operations.map(operation => operation.key))) {
    const operations = clients.operations.filter(operation => operation.key === key)
    new History(key, histories.get(key) ?? [], wrong).check(operations)
  }
  checkOneShots(cluster, clients, wrong)
  checkOwners(cluster, wrong)
  return wrong
}

/** Checks that each record was appended in the name of the takeover that was the latest at that moment. */
function checkOwners({ engine }: SimulatedCluster, wrong: string[]): void {
  const epochs = new Map<number, number>()
  for (const event of engine.events) {
    const { shard } = event
    if (event.kind === 'takeover') epochs.set(shard, event.takeover.epoch)
    else if (event.epoch !== epochs.get(shard))
      wrong.push(`shard ${shard}: record ${event.record.sequence} is of an owner that was superseded before`)
  }
}

/** All records that a shard ever had, in order. */
const recordsOf = ({ engine }: SimulatedCluster, shard: number): readonly LogRecord[] =>
  engine.events.flatMap(event => (event.kind === 'record' && event.shard === shard ? event.record : []))

/** All states of each entity and document, in order. */
function allHistories(cluster: SimulatedCluster): Map<string, Seen[]> {
  const histories = new Map<string, Seen[]>()
  for (const shard of allShards) {
    let begun: Buffer[] = []
    for (const { bytes } of recordsOf(cluster, shard)) {
      const { payload, fragment } = decodeRecord(bytes)!
      if (!fragment.continuesPrevious) begun = []
      begun.push(payload)
      if (fragment.continues) continue
      for (const operation of decodeOperations(Buffer.concat(begun), shard).operations) {
        const state = stateOf(operation)
        if (!state) continue
        const history = histories.get(state.key) ?? []
        histories.set(state.key, history)
        history.push(state.seen)
      }
    }
  }
  return histories
}

/** The state of an entity or document in a row; undefined: the row is about something else. */
function stateOf({ key, value }: RowOperation): { readonly key: string; readonly seen: Seen } | undefined {
  if (key[0] === prefix.entity) {
    const { path, id } = parseEntityKey(key)
    if (!value) return { key: keyOf(path, id), seen: { kind: 'absent' } }
    return { key: keyOf(path, id), seen: seenOf(decodeRow(value)[0]!) }
  }
  if (key[0] !== prefix.subscription || !value) return undefined
  const { id } = parseDocumentKey(key)
  const { description } = subscriptionForm.decode(decodeDocumentRow(value))
  return { key: id, seen: { kind: 'value', value: 0, by: description, level: undefined } }
}

/** The states of one entity or document, which its operations are checked against. */
class History {
  private readonly key: string
  private readonly states: readonly Seen[]
  private readonly wrong: string[]
  private readonly places = new Map<string, number>()
  /** The oldest state that an operation may have seen or made, and the time from which it is a bound. */
  private readonly bounds: { readonly fromMs: number; readonly place: number; readonly isWrite: boolean }[] = []

  /** Before the first of its states the entity is absent. */
  constructor(key: string, states: readonly Seen[], wrong: string[]) {
    this.key = key
    this.states = [{ kind: 'absent' }, ...states]
    this.wrong = wrong
  }

  check(operations: readonly Operation[]): void {
    const isEntity = operations[0]!.shard < register
    const changes = new Map(operations.map(({ id, change }) => [id, change]))
    for (const [place, state] of this.states.entries()) {
      if (state.kind !== 'value') continue
      const { value, by, level } = state
      if (this.places.has(by)) this.wrong.push(`${this.key}: ${by} stands in the log twice`)
      this.places.set(by, place)
      const before = this.states[place - 1]!
      const expected = before.kind === 'value' ? before.value + 1 : 1
      if (isEntity && value !== expected)
        this.wrong.push(`${this.key}: state ${place} of the log has value ${value}, not ${expected}`)
      const kept = before.kind === 'value' ? before.level : undefined
      const expectedLevel = changes.get(by)?.level ?? kept
      if (level !== expectedLevel)
        this.wrong.push(`${this.key}: state ${place} of the log has level ${level}, not ${expectedLevel}`)
    }
    this.checkDeletions(operations)
    for (const operation of operations) this.checkOne(operation)
  }

  /** A deletion does not name its operation, so deletions are counted. */
  private checkDeletions(operations: readonly Operation[]): void {
    const found = this.states.filter(({ kind }, place) => kind === 'absent' && place > 0).length
    const asked = operations.filter(({ kind, outcome }) => kind === 'delete' && outcome !== 'refused').length
    const done = operations.filter(({ kind, outcome }) => kind === 'delete' && outcome === 'done').length
    if (found < done || found > asked)
      this.wrong.push(`${this.key}: ${found} deletions in the log, ${done} of ${asked} were acknowledged`)
  }

  /** Checks one operation; those that were asked for earlier are checked already. */
  private checkOne(operation: Operation): void {
    const { id, kind, outcome, seen, askedMs, answeredMs } = operation
    const isWrite = kind === 'write' || kind === 'delete'
    if (kind === 'write' && outcome === 'refused' && this.places.has(id))
      this.wrong.push(`${this.key}: ${id} was refused, and is there`)
    if (outcome === undefined || (outcome === 'refused' && !seen)) return
    // The document owner itself has changes that it has not appended yet, and perhaps never will.
    if (kind === 'observe' && seen!.kind === 'value' && !this.places.has(seen!.by)) return
    const isDone = isWrite && outcome === 'done'
    // A refusal because of the present state is a read.
    const bound = this.boundAt(askedMs, kind === 'observe')
    const place = isDone ? this.placeOfWrite(operation, bound + 1) : this.placeOf(seen!, bound)
    if (place === undefined) {
      const what = isDone ? 'its own change' : JSON.stringify(seen)
      return void this.wrong.push(
        `${this.key}: ${id} (${kind}) tells of ${what}, which is not in the log from ${bound} on`,
      )
    }
    // An observed state may be ahead of all replies of the owner.
    if (kind !== 'observe') this.bounds.push({ fromMs: answeredMs, place, isWrite: isDone })
  }

  /** The latest state that was known before a moment; a copy need only have acknowledged ones. */
  private boundAt(askedMs: number, ofCopy: boolean): number {
    let bound = 0
    for (const { fromMs, place, isWrite } of this.bounds)
      if (fromMs < askedMs && place > bound && (isWrite || !ofCopy)) bound = place
    return bound
  }

  private placeOfWrite({ id, kind }: Operation, from: number): number | undefined {
    if (kind === 'delete') return this.placeOf({ kind: 'absent' }, from)
    const place = this.places.get(id)
    return place !== undefined && place >= from ? place : undefined
  }

  /** The first state, from a given one on, that matches a seen one. */
  private placeOf(seen: Seen, from: number): number | undefined {
    const place = this.states.findIndex((state, at) => at >= from && isSeen(state, seen))
    return place < 0 ? undefined : place
  }
}

function isSeen(state: Seen, seen: Seen): boolean {
  if (seen.kind === 'present') return state.kind === 'value'
  if (seen.kind === 'absent' || state.kind !== 'value') return state.kind === seen.kind
  return state.by === seen.by && state.value === seen.value && state.level === seen.level
}

/** Checks that a subscription that triggers once was sent for one change at most. */
function checkOneShots({ received }: SimulatedCluster, { oneShots }: Clients, wrong: string[]): void {
  for (const id of oneShots.keys()) {
    const sent = new Set(received.filter(({ subscription }) => subscription === id).map(one => one.notification))
    if (sent.size > 1) wrong.push(`subscription ${id} fires once, and has fired for ${sent.size} changes`)
  }
}

// In peace

/** The shards whose changes are gone for good: no copy can be completed from the log. Empty when all is well. */
export function checkKept(cluster: SimulatedCluster): readonly string[] {
  return allShards.flatMap(shard => {
    const positions = cluster.nodes.flatMap(({ now }) => now?.host.position(shard)?.sequence ?? [])
    const first = cluster.engine.recordsOf(shard)[0]?.sequence ?? 1
    const isKept = [0, ...positions].some(sequence => sequence + 1 >= first)
    return isKept ? [] : [`shard ${shard} is lost: its log begins with ${first}, and its copies end at ${positions}`]
  })
}

/**
 * Checks that all expected effects have happened, every copy is the result of its log, and every shard has an owner
 * that answers.
 */
export async function checkPeace(cluster: SimulatedCluster, clients: Clients): Promise<readonly string[]> {
  const wrong: string[] = [...cluster.stopped, ...(cluster.hasLostLog ? [] : cluster.losses)]
  for (const shard of allShards) checkCopies(cluster, shard, wrong)
  checkPhases(cluster, wrong)
  for (const node of cluster.nodes) {
    const rows = new MemoryStore(checkDisk(node, wrong))
    for (const sentence of await compareIndexes(rows, 'by shard')) wrong.push(`${node.name}: ${sentence}`)
  }
  checkNotified(cluster, clients, wrong)
  return wrong
}

/** A node that keeps a shard although another one owns it can neither give it away nor take it over. */
function checkPhases({ nodes }: SimulatedCluster, wrong: string[]): void {
  for (const { name, now } of nodes)
    for (const { shard, phase } of now?.replicator.standings() ?? [])
      if (phase !== 'following' && now?.replicator.ownerOf(shard) !== name)
        wrong.push(`${name} is ${phase} in shard ${shard}, which ${now?.replicator.ownerOf(shard)} owns`)
}

/** The number of the last record that ends a step; only an interrupted step may follow it. */
function endOf(cluster: SimulatedCluster, shard: number): number {
  const records = recordsOf(cluster, shard)
  return records.findLast(({ bytes }) => !decodeRecord(bytes)!.fragment.continues)?.sequence ?? 0
}

function checkCopies(cluster: SimulatedCluster, shard: number, wrong: string[]): void {
  const owners = cluster.nodes.filter(({ now }) => now?.serves(shard))
  if (owners.length !== 1) wrong.push(`shard ${shard} is answered for by ${owners.length} nodes`)
  const end = endOf(cluster, shard)
  const copies = cluster.nodes.filter(({ name, now }) => {
    const position = now?.host.position(shard)
    if (!now || !position) return false
    if (position.sequence !== end && now.replicator.keeps(shard))
      wrong.push(`${name} is at ${position.sequence} of shard ${shard}, which ends at ${end}`)
    return position.sequence === end
  })
  if (copies.length < 2) wrong.push(`shard ${shard} has ${copies.length} whole copies`)
  const [first, ...others] = copies
  if (!first) return
  const rows = rowsOf(first, shard)
  for (const other of others) {
    const otherRows = rowsOf(other, shard)
    for (const key of new Set([...rows.keys(), ...otherRows.keys()]))
      if (rows.get(key) !== otherRows.get(key))
        wrong.push(`shard ${shard}: ${first.name} and ${other.name} differ in ${JSON.stringify(key)}`)
  }
}

/** The rows that a node has of a shard; rows that are derived from these are compared with them. */
function rowsOf({ disk }: Place, shard: number): Map<string, string> {
  const rows = shardRanges(shard).flatMap(({ gte, lt }) => disk.between(gte.toString('latin1'), lt.toString('latin1')))
  return new Map(rows.map(([key, value]) => [key, value.toString('latin1')]))
}

/** The rows on a node's disk. A copy that the node should not have, or that broke off, leaves none there. */
function checkDisk({ name, disk, now }: Place, wrong: string[]): SortedRows {
  const rows = new SortedRows()
  const absent = allShards.filter(shard => !now?.host.position(shard))
  for (const [text, value] of disk.between('', '\xff')) {
    const key = Buffer.from(text, 'latin1')
    const shard = absent.find(shard => mayBeOf(key, shard) && (key[0] !== prefix.id || shardOfId(key) === shard))
    if (shard === undefined) rows.put(text, value)
    else wrong.push(`${name} has a row of shard ${shard}, of which it has no copy: ${JSON.stringify(text)}`)
  }
  return rows
}

function shardOfId(key: Buffer): number {
  const { tenant, path, id } = parseIdKey(key)
  return shardMap.shardOf(tenant, path, id)
}

/** Checks that all changes were notified that were asked for while their subscription existed. */
function checkNotified({ received }: SimulatedCluster, clients: Clients, wrong: string[]): void {
  const reported = new Map<string, Set<string>>()
  for (const { subscription, by } of received)
    reported.set(subscription, (reported.get(subscription) ?? new Set()).add(by))
  const changes = clients.operations.filter(
    ({ kind, outcome, shard }) => kind === 'write' && outcome === 'done' && shard < register,
  )
  for (const { id, askedMs } of changes)
    if (askedMs > clients.watchedMs && !reported.get(watcher)?.has(id)) wrong.push(`${id} was not notified`)
  // One may be spent with an unknown change that has not happened: a commit in several appends that broke off.
  const mayBeSpent = clients.operations.some(({ kind, outcome }) => kind === 'write' && outcome === undefined)
  for (const [id, sinceMs] of clients.oneShots)
    if (!mayBeSpent && changes.some(({ askedMs }) => askedMs > sinceMs) && !reported.has(id))
      wrong.push(`subscription ${id} fires once, and has not fired`)
}
