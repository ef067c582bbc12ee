// Brokers that notify each other (`op/notify`), over loopback sockets inside the process of the test.
//
// Whether traffic has ended is not guessed. A notification is owed from the change that fires it until its receiver has
// answered, and the receiver, before it answers, owes what the notification fires there; so as long as anything is
// under way, somebody owes something. Two looks at all brokers that find nothing owed, and nothing sent between them,
// have seen the end.
//
// Not here: which broker notifies which (test/journeys/federation.test.ts).

import { parseExposition } from './exposition-parser.js'
import type { LocalNode } from './local-node.js'

export interface Following {
  /** Members of `notification` besides the URL. */
  readonly notification?: object
  /** Members beside `subject` and `notification`. */
  readonly more?: object
  readonly headers?: readonly string[]
}

/** Has one broker notify the other of all its entities; gives the id of the subscription. */
export async function follow(
  from: LocalNode,
  to: LocalNode,
  { notification = {}, more = {}, headers = [] }: Following = {},
): Promise<string> {
  const url = `http://127.0.0.1:${to.port}/v2/op/notify`
  const body = {
    subject: { entities: [{ idPattern: '.*' }] },
    notification: { http: { url }, ...notification },
    ...more,
  }
  const answer = await from.json('POST /v2/subscriptions', body, headers)
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.headers.location!.split('/').at(-1)!
}

export interface Traffic {
  /** Changes that owe notifications now. */
  readonly owed: number
  /** Notifications sent, tries included. */
  readonly sent: number
  /** Notifications that came to `op/notify`, whatever was answered. */
  readonly taken: number
}

/** The traffic of a broker since its start. */
export async function trafficOf(node: LocalNode): Promise<Traffic> {
  const { samples } = parseExposition((await node.ask('GET /metrics')).text)
  const sum = (name: string, route?: string): number =>
    samples
      .filter(sample => sample.name === name && (route === undefined || sample.labels.route === route))
      .reduce((total, { value }) => total + value, 0)
  return {
    owed: sum('orrery_outbox_rows'),
    sent: sum('orrery_notifications_sent_total'),
    taken: sum('orrery_http_requests_total', '/v2/op/notify'),
  }
}

/**
 * Looks at all brokers until nothing is under way between them, and gives their traffic. A test that waits in vain runs
 * into its own time.
 */
export async function untilQuiet(nodes: readonly LocalNode[]): Promise<readonly Traffic[]> {
  for (let before = await Promise.all(nodes.map(trafficOf)); ; ) {
    const traffic = await Promise.all(nodes.map(trafficOf))
    const isQuiet = traffic.every(
      ({ owed, sent }, at) => owed === 0 && before[at]!.owed === 0 && sent === before[at]!.sent,
    )
    if (isQuiet) return traffic
    before = traffic
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** All that a broker has in a tenant, each entity with its path, in an order that depends on nothing else. */
export async function contentOf(node: LocalNode, headers: readonly string[] = []): Promise<string> {
  const { json, text } = await node.ask('GET /v2/entities?limit=1000&attrs=*,servicePath', headers)
  if (!Array.isArray(json)) throw new Error(text)
  return json.map(ordered).sort().join('\n')
}

const ordered = (value: unknown): string =>
  JSON.stringify(value, (_key, one: unknown) =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  )
