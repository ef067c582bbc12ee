// The brokers of lives: one process, workers, and nodes, and their disturbances.

import { setTimeout as pause } from 'node:timers/promises'
import { type BrokerProcess, freePort, startBroker, type Teardown, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import type { Random } from '../support/random.js'
import type { LifePlace } from './feed-life.js'

/** A process sends changes of 10 ms together; its machine may be busy. */
const lagMsMax = 500

export interface ProcessPlan {
  /** Start options besides `-multiservice`. */
  readonly args?: readonly string[]
  /** Numbers of workers, of which each start takes another one; undefined: one process without workers. */
  readonly workers?: readonly [number, ...number[]]
  /** A program other than the built one, and its additional environment. */
  readonly program?: { readonly main: string; readonly env: Readonly<Record<string, string>> }
  readonly isHeavy: boolean
}

/** One broker on one port. It is killed or stopped, and started again on its data; or one of its workers is killed. */
export class OneBroker implements LifePlace {
  readonly settleMs: number
  private disturbed = 0
  /** From the end of a worker on, others may notice it at any time. */
  private isWhole = true
  readonly forgets: boolean
  readonly lagMsMax: number
  private broker!: BrokerProcess

  private constructor(
    private readonly t: Teardown,
    private readonly plan: ProcessPlan,
    private readonly port: number,
    private readonly dataDir: string,
  ) {
    this.forgets = plan.isHeavy
    this.lagMsMax = plan.workers ? Number.POSITIVE_INFINITY : lagMsMax
    this.settleMs = plan.workers ? settleMs : 0
  }

  static async start(t: Teardown, plan: ProcessPlan, random: Random): Promise<OneBroker> {
    const one = new OneBroker(t, plan, await freePort(), tempDir(t))
    await one.begin(random)
    return one
  }

  get disturbances(): number {
    return this.isWhole ? this.disturbed : Math.ceil(performance.now())
  }

  url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async disturb(random: Random): Promise<string> {
    this.disturbed++
    if (this.plan.workers && random.fraction() < 0.5) return this.killWorker(random)
    const signal = random.pick(['SIGKILL', 'SIGKILL', 'SIGTERM'])
    await this.broker.kill(signal)
    await pause(random.between(0, 100))
    const words = await this.begin(random)
    return [signal, ...words].join(' ')
  }

  private async begin(random: Random): Promise<readonly string[]> {
    const { workers, args = [], program } = this.plan
    const words = workers ? ['-workers', String(random.pick(workers))] : []
    this.broker = await startBroker(this.t, {
      port: this.port,
      dataDir: this.dataDir,
      args: ['-multiservice', ...args, ...words],
      ...program,
    })
    return words
  }

  /** Kills a worker, which its supervisor replaces; resolves when all are ready. */
  private async killWorker(random: Random): Promise<string> {
    const [, ...before] = this.broker.processes
    const killed = before[random.between(0, before.length - 1)] as number
    this.isWhole = false
    process.kill(killed, 'SIGKILL')
    const untilMs = performance.now() + wholeMsMax
    for (;;) {
      const [, ...workers] = this.broker.processes
      const answers = await Promise.all(Array.from({ length: 4 * before.length }, () => isReady(this.url())))
      if (workers.length === before.length && !workers.includes(killed) && answers.every(isYes => isYes)) break
      if (performance.now() > untilMs) throw new Error(`the broker is not whole again\n${this.broker.printed()}`)
      await pause(lookMs)
    }
    return 'SIGKILL of a worker'
  }
}

/** How long an ask between workers or nodes may take, and a little more. */
const settleMs = 2_500
const wholeMsMax = 60_000
const lookMs = 20

const isReady = async (url: string): Promise<boolean> => {
  const client = new HttpClient(url)
  const answer = await client.get('/health/ready').catch(() => undefined)
  client.close()
  return answer?.status === 200
}
