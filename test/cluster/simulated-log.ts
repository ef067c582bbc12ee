// The replicated log without an engine: for simulations, with all that an engine and the way to it can do to those who
// ask.
//
// An engine stands for itself; nodes connect to it, each with its own clock, by which it is told everything: a process
// that is killed hears nothing more, and what it has asked may still happen. Time and chance are handed in, so a seed
// repeats a run. The engine is as right as the port asks for: one thing after the other, and fenced. All that ever
// happened can be looked at, in order.
//
// `fenced = false` takes its fence away: a negative control for those who check.

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

/** How likely it is that something happens to a request, and how long things take. */
export interface LogFaults {
  /** It never arrives. */
  lost: number
  /** It happens, and nobody is told. */
  answerLost: number
  /** It arrives after its deadline, by up to `lateMsMax`. */
  late: number
  lateMsMax: number
  /** A follower's connection is lost when something is to be told; it stands again up to a second later. */
  followLost: number
  /** Of each way. */
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

/** Something that has happened to a log. */
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

/** What a follower may be behind by; who is further behind has a gap. */
const followedMax = 10_000

/** How long a lost connection of a follower takes to stand again. */
const refollowMsMax = 1000

const appendsMax = 64
const appendBytesMax = 1024 * 1024

interface Shard {
  takeover: Takeover | undefined
  records: LogRecord[]
  last: number
}

export class SimulatedEngine {
  /** Everything that ever happened, in order, whatever was trimmed since. */
  readonly events: LogEvent[] = []
  readonly faults: LogFaults
  fenced = true
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

  /** The log as a node has it that lives by this clock. */
  connect(clock: ClusterClock): SimulatedLog {
    const log = new SimulatedLog(this, clock, this.clock, this.random)
    this.connections.add(log)
    return log
  }

  get away(): boolean {
    return this.isAway
  }

  /** Nobody reaches it: what arrives is lost, and followers have a gap. */
  goAway(): void {
    this.isAway = true
    for (const connection of this.connections) connection.loseFollower('the engine is away')
  }

  comeBack(): void {
    this.isAway = false
  }

  /** The latest takeover of a shard, as it is this moment. */
  takeoverOf(shard: number): Takeover | undefined {
    return this.shards.get(shard)?.takeover
  }

  /** The records that are kept of a shard, as they are this moment. */
  recordsOf(shard: number): readonly LogRecord[] {
    return this.shards.get(shard)?.records ?? []
  }

  /** What the log of a shard has had as its last number. */
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

  /** Whether a heartbeat's takeovers are the latest: then all are told of it. */
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

  /** Forgets everything, as if somebody had deleted it; what is given back can be put back. */
  lose(): () => void {
    const [shards, names] = [new Map(this.shards), new Map(this.names)]
    this.shards.clear()
    this.names.clear()
    return () => {
      for (const [shard, state] of shards) this.shards.set(shard, state)
      for (const [name, value] of names) this.names.set(name, value)
    }
  }

  /** Forgets the records of a shard from a number on, as a backup does that is older. */
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
   * `hold`: what is asked waits on the way; `deafen`: it happens, and is not answered; `cut`: nothing passes, in
   * neither direction; `mute`: what is asked is answered, and nothing else is told.
   */
  fault: 'none' | 'hold' | 'deafen' | 'cut' | 'mute' = 'none'
  private readonly engine: SimulatedEngine
  private readonly clock: ClusterClock
  private readonly engineClock: ClusterClock
  private readonly random: Random
  private readonly held: (() => void)[] = []
  private underWay = 0
  private closed = false
  private onIdle: (() => void) | undefined
  private follower: { readonly wanted: (shard: number) => boolean; readonly listener: LogFollower } | undefined
  /** Whether the engine tells at present, and what it has told that has not arrived. */
  private following = false
  private told: (() => void)[] = []

  constructor(engine: SimulatedEngine, clock: ClusterClock, engineClock: ClusterClock, random: Random) {
    this.engine = engine
    this.clock = clock
    this.engineClock = engineClock
    this.random = random
  }

