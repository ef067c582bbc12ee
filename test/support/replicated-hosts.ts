// Nodes of a cluster inside the test, reduced to their shards: hosts over real stores, a log in memory that they append
// to and follow, and a router that knows the owners. The test acts as the cluster: it moves shards, makes hosts follow,
// and kills hosts.
//
// The clock does not run by itself; all hosts have the same one.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import type { Test } from 'tap'
import { DeposedError, type ShardHost } from '../../cluster/replication/shard-host.js'
import { HybridClock } from '../../src/clock.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { ShardReply, ShardRequest, Shards } from '../../src/messages/messages.js'
import type { Row, Store } from '../../src/ports.js'
import { lastStamp } from '../../src/shard/commit/commit-log.js'
import { Expiry } from '../../src/shard/expiry.js'
import { shardOfKey } from '../../src/shard/keys.js'
import {
  attributeCounts,
  entityCounts,
  expiryRange,
  parseExpiryKey,
  parseIdKey,
  parseTypeKey,
} from '../../src/shard/layout.js'
import type { ShardParts } from '../../src/shard/open-shards.js'
import { StepwiseScanner } from '../../src/shard/read/scans.js'
import { Ownership } from '../../src/shard/replicate/ownership.js'
import { shardRanges } from '../../src/shard/replicate/replicated-layout.js'
import type { ReplicatedShards } from '../../src/shard/replicate/replicated-shards.js'
import type { FollowedPosition, LogPayload, Replication } from '../../src/shard/replicate/replication.js'
import type { LocalShards } from '../../src/shard/shards.js'
import { openRocksStore } from '../../src/storage/rocks-store.js'
import { rowsOf, temporaryDirectory } from '../storage/store-contract.js'
import type { FakeClock } from './fake-clock.js'
import { localShards } from './local-shards.js'
import { RecordingDeliverer, until } from './notifying.js'

export const shardCount = 8
/** The shard that all hosts follow. */
export const register = shardCount
export const allShards: readonly number[] = Array.from({ length: shardCount + 1 }, (_, shard) => shard)
export const shardMap = new ShardMap({ shards: shardCount, spread: 4 })

interface LogRecord {
  readonly payload: Buffer
  readonly position: FollowedPosition
}

/** The logs of all shards. */
export class MemoryLog {
  private readonly shards = new Map<number, LogRecord[]>()
  private readonly epochs = new Map<number, number>()

  /** Begins the epoch of a new owner. */
  takeOver(shard: number): void {
    this.epochs.set(shard, this.epochOf(shard) + 1)
  }

  epochOf(shard: number): number {
    return this.epochs.get(shard) ?? 0
  }

  append({ shard, payload }: LogPayload): FollowedPosition {
    const records = this.of(shard)
    const before = records.at(-1)?.position
    const hash = createHash('sha256')
      .update(before?.hash ?? '')
      .update(payload)
      .digest()
    // A copy, since the caller may change its bytes later.
    const position = { sequence: (before?.sequence ?? 0) + 1, epoch: this.epochOf(shard), hash }
    records.push({ payload: Buffer.from(payload), position })
    return position
  }

  /** The records after a position, which must be one of this log. */
  behind(shard: number, position: FollowedPosition | undefined): readonly LogRecord[] {
    const records = this.of(shard)
    if (position) assert(records[position.sequence - 1]?.position.hash.equals(position.hash), 'a position of this log')
    return records.slice(position?.sequence ?? 0)
  }

  last(shard: number): FollowedPosition | undefined {
    return this.of(shard).at(-1)?.position
  }

  private of(shard: number): LogRecord[] {
    let records = this.shards.get(shard)
    if (!records) {
      records = []
      this.shards.set(shard, records)
    }
    return records
  }
}

/** Holds the outcomes of appends until the test releases them. */
class HoldableReplication implements Replication {
  readonly engines = 1
  isHeld = false
  /** Appends that are in flight. */
  held: (() => void)[] = []
  readonly appended: number[] = []
  /** Shards that another host has taken over: appends to them fail. */
  readonly lost = new Set<number>()
  private readonly log: MemoryLog
  private readonly onLost: (shard: number) => void

