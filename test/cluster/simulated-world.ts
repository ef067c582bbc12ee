// Processes, their clocks, and a network between them, all in one event loop: time moves from event to event, and
// chance comes from a seed.
//
// A process has a clock of its own that began somewhere and runs a little fast or slow. It can be stopped: its timers
// and messages wait, and come all at once when it continues. It can be killed. The network delivers in order unless it
// is set to lose, repeat or overtake messages; a stream can break on both sides or, half-open, on one.

import type { ClusterClock, Guests, OnCallReply, Stream, StreamListener, Transport } from '../../cluster/ports.js'
import { Heap } from '../../src/shard/turn/heap.js'
import type { Random } from '../support/random.js'

/** The probabilities of faults of a message. */
export interface Faults {
  lost: number
  repeated: number
  overtaken: number
}

/** What a right wall clock shows when the world begins: peers leave out times that no stamp can hold. */
const wallBeganMs = Date.UTC(2026, 0, 1)

/** Bytes in flight on one direction of a stream before `send` asks to wait. */
const bufferBytesMax = 64 * 1024

interface Event {
  readonly atMs: number
  readonly order: number
  readonly run: () => void
}

export class World {
  nowMs = 0
  readonly faults: Faults = { lost: 0, repeated: 0, overtaken: 0 }
  readonly random: Random
  readonly listeners = new Map<string, { process: Process; guests: Guests }>()
  /** Open streams; of each, the end that dialed. */
  readonly streams = new Set<End>()
  /**
   * Resolves when the reactions of the promises that an event has settled have run. One turn is enough where no code
   * awaits a promise of a promise.
   */
  settled: () => Promise<void> | undefined = () => undefined
  private readonly events = new Heap<Event>((a, b) => a.atMs - b.atMs || a.order - b.order)
  private order = 0

  constructor(random: Random) {
    this.random = random
  }

  /** What a right wall clock shows. */
  get wallMs(): number {
    return wallBeganMs + this.nowMs
  }

  /** A process that begins to live now. `rate`: its clock runs so fast; undefined: about right, as clocks do. */
  process(name: string, rate?: number): Process {
    return new Process(this, name, rate)
  }

  at(atMs: number, run: () => void): void {
    this.events.push({ atMs: Math.max(atMs, this.nowMs), order: this.order++, run })
  }

  /** Lets time pass. Reactions of promises that resolve meanwhile run before the next event. */
  async run(forMs: number): Promise<void> {
    const untilMs = this.nowMs + forMs
    for (let next = this.events.top; next && next.atMs <= untilMs; next = this.events.top) {
      this.events.pop()
      this.nowMs = next.atMs
      next.run()
      await this.settled()
    }
    this.nowMs = untilMs
  }

  chance(likelihood: number): boolean {
    return this.random.fraction() < likelihood
  }

  /** The time that one message takes. */
  delayMs(): number {
    return 0.1 + this.random.fraction() * (this.chance(0.05) ? 50 : 2)
  }
}

export class Process {
  readonly name: string
  readonly world: World
  alive = true
  /** The time at which it last went on after a stop. */
  resumedMs = 0
  readonly clock: ClusterClock
  readonly transport: Transport
  /** How far its wall clock is ahead of the world's time. */
  wallAheadMs = 0
  private stopped = false
  private readonly due: (() => void)[] = []
  private readonly beganMs: number
  private readonly rate: number

  constructor(world: World, name: string, rate?: number) {
    this.world = world
    this.name = name
    const { random } = world
    this.beganMs = random.between(-1_000_000, 1_000_000)
    this.rate = rate ?? 1 + random.between(-450, 450) / 1_000_000
    this.clock = {
      monoMs: () => this.beganMs + world.nowMs * this.rate,
      wallMs: () => wallBeganMs + world.nowMs * this.rate + this.wallAheadMs,
      after: (delayMs, run) => {
        let wanted = true
        this.at(world.nowMs + delayMs / this.rate + random.fraction(), () => wanted && run())
        return () => {
          wanted = false
        }
      },
      endOfTick: run => this.at(world.nowMs, run),
    }
    this.transport = {
      listen: async (address, guests) => {
        world.listeners.set(address, { process: this, guests })
        return {
          address,
          close: async () => {
            world.listeners.delete(address)
          },
        }
      },
      dial: (address, listener) => connect(this, address, listener),
      call: (address, message, waitMs, onReply) => exchange(this, address, Buffer.from(message), waitMs, onReply),
    }
  }

  /** Runs a function in this process at a time. */
  at(atMs: number, run: () => void): void {
    this.world.at(atMs, () => {
      if (!this.alive) return
      if (this.stopped) this.due.push(run)
      else run()
    })
  }