  takeOver: ShardLog['takeOver'] = (shard, owner, onDone) => {
    this.ask(() => ({ kind: 'taken', ...this.engine.takeOver(shard, owner) }), onDone)
  }

  retake: ShardLog['retake'] = (shard, epoch, owner, onDone) => {
    this.ask(() => {
      if (this.engine.takeoverOf(shard)?.epoch !== epoch) return { kind: 'superseded' }
      return { kind: 'taken', epoch: this.engine.takeOver(shard, owner).epoch }
    }, onDone)
  }

  append: ShardLog['append'] = (appends, onDone) => {
    const bytes = appends.reduce((sum, append) => sum + append.bytes.length, 0)
    assert(appends.length >= 1 && appends.length <= appendsMax && bytes <= appendBytesMax, 'too much in one step')
    assert(new Set(appends.map(({ shard }) => shard)).size === appends.length, 'one append for a shard')
    this.ask(() => this.engine.append(appends), onDone)
  }

  heartbeat: ShardLog['heartbeat'] = (heartbeat, onDone) => {
    this.ask(() => this.engine.beat(heartbeat), onDone)
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
    assert(!this.follower, 'one follower at a time')
    this.follower = { wanted, listener }
    this.followSoon('the telling begins')
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

  /** What waits on the way arrives now. */
  release(): void {
    for (const arrive of this.held.splice(0)) this.engineClock.after(this.delayMs(), arrive)
  }

  /** The engine tells what has happened. */
  onEvent(event: LogEvent): void {
    const { follower, engine } = this
    if (!follower || !this.following) return
    const blocked = engine.away || this.isUntold || this.told.length >= followedMax
    if (blocked || engine.chance(engine.faults.followLost)) return this.loseFollower('the connection is lost')
    const { wanted, listener } = follower
    if (event.kind === 'takeover') this.tell(() => listener.onTakeover(event.shard, event.takeover))
    else this.tell(() => wanted(event.shard) && listener.onRecord(event.shard, event.record))
  }

  /** The engine tells of a heartbeat. */
  onHeartbeat(node: string, bytes: Buffer): void {
    const { follower } = this
    if (follower && this.following && !this.isUntold) this.tell(() => follower.listener.onHeartbeat(node, bytes))
  }

  private get isUntold(): boolean {
    return this.fault === 'cut' || this.fault === 'mute'
  }

  /** What is not told by now is never told; there is a gap when the connection stands again. */
  loseFollower(reason: string): void {
    if (!this.following) return
    this.following = false
    this.told = []
    this.followSoon(reason)
  }

  private followSoon(reason: string): void {
    this.engineClock.after(this.random.fraction() * refollowMsMax, () => {
      if (this.closed || !this.follower) return
      if (this.engine.away || this.isUntold) return this.followSoon(reason)
      this.following = true
      const { listener } = this.follower
      this.tell(() => listener.onGap(reason))
    })
  }

  /** Tells in order, though timers need not keep it: each timer takes what is first. */
  private tell(run: () => void): void {
    const { told } = this
    told.push(run)
    this.clock.after(this.delayMs(), () => {
      if (this.closed || told !== this.told) return
      told.shift()?.()
    })
  }

  /** A request: `happen` runs at the engine, at most once, whatever `onDone` has been told by then. */
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
      if (isDeaf || (this.fault !== 'none' && this.fault !== 'mute')) return
      clock.after(this.delayMs(), () => finish(outcome))
    }
    if (this.fault === 'hold') {
      this.held.push(arrive)
      return
    }
    if (this.fault === 'cut' || engine.chance(faults.lost)) return
    const lateMs = engine.chance(faults.late) ? faults.deadlineMs + this.random.fraction() * faults.lateMsMax : 0
    engineClock.after(this.delayMs() + lateMs, arrive)
  }

  private delayMs(): number {
    return this.random.fraction() * this.engine.faults.delayMsMax
  }
}