  /** `onLost` is called with a lost shard, before the outcome. */
  constructor(log: MemoryLog, onLost: (shard: number) => void) {
    this.log = log
    this.onLost = onLost
  }

  engineOf(): number {
    return 0
  }

  append(parts: readonly LogPayload[], onDone: (outcome: ReadonlyMap<number, FollowedPosition> | Error) => void): void {
    this.appended.push(parts.length)
    const lost = parts.flatMap(({ shard }) => (this.lost.has(shard) ? [shard] : []))
    const reached = new Map(
      parts.flatMap(part => (lost.includes(part.shard) ? [] : [[part.shard, this.log.append(part)] as const])),
    )
    const end = (): void => {
      for (const shard of lost) this.onLost(shard)
      const losses = lost.map(shard => ({ shard, node: 'another', epoch: this.log.epochOf(shard), certainMs: 100 }))
      onDone(losses.length === 0 ? reached : new DeposedError(losses, reached))
    }
    if (this.isHeld) this.held.push(end)
    else setImmediate(end)
  }

  release(): void {
    this.isHeld = false
    for (const end of this.held.splice(0)) end()
  }
}

export interface HostParts extends Partial<ShardParts> {
  readonly clock: FakeClock
  readonly log: MemoryLog
  /** Its number among the hosts. */
  readonly number: number
  readonly cluster: Cluster
}

export class Host {
  readonly ownership: Ownership
  readonly despatch = new RecordingDeliverer()
  readonly replication: HoldableReplication
  readonly local: LocalShards
  readonly shardHost: ReplicatedShards & ShardHost
  readonly expiry: Expiry
  readonly failures: readonly Error[]
  readonly store: Store
  readonly number: number
  private readonly log: MemoryLog
  private following: Promise<void> = Promise.resolve()
  /** Shards that this host knows to be lost, until it follows them. */
  private readonly losing = new Map<number, Promise<void>>()

  private constructor(
    store: Store,
    { clock, log, number, cluster }: HostParts,
    replication: HoldableReplication,
    failures: readonly Error[],
    local: LocalShards,
  ) {
    const { role } = local.parts
    assert(role.kind === 'node')
    const { ownership, host } = role
    this.store = store
    this.number = number
    this.log = log
    this.replication = replication
    this.failures = failures
    this.local = local
    this.ownership = ownership
    this.shardHost = host
    const { expiryMark: mark } = local.parts
    const logger = { error() {} }
    this.expiry = new Expiry({ store, shards: cluster, clock, logger, intervalMs: 1000, mark, owned: ownership.owned })
  }

  static async open(store: Store, parts: HostParts): Promise<Host> {
    const { clock, log, number, cluster, ...more } = parts
    const stamps = new HybridClock(clock, lastStamp(store))
    const ownership = new Ownership(shardCount)
    const scanner = new StepwiseScanner(store, shardMap, clock, ownership.owned)
    const replication = new HoldableReplication(log, shard => void host.lose(shard))
    const failures: Error[] = []
    const local = await localShards(store, shardMap, clock, {
      stamps,
      scanner,
      onFailure: failure => failures.push(failure),
      share: {
        kind: 'node',
        ownership,
        replication,
        requestClock: { follow() {} },
        utilization: () => 0,
        barrier: (shard, sequence, onDone) => cluster.afterAll(shard, sequence, onDone),
      },
      ...more,
    })
    const host = new Host(store, parts, replication, failures, local)
    await local.parts.notifications.begin(host.despatch, cluster)
    // For a store that is not empty this takes time, and the clock does not run; until then any key may exist.
    void local.parts.keyFilter.learn(store, scanner, clock)
    return host
  }

  /** Applies the log records of shards that this host does not own, several records at once. */
  follow(shards: readonly number[] = allShards): Promise<void> {
    this.following = this.following.then(async () => {
      for (const shard of shards) {
        if (this.ownership.owns(shard)) continue
        const records = this.log.behind(shard, this.shardHost.position(shard))
        const last = records.at(-1)
        if (last) await this.apply(shard, records, last.position)
      }
    })
    return this.following
  }

