// One node, two workers, three workers and three nodes of a cluster give the same answers to the same requests.
//
// Generated requests of every route, good and bad ones (test/support/random-interface), go one after the other to all
// four deployments: to the workers over connections that are spread among them, to the nodes in turn. Status, headers
// and body have to be equal to the byte; names replace the values that a broker makes up (test/support/deployment). In
// the end all stored data is compared once more, for each node.
//
// A node that answers that it has done nothing gets the request again. If the outcome of a change is unknown, as on a
// machine that is too busy, the test uses that tenant no more; only few tenants may be lost so.
//
// DIFFERENTIAL_REQUESTS sets the number of requests, SEED repeats a run.

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startBroker, tempDir } from '../support/broker-process.js'
import { Deployment, type Shown, Times, Unknown } from '../support/deployment.js'
import { noEtcd } from '../support/etcd.js'
import { Random } from '../support/random.js'
import { RandomInterface, type RandomRequest } from '../support/random-interface.js'
import { startThreeNodes } from '../support/three-nodes.js'
import { bodyBytesMax } from '../support/wrong-requests.js'

const requestsWanted = Number(process.env.DIFFERENTIAL_REQUESTS ?? 200)
const tenants = ['', ...Array.from({ length: 9 }, (_, at) => `t${at}`)]
/** Connections to the port that workers share: some to each of them, most likely. */
const connectionsOfWorkers = 8
/** Longest time until deliveries are counted everywhere. */
const lateMsMax = 20_000
/** Between two checks of that. */
const lookMs = 50
const differencesMax = 5
const readyWaitMs = 60_000
t.setTimeout(300_000 + requestsWanted * 100)

/** The brokers send nothing to other servers, and bodies may be too large. */
const options = [
  '-multiservice',
  '-simulatedNotification',
  '-cprForwardLimit',
  '0',
  '-inReqPayloadMaxSize',
  String(bodyBytesMax),
]

/** Counts of a run. */
interface Tally {
  readonly differences: string[]
  readonly kinds: Map<string, number>
  readonly statuses: Map<number, number>
  repeated: number
  left: number
}

t.test(
  `${requestsWanted} requests are answered alike by one node, two and three workers, and three nodes`,
  { skip: noEtcd() },
  async t => {
    const random = Random.fromEnvironment()
    t.comment(`SEED=${random.seed} DIFFERENTIAL_REQUESTS=${requestsWanted}`)
    const ports = await startAll(t)
    const tally: Tally = { differences: [], kinds: new Map(), statuses: new Map(), repeated: 0, left: 0 }
    const beganMs = performance.now()
    await new Conversation(random, ports, tally).hold(requestsWanted)
    const seconds = (performance.now() - beganMs) / 1000
    t.strictSame(tally.differences, [], `SEED=${random.seed}`)
    t.comment(
      `${requestsWanted} requests in ${seconds.toFixed(0)} s, ${(requestsWanted / seconds).toFixed(0)} a second`,
    )
    t.comment(`by kind: ${shares(tally.kinds)}`)
    t.comment(`by status: ${shares(tally.statuses)}`)
    t.comment(`${tally.repeated} were sent again, ${tally.left} tenants were left behind`)
    t.ok(tally.left <= Math.ceil(requestsWanted / 1000), 'few tenants were left behind')
    for (const status of [200, 201, 204, 400, 404, 409, 413, 422])
      t.ok(tally.statuses.has(status), `some answers are ${status}`)
  },
)

/** Ports by the name of the deployment. */
type Ports = Readonly<Record<string, readonly number[]>>

async function startAll(t: Test): Promise<Ports> {
  const folder = tempDir(t)
  const alone = await startBroker(t, { args: options, readyWaitMs })
  const workers = async (count: number): Promise<readonly number[]> => {
    const { port } = await startBroker(t, { args: [...options, '-workers', String(count)], readyWaitMs })
    return [port]
  }
  const [two, three] = [await workers(2), await workers(3)]
  const nodes = await startThreeNodes(t, { folder, args: options })
  return {
    alone: [alone.port],
    'two workers': two,
    'three workers': three,
    nodes: nodes.map(({ port }) => port),
  }
}

class Conversation {
  private readonly requests: RandomInterface
  private readonly deployments: readonly Deployment[]
  private readonly tally: Tally
  private readonly ports: Ports
  private readonly times = new Times()

