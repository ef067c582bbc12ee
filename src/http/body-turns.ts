// Bodies that take long share one slice of time in each tick of the event loop; the rest of them wait as bytes.
//
// Many batches may arrive in one tick. If all of them were parsed at once, their entities would wait in memory for the slice of the shards
// (shard/turn/batches.ts), and the garbage collector would copy them again and again: with 64 clients a batch cost 4 % more processor time. A body that
// waits as bytes costs one copy, and lies outside of the collector's heap.
//
// [hot] Bodies below `sharedFrom` never wait.

import type { Clock } from '../ports.js'

type Handle = (body: Uint8Array) => void

/** How long such bodies may hold the event loop in one tick: as long as the batches of a shard (shard/turn/batches.ts). */
const sliceMs = 10

/** Bodies of this size take part: they cost some 0.2 ms. Smaller ones are handled when they arrive. */
export const sharedFrom = 8 * 1024

export class BodyTurns {
  private readonly clock: Pick<Clock, 'monoMs'>
  private readonly endOfTick: (run: () => void) => void
  private waiting: { readonly body: Uint8Array; readonly handle: Handle }[] = []
  /** When the slice of this tick ends; undefined: no body has begun one. */
  private endMs: number | undefined

  constructor(clock: Pick<Clock, 'monoMs'>, endOfTick: (run: () => void) => void = setImmediate) {
    this.clock = clock
    this.endOfTick = endOfTick
  }

  /** Calls `handle`, at once or in a later tick. `body` may be used for something else when this returns. `handle` does not throw. */
  take(body: Uint8Array, handle: Handle): void {
    if (this.waiting.length > 0 || this.clock.monoMs() >= this.slice())
      this.waiting.push({ body: Buffer.from(body), handle })
    else handle(body)
  }

  private slice(): number {
    if (this.endMs !== undefined) return this.endMs
    const endMs = this.clock.monoMs() + sliceMs
    this.endMs = endMs
    this.endOfTick(() => this.goOn())
    return endMs
  }

  private goOn(): void {
    this.endMs = undefined
    if (this.waiting.length === 0) return
    const endMs = this.slice()
    let taken = 0
    while (taken < this.waiting.length && (taken === 0 || this.clock.monoMs() < endMs)) {
      const { body, handle } = this.waiting[taken++]!
      handle(body)
    }
    this.waiting = this.waiting.slice(taken)
  }
}
