// Samples of /metrics, one every five seconds, of the last 15 minutes: as long as the page is open.

import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import { type MetricSums, readMetrics } from '../interface/exposition.js'
import { Observable } from './observable.js'

export interface MetricsSample extends MetricSums {
  readonly atMs: number
}

export const sampleMs = 5_000
export const historyMs = 15 * 60_000
const samplesMax = historyMs / sampleMs + 1

export class MetricHistory {
  readonly samples = new Observable<readonly MetricsSample[]>([])
  readonly problem = new Observable<RequestProblem | undefined>(undefined)
  private hasBegun = false
  private isRunning = false

  constructor(private readonly client: ConsoleClient) {
    client.proof.follow(() => {
      this.samples.set([])
      if (this.hasBegun) this.begin()
    })
  }

  /** Begins to sample; it goes on until the broker refuses. */
  begin(): void {
    this.hasBegun = true
    if (this.isRunning) return
    this.isRunning = true
    void this.run()
  }

  private async run(): Promise<void> {
    for (;;) {
      const answer = await this.client.ask({ method: 'GET', path: 'metrics' })
      if (answer.ok) this.take(answer.text)
      else if (answer.problem.status !== undefined) {
        this.problem.set(answer.problem)
        this.isRunning = false
        return
      }
      await new Promise(resolve => setTimeout(resolve, sampleMs))
    }
  }

  private take(text: string): void {
    this.problem.set(undefined)
    const atMs = Date.now()
    const kept = this.samples.value.filter(sample => sample.atMs > atMs - historyMs)
    this.samples.set([...kept, { atMs, ...readMetrics(text) }].slice(-samplesMax))
  }
}