  apply(shard: number, records: readonly { readonly payload: Buffer }[], position: FollowedPosition): Promise<void> {
    const payloads = records.map(({ payload }) => payload)
    return done(onDone => this.shardHost.apply(shard, payloads, position, onDone))
  }

  activate(shard: number): Promise<void> {
    this.log.takeOver(shard)
    this.replication.lost.delete(shard)
    return done(onDone => this.shardHost.activate(shard, onDone))
  }

  seal(shard: number): Promise<void> {
    return done(onDone => this.shardHost.seal(shard, onDone))
  }

  /** Another host has taken a shard over, and this one knows it: resolves when it follows the shard. */
  lose(shard: number): Promise<void> {
    const known = this.losing.get(shard)
    if (known || !this.ownership.admits(shard)) return known ?? Promise.resolve()
    const losing = this.seal(shard).finally(() => this.losing.delete(shard))
    this.losing.set(shard, losing)
    return losing
  }

  /** All rows that the host has of a shard, with those of the indexes and the counts. */
  async rows(shard: number): Promise<readonly Row[]> {
    const stretches = await Promise.all(shardRanges(shard).map(range => rowsOf(this.store, range)))
    const [types, ids, expiries, ...counts] = await Promise.all([
      rowsOf(this.store, { gte: Buffer.from('T'), lt: Buffer.from('U') }),
      rowsOf(this.store, { gte: Buffer.from('I'), lt: Buffer.from('J') }),
      rowsOf(this.store, expiryRange(Number.NEGATIVE_INFINITY, 1e15)),
      rowsOf(this.store, entityCounts.all),
      rowsOf(this.store, attributeCounts.all),
    ])
    return [
      ...stretches.flat(),
      ...types.filter(({ key }) => parseTypeKey(key).shard === shard),
      ...ids.filter(({ key }) => {
        const { tenant, path, id } = parseIdKey(key)
        return shardMap.shardOf(tenant, path, id) === shard
      }),
      ...expiries.filter(({ key }) => parseExpiryKey(key).shard === shard),
      ...counts.flat().filter(({ key }) => shardOfKey(key) === shard),
    ]
  }
}

const done = (begin: (onDone: (failure?: Error) => void) => void): Promise<void> =>
  new Promise((resolve, reject) => begin(failure => (failure ? reject(failure) : resolve())))

/** Several hosts as one: each request goes to the owner of the shard, and is repeated if that has changed. */
export class Cluster implements Shards {
  readonly hosts: Host[] = []
  readonly log = new MemoryLog()
  readonly clock: FakeClock
  /** Host of each shard, by its number; undefined while the shard moves. */
  readonly places: (number | undefined)[] = []
  /** Whether hosts follow appended records by themselves. */
  followsAlways = true
  /** Whether a request with an unknown outcome is repeated: here such a request was never executed. */
  asksLostAgain = false
  private readonly t: Test
  private asked: readonly number[] = []

  private constructor(t: Test, clock: FakeClock) {
    this.t = t
    this.clock = clock
  }

  /** This number of hosts; the first one owns all shards. */
  static async of(t: Test, clock: FakeClock, count: number, parts: Partial<ShardParts> = {}): Promise<Cluster> {
    const cluster = new Cluster(t, clock)
    for (let number = 0; number < count; number++) {
      const directory = temporaryDirectory(t)
      const store = await openRocksStore(directory, { durability: 'os', memoryBytes: 8 * 1024 * 1024 })
      t.teardown(async () => {
        for (const host of cluster.hosts) host.replication.release()
        cluster.hosts[number]?.local.parts.notifications.end()
        await cluster.waitFor(cluster.hosts[number]!.local.drain())
        await cluster.hosts[number]!.store.close()
      })
      cluster.hosts.push(await Host.open(store, { ...parts, clock, log: cluster.log, number, cluster }))
    }
    for (const shard of allShards) {
      cluster.places[shard] = 0
      await cluster.waitFor(cluster.hosts[0]!.activate(shard))
    }
    return cluster
  }

