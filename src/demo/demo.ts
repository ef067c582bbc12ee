// The running demo: a broker, its companions, and the changes of the city.
//
// All content goes through the public interface: batches over HTTP, as those of any client. The next batch is sent when
// the one before is answered, so a slow broker gets fewer of them.
//
// Not here: the directory and signals (command.ts), what changes (city.ts).

import type { JsonObject } from '../domain/json.js'
import type { BrokerClient } from '../move/broker-client.js'
import type { Clock } from '../ports.js'
import { City, stepMs } from './city.js'
import { type Companion, startCompanion, startRefusing } from './companion.js'
import { type CompanionUrls, registration, subscriptions } from './documents.js'
import type { CityChance } from './seeded-chance.js'
import { weatherAnswer } from './weather.js'

export interface DemoParts {
  readonly client: Pick<BrokerClient, 'expect'>
  readonly clock: Pick<Clock, 'wallMs' | 'monoMs' | 'after'>
  readonly chance: CityChance
  /** Ends the changes. */
  readonly signal: AbortSignal
}

export class Demo {
  private constructor(
    private readonly parts: DemoParts,
    private readonly city: City,
    private readonly companions: readonly Companion[],
  ) {}

  /** Starts the companions, and gives the broker its first content. */
  static async start(parts: DemoParts): Promise<Demo> {
    const companions: Companion[] = []
    const started = async (starting: Promise<Companion>): Promise<string> => {
      const companion = await starting
      companions.push(companion)
      return companion.url
    }
    const demo = new Demo(parts, new City(parts.chance), companions)
    try {
      const receiver = await started(startCompanion(() => ({ status: 204 })))
      const refusing = await started(startRefusing())
      const provider = await started(startCompanion(path => weatherAnswer(path, parts.clock)))
      await demo.fill({ receiver, refusing, provider })
      return demo
    } catch (error) {
      demo.close()
      throw error
    }
  }

  /** Lets the city live until the signal; rejects when the broker does not take a change. */
  async live(): Promise<void> {
    const { clock, signal } = this.parts
    for (let dueMs = clock.monoMs(); ; ) {
      // After a pause of the machine, missed steps are left out.
      dueMs = Math.max(dueMs + stepMs, clock.monoMs())
      await this.until(dueMs)
      if (signal.aborted) return
      await this.update('update', this.city.step())
    }
  }

  close(): void {
    for (const companion of this.companions) companion.close()
  }

  private async fill(urls: CompanionUrls): Promise<void> {
    await this.update('append', this.city.entities())
    for (const subscription of subscriptions(urls)) await this.create('/subscriptions', subscription)
    await this.create('/registrations', registration(urls))
  }

  private async update(actionType: 'append' | 'update', entities: readonly JsonObject[]): Promise<void> {
    const body = { actionType, entities }
    await this.post('/op/update', body, { isRepeatable: true, status: 204 })
  }

  private async create(path: string, body: JsonObject): Promise<void> {
    await this.post(path, body, { isRepeatable: false, status: 201 })
  }

  private async post(
    path: string,
    body: unknown,
    { isRepeatable, status }: { readonly isRepeatable: boolean; readonly status: number },
  ): Promise<void> {
    const what = `POST /v2${path}`
    const request = { method: 'POST', path, tenant: '', servicePath: undefined, body, isRepeatable, what } as const
    await this.parts.client.expect(request, status)
  }

  /** Resolves at a time of the monotonic clock, or at the signal. */
  private until(dueMs: number): Promise<void> {
    const { clock, signal } = this.parts
    return new Promise(resolve => {
      const end = (): void => {
        cancel()
        signal.removeEventListener('abort', end)
        resolve()
      }
      const cancel = clock.after(dueMs - clock.monoMs(), end)
      if (signal.aborted) end()
      else signal.addEventListener('abort', end)
    })
  }
}
