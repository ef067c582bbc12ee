// The replicated log without an engine: for simulations, with all faults of an engine and of the way to it.
//
// `SimulatedEngine` plays the engine. Nodes connect to it, each with its own clock, by which it gets all answers: a
// killed process gets none, and its requests may still take effect. Time and chance are passed in, so a seed repeats a
// run. The engine is as correct as the port requires: it executes requests one after the other, and fences them. All
// events that ever happened are kept, in order.
//
// `fenced = false` removes the fence: a negative control for checkers.

import assert from 'node:assert/strict'
import type {
  Append,
  AppendOutcome,
  CreateOnceOutcome,
  Heartbeat,
  HeartbeatOutcome,
  LogFollower,
  LogRecord,
  ShardLog,
  Takeover,
  Unknown,
} from '../../cluster/logs/shard-log.js'
import type { ClusterClock } from '../../cluster/ports.js'
import type { Random } from '../support/random.js'

/** The probabilities of faults of a request, and the time that requests take. */
export interface LogFaults {
  /** It never arrives. */
  lost: number
  /** It takes effect, and its caller gets no answer. */
  answerLost: number
  /** It arrives after its deadline, by up to `lateMsMax`. */
  late: number
  lateMsMax: number
  /** A follower's connection is lost at an event; it is open again up to a second later. */
  followLost: number
  /** For each direction. */
  delayMsMax: number
  deadlineMs: number
}

export const peacefulLog: LogFaults = {
  lost: 0,
  answerLost: 0,
  late: 0,
  lateMsMax: 10_000,
  followLost: 0,
  delayMsMax: 3,
  deadlineMs: 2000,
}

/** An event of a log. */
export type LogEvent =
  | {
      readonly kind: 'takeover'
      readonly revision: number
      readonly shard: number
      readonly takeover: Takeover
      readonly before: Takeover | undefined
    }
  | {
      readonly kind: 'record'
      readonly revision: number
      readonly shard: number
      readonly epoch: number
      readonly record: LogRecord
    }

/** The most events that a follower may be behind; beyond that it has a gap. */
const followedMax = 10_000

/** The longest time until a follower's lost connection is open again. */
const refollowMsMax = 1000

const appendsMax = 64
const appendBytesMax = 1024 * 1024

interface Shard {
  takeover: Takeover | undefined
  records: LogRecord[]
  last: number
}

export class SimulatedEngine {
  /** All events that ever happened, in order, with the trimmed ones. */
  readonly events: LogEvent[] = []
  readonly faults: LogFaults
  fenced = true
  /** It has no room: it writes nothing more, and still answers readings. */
  isFull = false
  private readonly clock: ClusterClock
  private readonly random: Random
  private readonly shards = new Map<number, Shard>()
  private readonly names = new Map<string, Buffer>()
  private readonly connections = new Set<SimulatedLog>()
  private revision = 0
  private isAway = false

  /** `clock` is the engine's own, which no node stops. */
  constructor(clock: ClusterClock, random: Random, faults: Partial<LogFaults> = {}) {
    this.clock = clock
    this.random = random
    this.faults = { ...peacefulLog, ...faults }
  }

  /** The log for a node with this clock. */
  connect(clock: ClusterClock): SimulatedLog {
    const log = new SimulatedLog(this, clock, this.clock, this.random)
    this.connections.add(log)
    return log
  }

  get away(): boolean {
    return this.isAway
  }

  /** The engine cannot be reached: requests are lost, and followers have a gap. */
  goAway(): void {
    this.isAway = true
    for (const connection of this.connections) connection.loseFollower('the engine is away')
  }

  comeBack(): void {
    this.isAway = false
  }

  /** The latest takeover of a shard at this moment. */
  takeoverOf(shard: number): Takeover | undefined {
    return this.shards.get(shard)?.takeover
  }

  /** The records of a shard that are kept at this moment. */
  recordsOf(shard: number): readonly LogRecord[] {
    return this.shards.get(shard)?.records ?? []
  }

  /** The last number of a shard's log. */
  lastOf(shard: number): number {
    return this.shards.get(shard)?.last ?? 0
  }

