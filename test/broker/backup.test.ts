// A backup of several owners of shards: it has all of them or fails, and only one runs at a time. The last tests move
// shards meanwhile.

import t from 'tap'
import { type Block, blocksOf, RowPacker } from '../../src/backup/backup-file.js'
import { BackupOperations } from '../../src/broker/backup.js'
import { refusalText } from '../../src/domain/refusal.js'
import type { BackupOutcome, BackupReply, BackupStep, ShardReply, Shards } from '../../src/messages/messages.js'

const placement = { shards: 4, spread: 1 }
const register = placement.shards

interface Owner {
  readonly shards: readonly number[]
  readonly isKeeper?: boolean
  /** Rows, a page each. */
  readonly pages?: number
}

/** Owners as a cluster has them: each returns its pages, and records the requests that it gets. */
class Scene {
  readonly asked: string[] = []
  readonly outcomes: BackupOutcome[] = []
  readonly lines: string[] = []
  readonly rests: number[] = []
  readonly left: number[]
  nowMs = 0
  /** Changes a reply before the caller gets it. */
  change: (owner: number, step: BackupStep, reply: ShardReply) => ShardReply = (_owner, _step, reply) => reply

  constructor(public owners: readonly Owner[]) {
    this.left = owners.map(({ pages = 1 }) => pages)
  }

  ownerOf(shard: number): number {
    return this.owners.findIndex(({ shards, isKeeper }) => (shard === register ? isKeeper : shards.includes(shard)))
  }

  operations(): BackupOperations {
    const shards: Shards = {
      ask: (shard, request, onReply) => {
        if (request.kind !== 'backup') throw new Error(request.kind)
        const { step } = request
        const owner = this.ownerOf(shard)
        this.asked.push(`${step.what} ${owner}`)
        const reply: ShardReply =
          owner < 0
            ? { kind: 'unreachable', reason: `no node answers for shard ${shard}` }
            : { kind: 'backup', content: this.replyTo(owner, step) }
        onReply(this.change(owner, step, reply))
      },
      owners: () => this.owners.map(({ shards: [first] }) => first!),
      ownerOf: shard => this.ownerOf(shard),
      pathsOf: () => undefined,
    }
    const clock = {
      monoMs: () => this.nowMs,
      wallMs: () => 1_000 + this.nowMs,
      after: (ms: number, run: () => void) => {
        this.rests.push(ms)
        this.nowMs += ms
        setImmediate(run)
        return () => {}
      },
    }
    const keep = (line: string): void => void this.lines.push(line)
    const logger = { info: keep, warn: keep }
    return new BackupOperations({
      shards,
      placement,
      rowFormat: 4,
      by: 'o',
      clock,
      chance: { uuid: () => 'u' },
      logger,
    })
  }

  private replyTo(owner: number, step: BackupStep): BackupReply {
    const { shards, isKeeper = false } = this.owners[owner]!
    switch (step.what) {
      case 'begin':
        return { what: 'begun', shards, isKeeper, stamp: owner, positions: [] }
      case 'page': {
        const packer = new RowPacker()
        if (this.left[owner]! > 0) packer.add({ key: Buffer.from(`row of ${owner}`), value: Buffer.alloc(0) })
        this.left[owner]!--
        return { what: 'page', ...packer.packed(), isLast: this.left[owner]! <= 0 }
      }
      case 'end':
        this.outcomes.push(step.outcome)
        return { what: 'ended' }
    }
  }
}

const both: readonly Owner[] = [
  { shards: [0, 1], pages: 1 },
  { shards: [2, 3], isKeeper: true, pages: 3 },
]

async function blocks(scene: Scene): Promise<Block[]> {
  const begun = await scene.operations().begin()
  if (!begun.ok) throw new Error(refusalText(begun.refusal))
  const found: Block[] = []
  for await (const block of blocksOf(copied(begun.value))) found.push(block)
  return found
}

