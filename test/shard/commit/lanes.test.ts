// Commits of different shards: they overlap, unless one of them has anything of the register; and what still holds for
// those who wait for several of them.

import t from 'tap'
import { DeposedError } from '../../../cluster/replication/shard-host.js'
import type { RowSink } from '../../../src/ports.js'
import { changesWaitingMax, GroupCommit, type PiggybackedWrites } from '../../../src/shard/commit/commit.js'
import { type CommitLog, noTimes, type OpenBatch } from '../../../src/shard/commit/commit-log.js'
import { Counts } from '../../../src/shard/commit/counts.js'
import { hasLost } from '../../../src/shard/commit/deposed.js'
import { shardOfKey } from '../../../src/shard/keys.js'
import { attributeCounts, entityCounts, entityKey } from '../../../src/shard/layout.js'
import { outboxKey } from '../../../src/shard/notify/notification-layout.js'
import type { ShardRecord } from '../../../src/shard/turn/apply.js'
import { FakeClock } from '../../support/fake-clock.js'
import { MemoryStore } from '../../support/memory-store.js'

const register = 9
const inFlightMax = 3

/** What is staged for one shard: its keys. */
class LaneBatch implements OpenBatch, RowSink {
  readonly keys: Buffer[] = []
  readonly rows = this
  readonly lane: number

  constructor(lane: number) {
    this.lane = lane
  }

  get length(): number {
    return this.keys.length
  }

  rowsOf(): RowSink {
    return this
  }

  orderedOf(): RowSink {
    return this
  }

  put(key: Buffer): void {
    this.keys.push(key)
  }

  del(key: Buffer): void {
    this.keys.push(key)
  }
}

/** A log in which each shard has a lane. The test ends commits, in any order. */
class LaneLog implements CommitLog {
  readonly times = noTimes()
  readonly wholeLane = register
  readonly groups: number
  readonly inFlightMax = inFlightMax
  readonly isFull = false
  gapMs = 0
  /** The shards of each commit, by the order in which they began; `end` ends one. */
  readonly begun: number[][] = []
  private readonly ends: ((failure?: Error) => void)[] = []

  constructor(groups: number) {
    this.groups = groups
  }

  groupOf(lane: number): number {
    return lane % this.groups
  }

  laneOf(shard: number): number {
    return shard
  }

  laneOfKey(key: Buffer): number {
    return shardOfKey(key)
  }

  open(lane: number): OpenBatch {
    return new LaneBatch(lane)
  }

  commit(batches: readonly OpenBatch[], onDone: (failure?: Error) => void): void {
    this.begun.push(batches.flatMap(batch => (batch.length > 0 ? (batch as LaneBatch).lane : [])))
    this.ends.push(onDone)
  }

  end(index: number, failure?: Error): void {
    this.ends[index]!(failure)
  }
}

const recordOf = (shard: number): ShardRecord => ({
  shard,
  tenant: '',
  path: '/',
  id: `in ${shard}`,
  type: 'T',
  before: undefined,
  attributes: [],
  encoded: undefined,
})

class Setting {
  readonly log: LaneLog
  readonly clock = new FakeClock()
  readonly store = new MemoryStore()
  readonly directory: Counts
  readonly failures: Error[] = []
  readonly events: string[] = []
  readonly followed: number[] = []
  readonly commit: GroupCommit

  /** `rowsMax`: rows of counts in memory. `groups`: lanes whose numbers have the same rest share commits. */
  constructor({ rowsMax, groups = 1 }: { readonly rowsMax?: number; readonly groups?: number } = {}) {
    this.log = new LaneLog(groups)
    const owned = new Uint8Array(register + 1).fill(1)
    this.directory = new Counts(this.store, entityCounts, owned, rowsMax === undefined ? {} : { rowsMax })
    this.commit = new GroupCommit({
      log: this.log,
      clock: this.clock,
      directory: this.directory,
      attributes: new Counts(this.store, attributeCounts, owned),
      onFailure: failure => this.failures.push(failure),
    })
    this.commit.addFollower({ wants: () => true, follow: ({ shard }) => this.followed.push(shard) })
  }

  /** Stages a change in a shard, and notes its end in `events`. Returns the number of its commit. */
  append(shard: number): number {
    const number = this.commit.append(recordOf(shard), entityKey(shard, '', '/', 'E'), Buffer.from('x'), undefined)
    this.note(number, shard)
    return number
  }