  takeovers(): Map<number, Takeover> {
    const found = new Map<number, Takeover>()
    for (const [shard, { takeover }] of this.shards) if (takeover) found.set(shard, takeover)
    return found
  }

  takeOver(shard: number, owner: string): { readonly epoch: number; readonly before: Takeover | undefined } {
    const state = this.shardOf(shard)
    const before = state.takeover
    const takeover = { epoch: ++this.revision, owner }
    state.takeover = takeover
    this.happen({ kind: 'takeover', revision: this.revision, shard, takeover, before })
    return { epoch: takeover.epoch, before }
  }

  append(appends: readonly Append[]): AppendOutcome {
    const superseded = appends.filter(({ shard, epoch }) => this.takeoverOf(shard)?.epoch !== epoch)
    if (this.fenced && superseded.length > 0) {
      return { kind: 'superseded', shards: superseded.map(({ shard }) => shard) }
    }
    if (appends.some(({ shard, sequence }) => sequence <= this.lastOf(shard))) return this.appendedBefore(appends)
    const isShort = appends.some(({ shard, sequence }) => sequence > 2 && sequence > this.lastOf(shard) + 1)
    if (this.fenced && isShort) return { kind: 'short' }
    this.revision++
    for (const { shard, epoch, sequence, bytes } of appends) {
      const state = this.shardOf(shard)
      const record = { sequence, bytes: Buffer.from(bytes) }
      state.records.push(record)
      state.last = sequence
      this.happen({ kind: 'record', revision: this.revision, shard, epoch, record })
    }
    return { kind: 'appended' }
  }

  /** Accepts a heartbeat if its takeovers are the latest, and then reports it to all followers. */
  beat({ node, epochs, bytes }: Heartbeat): HeartbeatOutcome {
    for (const [shard, epoch] of epochs) if (this.takeoverOf(shard)?.epoch !== epoch) return { kind: 'superseded' }
    for (const connection of this.connections) connection.onHeartbeat(node, bytes)
    return { kind: 'appended' }
  }

  trim(shard: number, upTo: number): void {
    const state = this.shards.get(shard)
    if (state) state.records = state.records.filter(({ sequence }) => sequence > upTo || sequence === state.last)
  }

  createOnce(name: string, value: Buffer): CreateOnceOutcome {
    const stands = this.names.get(name) ?? value
    this.names.set(name, stands)
    return { kind: 'stands', value: stands }
  }

  named(name: string): Buffer | undefined {
    return this.names.get(name)
  }

  /** Loses everything, as if it had been deleted; the returned function restores it, and undoes all since then. */
  lose(): () => void {
    const [shards, names, { length }] = [new Map(this.shards), new Map(this.names), this.events]
    this.shards.clear()
    this.names.clear()
    return () => {
      this.shards.clear()
      this.events.length = length
      for (const [shard, state] of shards) this.shards.set(shard, state)
      for (const [name, value] of names) this.names.set(name, value)
    }
  }

  /** Loses the records of a shard from a number on, as an older backup does; the returned function restores them. */
  shorten(shard: number, from: number): () => void {
    const state = this.shardOf(shard)
    const { records, last } = state
    state.records = records.filter(({ sequence }) => sequence < from)
    state.last = Math.min(last, from - 1)
    return () => Object.assign(state, { records, last })
  }

  chance(likelihood: number): boolean {
    return likelihood > 0 && this.random.fraction() < likelihood
  }

  forget(connection: SimulatedLog): void {
    this.connections.delete(connection)
  }

  private appendedBefore(appends: readonly Append[]): AppendOutcome {
    const wrong = appends.find(
      ({ shard, sequence, bytes }) =>
        !this.recordsOf(shard)
          .find(record => record.sequence === sequence)
          ?.bytes.equals(bytes),
    )
    if (!wrong) return { kind: 'appended' }
    const reason = `BROKEN INVARIANT: shard ${wrong.shard} has another record ${wrong.sequence} already`
    return { kind: 'unknown', reason }
  }

  private shardOf(shard: number): Shard {
    let state = this.shards.get(shard)
    if (!state) {
      state = { takeover: undefined, records: [], last: 0 }
      this.shards.set(shard, state)
    }
    return state
  }

