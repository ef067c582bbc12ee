// After any changes, the answer to any query equals that of the plain evaluator test/support/reference-query: with
// views, with too little memory for them, and without; from one node, and from two and three workers in turn.
//
// Each story has a tenant of its own: entities are created, then changes and queries alternate. Some changes are sent
// one by one. Others are sent by several writers during the queries; then only the entities without changes can be
// compared with the answers. After the writers have ended, everything is compared again. One clock, which the story
// moves, is the clock of all nodes and of the reference, so that dates are equal to the millisecond and answers to the
// byte.
//
// ORRERY_QUERIES sets the number of compared queries. SEED repeats a run: the choices are the same, but not the
// interleaving of concurrent requests.

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/clock.js'
import { stampsPerMs } from '../../src/domain/stamp.js'
import { type AliveMessage, KeptAlive } from '../support/kept-alive.js'
import { type LocalNode, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'
import { Random } from '../support/random.js'
import { batchAction, batchChanges, firstEntities, nextChange, type Scene } from '../support/random-change.js'
import { chance, storyBeginsMs } from '../support/random-entity.js'
import { nextQuery, nextWholeQuery } from '../support/random-query.js'
import { type Change, type Entity, Reference } from '../support/reference-entities.js'
import { answerTo, coversPath, type Expected, fitsQuery, type Query, shownEntity } from '../support/reference-query.js'
import { batchRequest, changeRequest, type HttpRequest, queryRequest, statusOf } from '../support/reference-requests.js'

const queriesWanted = Number(process.env.ORRERY_QUERIES ?? 120)
const queriesPerStory = 250
const roundsPerStory = 5
const changesPerRound = 80
const inFlight = 6
const differencesMax = 5
/** The test compares answers, not their speed: beside other work a query may take long. */
const scanDeadlineMs = 600_000
/**
 * Only the node with views gets every query. The others are slow; they are right when they agree with the same
 * reference.
 */
const shareOfOthers = 1 / 4
/** Lists that cover more entities than this may be answered by views. */
const viewsFrom = 256
t.setTimeout(400_000 + queriesWanted * 200)

interface Node {
  readonly name: string
  readonly client: KeptAlive
}

/** A request that makes changes, its instant, and the statuses that mean success. */
interface Step {
  readonly request: HttpRequest
  readonly atMs: number
  readonly statuses: readonly number[]
  /** The ids that it changes. */
  readonly ids: readonly string[]
}

/** A query, its expected answer, and the nodes that get it. */
interface ExpectedQuery {
  readonly query: Query
  readonly expected: Expected
  readonly nodes: readonly Node[]
}

/** A query during writes, and its expected entities among those without changes. */
interface QueryDuringWrites {
  readonly query: Query
  readonly expected: readonly string[]
}

t.test(`${queriesWanted} lists are those of the reference, with views and without`, t =>
  compare(t, queriesWanted, 'beside queries', async start => [
    await start.alone('views', 64 * 1024 * 1024),
    await start.alone('cramped views', start.random.pick([64, 256, 1024]) * 1024),
    await start.alone('no views', 0),
  ]),
)

const queriesOfWorkers = Math.ceil(queriesWanted / 4)

// Only in turn: entities that several writers create at one instant through different workers have no order.
t.test(`${queriesOfWorkers} lists of two and of three workers are those of one node`, t =>
  compare(t, queriesOfWorkers, 'in turn', async start => [
    await start.alone('alone', 64 * 1024 * 1024),
    await start.workers(2),
    await start.workers(3),
  ]),
)

/** The way of making changes: by one writer at a time, or by several, with queries meanwhile. */
type Changes = 'in turn' | 'beside queries'

interface Starts {
  readonly random: Random
  alone(name: string, viewBytesMax: number): Promise<Node>
  workers(count: number): Promise<Node>
}

/** The story's time, a little later at each reading, as with the real clock: so stamps of two workers have an order. */
function ticking(time: { readonly nowMs: number }): () => number {
  let lastMs = 0
  return () => {
    lastMs = Math.max(time.nowMs, lastMs + 1 / stampsPerMs)
    return lastMs
  }
}

async function compare(
  t: Test,
  wanted: number,
  changes: Changes,
  starting: (start: Starts) => Promise<readonly Node[]>,
): Promise<void> {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed} ORRERY_QUERIES=${queriesWanted}`)
  const time = { nowMs: storyBeginsMs }
  const clock = { ...systemClock, wallMs: () => time.nowMs, fineWallMs: ticking(time) }
  const nodeOf = (name: string, started: readonly LocalNode[]): Node => {
    const ports = started.map(({ port }) => port)
    const client = new KeptAlive(ports, inFlight)
    t.teardown(() => client.close())
    return { name, client }
  }
  const nodes = await starting({
    random,
    alone: async (name, viewBytesMax) =>
      nodeOf(name, [await startLocalNode(t, { queries: { viewBytesMax, scanDeadlineMs }, surroundings: { clock } })]),
    workers: async count =>
      nodeOf(
        `${count} workers`,
        await startLocalWorkers(t, count, { queries: { scanDeadlineMs }, surroundings: { clock } }),
      ),
  })
  const run = new Run(random, nodes, time, changes)
  const began = performance.now()
  for (let story = 0; run.compared < wanted && run.differences.length === 0; story++) await run.story(`story${story}`)
  const seconds = (performance.now() - began) / 1000
  t.strictSame(run.differences, [], `SEED=${random.seed}`)
  t.comment(`${run.compared} queries in ${seconds.toFixed(1)} s, ${(run.compared / seconds).toFixed(0)} a second`)
  t.comment(`${run.matched} found something, ${run.wide} covered more than ${viewsFrom} entities`)
  t.comment(
    `${run.unordered} in an open order, ${run.unclear} too close to tell and not asked, ${run.duringWrites} beside changes`,
  )
  t.ok(run.wide > run.compared / 3, 'many cover so many entities that views may answer')
  t.ok(run.matched > run.compared / 3, 'many find something')
  t.ok(run.unordered < run.compared / 5 && run.unclear < run.compared / 5, 'few cannot be told')
}

class Run {
  readonly differences: string[] = []
  compared = 0
  matched = 0
  wide = 0
  unordered = 0
  unclear = 0
  duringWrites = 0
  readonly #random: Random
  readonly #nodes: readonly Node[]
  readonly #time: { nowMs: number }
  readonly #changes: Changes
  #tenant = ''
  #reference = new Reference()
  #idsPerStem = 0

  constructor(random: Random, nodes: readonly Node[], time: { nowMs: number }, changes: Changes) {
    this.#changes = changes
    this.#random = random
    this.#nodes = nodes
    this.#time = time
  }

  async story(tenant: string): Promise<void> {
    const random = this.#random
    const size = random.pick([450, 600, 1100])
    this.#tenant = tenant
    this.#reference = new Reference()
    this.#idsPerStem = Math.ceil(size / 12)
    await this.#passTime()
    const first: Step[] = []
    while (this.#reference.size < size) first.push(this.#firstStep())
    // Sometimes views are built while most entities are still being created.
    const early = this.#isInTurn() ? first.length : random.between(1, 5)
    await this.#inTurn(first.slice(0, early))
    if (early < first.length) await this.#besideQueries([first.slice(early)])
    for (let round = 0; round < roundsPerStory && this.differences.length === 0; round++) {
      if (round > 0 && this.#isInTurn()) await this.#inTurn(this.#steps(1)[0] as Step[])
      else if (round > 0) await this.#besideQueries(this.#steps(4))
      await this.#passTime()
      await this.#queries(queriesPerStory / roundsPerStory)
    }
  }

  #isInTurn(): boolean {
    return this.#changes === 'in turn' || chance(this.#random, 0.5)
  }

  // Changes

  #firstStep(): Step {
    this.#time.nowMs += this.#random.between(1, 20)
    const atMs = this.#time.nowMs
    const changes = firstEntities(this.#random, this.#reference, 50, this.#idsPerStem, atMs)
    const ids = changes.map(({ id }) => id)
    return { request: batchRequest('append', changes), atMs, statuses: [204, 413], ids }
  }

  /**
   * Draws changes, and applies each to the reference at once; one list for each writer. With several writers time does
   * not move.
   */
  #steps(writers: number): Step[][] {
    const lanes: Step[][] = Array.from({ length: writers }, () => [])
    const random = this.#random
    for (let left = changesPerRound; left > 0; left--) {
      if (writers === 1) this.#time.nowMs += random.between(1, 50)
      const atMs = this.#time.nowMs
      const lane = random.between(0, writers - 1)
      const isMine = (id: string): boolean => laneOf(id, writers) === lane
      const scene: Scene = {
        reference: this.#reference,
        random,
        nowMs: atMs,
        idsPerStem: this.#idsPerStem,
        isMine,
        // Only one writer creates, since otherwise the order of creation would be unknown.
        creates: lane === 0,
      }
      const step = chance(random, 0.2) ? this.#batchStep(scene) : this.#singleStep(scene)
      if (step) lanes[lane]?.push(step)
    }
    return lanes
  }

  #singleStep(scene: Scene): Step {
    const change = nextChange(scene)
    const status = statusOf(change, this.#reference.apply(change, scene.nowMs))
    const request = changeRequest(change, chance(scene.random, 0.3))
    return { request, atMs: scene.nowMs, statuses: [status], ids: [change.id] }
  }

  #batchStep(scene: Scene): Step | undefined {
    const action = batchAction(scene.random)
    const changes: Change[] = []
    let isDone = true
    for (const change of batchChanges(scene, action)) {
      changes.push(change)
      if (this.#reference.apply(change, scene.nowMs) !== 'done') isDone = false
    }
    if (changes.length === 0) return undefined
    const ids = changes.map(({ id }) => id)
    return {
      request: batchRequest(action, changes),
      atMs: scene.nowMs,
      statuses: isDone ? [204] : [404, 413, 422],
      ids,
    }
  }

  /** One change after the other, on all nodes. */
  async #inTurn(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#make(step)
  }

  async #make({ request, atMs, statuses }: Step): Promise<void> {
    this.#time.nowMs = atMs
    const answers = await Promise.all(this.#nodes.map(({ client }) => client.send(request, this.#tenant)))
    for (const [at, { status, text }] of answers.entries())
      if (!statuses.includes(status))
        this.#tell(request, `${this.#nodes[at]?.name}: ${status} ${text}, not ${statuses}`)
  }

  /** Moves time to the next full minute, and waits until all expired entities are gone. */
  async #passTime(): Promise<void> {
    this.#time.nowMs = Math.ceil((this.#time.nowMs + 1) / 60_000) * 60_000
    if (this.#reference.expire(this.#time.nowMs) === 0) return
    const total = String(this.#reference.size)
    const request: HttpRequest = { method: 'GET', target: '/v2/entities?limit=0&options=count', headers: {} }
    const deadline = performance.now() + 10_000
    for (const { name, client } of this.#nodes)
      while ((await client.send(request, this.#tenant)).total !== total) {
        if (performance.now() > deadline) return this.#tell(request, `${name}: expired entities are still there`)
        await pause(5)
      }
  }

  // Queries

  async #queries(count: number): Promise<void> {
    const stock = this.#stock()
    const asked: ExpectedQuery[] = []
    while (asked.length < count) {
      const query = nextQuery(this.#random, stock)
      const expected = answerTo(query, stock.entities)
      // If the order is open, the nodes can only agree with each other.
      const isAsked = (at: number) => at === 0 || expected?.isOrdered === false || chance(this.#random, shareOfOthers)
      const nodes = this.#nodes.filter((_, at) => isAsked(at))
      if (expected) asked.push({ query, expected, nodes })
      else this.unclear++
    }
    await atOnce(inFlight, asked, one => this.#compare(one))
  }

  #stock() {
    return { entities: [...this.#reference.entities], idsPerStem: this.#idsPerStem }
  }

  async #compare({ query, expected, nodes }: ExpectedQuery): Promise<void> {
    if (this.differences.length >= differencesMax) return
    const request = queryRequest(query)
    const answers = await Promise.all(nodes.map(({ client }) => client.send(request, this.#tenant)))
    this.compared++
    if (expected.total > 0) this.matched++
    if (expected.covered > viewsFrom) this.wide++
    if (!expected.isOrdered) this.unordered++
    const last = answers.at(-1) as AliveMessage
    const isRight = answers.every(answer => answer.text === last.text && fault(query, expected, answer) === undefined)
    if (isRight) return
    const lines = answers.map((answer, at) => {
      const name = nodes[at]?.name
      const twin = answers.findIndex(
        ({ status, total, text }) => `${status} ${total} ${text}` === `${answer.status} ${answer.total} ${answer.text}`,
      )
      if (twin < at) return `${name}: as ${nodes[twin]?.name}`
      return `${name}: ${answer.status} total ${answer.total} ${short(answer.text)}\n  ${fault(query, expected, answer) ?? 'fits'}`
    })
    this.#tell(request, `reference: total ${expected.total} ${short(expected.text)}\n${lines.join('\n')}`)
  }

  // Changes and queries at once

  /**
   * Several writers send their changes while the nodes with views get queries: entities without changes must be found
   * as always.
   */
  async #besideQueries(lanes: readonly (readonly Step[])[]): Promise<void> {
    const touched = new Set(lanes.flat().flatMap(({ ids }) => ids))
    const stock = this.#stock()
    const still = stock.entities.filter(({ id }) => !touched.has(id))
    const asked = Array.from({ length: 24 }, () => nextWholeQuery(this.#random, stock)).flatMap(query => {
      const fits = still.map(entity => coversPath(query.paths, entity.path) && fitsQuery(query, entity))
      if (fits.includes(undefined)) return []
      const expected = still.filter((_, at) => fits[at]).map(entity => shownEntity(entity, query.shown))
      return [{ query, expected: elements(`[${expected.join()}]`) }]
    })
    let writing = true
    const written = Promise.all(lanes.map(steps => this.#inTurn(steps))).then(() => {
      writing = false
    })
    const clients = Array.from({ length: inFlight }, async (_, lane) => {
      for (let at = lane; writing || at < asked.length; at += inFlight)
        await this.#askBeside(asked[at % asked.length] as QueryDuringWrites, touched)
    })
    await Promise.all([written, ...clients])
  }

  async #askBeside({ query, expected }: QueryDuringWrites, touched: ReadonlySet<string>): Promise<void> {
    const request = queryRequest(query)
    for (const { name, client } of this.#nodes.slice(0, 2)) {
      const { status, text } = await client.send(request, this.#tenant)
      this.duringWrites++
      const all = status === 200 ? elements(text) : []
      const found = all.filter(one => !touched.has((JSON.parse(one) as Entity).id))
      // A page that may be full may end anywhere.
      const isFull = this.#reference.size + touched.size > query.limit!
      const at = found.findIndex((one, index) => one !== expected[index])
      if (status === 200 && at < 0 && (isFull || found.length === expected.length)) continue
      const first = at < 0 ? found.length : at
      const what = `${status} ${status === 200 ? '' : text} of those nobody touches`
      this.#tell(
        request,
        `${name}, while others write: ${what}, at ${first}: ${found[first]}\n  instead of ${expected[first]}`,
      )
    }
  }

  #tell({ method, target, headers, body = '' }: HttpRequest, what: string): void {
    if (this.differences.length >= differencesMax) return
    const said = `${method} ${decodeURIComponent(target)} ${JSON.stringify(headers)} ${short(body)}`
    this.differences.push(`${this.#tenant}, after ${this.compared} queries: ${said}\n${what}`)
  }
}

/** The fault of an answer, with the first entity that shows it; undefined if there is none. */
function fault(query: Query, expected: Expected, { status, total, text }: AliveMessage): string | undefined {
  if (status !== 200) return `status ${status}`
  if (total !== (query.counted ? String(expected.total) : undefined)) return `total ${total}`
  if (text === expected.text) return undefined
  const wanted = elements(expected.text)
  const shown = elements(text)
  if (!expected.isOrdered) {
    const all = new Set(elements(`[${expected.found.map(entity => shownEntity(entity, query.shown)).join()}]`))
    const stranger = shown.find(one => !all.has(one))
    if (stranger) return `not among them: ${stranger}\n  ${[...all].find(one => one.startsWith(stranger.slice(0, 30)))}`
    return shown.length === wanted.length ? undefined : `${shown.length} entities, not ${wanted.length}`
  }
  const at = wanted.findIndex((one, index) => one !== shown[index])
  const [missing, extra] = [wanted[at], shown[at < 0 ? wanted.length : at]]
  const entity = expected.found[(query.offset ?? 0) + at]
  return `at ${at}: ${extra}\n  instead of ${missing}\n  which is ${entity && storedText(entity)}`
}

const elements = (text: string): string[] => (JSON.parse(text) as unknown[]).map(one => JSON.stringify(one))

const storedText = (entity: Entity): string =>
  shownEntity(entity, { mode: 'normalized', attrs: ['*', 'dateCreated', 'dateModified', 'dateExpires', 'servicePath'] })

const short = (text: string): string => (text.length > 600 ? `${text.slice(0, 600)}... (${text.length})` : text)

/** The writer that changes entities with this id. */
function laneOf(id: string, lanes: number): number {
  let sum = 0
  for (const character of id) sum += character.charCodeAt(0)
  return sum % lanes
}

/** Runs a function for each element, with `lanes` of them at the same time. */
async function atOnce<T>(lanes: number, all: readonly T[], run: (one: T) => Promise<void>): Promise<void> {
  const one = async (lane: number): Promise<void> => {
    for (let at = lane; at < all.length; at += lanes) await run(all[at] as T)
  }
  await Promise.all(Array.from({ length: lanes }, (_, lane) => one(lane)))
}