  /** Stages a document of the register. */
  write(): void {
    this.note(this.commit.write(entityKey(register, '', '/', 'S'), Buffer.from('x')), register)
  }

  private note(number: number, shard: number): void {
    this.commit.afterCommit(number, failure =>
      this.events.push(`${shard}${failure && hasLost(failure, shard) ? ' lost' : ''}`),
    )
  }

  /** Each of these shards has a commit of its own in flight. */
  fly(...shards: readonly number[]): void {
    for (const shard of shards) {
      this.append(shard)
      this.clock.tick()
    }
  }
}

t.test('a change of another shard does not wait for a commit in flight', async t => {
  const scene = new Setting()
  scene.fly(1, 2)
  t.strictSame(scene.log.begun, [[1], [2]])
  scene.log.end(1)
  t.strictSame(scene.events, ['2'])
  scene.log.end(0)
  t.strictSame(scene.events, ['2', '1'])
})

t.test('a shard has one commit in flight, and its next one follows when that has ended', async t => {
  const scene = new Setting()
  scene.fly(1)
  scene.append(1)
  scene.append(2)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1], [2]])
  scene.log.end(0)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1], [2], [1]])
})

t.test('changes that wait together are one commit', async t => {
  const scene = new Setting()
  for (const shard of [1, 2, 3]) scene.append(shard)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1, 2, 3]])
})

t.test('no more commits are in flight than the log allows', async t => {
  const scene = new Setting()
  scene.fly(1, 2, 3, 4, 5)
  t.strictSame(scene.log.begun, [[1], [2], [3]])
  scene.log.end(1)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [4, 5], 'what waited goes together')
})

t.test('commits begin no closer to each other than the log wants', async t => {
  const scene = new Setting()
  scene.log.gapMs = 40
  scene.fly(1)
  t.strictSame(scene.log.begun, [[1]], 'the first one does not wait')
  scene.clock.advance(10)
  scene.fly(2, 3)
  scene.log.end(0)
  scene.append(1)
  scene.clock.advance(29)
  t.equal(scene.log.begun.length, 1)
  scene.clock.advance(1)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1], [2, 3, 1]], 'all that has come meanwhile')
  scene.log.end(1)
  t.strictSame(scene.events, ['1', '2', '3', '1'])
  scene.clock.advance(40)
  scene.fly(4)
  t.strictSame(scene.log.begun.at(-1), [4], 'the gap has passed')
  scene.log.gapMs = 0
  scene.fly(5)
  t.strictSame(scene.log.begun.at(-1), [5], 'there is no gap any more')
})

t.test('who waits for a quiet moment does not wait for a gap', async t => {
  const scene = new Setting()
  scene.log.gapMs = 40
  scene.fly(1)
  scene.append(2)
  scene.commit.whenQuiet(() => scene.events.push('quiet'))
  scene.log.end(0)
  t.strictSame(scene.events, ['1', 'quiet'])
  t.strictSame(scene.log.begun, [[1]])
  scene.clock.advance(40)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1], [2]])
})

t.test('a change of the register waits for all commits, takes all that is staged, and overlaps with none', async t => {
  const scene = new Setting()
  scene.fly(1, 2)
  scene.write()
  scene.append(1)
  scene.append(3)
  scene.clock.tick()
  t.equal(scene.log.begun.length, 2, 'two are in flight')
  scene.log.end(0)
  scene.clock.tick()
  t.equal(scene.log.begun.length, 2, 'one is in flight')
  scene.log.end(1)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [register, 1, 3])
  scene.append(4)
  scene.clock.tick()
  t.equal(scene.log.begun.length, 3, 'nothing begins while it is in flight')
  scene.log.end(2)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [4])
})

t.test('shards of different engines share no commit, and do not wait for each other', async t => {
  const scene = new Setting({ groups: 2 })
  for (const shard of [1, 2, 3, 4]) scene.append(shard)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [
    [2, 4],
    [1, 3],
  ])
  scene.fly(5, 7, 11)
  t.equal(scene.log.begun.length, 4, 'one engine has as many in flight as the log allows')
  scene.append(6)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [6], 'the other one has room')
  scene.append(2)
  scene.clock.tick()
  t.equal(scene.log.begun.length, 5, 'its shard is in flight')
  scene.log.end(0)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [2])
  scene.log.end(1)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [11], 'what waited for room')
})