  private happen(event: LogEvent): void {
    this.events.push(event)
    for (const connection of this.connections) connection.onEvent(event)
  }
}

/** One node's way to the engine. */
export class SimulatedLog implements ShardLog {
  readonly appendsMax = appendsMax
  readonly appendBytesMax = appendBytesMax
  /**
   * `hold`: requests wait on the way; `deafen`: they take effect, and get no answer; `cut`: nothing passes, in neither
   * direction; `mute`: requests get answers, and followers get no events; `deaf`: nothing passes from the engine;
   * `dumb`: nothing passes to the engine.
   */
  fault: 'none' | 'hold' | 'deafen' | 'cut' | 'mute' | 'deaf' | 'dumb' = 'none'
  private readonly engine: SimulatedEngine
  private readonly clock: ClusterClock
  private readonly engineClock: ClusterClock
  private readonly random: Random
  private readonly held: (() => void)[] = []
  private underWay = 0
  private closed = false
  private onIdle: (() => void) | undefined
  private follower: { readonly wanted: (shard: number) => boolean; readonly listener: LogFollower } | undefined
  /** Whether the engine sends events at present, and those that have not arrived. */
  private following = false
  private undelivered: (() => void)[] = []

  constructor(engine: SimulatedEngine, clock: ClusterClock, engineClock: ClusterClock, random: Random) {
    this.engine = engine
    this.clock = clock
    this.engineClock = engineClock
    this.random = random
  }

  takeOver: ShardLog['takeOver'] = (shard, owner, onDone) => {
    this.askToWrite(() => ({ kind: 'taken', ...this.engine.takeOver(shard, owner) }), onDone)
  }

  retake: ShardLog['retake'] = (shard, epoch, owner, onDone) => {
    this.askToWrite(() => {
      if (this.engine.takeoverOf(shard)?.epoch !== epoch) return { kind: 'superseded' }
      return { kind: 'taken', epoch: this.engine.takeOver(shard, owner).epoch }
    }, onDone)
  }

  append: ShardLog['append'] = (appends, onDone) => {
    const bytes = appends.reduce((sum, append) => sum + append.bytes.length, 0)
    assert(appends.length >= 1 && appends.length <= appendsMax && bytes <= appendBytesMax, 'too much in one step')
    assert(new Set(appends.map(({ shard }) => shard)).size === appends.length, 'a step has two appends for one shard')
    this.askToWrite(() => this.engine.append(appends), onDone)
  }

  heartbeat: ShardLog['heartbeat'] = (heartbeat, onDone) => {
    this.askToWrite(() => this.engine.beat(heartbeat), onDone)
  }

  read: ShardLog['read'] = (shard, after, bytesMax, onDone) => {
    this.ask(() => {
      const records: LogRecord[] = []
      let bytes = 0
      for (const record of this.engine.recordsOf(shard)) {
        if (record.sequence <= after) continue
        bytes += record.bytes.length
        if (records.length > 0 && bytes > bytesMax) break
        records.push(record)
      }
      return { kind: 'read', records, last: this.engine.lastOf(shard), takeover: this.engine.takeoverOf(shard) }
    }, onDone)
  }

  takeovers: ShardLog['takeovers'] = onDone => {
    this.ask(() => ({ kind: 'read', takeovers: this.engine.takeovers() }), onDone)
  }

  lacking: ShardLog['lacking'] = (ends, onDone) => {
    this.ask(() => {
      const shards = [...ends].flatMap(([shard, end]) => (this.engine.lastOf(shard) < end ? [shard] : []))
      return { kind: 'read', shards }
    }, onDone)
  }

  named: ShardLog['named'] = (name, onDone) => {
    this.ask(() => ({ kind: 'read', value: this.engine.named(name) }), onDone)
  }

  keepHistory(): void {}

  createOnce: ShardLog['createOnce'] = (name, value, onDone) => {
    this.ask(() => this.engine.createOnce(name, value), onDone)
  }

  follow: ShardLog['follow'] = (wanted, listener) => {
    assert(!this.follower, 'the log has a follower already')
    this.follower = { wanted, listener }
    this.followSoon('following begins')
  }

  trim: ShardLog['trim'] = (shard, upTo) => {
    this.ask(
      () => this.engine.trim(shard, upTo),
      () => {},
    )
  }