  get isStopped(): boolean {
    return this.stopped
  }

  stop(): void {
    this.stopped = true
  }

  goOn(): void {
    if (!this.stopped) return
    this.stopped = false
    this.resumedMs = this.world.nowMs
    for (const run of this.due.splice(0)) this.at(this.world.nowMs, run)
  }

  /** Ends the process; chance decides whether its peers notice, as when a machine loses its power. */
  kill(): void {
    this.alive = false
    for (const end of this.world.streams) {
      if (end.process !== this && end.other.process !== this) continue
      const survivor = end.process === this ? end.other : end
      end.cut(this.world.chance(0.7) ? survivor : undefined)
    }
  }
}

function connect(from: Process, address: string, listener: StreamListener): Stream {
  const { world } = from
  const near = new End(from)
  near.listener = listener
  const atMs = world.nowMs + world.delayMs()
  const target = world.listeners.get(address)
  if (!target?.process.alive) {
    from.at(atMs, () => near.closed(`nobody listens at ${address}`))
    return near
  }
  const far = new End(target.process)
  near.other = far
  far.other = near
  near.arrivedMs = atMs
  far.arrivedMs = atMs
  world.streams.add(near)
  target.process.at(atMs, () => {
    far.listener = target.guests.onStream(far)
  })
  return near
}

/** A call: its message and the reply arrive once each, or not at all. */
function exchange(from: Process, address: string, message: Buffer, waitMs: number, onReply: OnCallReply): void {
  const { world } = from
  let isOver = false
  const end: OnCallReply = (reply, reason) => {
    if (isOver) return
    isOver = true
    onReply(reply, reason)
  }
  const travel = (to: Process, arrive: () => void): void => {
    if (!world.chance(world.faults.lost)) to.at(world.nowMs + world.delayMs(), arrive)
  }
  from.clock.after(waitMs, () => end(undefined, 'no reply in time'))
  const target = world.listeners.get(address)
  if (!target?.process.alive) return travel(from, () => end(undefined, `nobody listens at ${address}`))
  travel(target.process, () =>
    target.guests.onCall?.(message, reply => travel(from, () => end(Buffer.from(reply), ''))),
  )
}

/** One side of a stream. */
export class End implements Stream {
  readonly process: Process
  other!: End
  listener: StreamListener | undefined
  /** The time at which the last message that keeps the order arrives. */
  arrivedMs = 0
  private over = false
  private severed = false
  private bytes = 0
  private waits = false

  constructor(process: Process) {
    this.process = process
  }

  send(message: Buffer): boolean {
    const { world } = this.process
    this.bytes += message.length
    this.waits = this.bytes > bufferBytesMax
    const { lost, repeated, overtaken } = world.faults
    if (!world.chance(lost)) this.carry(message, world.chance(overtaken))
    else this.drain(message.length)
    if (world.chance(repeated)) this.carry(message, true)
    return !this.waits
  }

  close(reason?: string): void {
    const reported = reason === undefined ? 'ended' : 'torn down'
    this.over = true
    this.process.world.streams.delete(this)
    this.process.world.streams.delete(this.other)
    if (this.other && !this.severed) this.other.process.at(this.arriveMs(false), () => this.other.closed(reported))
  }

  closed(reason: string): void {
    if (this.over) return
    this.over = true
    this.process.world.streams.delete(this)
    this.listener?.onClosed(reason)
  }

  /** Stops all messages; only the given ends are notified of that. */
  cut(...ends: (End | undefined)[]): void {
    this.severed = true
    this.other.severed = true
    this.process.world.streams.delete(this)
    for (const end of ends) {
      if (end) end.process.at(end.process.world.nowMs + end.process.world.delayMs(), () => end.closed('cut'))
    }
  }

  private carry(message: Buffer, overtakes: boolean): void {
    this.other?.process.at(this.arriveMs(overtakes), () => {
      if (this.severed) return
      this.drain(message.length)
      if (!this.other.over) this.other.listener?.onMessage(message)
    })
  }

  private arriveMs(overtakes: boolean): number {
    const { world } = this.process
    if (overtakes) return Math.max(world.nowMs, Math.min(this.arrivedMs, world.nowMs)) + world.delayMs() * 5
    this.arrivedMs = Math.max(this.arrivedMs, world.nowMs + world.delayMs())
    return this.arrivedMs
  }

  private drain(length: number): void {
    this.bytes -= length
    if (!this.waits || this.bytes > bufferBytesMax) return
    this.waits = false
    this.process.at(this.process.world.nowMs, () => {
      if (!this.over) this.listener?.onDrain()
    })
  }
}
