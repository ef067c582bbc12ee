// Steps that journeys about notifications repeat: subscribe, change, and look at the requests of a receiver.
//
// A `Tenant` is a client that uses one tenant, so that many journeys share one broker without seeing each other's data.

import type { Test } from 'tap'
import type { Received } from '../deliver/receivers.js'
import type { BrokerProcess } from '../support/broker-process.js'
import { type Answer, HttpClient } from '../support/http-client.js'

type Headers = Readonly<Record<string, string>>

/** The fields of a subscription that these journeys read. */
export interface ShownSubscription {
  readonly status: string
  readonly notification: {
    readonly timesSent?: number
    readonly lastNotification?: string
    readonly lastSuccess?: string
    readonly lastSuccessCode?: number
    readonly lastFailure?: string
    readonly lastFailureReason?: string
    readonly failsCounter?: number
  }
}

export class Tenant {
  private readonly client: HttpClient

  constructor(
    t: Test,
    broker: Pick<BrokerProcess, 'baseUrl'>,
    private readonly name = '',
  ) {
    this.client = new HttpClient(broker.baseUrl, 10_000)
    t.teardown(() => this.client.close())
  }

  /** Sends a request, and throws when it is refused. */
  async send(request: string, body?: unknown, headers: Headers = {}): Promise<Answer> {
    const [method = '', path = ''] = request.split(' ')
    const tenant: Headers = this.name === '' ? {} : { 'Ctx-Service': this.name }
    const answer = await this.client.send(method, path, body, { ...tenant, ...headers })
    if (answer.status >= 300) throw new Error(`${request} ${JSON.stringify(body)}: ${answer.status} ${answer.text}`)
    return answer
  }

  /** Creates a subscription, by default to any entity, and returns its id. */
  async subscribe(notification: object, more: object = {}, headers: Headers = {}): Promise<string> {
    const body = { subject: { entities: [{ idPattern: '.*' }] }, notification, ...more }
    const answer = await this.send('POST /v2/subscriptions', body, headers)
    return answer.headers.location!.split('/').at(-1)!
  }

  async subscription(id: string): Promise<ShownSubscription> {
    return (await this.send(`GET /v2/subscriptions/${id}`)).json as ShownSubscription
  }

  create(id: string, values: object = {}, headers: Headers = {}): Promise<Answer> {
    return this.send('POST /v2/entities?options=keyValues', { id, type: 'Room', ...values }, headers)
  }

  update(id: string, values: object, headers: Headers = {}): Promise<Answer> {
    return this.send(`POST /v2/entities/${id}/attrs?options=keyValues`, values, headers)
  }

  /** Reads the subscription until the condition holds. */
  async until(id: string, isSo: (shown: ShownSubscription) => boolean): Promise<ShownSubscription> {
    for (const untilMs = performance.now() + 10_000; ; ) {
      const shown = await this.subscription(id)
      if (isSo(shown)) return shown
      if (performance.now() > untilMs) throw new Error(`it did not come to be: ${JSON.stringify(shown)}`)
    }
  }
}

/** A header of a notification; undefined: it had none. */
export function headerOf({ headers }: Received, name: string): string | undefined {
  const at = headers.findIndex((word, index) => index % 2 === 0 && word.toLowerCase() === name.toLowerCase())
  return at < 0 ? undefined : headers[at + 1]
}

/** The values under a name in notifications of the format `simplifiedKeyValues`. */
export const valuesOf = (received: readonly Received[], name = 'n'): unknown[] =>
  received.map(({ body }) => (JSON.parse(body) as Record<string, unknown>)[name])

/** The shortest format: few journeys are about the body. */
export const brief = (url: string, more: object = {}) => ({
  http: { url, ...more },
  attrsFormat: 'simplifiedKeyValues',
})
