// How well this node takes itself to hear (Lifeguard's local health): the worse, the longer it waits for others before it holds silence against them.

import type { GossipOptions } from './gossip-options.js'

export class LocalHealth {
  private readonly max: number
  private score = 0

  constructor({ healthMax }: Pick<GossipOptions, 'healthMax'>) {
    this.max = healthMax
  }

  /** 0: well. */
  get steps(): number {
    return this.score
  }

  /** What times are multiplied with. */
  get patience(): number {
    return this.score + 1
  }

  worsen(steps: number): void {
    this.score = Math.min(this.max, this.score + steps)
  }

  improve(): void {
    this.score = Math.max(0, this.score - 1)
  }
}
