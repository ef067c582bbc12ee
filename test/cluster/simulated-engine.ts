// A log engine in memory, away from the nodes: requests take time to get there, may get lost before or after they have happened, may arrive
// when nobody waits for an answer any more, and may find the engine cut off.
//
// Everything that ever happened is kept for whoever checks, trimmed or not. The rules that a driver promises (cluster/shard-log.ts) can be switched off
// one by one, to see that a check would tell.

import type {
  Append,
  LogFollower,
  LogRecord,
  Reading,
  ShardLog,
  StandingOutcome,
  Takeover,
  Unknown,
} from '../../cluster/shard-log.js'
import type { Process, World } from './simulated-world.js'

const deadlineMs = 2000

/** Rules of the engine that may be switched off. */
export interface EngineRules {
  /** An append looks at the latest takeover. */
  readonly fences: boolean
  /** What is trimmed is what was asked for, and not more. */
  readonly trimsWithCare: boolean
}

interface ShardState {
  takeover: Takeover | undefined
  readonly records: (LogRecord & { readonly atMs: number })[]
  trimmedTo: number
}

export class Engine {
  private readonly rules: EngineRules
  /** Likelihoods. */
  readonly faults = { lost: 0, late: 0 }
  private readonly world: World
  private readonly shards = new Map<number, ShardState>()
  private readonly followers = new Map<EngineLog, LogFollower>()
  private revision = 0
  private readonly names = new Map<string, Buffer>()
  /** Processes that cannot reach it, and those that are told nothing without noticing. */
  readonly cutOff = new Set<string>()
  readonly deaf = new Set<string>()
  isAway = false

  constructor(world: World, rules: EngineRules) {
    this.world = world
    this.rules = rules
  }

  /** The log as one process sees it. */
  logOf(process: Process): ShardLog {
    return new EngineLog(this, process)
  }

  /** All records of a shard that there ever were, in order. */
  history(shard: number): readonly (LogRecord & { readonly atMs: number })[] {
    return this.state(shard).records
  }

  takeoverOf(shard: number): Takeover | undefined {
    return this.shards.get(shard)?.takeover
  }

  state(shard: number): ShardState {
    let state = this.shards.get(shard)
    if (!state) {
      state = { takeover: undefined, records: [], trimmedTo: 0 }
      this.shards.set(shard, state)
    }
    return state
  }

  takeovers(): Map<number, Takeover> {
    return new Map([...this.shards].flatMap(([shard, { takeover }]) => (takeover ? [[shard, takeover] as const] : [])))
  }

  takeOver(shard: number, owner: string): Takeover {
    const takeover = { epoch: ++this.revision, owner }
    this.state(shard).takeover = takeover
    this.tell(follower => follower.onTakeover(shard, takeover))
    return takeover
  }

  append(appends: readonly Append[]): readonly number[] {
    const superseded = appends.filter(({ shard, epoch }) => this.state(shard).takeover?.epoch !== epoch)
    if (this.rules.fences && superseded.length > 0) return superseded.map(({ shard }) => shard)
    const isThere = ({ shard, sequence, bytes }: Append): boolean =>
      this.state(shard).records[sequence - 1]?.bytes.equals(bytes) ?? false
    if (appends.every(isThere)) return []
    const taken = appends.filter(({ shard, sequence }) => this.state(shard).records.length !== sequence - 1)
    if (taken.length > 0) return taken.map(({ shard }) => shard)
    this.revision++
    for (const { shard, sequence, bytes } of appends) {
      const record = { sequence, bytes: Buffer.from(bytes), atMs: this.world.nowMs }
      this.state(shard).records.push(record)
      this.tell(follower => follower.onRecord(shard, record), shard)
    }
    return []
  }

  read(shard: number, after: number, bytesMax: number): Reading {
    const { records, trimmedTo, takeover } = this.state(shard)
    const found: LogRecord[] = []
    let bytes = 0
    for (const record of records.slice(Math.max(after, trimmedTo))) {
      if (found.length > 0 && bytes + record.bytes.length > bytesMax) break
      found.push(record)
      bytes += record.bytes.length
    }
    return { kind: 'read', records: found, last: records.length, takeover }
  }

  trim(shard: number, upTo: number): void {
    const state = this.state(shard)
    const wanted = this.rules.trimsWithCare ? upTo : Number.POSITIVE_INFINITY
    state.trimmedTo = Math.max(state.trimmedTo, Math.min(wanted, state.records.length - 1))
  }

  createOnce(name: string, value: Buffer): Buffer {
    const stands = this.names.get(name) ?? value
    this.names.set(name, stands)
    return stands
  }

  follow(log: EngineLog, follower: LogFollower | undefined): void {
    if (follower) this.followers.set(log, follower)
    else this.followers.delete(log)
  }

