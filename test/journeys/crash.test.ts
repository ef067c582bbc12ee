// Kill -9 at any moment loses no acknowledged write and invents nothing.
//
// Several connections write (creations, upserts, updates, counters, batches, deletions) until the broker is killed; the
// instant is a number of acknowledged writes, drawn anew each time. Then it starts on the same directory, and every
// entity is read and compared with the oracle. Lists, counts and lists by type must show exactly the same entities, so
// that the indexes agree with the entities they point to. The same with two workers: killed together, alone, or left by
// their supervisor.
//
// CRASH_CYCLES sets the number of kills with the default durability (a soak uses thousands). SEED repeats a run: the
// choices are the same, but the order of packets may differ. `inspections` holds checks from inside: after every kill
// each gets the data directory while no broker has it open, and returns the faults that it finds.

import { readdirSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type BrokerProcess, startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { indexesEqualRebuild } from '../support/inspection.js'
import { Random } from '../support/random.js'
import { nextWrite, Oracle, type State, types } from './crash-oracle.js'

type Inspection = (dataDir: string) => Promise<readonly string[]>
const inspections: readonly Inspection[] = [indexesEqualRebuild]

const cycles = Number(process.env.CRASH_CYCLES ?? 4)
const connections = 8
const idsPerConnection = 6
const pageLength = 1000
t.setTimeout(400_000 + cycles * 10_000)

const killAll = (broker: BrokerProcess): void => broker.signal('SIGKILL')

const idsOfWriters = Array.from({ length: connections }, (_, c) =>
  Array.from({ length: idsPerConnection }, (_, k) => `urn:crash:${c}:${k}`),
)

t.test(`nothing acknowledged is lost and nothing invented in ${cycles} kills`, t => journey(t, cycles, []))

t.test('durability `os` keeps acknowledged writes over kills as well', t => journey(t, 3, ['-durability', 'os']))

const two = ['-workers', '2']
const killsOfWorkers = Math.max(2, Math.ceil(cycles / 5))

t.test(`of two workers nothing is lost in ${killsOfWorkers} kills of both`, t => journey(t, killsOfWorkers, two))

t.test(`nothing is lost in ${killsOfWorkers} kills of the supervisor, whose workers end with it`, t =>
  journey(t, killsOfWorkers, two, broker => process.kill(broker.child.pid as number, 'SIGKILL')),
)

t.test(`nothing is lost in ${killsOfWorkers} kills of a worker, which is back within seconds`, async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const oracle = new Oracle()
  const dataDir = tempDir(t)
  const broker = await startBroker(t, { dataDir, args: two })
  let killed = 0
  const killWorker = () => {
    killed = workersOf(broker)[random.between(0, 1)] as number
    process.kill(killed, 'SIGKILL')
  }
  for (let cycle = 1; cycle <= killsOfWorkers; cycle++) {
    const instant = 1 + Math.floor(400 * random.fraction() ** 3)
    const { surprises } = await writeUntilKilled(broker, oracle, idsOfWriters, instant, random, killWorker)
    t.strictSame(surprises, [], `in cycle ${cycle}, SEED=${random.seed}`)
    await whole(broker, killed)
    t.strictSame(await compare(broker, oracle, idsOfWriters.flat()), [], `after kill ${cycle}, SEED=${random.seed}`)
  }
  await broker.kill('SIGTERM')
  t.strictSame(await indexesEqualRebuild(dataDir), [])
})

t.test('a store that has lost its last commit is noticed', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const dataDir = tempDir(t)
  const oracle = new Oracle()
  const [ids] = idsOfWriters
  const first = await startBroker(t, { dataDir })
  // A single connection: no write follows the one that is acknowledged last.
  await writeUntilKilled(first, oracle, [ids!], 30, random, killAll)
  await first.exited
  const before = await copyOf(t, dataDir)
  const honest = await startBroker(t, { dataDir })
  t.strictSame(await compare(honest, oracle, ids!), [], 'with its last commit nothing is wrong')
  await honest.kill('SIGTERM')
  loseLastCommit(before)
  const forgetful = await startBroker(t, { dataDir: before })
  t.not((await compare(forgetful, oracle, ids!)).length, 0, 'without it something is')
})

