// The network between the nodes of a simulated cluster: a question and its answer, each of which may be lost. A cut way
// loses all messages in one direction.
//
// Not here: the way to the engine (simulated-log.ts), streams and calls between processes (simulated-world.ts).

import type { AskOutcome } from '../../src/wire/exchange.js'
import type { SimulatedNode } from './simulated-node.js'
import type { Place } from './simulated-place.js'
import type { Process, World } from './simulated-world.js'

export class SimulatedNetwork {
  /** Messages from one node to another that do not arrive. */
  readonly cuts = new Set<string>()
  /** The probability that a message is lost. */
  readonly faults = { lost: 0 }

  constructor(
    private readonly world: World,
    private readonly places: () => readonly Place[],
  ) {}

  /** A message between two nodes, and its answer. */
  carry(
    from: Process,
    to: string,
    run: (life: SimulatedNode, onReply: (reply: Uint8Array) => void) => void,
    waitMs: number,
    onOutcome: (outcome: AskOutcome) => void,
  ): void {
    if (!from.alive) return
    let isOver = false
    const end = (outcome: AskOutcome): void => {
      if (isOver) return
      isOver = true
      onOutcome(outcome)
    }
    from.clock.after(waitMs, () => end({ kind: 'unknown', reason: 'no answer in time' }))
    // Sometimes it is known that the message will not arrive.
    if (!this.lifeOf(to) && this.world.chance(0.5))
      return from.clock.endOfTick(() => end({ kind: 'unavailable', reason: `${to} is not there` }))
    this.deliver(from.name, to, life =>
      run(life, reply => {
        // A copy, since the caller may change its bytes later.
        const bytes = Buffer.from(reply)
        this.deliver(to, from.name, back => {
          if (back.process === from) end({ kind: 'reply', reply: bytes })
        })
      }),
    )
  }

  /** Messages on these ways are lost for some time. */
  cut(ways: readonly string[], forMs: number): void {
    for (const one of ways) this.cuts.add(one)
    this.world.at(this.world.nowMs + forMs, () => {
      for (const one of ways) this.cuts.delete(one)
    })
  }

  /** Whether messages pass in both directions. */
  connects(one: string, other: string): boolean {
    return !this.cuts.has(way(one, other)) && !this.cuts.has(way(other, one))
  }

  heal(): void {
    this.cuts.clear()
    this.faults.lost = 0
  }

  private deliver(from: string, to: string, run: (life: SimulatedNode) => void): void {
    const { world } = this
    if (world.chance(this.faults.lost)) return
    world.at(world.nowMs + world.delayMs(), () => {
      const life = this.lifeOf(to)
      if (!life || this.cuts.has(way(from, to))) return
      life.process.at(world.nowMs, () => run(life))
    })
  }

  private lifeOf(name: string): SimulatedNode | undefined {
    return this.places().find(place => place.name === name)?.now
  }
}

export const way = (from: string, to: string): string => `${from} ${to}`