  private tell(run: (follower: LogFollower) => void, shard?: number): void {
    for (const [log, follower] of this.followers) log.deliver(follower, run, shard)
  }

  isReachable({ name }: Process): boolean {
    return !this.isAway && !this.cutOff.has(name)
  }
}

class EngineLog implements ShardLog {
  readonly appendsMax = 8
  readonly appendBytesMax = 600
  private readonly engine: Engine
  private readonly process: Process
  private wanted: (shard: number) => boolean = () => false
  /** When the last thing that was told arrives. */
  private toldMs = 0
  private hasGap = false
  private isClosed = false

  constructor(engine: Engine, process: Process) {
    this.engine = engine
    this.process = process
  }

  /** Asks the engine: `run` happens there, `onDone` hears of it here, or does not. */
  private ask<T>(run: () => T, onDone: (outcome: T | Unknown) => void): void {
    const { engine, process } = this
    const { world } = process
    let isOver = false
    const end = (outcome: T | Unknown): void => {
      if (isOver) return
      isOver = true
      onDone(outcome)
    }
    process.clock.after(deadlineMs, () => end({ kind: 'unknown', reason: 'no answer in time' }))
    if (world.chance(engine.faults.lost / 2)) return
    const lateMs = world.chance(engine.faults.late) ? world.random.between(0, 6000) : 0
    world.at(world.nowMs + world.delayMs() + lateMs, () => {
      if (!engine.isReachable(process)) return
      const outcome = run()
      if (world.chance(engine.faults.lost / 2)) return
      process.at(world.nowMs + world.delayMs(), () => {
        if (engine.isReachable(process)) end(outcome)
      })
    })
  }

  takeOver: ShardLog['takeOver'] = (shard, owner, onDone) =>
    this.ask(() => {
      const before = this.engine.takeoverOf(shard)
      return { kind: 'taken' as const, epoch: this.engine.takeOver(shard, owner).epoch, before }
    }, onDone)

  retake: ShardLog['retake'] = (shard, epoch, owner, onDone) =>
    this.ask(() => {
      if (this.engine.takeoverOf(shard)?.epoch !== epoch) return { kind: 'superseded' as const }
      return { kind: 'taken' as const, epoch: this.engine.takeOver(shard, owner).epoch }
    }, onDone)

  append: ShardLog['append'] = (appends, onDone) =>
    this.ask(() => {
      const shards = this.engine.append(appends)
      return shards.length === 0 ? { kind: 'appended' as const } : { kind: 'superseded' as const, shards }
    }, onDone)

  read: ShardLog['read'] = (shard, after, bytesMax, onDone) =>
    this.ask(() => this.engine.read(shard, after, bytesMax), onDone)

  takeovers: ShardLog['takeovers'] = onDone =>
    this.ask(() => ({ kind: 'read' as const, takeovers: this.engine.takeovers() }), onDone)

  createOnce(name: string, value: Buffer, onDone: (outcome: StandingOutcome) => void): void {
    this.ask(() => ({ kind: 'stands' as const, value: this.engine.createOnce(name, value) }), onDone)
  }

  follow(wanted: (shard: number) => boolean, follower: LogFollower): void {
    this.wanted = wanted
    this.engine.follow(this, follower)
  }

  /** Something happened that a follower is to be told: in order, or with a gap. */
  deliver(follower: LogFollower, run: (follower: LogFollower) => void, shard: number | undefined): void {
    const { engine, process } = this
    const { world } = process
    if (this.isClosed) return
    this.toldMs = Math.max(this.toldMs, world.nowMs + world.delayMs())
    const isDeaf = engine.deaf.has(process.name)
    const isLost = isDeaf || !engine.isReachable(process) || world.chance(engine.faults.lost / 20)
    if (isLost) {
      this.hasGap = true
      world.at(world.nowMs + 300, () => this.mend(follower))
      return
    }
    process.at(this.toldMs, () => {
      if (!this.isClosed && (shard === undefined || this.wanted(shard))) run(follower)
    })
  }

  private mend(follower: LogFollower): void {
    const { engine, process } = this
    const { world } = process
    if (!this.hasGap || this.isClosed) return
    if (!engine.isReachable(process) || engine.deaf.has(process.name))
      return world.at(world.nowMs + 300, () => this.mend(follower))
    this.hasGap = false
    this.toldMs = Math.max(this.toldMs, world.nowMs + world.delayMs())
    process.at(this.toldMs, () => {
      if (!this.isClosed) follower.onGap('the engine was away')
    })
  }

  trim(shard: number, upTo: number): void {
    this.ask(
      () => this.engine.trim(shard, upTo),
      () => {},
    )
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.engine.follow(this, undefined)
  }
}