t.test('a change of the register takes the shards of all engines', async t => {
  const scene = new Setting({ groups: 2 })
  scene.fly(1, 2)
  scene.write()
  for (const shard of [3, 4]) scene.append(shard)
  scene.clock.tick()
  scene.log.end(0)
  scene.clock.tick()
  t.equal(scene.log.begun.length, 2, 'one is in flight')
  scene.log.end(1)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1)?.toSorted(), [3, 4, register])
})

t.test('piggybacked rows go to their engines, also while one takes nothing', async t => {
  const scene = new Setting({ groups: 2 })
  const rows = new Rows()
  scene.commit.carry(rows)
  scene.fly(1, 3, 5)
  rows.shards.add(2).add(7)
  scene.commit.awaitPiggybacked()
  scene.clock.advance(200)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [2])
  scene.log.end(0)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [7])
})

/** Piggybacked rows of some shards, as the outbox and the progress of subscriptions have them. */
class Rows implements PiggybackedWrites {
  readonly shards = new Set<number>()
  isWhole = false

  writeTo(batch: RowSink): void {
    for (const shard of this.shards) batch.del(outboxKey({ shard, stamp: 1 }))
    this.shards.clear()
    this.isWhole = false
  }
}

function carrying(): [Setting, Rows] {
  const scene = new Setting()
  const rows = new Rows()
  scene.commit.carry(rows)
  return [scene, rows]
}

t.test('piggybacked writes that belong to a change are in its commit, which overlaps with none', async t => {
  const [scene, rows] = carrying()
  scene.fly(1)
  rows.shards.add(register)
  rows.isWhole = true
  scene.append(2)
  scene.commit.awaitPiggybacked()
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1]])
  scene.log.end(0)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [2, register])
})

t.test('other piggybacked rows of a shard wait until nothing of it is in flight', async t => {
  const [scene, rows] = carrying()
  scene.fly(1)
  rows.shards.add(1).add(3)
  scene.commit.awaitPiggybacked()
  scene.append(2)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1], [2, 3]])
  scene.log.end(0)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [1])
})

t.test('rows of the register that go along wait until nothing is in flight, and overlap with nothing', async t => {
  const [scene, rows] = carrying()
  scene.fly(1)
  rows.shards.add(register)
  scene.append(2)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1], [2]])
  scene.log.end(0)
  scene.append(3)
  scene.clock.tick()
  t.equal(scene.log.begun.length, 2, 'one is in flight')
  scene.log.end(1)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1)!.sort(), [3, register])
  scene.fly(4)
  t.equal(scene.log.begun.length, 3, 'nothing begins while it is in flight')
})

t.test('rows of the register that nothing else is staged with are a commit that overlaps with nothing', async t => {
  const [scene, rows] = carrying()
  rows.shards.add(register)
  scene.commit.awaitPiggybacked()
  scene.clock.advance(100)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[register]])
  scene.fly(4)
  t.equal(scene.log.begun.length, 1, 'nothing begins while it is in flight')
  scene.log.end(0)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [4])
})

t.test('everything is durable when the commits of all shards are, and piggybacked writes too', async t => {
  const [scene, rows] = carrying()
  scene.fly(1, 2)
  rows.shards.add(1)
  scene.commit.awaitPiggybacked()
  scene.commit.afterAll(() => scene.events.push('all'))
  scene.log.end(1)
  scene.log.end(0)
  t.strictSame(scene.events, ['2', '1'])
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [1])
  scene.log.end(2)
  t.strictSame(scene.events, ['2', '1', 'all'])
})

t.test('a reply that depends on several commits waits for each', async t => {
  const scene = new Setting()
  const first = scene.append(1)
  scene.clock.tick()
  const numbers = [first, scene.append(2), 0]
  scene.clock.tick()
  scene.commit.afterCommits(numbers, () => scene.events.push('both'))
  scene.log.end(1)
  t.strictSame(scene.events, ['2'])
  t.strictSame(
    numbers.map(number => scene.commit.isDurable(number)),
    [false, true, true],
  )
  scene.log.end(0)
  t.strictSame(scene.events, ['2', '1', 'both'])
})

t.test('followers receive changes in the order in which they were staged', async t => {
  const scene = new Setting()
  scene.fly(1)
  scene.append(1)
  scene.append(2)
  scene.clock.tick()
  scene.log.end(1)
  t.strictSame([scene.events, scene.followed], [['2'], []], 'its client has the reply')
  scene.log.end(0)
  t.strictSame(scene.followed, [1])
  scene.clock.tick()
  scene.log.end(2)
  t.strictSame(scene.followed, [1, 1, 2])
})