  host(number: number): Host {
    return this.hosts[number]!
  }

  ownerHost(shard: number): Host {
    return this.host(this.places[shard]!)
  }

  /** Moves a shard: seals it at its host, follows its log to the end at the new host, and activates it there. */
  async move(shard: number, to: number): Promise<void> {
    const from = this.ownerHost(shard)
    if (from.number === to) return
    this.places[shard] = undefined
    await this.waitFor(from.seal(shard))
    await this.waitFor(this.host(to).follow())
    await this.waitFor(this.host(to).activate(shard))
    this.places[shard] = to
  }

  /**
   * Another host takes a shard over, at any moment. The owner learns of it with its next append to the shard, or else
   * after `thereafter`.
   */
  async depose(shard: number, to: number, thereafter: () => Promise<unknown> = async () => {}): Promise<void> {
    const from = this.ownerHost(shard)
    if (from.number === to) return
    from.replication.lost.add(shard)
    this.log.takeOver(shard)
    await thereafter()
    this.places[shard] = undefined
    await this.waitFor(from.lose(shard))
    await this.waitFor(this.host(to).follow())
    await this.waitFor(this.host(to).activate(shard))
    this.places[shard] = to
  }

  /** Lets all hosts apply the logs to their end. */
  async followAll(): Promise<void> {
    await this.waitFor(Promise.all(this.hosts.map(host => host.follow())))
  }

  afterAll(shard: number, sequence: number, onDone: () => void): void {
    Promise.all(this.hosts.map(host => host.follow([shard]))).then(() => {
      for (const host of this.hosts) assert(host.shardHost.position(shard)!.sequence >= sequence)
      onDone()
    })
  }

  /** Waits until a promise has settled, without moving the time. */
  async waitFor<T>(promise: Promise<T>): Promise<T> {
    let isOver = false
    promise.then(
      () => {
        isOver = true
      },
      () => {
        isOver = true
      },
    )
    await until(this.clock, () => isOver)
    return promise
  }

  /** Lets all work end that needs no time. */
  async rest(ms = 0): Promise<void> {
    this.clock.advance(ms)
    for (let turns = 0; turns < 10; turns++) {
      this.clock.tick()
      await turnOfTheLoop()
    }
    for (const host of this.hosts) await this.waitFor(host.local.parts.commit.drain())
  }

  // Shards

  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    const place = this.places[shard]
    const again = (): void => this.clock.endOfTick(() => setImmediate(() => this.ask(shard, request, onReply)))
    if (place === undefined) return again()
    this.host(place).local.ask(shard, request, reply => {
      if (reply.kind === 'moved' || (reply.kind === 'lost' && this.asksLostAgain)) again()
      else onReply(reply)
    })
  }

  owners(): readonly number[] {
    const owners = new Map<number, number>()
    for (const shard of allShards.slice(0, shardCount)) {
      const place = this.places[shard]
      if (place !== undefined && !owners.has(place)) owners.set(place, shard)
    }
    const asked = [...owners.values()]
    // As long as no shard has moved, the list is the same object.
    if (asked.join() !== this.asked.join()) this.asked = asked
    return this.asked
  }

  pathsOf(): undefined {
    return undefined
  }

  ownerOf(shard: number): number {
    return this.places[shard] ?? -1
  }

  /** Asserts that each shard has the same rows on every host. */
  async assertEqual(shards: readonly number[] = allShards): Promise<void> {
    await this.rest()
    await this.followAll()
    const [first, ...others] = this.hosts as [Host, ...Host[]]
    for (const shard of shards) {
      const rows = (await first.rows(shard)).map(shown)
      for (const other of others)
        assert.deepEqual((await other.rows(shard)).map(shown), rows, `shard ${shard} at host ${other.number}`)
    }
    this.t.ok(true, 'each shard has the same rows at every host')
  }
}

const shown = ({ key, value }: Row): string => `${key.toString('latin1')} = ${value.toString('latin1')}`
