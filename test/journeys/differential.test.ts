// One node, two workers, three workers and three nodes of a cluster give the same answers to the same requests.
//
// Requests of every route are generated, good and bad ones (test/support/random-interface), and sent one after the
// other to all four deployments: to the workers on connections of which any worker has some, to the nodes in turn.
// Status, headers and body have to be equal to the byte, but for names instead of what a broker makes up
// (test/support/deployment). In the end all that is there is compared once more, as each of the nodes tells it.
//
// A node that says that it has done nothing is asked again. Where one cannot tell whether a change was made, which a
// machine that is too busy may lead to, the tenant is left behind, and few may be.
//
// DIFFERENTIAL_REQUESTS sets the number of requests, SEED repeats a run.

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startBroker, tempDir } from '../support/broker-process.js'
import { Deployment, type Shown, Times, Unknown } from '../support/deployment.js'
import { noEtcd } from '../support/etcd.js'
import { Random } from '../support/random.js'
import { type Asked, RandomInterface } from '../support/random-interface.js'
import { startThreeNodes } from '../support/three-nodes.js'
import { bodyBytesMax } from '../support/wrong-requests.js'

const requestsWanted = Number(process.env.DIFFERENTIAL_REQUESTS ?? 500)
const tenants = ['', ...Array.from({ length: 9 }, (_, at) => `t${at}`)]
/** Connections to the port that workers share: some to each of them, most likely. */
const connectionsOfWorkers = 8
/** How long deliveries may take to be counted everywhere. */
const lateMsMax = 20_000
/** Between two looks then. */
const lookMs = 50
const differencesMax = 5
const readyWaitMs = 60_000
t.setTimeout(300_000 + requestsWanted * 100)

/** Nothing is sent to anybody else, and bodies may be too large. */
const options = [
  '-multiservice',
  '-simulatedNotification',
  '-cprForwardLimit',
  '0',
  '-inReqPayloadMaxSize',
  String(bodyBytesMax),
]

/** What was seen. */
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

/** By the name of the deployment. */
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
    // Only an operator whose argument does not fit is told so with 500, as Orion does.
    if (status === 500 && !answers[0]!.text.includes('Database Error'))
      this.tally.differences.push(`all of them failed: ${JSON.stringify([asked, answers[0]])}`)
    if (asked.makes !== undefined && status !== 201) this.requests.notMade(asked.makes)
  }

  /** Asks all, compares, and gives what they said; undefined: one of them does not know what it has done. */
  private async answers(asked: Asked, deployments = this.deployments): Promise<readonly Shown[] | undefined> {
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
        this.tell(asked, shown, deployments)
        return answers
      }
      await pause(lookMs)
    }
  }

  private shown({ status, headers, text }: Shown, isLate: boolean): string {
    return `${status} ${JSON.stringify(headers)} ${this.times.named(text, isLate)}`
  }

  private tell(
    { tenant, method, target, headers, body }: Asked,
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

  /** What all tenants hold, as the deployments and each node tell it. */
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

/** The part of a text where it begins to differ from another one. */
function around(text: string, others: readonly string[]): string {
  const other = others.find(one => one !== text) ?? ''
  let at = 0
  while (at < text.length && text[at] === other[at]) at++
  return `${text.slice(0, 60)} … ${text.slice(Math.max(60, at - 150), at + 250)}`
}