/** Copies the parts, because each part is overwritten by the next one. */
async function* copied(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, void> {
  for await (const part of parts) yield Buffer.from(part)
}

async function refusal(scene: Scene) {
  const begun = await scene.operations().begin()
  if (begun.ok) throw new Error('it has begun')
  return { kind: begun.refusal.kind, text: refusalText(begun.refusal) }
}

t.test('the rows of all owners come in turn, each with its owner, and all owners know how it ended', async t => {
  const scene = new Scene(both)
  const found = await blocks(scene)
  t.match(found[0], { header: { shards: 4, spread: 1, owners: [{ shards: [2, 3] }, { shards: [0, 1] }] } })
  t.strictSame(
    found.slice(1, -1).map(block => (block.kind === 'rows' ? [block.owner, String(block.rows[0]?.key)] : block.kind)),
    [
      [0, 'row of 1'],
      [1, 'row of 0'],
      [0, 'row of 1'],
      [0, 'row of 1'],
    ],
  )
  t.match(found.at(-1), { trailer: { rows: 4 } })
  t.strictSame(
    scene.outcomes.map(({ succeeded }) => succeeded),
    [true, true],
  )
  t.match(scene.lines, [/^a backup of \d+ bytes was read/])
})

t.test('the keeper of the register begins first: of two backups that begin together one goes on', async t => {
  const scene = new Scene(both)
  await blocks(scene)
  t.strictSame(scene.asked.slice(0, 2), ['begin 1', 'begin 0'])
  const busy = new Scene(both)
  busy.change = () => ({ kind: 'backup', content: { what: 'busy' } })
  t.strictSame(await refusal(busy), {
    kind: 'Conflict',
    text: 'a backup is under way: wait until it has ended',
  })
  t.strictSame(busy.asked, ['begin 1'], 'nothing else is asked, least of all to end the other one')
})

t.test('it does not begin while a shard has no owner, and names that shard', async t => {
  const scene = new Scene([{ shards: [0, 1, 3], isKeeper: true }])
  t.strictSame(await refusal(scene), {
    kind: 'Unavailable',
    text: 'the backup would not have all shards: no node answers for shard 2',
  })
  t.ok(scene.nowMs >= 10_000 && scene.nowMs < 11_000, `gives up after ${scene.nowMs} ms`)
  t.ok(scene.outcomes.length > 0, 'who has begun is told that it has ended')
})

t.test('it waits for shards that are moving', async t => {
  const scene = new Scene(both)
  let times = 0
  scene.change = (owner, step, reply) => {
    if (owner !== 0 || step.what !== 'begin' || ++times > 2 || reply.kind !== 'backup') return reply
    return { kind: 'backup', content: { ...(reply.content as Extract<BackupReply, { what: 'begun' }>), shards: [0] } }
  }
  t.equal((await blocks(scene)).length, 6)
  t.equal(times, 3)
})

t.test('a shard that two owners hold at the beginning is not taken twice', async t => {
  const scene = new Scene(both)
  scene.change = (owner, step, reply) =>
    owner === 0 && step.what === 'begin' && reply.kind === 'backup'
      ? { kind: 'backup', content: { what: 'begun', shards: [0, 1, 2], isKeeper: false, stamp: 0, positions: [] } }
      : reply
  t.match(await refusal(scene), { text: /shard 2 is moving$/ })
})

t.test('it goes on at the owners that have begun when shards have moved between them', async t => {
  const scene = new Scene(both)
  scene.change = (_owner, step, reply) => {
    // From now on the broker must ask another shard of each owner.
    if (step.what === 'page') scene.owners = [{ shards: [2] }, { shards: [0, 1, 3], isKeeper: true }]
    return reply
  }
  t.match((await blocks(scene)).at(-1), { trailer: { rows: 4 } })
})

t.test('it fails when an owner that has begun owns nothing any more', async t => {
  const scene = new Scene(both)
  scene.change = (_owner, step, reply) => {
    if (step.what === 'page') scene.owners = [{ shards: [] }, { shards: [0, 1, 2, 3], isKeeper: true }]
    return reply
  }
  await t.rejects(blocks(scene), { message: /a node that took part owns no shard any more$/ })
})

t.test('when an owner is lost meanwhile, the file ends with the reason, and reading it fails', async t => {
  const scene = new Scene(both)
  scene.change = (owner, step, reply) =>
    owner === 1 && step.what === 'page' && scene.left[1]! < 2 ? { kind: 'lost', reason: 'worker 1 has gone' } : reply
  await t.rejects(blocks(scene), { message: 'the backup is not complete: worker 1 has gone' })
  t.strictSame(
    scene.outcomes.map(({ succeeded }) => succeeded),
    [false, false],
  )
  t.match(scene.lines, ['a backup has failed: worker 1 has gone'])
})

t.test('a client that goes ends the backup at all owners', async t => {
  const scene = new Scene(both)
  const begun = await scene.operations().begin()
  if (!begun.ok) return t.fail('it has not begun')
  await begun.value.next()
  await begun.value.next()
  await begun.value.return()
  t.strictSame(
    scene.outcomes.map(({ succeeded }) => succeeded),
    [false, false],
  )
})

t.test('it rests nine times as long as it works, and not while the client takes its time', async t => {
  const scene = new Scene(both)
  scene.change = (_owner, step, reply) => {
    if (step.what === 'page') scene.nowMs += 2
    return reply
  }
  const begun = await scene.operations().begin()
  if (!begun.ok) return t.fail('it has not begun')
  for await (const _ of begun.value) scene.nowMs += 1_000
  t.strictSame(scene.rests, [18, 18, 18, 18])
})