  close(): Promise<void> {
    this.closed = true
    this.engine.forget(this)
    if (this.underWay === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.onIdle = resolve
    })
  }

  /** The held requests arrive now. */
  release(): void {
    for (const arrive of this.held.splice(0)) this.engineClock.after(this.delayMs(), arrive)
  }

  /** The engine sends an event. */
  onEvent(event: LogEvent): void {
    const { follower, engine } = this
    if (!follower || !this.following) return
    const blocked = engine.away || this.isUndelivered || this.undelivered.length >= followedMax
    if (blocked || engine.chance(engine.faults.followLost)) return this.loseFollower('the connection is lost')
    const { wanted, listener } = follower
    if (event.kind === 'takeover') this.deliver(() => listener.onTakeover(event.shard, event.takeover))
    else this.deliver(() => wanted(event.shard) && listener.onRecord(event.shard, event.record))
  }

  /** The engine sends a heartbeat. */
  onHeartbeat(node: string, bytes: Buffer): void {
    const { follower } = this
    if (follower && this.following && !this.isUndelivered)
      this.deliver(() => follower.listener.onHeartbeat(node, bytes))
  }

  private get isUndelivered(): boolean {
    return this.fault === 'cut' || this.fault === 'mute' || this.fault === 'deaf'
  }

  /** Events that have not arrived by now are lost; there is a gap when the connection is open again. */
  loseFollower(reason: string): void {
    if (!this.following) return
    this.following = false
    this.undelivered = []
    this.followSoon(reason)
  }

  private followSoon(reason: string): void {
    this.engineClock.after(this.random.fraction() * refollowMsMax, () => {
      if (this.closed || !this.follower) return
      if (this.engine.away || this.isUndelivered) return this.followSoon(reason)
      this.following = true
      const { listener } = this.follower
      this.deliver(() => listener.onGap(reason))
    })
  }

  /** Delivers in order, although timers may not keep it: each timer delivers the first of the queue. */
  private deliver(run: () => void): void {
    const { undelivered } = this
    undelivered.push(run)
    this.clock.after(this.delayMs(), () => {
      if (this.closed || undelivered !== this.undelivered) return
      undelivered.shift()?.()
    })
  }

  private askToWrite<Outcome>(happen: () => Outcome | Unknown, onDone: (outcome: Outcome | Unknown) => void): void {
    const full: Unknown = { kind: 'unknown', reason: 'there is no room', isFull: true }
    this.ask(() => (this.engine.isFull ? full : happen()), onDone)
  }

  /** A request: `happen` runs at the engine, at most once, also after `onDone` has got the outcome unknown. */
  private ask<Outcome>(happen: () => Outcome | Unknown, onDone: (outcome: Outcome | Unknown) => void): void {
    const { clock, engineClock, engine } = this
    const { faults } = engine
    if (this.closed) return clock.endOfTick(() => onDone({ kind: 'unknown', reason: 'the log is closed' }))
    this.underWay++
    let waiting = true
    const finish = (outcome: Outcome | Unknown): void => {
      if (!waiting) return
      waiting = false
      stopWaiting()
      onDone(outcome)
      if (--this.underWay === 0) this.onIdle?.()
    }
    const stopWaiting = clock.after(faults.deadlineMs, () => finish({ kind: 'unknown', reason: 'no answer in time' }))
    const isDeaf = engine.chance(faults.answerLost)
    const arrive = (): void => {
      if (engine.away) return
      const outcome = happen()
      if (isDeaf || !['none', 'mute', 'dumb'].includes(this.fault)) return
      clock.after(this.delayMs(), () => finish(outcome))
    }
    if (this.fault === 'hold') {
      this.held.push(arrive)
      return
    }
    if (this.fault === 'cut' || this.fault === 'dumb' || engine.chance(faults.lost)) return
    const lateMs = engine.chance(faults.late) ? faults.deadlineMs + this.random.fraction() * faults.lateMsMax : 0
    engineClock.after(this.delayMs() + lateMs, arrive)
  }

  private delayMs(): number {
    return this.random.fraction() * this.engine.faults.delayMsMax
  }
}