t.test('when many changes wait for an earlier one, the next commit waits until followers have them', async t => {
  const scene = new Setting()
  scene.fly(1)
  for (let n = 1; n < changesWaitingMax; n++) scene.append(2)
  scene.clock.tick()
  scene.log.end(1)
  scene.fly(3)
  t.strictSame(scene.log.begun, [[1], [2]])
  scene.log.end(0)
  t.equal(scene.followed.length, changesWaitingMax)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [3])
})

t.test('at a quiet moment nothing is in flight, and nothing begins before it', async t => {
  const scene = new Setting()
  scene.commit.whenQuiet(() => scene.events.push('at once'))
  scene.fly(1, 2)
  scene.commit.whenQuiet(() => scene.events.push('quiet'))
  scene.append(3)
  scene.clock.tick()
  scene.log.end(0)
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1], [2]])
  scene.log.end(1)
  t.strictSame(scene.events, ['at once', '1', '2', 'quiet'])
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [3])
})

t.test('at a quiet moment followers have every durable change', async t => {
  const scene = new Setting()
  scene.fly(1)
  scene.append(1)
  scene.append(2)
  scene.clock.tick()
  scene.log.end(1)
  scene.commit.whenQuiet(() => scene.events.push(`quiet ${scene.followed}`))
  scene.log.end(0)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [1], 'the change before it becomes durable first')
  scene.log.end(2)
  t.strictSame(scene.events, ['2', '1', '1', 'quiet 1,1,2'])
})

t.test('a reader waits for the commits that are in flight now, and for no later one', async t => {
  const scene = new Setting()
  scene.fly(1)
  scene.commit.afterFlight(() => scene.events.push('read'))
  scene.fly(2)
  scene.log.end(0)
  t.strictSame(scene.events, ['1', 'read'])
})

t.test('counts go with the commit of their shard', async t => {
  const scene = new Setting()
  const create = (shard: number): void => {
    scene.directory.count('', '/', 'T', 1, shard)
    scene.append(shard)
  }
  create(1)
  scene.clock.tick()
  t.equal(scene.directory.stagedOf(''), 0)
  create(1)
  create(2)
  scene.clock.tick()
  t.equal(scene.directory.stagedOf(''), 1, 'that of the shard in flight')
  scene.log.end(0)
  scene.clock.tick()
  t.equal(scene.directory.stagedOf(''), 0)
})

t.test('counts in memory are forgotten at the beginning of a commit that overlaps with none', async t => {
  const scene = new Setting({ rowsMax: 1 })
  scene.fly(1)
  for (const shard of [2, 3]) {
    scene.directory.count('', '/', 'T', 1, shard)
    scene.append(shard)
  }
  scene.clock.tick()
  t.strictSame(scene.log.begun, [[1]])
  scene.log.end(0)
  scene.clock.tick()
  t.strictSame(scene.log.begun.at(-1), [2, 3])
})

t.test('a commit that loses a shard concerns no commit of other shards', async t => {
  const scene = new Setting()
  scene.fly(1, 2)
  scene.log.end(0, new DeposedError([{ shard: 1, node: 'b', epoch: 2, certainMs: 1 }], new Map()))
  scene.log.end(1)
  t.strictSame(scene.events, ['1 lost', '2'])
  t.strictSame(scene.followed, [2])
  t.strictSame([scene.failures, scene.commit.failed], [[], undefined])
})

t.test('after a commit with an unknown outcome all waiters have the failure, once', async t => {
  const scene = new Setting()
  const failure = new Error('gone')
  scene.fly(1, 2)
  scene.append(1)
  scene.commit.whenQuiet(() => scene.events.push('not quiet'))
  scene.commit.afterFlight(() => scene.events.push('not read'))
  scene.log.end(0, failure)
  scene.log.end(1)
  t.strictSame(scene.events.toSorted(), ['1 lost', '1 lost', '2 lost', 'not quiet', 'not read'])
  t.strictSame(scene.failures, [failure])
})

t.test('a shard holds what is staged or in flight, and nothing when that has ended', async t => {
  const scene = new Setting()
  const held = (): boolean[] => [1, 2, register].map(shard => scene.commit.holds(shard))
  scene.append(1)
  t.strictSame(held(), [true, false, false])
  scene.clock.tick()
  t.strictSame(held(), [true, false, false])
  scene.log.end(0)
  t.strictSame(held(), [false, false, false])
  scene.commit.commitSoon()
  t.strictSame(held(), [false, false, false], 'an empty commit has nothing of the register')
})
