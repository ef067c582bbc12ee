// A node of a cluster is stopped during writes until the others have taken over its shards, and then continues. Its
// process lives, every client gets an answer, no acknowledged write is lost, and the node gets shards again
// (docs/operations/cluster-health.md).

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { tempDir } from '../support/broker-process.js'
import { untilStopped } from '../support/cluster-scene.js'
import { noEtcd } from '../support/etcd.js'
import { HttpClient } from '../support/http-client.js'
import { names, Scene } from '../support/log-scene.js'

const skip = noEtcd()

t.setTimeout(400_000)

const victim = 0
const rounds = 3
const writers = 24
const idsPerBatch = 8
/** Between two batches of a writer. */
const restMs = 5
/** Longer than the node is stopped, and than its first answers take afterwards. */
const answerMsMax = 60_000

/** Writers that send one batch after the other to a node, each to entities of its own. */
class BatchLoad {
  /** By writer, the last acknowledged number, and the last one sent. */
  readonly acknowledged = new Array<number>(writers).fill(0)
  readonly sent = new Array<number>(writers).fill(0)
  readonly statuses = new Map<number, number>()
  readonly problems: string[] = []
  private readonly client: HttpClient
  private isOver = false
  private readonly running: Promise<unknown>

  constructor(baseUrl: string) {
    this.client = new HttpClient(baseUrl, answerMsMax, writers)
    this.running = Promise.all(this.sent.map((_, writer) => this.run(writer)))
  }

  private async run(writer: number): Promise<void> {
    while (!this.isOver) {
      await this.write(writer)
      await pause(restMs)
    }
  }

  private async write(writer: number): Promise<void> {
    const number = ++this.sent[writer]!
    const entities = Array.from({ length: idsPerBatch }, (_, n) => ({
      id: idOf(writer, n),
      type: 'Counter',
      count: { value: number, type: 'Number' },
    }))
    try {
      const { status, text } = await this.client.send('POST', '/v2/op/update', { actionType: 'append', entities })
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
      if (status === 204) this.acknowledged[writer] = number
      else if (status !== 503) this.problems.push(`${status} ${text}`)
    } catch (error) {
      this.problems.push(`no answer: ${(error as Error).message}`)
    }
  }

  async end(): Promise<void> {
    this.isOver = true
    await this.running
    this.client.close()
  }
}

const idOf = (writer: number, n: number): string => `counter-${writer}-${n}`

/** Stops a node until, by another node's status, it owns no shard. */
async function standStill(scene: Scene): Promise<void> {
  const { processes } = scene.nodes[victim]!
  for (const pid of processes) process.kill(pid, 'SIGSTOP')
  await Promise.all(processes.map(untilStopped))
  try {
    await scene.until('the others to take over', async () => {
      const { shards } = await scene.status(1)
      return shards.every(({ owner }) => owner !== undefined && owner !== names[victim]) || undefined
    })
  } finally {
    for (const pid of processes) process.kill(pid, 'SIGCONT')
  }
}

/** No acknowledged write is missing, and no value exists that was not sent. */
async function assertKept(t: Test, scene: Scene, load: BatchLoad): Promise<void> {
  for (const [index, name] of names.entries()) {
    const counts = await scene.until(`${name} to tell what there is`, async () => {
      const { status, text } = await scene.send(index, 'GET', '/v2/entities?type=Counter&options=keyValues&limit=1000')
      if (status !== 200) return undefined
      return new Map((JSON.parse(text) as { id: string; count: number }[]).map(({ id, count }) => [id, count]))
    })
    const wrong = [...counts.keys()].filter(id => !/^counter-/.test(id))
    for (const [writer, acknowledged] of load.acknowledged.entries())
      for (let n = 0; n < idsPerBatch; n++) {
        const count = counts.get(idOf(writer, n)) ?? 0
        if (count < acknowledged || count > load.sent[writer]!)
          wrong.push(`${idOf(writer, n)}: ${count}, not ${acknowledged} to ${load.sent[writer]}`)
      }
    t.strictSame(wrong, [], `as node ${name} tells`)
  }
}

/** The log lines of a node about shards that it has lost. */
const lossesOf = (scene: Scene): readonly string[] =>
  scene.lines(victim, 'WARN').filter(line => /cluster: [bc] has taken over .*shards? .*of this node/.test(line))

async function untilOwner(scene: Scene): Promise<void> {
  await scene.until('the node to be given shards again', async () => {
    const { shards } = await scene.status(1)
    return shards.some(({ owner }) => owner === names[victim]) || undefined
  })
}

t.test('a node that was paused in the midst of batches until it was deposed lives on', { skip }, async t => {
  const scene = await Scene.start(t, tempDir(t))
  const node = scene.nodes[victim]!
  const { processes } = node
  const load = new BatchLoad(node.baseUrl)
  for (let round = 1; round <= rounds; round++) {
    await untilOwner(scene)
    await pause(1_000)
    const losses = lossesOf(scene).length
    await standStill(scene)
    await scene.until('the line that says who has taken over', async () => lossesOf(scene).length > losses || undefined)
    await scene.untilReady(victim, true)
    t.comment(
      `round ${round}: ${lossesOf(scene)
        .at(-1)
        ?.replace(/.*msg=/, '')}`,
    )
    t.strictSame(node.processes, processes, 'its process is the same')
  }
  await untilOwner(scene)
  await pause(1_000)
  await load.end()
  t.comment(`answers: ${[...load.statuses].map(([status, count]) => `${count} times ${status}`).join(', ')}`)
  t.strictSame(load.problems, [], 'every client was answered')
  t.ok(Math.min(...load.acknowledged) > 0, 'every writer has come through')
  await assertKept(t, scene, load)

  // The node takes over shards like any other node.
  await scene.nodes[1]!.kill()
  await scene.untilReady(victim, true)
  await scene.begin(1)
  await scene.writeAll(7)
  for (const [index] of names.entries())
    t.strictSame(
      [...(await scene.answersOf(index))].filter(([id]) => /^lamp/.test(id)).sort(),
      [...scene.acknowledged].sort(),
    )
  t.notMatch(node.printed(), /DatabaseError|lvl=(FATAL|ERROR)|Infinity ms|is started again/)
})