/** A copy of a directory that is removed when the test ends. */
async function copyOf(t: Test, folder: string): Promise<string> {
  const copy = tempDir(t)
  await cp(folder, copy, { recursive: true })
  return copy
}

/**
 * Cuts the last commit off the write-ahead log of RocksDB. After each commit the log has the mark of its flush, which
 * holds no rows.
 */
function loseLastCommit(dataDir: string): void {
  const logs = readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter(name => /(^|\/)\d+\.log$/.test(name))
  const files = logs.map(name => join(dataDir, name)).filter(file => statSync(file).size > 0)
  if (files.length !== 1) throw new Error(`one log with something in it is expected: ${files}`)
  const log = readFileSync(files[0]!)
  let last = -1
  // A record: checksum (4 bytes), length (2), kind (1), and its content; no record head crosses the end of a block.
  for (let at = 0; at + recordHeadBytes <= log.length; ) {
    const left = blockBytes - (at % blockBytes)
    const end = at + recordHeadBytes + log.readUInt16LE(at + 4)
    if (left < recordHeadBytes) at += left
    else {
      if (!log.subarray(at, end).includes('orrery sync')) last = at
      at = end
    }
  }
  truncateSync(files[0]!, last)
}

const blockBytes = 32_768
const recordHeadBytes = 7

/** The process ids of a broker's workers. */
function workersOf(broker: BrokerProcess): number[] {
  const children = readFileSync(`/proc/${broker.child.pid}/task/${broker.child.pid}/children`, 'utf8')
  return children.trim().split(' ').map(Number)
}

async function isReady(broker: BrokerProcess): Promise<boolean> {
  const client = new HttpClient(broker.baseUrl)
  const answer = await client.get('/health/ready').catch(() => undefined)
  client.close()
  return answer?.status === 200
}

/** Resolves when a new worker has replaced the killed one, and both workers are ready. */
async function whole(broker: BrokerProcess, killed: number): Promise<void> {
  const untilMs = performance.now() + 20_000
  for (;;) {
    const workers = workersOf(broker)
    // Enough connections that both workers get one.
    const answers = await Promise.all(Array.from({ length: 16 }, () => isReady(broker)))
    if (workers.length === 2 && !workers.includes(killed) && answers.every(isYes => isYes)) return
    if (performance.now() > untilMs) throw new Error(`the broker is not whole again\n${broker.printed()}`)
    await pause(20)
  }
}

async function journey(t: Test, kills: number, args: readonly string[], kill = killAll): Promise<void> {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const dataDir = tempDir(t)
  const oracle = new Oracle()
  const ids = idsOfWriters
  let written = 0
  for (let cycle = 0; cycle <= kills; cycle++) {
    const broker = await startBroker(t, { dataDir, args })
    const wrong = await compare(broker, oracle, ids.flat())
    if (wrong.length > 0) return void t.strictSame(wrong, [], `after kill ${cycle}, SEED=${random.seed}`)
    if (cycle === kills) break
    // Short runs test the recovery of a recovery, long runs fill files: both shall occur often.
    // In one of them something is written.
    const instant = Math.max(cycle === 0 ? 1 : 0, Math.floor(400 * random.fraction() ** 3))
    const done = await writeUntilKilled(broker, oracle, ids, instant, random, kill)
    await broker.exited
    written += done.acknowledged
    if (done.surprises.length > 0)
      return void t.strictSame(done.surprises, [], `in cycle ${cycle}, SEED=${random.seed}`)
    for (const inspect of inspections) t.strictSame(await inspect(dataDir), [], `inside, after kill ${cycle + 1}`)
  }
  t.ok(written > 0, `${written} acknowledged writes survived ${kills} kills`)
}

/**
 * All connections write. After `instant` acknowledged writes the broker is killed, while other writes are in flight.
 */
