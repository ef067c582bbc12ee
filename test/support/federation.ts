// Brokers that notify each other (`op/notify`), over loopback sockets inside the process of the test.
//
// The end of traffic is not guessed. A notification is pending from the change that triggers it until its receiver has
// answered. Before the receiver answers, the notifications that it triggers there are pending. So as long as anything
// is under way, some broker has a pending notification. If two looks at all brokers find none, and no sending between
// the looks, the traffic has ended.
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

/** Makes one broker notify the other of all its entities; returns the id of the subscription. */
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
  /** Changes with pending notifications. */
  readonly pending: number
  /** Notifications sent, tries included. */
  readonly sent: number
  /** Notifications that arrived at `op/notify`, with any answer. */
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
    pending: sum('orrery_outbox_rows'),
    sent: sum('orrery_notifications_sent_total'),
    taken: sum('orrery_http_requests_total', '/v2/op/notify'),
  }
}

/**
 * Looks at all brokers until nothing is under way between them, and returns their traffic. The time limit of the test
 * bounds the wait.
 */
export async function untilQuiet(nodes: readonly LocalNode[]): Promise<readonly Traffic[]> {
  for (let before = await Promise.all(nodes.map(trafficOf)); ; ) {
    const traffic = await Promise.all(nodes.map(trafficOf))
    const isQuiet = traffic.every(
      ({ pending, sent }, at) => pending === 0 && before[at]!.pending === 0 && sent === before[at]!.sent,
    )
    if (isQuiet) return traffic
    before = traffic
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** All content of a broker in a tenant, each entity with its path, in an order that depends on the content alone. */
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