  constructor(random: Random, ports: Ports, tally: Tally) {
    this.requests = new RandomInterface(random, tenants)
    this.deployments = Object.entries(ports).map(
      ([name, ports]) => new Deployment(name, ports, name.endsWith('workers') ? connectionsOfWorkers : 1),
    )
    this.ports = ports
    this.tally = tally
  }

  async hold(count: number): Promise<void> {
    for (let at = 0; at < count && this.tally.differences.length < differencesMax; at++) await this.exchange()
    for (const { repeated } of this.deployments) this.tally.repeated += repeated
    for (const deployment of this.deployments) deployment.close()
    if (this.tally.differences.length === 0) await this.compareAll()
  }

  private async exchange(): Promise<void> {
    const asked = this.requests.next()
    const answers = await this.answers(asked)
    if (!answers) {
      this.tally.left++
      return this.requests.forsake(asked.tenant)
    }
    const [{ status }] = answers as [Shown, ...Shown[]]
    count(this.tally.kinds, asked.kind)
    count(this.tally.statuses, status)
    // Only an operator whose argument does not fit gets 500, as in Orion.
    if (status === 500 && !answers[0]!.text.includes('Database Error'))
      this.tally.differences.push(`all of them failed: ${JSON.stringify([asked, answers[0]])}`)
    if (asked.makes !== undefined && status !== 201) this.requests.notMade(asked.makes)
  }

  /** Sends a request to all deployments and compares the answers; undefined: the outcome is unknown to one of them. */
  private async answers(asked: RandomRequest, deployments = this.deployments): Promise<readonly Shown[] | undefined> {
    const ask = () => this.times.during(() => Promise.allSettled(deployments.map(one => one.send(asked))))
    const untilMs = performance.now() + lateMsMax
    for (;;) {
      const outcomes = await ask()
      const failure = outcomes.find(outcome => outcome.status === 'rejected')
      if (failure?.reason instanceof Unknown) return undefined
      if (failure) throw failure.reason
      const answers = outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? outcome.value : []))
      const shown = answers.map(answer => this.shown(answer, asked.isLate === true))
      if (shown.every(one => one === shown[0])) return answers
      if (!asked.isLate || performance.now() > untilMs) {
        this.report(asked, shown, deployments)
        return answers
      }
      await pause(lookMs)
    }
  }

  private shown({ status, headers, text }: Shown, isLate: boolean): string {
    return `${status} ${JSON.stringify(headers)} ${this.times.named(text, isLate)}`
  }

  private report(
    { tenant, method, target, headers, body }: RandomRequest,
    shown: readonly string[],
    deployments: readonly Deployment[],
  ): void {
    const request = `${method} ${target} ${JSON.stringify({ ...headers, 'Ctx-Service': tenant })} ${body ?? ''}`
    const lines = shown.map((one, at) => {
      const twin = shown.indexOf(one)
      return `${deployments[at]!.name}: ${twin < at ? `as ${deployments[twin]!.name}` : around(one, shown)}`
    })
    this.tally.differences.push(`${request.slice(0, 2000)}\n${lines.join('\n')}`)
  }

  /** Compares the data of all tenants, as the deployments and each node show it. */
  private async compareAll(): Promise<void> {
    const everybody = Object.entries(this.ports).flatMap(([name, ports]) =>
      ports.map((port, at) => new Deployment(ports.length > 1 ? `${name} ${at}` : name, [port], 1)),
    )
    const shown = 'attrs=*,dateCreated,dateModified,servicePath&metadata=*,dateCreated,dateModified'
    for (const tenant of this.requests.names)
      for (const target of [`/v2/entities?limit=1000&options=count&${shown}`, '/v2/types?options=count'])
        await this.answers({ method: 'GET', target, headers: {}, tenant, kind: 'everything' }, everybody)
    for (const one of everybody) one.close()
  }
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

const shares = (counts: ReadonlyMap<string | number, number>): string =>
  [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, number]) => `${key} ${number}`)
    .join(', ')

/** The part of a text around its first difference from another one. */
function around(text: string, others: readonly string[]): string {
  const other = others.find(one => one !== text) ?? ''
  let at = 0
  while (at < text.length && text[at] === other[at]) at++
  return `${text.slice(0, 60)} … ${text.slice(Math.max(60, at - 150), at + 250)}`
}