async function writeUntilKilled(
  broker: BrokerProcess,
  oracle: Oracle,
  ids: readonly (readonly string[])[],
  instant: number,
  random: Random,
  killNow: (broker: BrokerProcess) => void,
): Promise<{ acknowledged: number; surprises: string[] }> {
  const surprises: string[] = []
  const batches = await takesBatches(broker)
  let acknowledged = 0
  let killed = false
  const kill = () => {
    if (killed) return
    killed = true
    killNow(broker)
  }
  const writer = async (own: readonly string[]): Promise<void> => {
    const client = new HttpClient(broker.baseUrl)
    while (!killed) {
      const write = nextWrite(oracle, own, random, batches)
      oracle.begin(write)
      const answer = await client.send(write.method, write.path, write.body).catch(() => undefined)
      if (!answer) {
        if (!killed)
          surprises.push(`the connection broke before the kill: ${write.method} ${write.path}\n${broker.printed()}`)
        break
      }
      // A worker that still runs answers with an error when it cannot reach the killed one.
      if (killed && answer.status >= 500) break
      if (answer.status !== write.status) {
        surprises.push(`${write.method} ${write.path} ${JSON.stringify(write.body)}: ${answer.status} ${answer.text}`)
        break
      }
      oracle.acknowledge(write)
      acknowledged++
      if (acknowledged >= instant) kill()
    }
    if (surprises.length > 0) kill()
    client.close()
  }
  const writers = ids.map(writer)
  if (instant === 0) kill()
  await Promise.all(writers)
  return { acknowledged, surprises }
}

/** Whether the broker has POST /v2/op/update: a known path answers another method with 405. */
async function takesBatches(broker: BrokerProcess): Promise<boolean> {
  const client = new HttpClient(broker.baseUrl)
  const answer = await client.get('/v2/op/update')
  client.close()
  return answer.status === 405
}

/** All differences between the broker's data and the oracle: each entity by itself, then the lists. */
async function compare(broker: BrokerProcess, oracle: Oracle, ids: readonly string[]): Promise<string[]> {
  const client = new HttpClient(broker.baseUrl)
  const wrong: string[] = []
  for (const id of ids) {
    const fault = oracle.settle(id, await read(client, id))
    if (fault) wrong.push(fault)
  }
  for (const type of [undefined, ...types]) {
    const { listed, total } = await list(client, type)
    const expected = oracle.ids(type)
    const name = type ? `the list of type ${type}` : 'the list of all'
    if (total !== expected.length) wrong.push(`${name} counts ${total}, ${expected.length} exist`)
    wrong.push(...expected.filter(id => !listed.includes(id)).map(id => `${name} lacks ${id}`))
    wrong.push(...listed.filter(id => !expected.includes(id)).map(id => `${name} has ${id}, which does not exist`))
    if (new Set(listed).size !== listed.length) wrong.push(`${name} shows an entity twice`)
  }
  client.close()
  return wrong
}

interface Entity {
  readonly id: string
  readonly type: string
  readonly text?: { readonly value: string }
  readonly n?: { readonly value: number }
}

async function read(client: HttpClient, id: string): Promise<State> {
  const answer = await client.get(`/v2/entities/${encodeURIComponent(id)}`)
  if (answer.status === 404) return undefined
  if (answer.status !== 200) throw new Error(`GET ${id}: ${answer.status} ${answer.text}`)
  const { type, text, n } = answer.json as Entity
  return { type, text: text?.value ?? '(no text)', n: n?.value ?? Number.NaN }
}

async function list(client: HttpClient, type?: string): Promise<{ listed: string[]; total: number }> {
  const listed: string[] = []
  for (let offset = 0; ; offset += pageLength) {
    const query = `limit=${pageLength}&offset=${offset}&options=count${type ? `&type=${type}` : ''}`
    const answer = await client.get(`/v2/entities?${query}`)
    if (answer.status !== 200) throw new Error(`list: ${answer.status} ${answer.text}`)
    const page = answer.json as Entity[]
    listed.push(...page.map(entity => entity.id))
    if (page.length < pageLength) return { listed, total: Number(answer.headers['ctx-total-count']) }
  }
}
