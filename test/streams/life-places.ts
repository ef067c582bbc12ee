// The brokers of lives: one process, workers, and nodes, and what happens to them.

import { setTimeout as pause } from 'node:timers/promises'
import { type BrokerProcess, freePort, startBroker, type Teardown, tempDir } from '../support/broker-process.js'
import type { Random } from '../support/random.js'
import type { LifePlace } from './feed-life.js'

export interface ProcessPlan {
  /** Start options besides `-multiservice`. */
  readonly args?: readonly string[]
  /** Numbers of workers, of which each start takes another one; undefined: one process without workers. */
  readonly workers?: readonly [number, ...number[]]
  /** A program other than the built one. */
  readonly main?: string
  readonly isHeavy: boolean
}

/** One broker on one port. It is killed or stopped, and started again on its data. */
export class OneBroker implements LifePlace {
  readonly settleMs = 0
  disturbances = 0
  readonly forgets: boolean
  private broker!: BrokerProcess

  private constructor(
    private readonly t: Teardown,
    private readonly plan: ProcessPlan,
    private readonly port: number,
    private readonly dataDir: string,
  ) {
    this.forgets = plan.isHeavy
  }

  static async start(t: Teardown, plan: ProcessPlan, random: Random): Promise<OneBroker> {
    const one = new OneBroker(t, plan, await freePort(), tempDir(t))
    await one.begin(random)
    return one
  }

  url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async disturb(random: Random): Promise<string> {
    const signal = random.pick(['SIGKILL', 'SIGKILL', 'SIGTERM'])
    this.disturbances++
    await this.broker.kill(signal)
    await pause(random.between(0, 100))
    const words = await this.begin(random)
    return [signal, ...words].join(' ')
  }

  private async begin(random: Random): Promise<readonly string[]> {
    const { workers, args = [], main } = this.plan
    const words = workers ? ['-workers', String(random.pick(workers))] : []
    this.broker = await startBroker(this.t, {
      port: this.port,
      dataDir: this.dataDir,
      args: ['-multiservice', ...args, ...words],
      ...(main !== undefined && { main }),
    })
    return words
  }
}
