// The promises of the port of the replicated log (cluster/logs/shard-log.ts), as tests that every driver passes.
//
// A driver brings an engine, logs that are connected to it as those of different nodes are, and faults between each of
// them and the engine.

import assert from 'node:assert/strict'
import type { Test } from 'tap'
import type {
  Append,
  AppendOutcome,
  CreateOnceOutcome,
  LackingOutcome,
  LogFollower,
  LogReading,
  NamedOutcome,
  ReadOutcome,
  RetakeOutcome,
  ShardLog,
  Takeover,
  TakeoverOutcome,
  TakeoversOutcome,
} from '../../cluster/logs/shard-log.js'

/** A node's log, and the faults between it and the engine. */
export interface Connection {
  readonly log: ShardLog
  /** Requests from now on do not arrive, and get no answer. */
  holdRequests(): void
  /** Requests from now on arrive, and get no answer. */
  dropAnswers(): void
  /** The held requests arrive now, long after their callers got the outcome unknown. */
  releaseLate(): void
  /** Everything passes again. */
  mend(): void
}

export interface Engine {
  connect(): Connection
  /** The engine cannot be reached for a while. */
  goAway(): Promise<void>
  comeBack(): Promise<void>
  /** Lets time pass until a promise is resolved. */
  run<T>(promise: Promise<T>): Promise<T>
}

/** Nodes of one engine, with promises for callbacks. */
class Nodes {
  private readonly engine: Engine

  constructor(engine: Engine) {
    this.engine = engine
  }

  node(t: Test): Node {
    const connection = this.engine.connect()
    const node = new Node(connection, this.engine)
    t.teardown(() => this.engine.run(connection.log.close()))
    return node
  }
}

export class Node {
  readonly connection: Connection
  readonly log: ShardLog
  private readonly engine: Engine

  constructor(connection: Connection, engine: Engine) {
    this.connection = connection
    this.log = connection.log
    this.engine = engine
  }

  takeOver = (shard: number, owner = 'somebody'): Promise<TakeoverOutcome> =>
    this.ask(onDone => this.log.takeOver(shard, owner, onDone))

  retake = (shard: number, epoch: number, owner = 'somebody'): Promise<RetakeOutcome> =>
    this.ask(onDone => this.log.retake(shard, epoch, owner, onDone))

  append = (...appends: readonly Append[]): Promise<AppendOutcome> =>
    this.ask(onDone => this.log.append(appends, onDone))

  read = (shard: number, after = 0, bytesMax = 64 * 1024): Promise<ReadOutcome> =>
    this.ask(onDone => this.log.read(shard, after, bytesMax, onDone))

  takeovers = (): Promise<TakeoversOutcome> => this.ask(onDone => this.log.takeovers(onDone))

  createOnce = (name: string, value: string): Promise<CreateOnceOutcome> =>
    this.ask(onDone => this.log.createOnce(name, Buffer.from(value), onDone))

  lacking = (...ends: readonly (readonly [shard: number, end: number])[]): Promise<LackingOutcome> =>
    this.ask(onDone => this.log.lacking(new Map(ends), onDone))

  named = (name: string): Promise<NamedOutcome> => this.ask(onDone => this.log.named(name, onDone))

  /** The epoch of a takeover that succeeds. */
  async own(shard: number, owner?: string): Promise<number> {
    const outcome = await this.takeOver(shard, owner)
    assert(outcome.kind === 'taken', `not taken: ${said(outcome)}`)
    return outcome.epoch
  }

  /** Appends records with these texts, each in a step of its own. */
  async write(shard: number, epoch: number, first: number, ...texts: readonly string[]): Promise<void> {
    for (const [n, text] of texts.entries()) {
      const outcome = await this.append(record(shard, epoch, first + n, text))
      assert(outcome.kind === 'appended', `not appended: ${said(outcome)}`)
    }
  }

  /** A read that succeeds. */
  async reading(shard: number, after?: number, bytesMax?: number): Promise<LogReading> {
    const outcome = await this.read(shard, after, bytesMax)
    assert(outcome.kind === 'read', `not read: ${said(outcome)}`)
    return outcome
  }

  /** The texts of all records, read page by page. */
  async texts(shard: number, bytesMax?: number): Promise<readonly string[]> {
    const texts: string[] = []
    for (let after = 0; ; ) {
      const { records, last } = await this.reading(shard, after, bytesMax)
      for (const { sequence, bytes } of records) {
        texts.push(`${sequence} ${bytes}`)
        after = sequence
      }
      if (records.length === 0 || after === last) return texts
    }
  }

  /** Ends the faults; resolves when requests get answers again. */
  async mend(): Promise<void> {
    this.connection.mend()
    for (let left = 100; left > 0; left--) if ((await this.takeovers()).kind === 'read') return
    throw new Error('nothing passes')
  }

  /** Resolves when a reading fulfils `isSo`. */
  async untilReading(shard: number, isSo: (reading: LogReading) => boolean): Promise<void> {
    for (let left = 500; left > 0; left--) {
      const outcome = await this.read(shard)
      if (outcome.kind === 'read' && isSo(outcome)) return
      await this.engine.run(new Promise(resolve => setTimeout(resolve, 5)))
    }
    throw new Error('the log did not become as it should')
  }

  follow(wanted: (shard: number) => boolean = () => true): Followed {
    const followed = new Followed(this.engine)
    this.log.follow(wanted, followed)
    return followed
  }

  private ask<Outcome>(begin: (onDone: (outcome: Outcome) => void) => void): Promise<Outcome> {
    return this.engine.run(
      new Promise((resolve, reject) => {
        let returned = false
        let isDone = false
        begin(outcome => {
          if (!returned) reject(new Error('called back before the call has returned'))
          if (isDone) reject(new Error('called back twice'))
          isDone = true
          resolve(outcome)
        })
        returned = true
      }),
    )
  }
}

/** The events that a follower received, in order, each a short text. */
export class Followed implements LogFollower {
  readonly events: string[] = []
  private readonly engine: Engine
  private watchers: (() => void)[] = []

  constructor(engine: Engine) {
    this.engine = engine
  }

  onRecord(shard: number, { sequence, bytes }: { sequence: number; bytes: Buffer }): void {
    this.note(`record ${shard} ${sequence} ${bytes}`)
  }

  onTakeover(shard: number, { owner }: Takeover): void {
    this.note(`takeover ${shard} ${owner}`)
  }

  onHeartbeat(node: string, bytes: Buffer): void {
    this.note(`heartbeat ${node} ${bytes}`)
  }

  onGap(): void {
    this.note('gap')
  }

  /** Resolves when this event was received, after the first `from` ones. */
  async until(text: string, from = 0): Promise<void> {
    await this.engine.run(
      new Promise<void>(resolve => {
        const look = (): void => {
          if (this.events.includes(text, from)) resolve()
        }
        this.watchers.push(look)
        look()
      }),
    )
  }

  private note(text: string): void {
    this.events.push(text)
    for (const look of this.watchers) look()
  }
}

export const record = (shard: number, epoch: number, sequence: number, text: string): Append => ({
  shard,
  epoch,
  sequence,
  bytes: Buffer.from(text),
})

const said = (outcome: { readonly kind: string; readonly reason?: string }): string =>
  `${outcome.kind} ${outcome.reason ?? ''}`

/**
 * Runs the whole contract; `start` returns an empty engine. Shards whose numbers differ by a multiple of `stride` may
 * share an append.
 */
export function shardLogContract(t: Test, start: (t: Test) => Promise<Engine>, stride = 1): void {
  const test = (says: string, run: (t: Test, node: () => Node, engine: Engine) => Promise<void>): void => {
    t.test(says, async t => {
      const engine = await start(t)
      const nodes = new Nodes(engine)
      await run(t, () => nodes.node(t), engine)
    })
  }
  ownership(test)
  appending(test, stride)
  unknownOutcomes(test)
  reading(test)
  following(test, stride)
}

type Define = (says: string, run: (t: Test, node: () => Node, engine: Engine) => Promise<void>) => void

function ownership(test: Define): void {
  test('a takeover returns the replaced owner, and every epoch is higher than the one before', async (t, node) => {
    const [a, b] = [node(), node()]
    const first = await a.takeOver(1, 'a/1')
    assert(first.kind === 'taken')
    t.equal(first.before, undefined)
    const second = await b.takeOver(1, 'b/1')
    assert(second.kind === 'taken')
    t.strictSame(second.before, { epoch: first.epoch, owner: 'a/1' })
    const third = await a.takeOver(1, 'a/1')
    assert(third.kind === 'taken')
    t.strictSame(third.before, { epoch: second.epoch, owner: 'b/1' })
    t.ok(0 < first.epoch && first.epoch < second.epoch && second.epoch < third.epoch)
  })

  test('a retake of the latest takeover succeeds, for any node; of an earlier it is superseded', async (t, node) => {
    const a = node()
    const epoch = await a.own(1, 'a/1')
    const again = await a.retake(1, epoch, 'b/1')
    assert(again.kind === 'taken')
    t.ok(again.epoch > epoch)
    t.strictSame(await a.retake(1, epoch, 'a/1'), { kind: 'superseded' })
    t.strictSame((await a.reading(1)).takeover, { epoch: again.epoch, owner: 'b/1' })
  })

  test('a retake of a shard without a takeover is superseded', async (t, node) => {
    t.strictSame(await node().retake(1, 7), { kind: 'superseded' })
  })

  test('the latest takeovers of all shards are returned together', async (t, node) => {
    const a = node()
    t.strictSame(await a.takeovers(), { kind: 'read', takeovers: new Map() })
    const epochs: number[] = []
    for (const shard of [0, 1, 2, 63]) epochs.push(await a.own(shard, `a/${shard}`))
    epochs[1] = await node().own(1, 'b/1')
    const outcome = await a.takeovers()
    assert(outcome.kind === 'read')
    t.strictSame(
      [...outcome.takeovers].sort(([one], [other]) => one - other),
      [
        [0, { epoch: epochs[0], owner: 'a/0' }],
        [1, { epoch: epochs[1], owner: 'b/1' }],
        [2, { epoch: epochs[2], owner: 'a/2' }],
        [63, { epoch: epochs[3], owner: 'a/63' }],
      ],
    )
  })

  test('several creators of a name all get the value of the first', async (t, node) => {
    const [a, b] = [node(), node()]
    const outcomes = await Promise.all([a.createOnce('id', 'of a'), b.createOnce('id', 'of b')])
    const values = outcomes.map(outcome => (outcome.kind === 'stands' ? outcome.value.toString() : outcome.kind))
    t.match(values[0], /^of [ab]$/)
    t.equal(values[0], values[1])
    t.match(await node().createOnce('id', 'of c'), { kind: 'stands', value: Buffer.from(values[0] ?? '') })
    t.match(await node().createOnce('other', 'of c'), { kind: 'stands', value: Buffer.from('of c') })
  })
}

function appending(test: Define, stride: number): void {
  const [second, third] = [1 + stride, 1 + 2 * stride]
  test('records are appended to several shards in one step', async (t, node) => {
    const a = node()
    const [one, two] = [await a.own(1), await a.own(second)]
    await a.write(1, one, 1, 'x')
    t.strictSame(await a.append(record(1, one, 2, 'y'), record(second, two, 1, 'z')), { kind: 'appended' })
    t.strictSame(await a.texts(1), ['1 x', '2 y'])
    t.strictSame(await a.texts(second), ['1 z'])
  })

  test('an append with an earlier epoch is superseded, and nothing of its step happens to any shard', async (t, node) => {
    const a = node()
    const shards = [1, second, third]
    const appends: Append[] = []
    for (const shard of shards) appends.push(record(shard, await a.own(shard), 1, 'x'))
    await node().own(second)
    const outcome = await a.append(...appends)
    t.strictSame(outcome, { kind: 'superseded', shards: [second] })
    for (const shard of shards) t.strictSame(await a.texts(shard), [])
  })

  test('a retake makes appends in the name of the epoch before superseded', async (t, node) => {
    const a = node()
    const epoch = await a.own(1)
    t.match(await a.retake(1, epoch), { kind: 'taken' })
    t.strictSame(await a.append(record(1, epoch, 1, 'x')), { kind: 'superseded', shards: [1] })
  })

  test('a record is not appended behind a gap: nothing of its step happens to any shard', async (t, node) => {
    const a = node()
    const [one, two] = [await a.own(1), await a.own(second)]
    await a.write(1, one, 1, 'x', 'y')
    const gap = record(second, two, 3, 'z')
    t.strictSame(await a.append(record(1, one, 3, 'z'), gap), { kind: 'short' })
    t.strictSame(await a.texts(1), ['1 x', '2 y'])
    t.strictSame(await a.texts(second), [])
  })

  test('shards that lack their ends are named, and those that go on behind them are not', async (t, node) => {
    const a = node()
    await a.write(1, await a.own(1), 1, 'x', 'y')
    await a.write(2, await a.own(2), 1, 'x', 'y')
    t.strictSame(await a.lacking([1, 1], [2, 3], [3, 1]), { kind: 'read', shards: [2, 3] })
  })

  test('a name has the value that was created once, and a look creates nothing', async (t, node) => {
    const a = node()
    t.strictSame(await a.named('what'), { kind: 'read', value: undefined })
    t.match(await a.createOnce('what', 'this'), { kind: 'stands' })
    t.strictSame(await a.named('what'), { kind: 'read', value: Buffer.from('this') })
  })

  test('an append to a shard without a takeover is superseded', async (t, node) => {
    t.strictSame(await node().append(record(5, 1, 1, 'x')), { kind: 'superseded', shards: [5] })
  })

  test('the same append once more is appended, and changes nothing', async (t, node) => {
    const a = node()
    const epoch = await a.own(1)
    await a.write(1, epoch, 1, 'x', 'x')
    t.strictSame(await a.texts(1), ['1 x', '2 x'])
  })

  test('another record in a used place is a broken invariant, which is reported, and not written', async (t, node) => {
    const a = node()
    const epoch = await a.own(1)
    await a.write(1, epoch, 1, 'x', 'y')
    t.match(await a.append(record(1, epoch, 1, 'other')), { kind: 'unknown', reason: /BROKEN INVARIANT.*record 1/ })
    t.strictSame(await a.texts(1), ['1 x', '2 y'])
  })

  test('a record in a place that was trimmed is a broken invariant, too', async (t, node) => {
    const a = node()
    const epoch = await a.own(1)
    await a.write(1, epoch, 1, 'x', 'y')
    a.log.trim(1, 1)
    await a.untilReading(1, ({ records }) => records[0]?.sequence === 2)
    t.match(await a.append(record(1, epoch, 1, 'x')), { kind: 'unknown', reason: /BROKEN INVARIANT/ })
    t.strictSame(await a.texts(1), ['2 y'])
  })

  test('as many appends and bytes as are allowed go in one step', async (t, node) => {
    const a = node()
    const { appendsMax, appendBytesMax } = a.log
    const bytes = Buffer.alloc(Math.floor(appendBytesMax / appendsMax), 'x')
    const appends: Append[] = []
    for (let shard = 0; shard < appendsMax * stride; shard += stride) {
      appends.push({ shard, epoch: await a.own(shard), sequence: 1, bytes })
    }
    t.strictSame(await a.append(...appends), { kind: 'appended' })
    const whole = { shard: 0, epoch: appends[0]?.epoch ?? 0, sequence: 2, bytes: Buffer.alloc(appendBytesMax, 'y') }
    t.strictSame(await a.append(whole), { kind: 'appended' })
    const { records } = await a.reading(0, 1)
    t.ok(records[0]?.bytes.equals(whole.bytes))
    t.strictSame(await a.append(...appends), { kind: 'appended' }, 'all of it stood there already')
  })
}

function unknownOutcomes(test: Define): void {
  test('an append that did not arrive is unknown; retake and read show that it has not happened', async (t, node) => {
    const a = node()
    const epoch = await a.own(1, 'a')
    await a.write(1, epoch, 1, 'x')
    a.connection.holdRequests()
    t.match(await a.append(record(1, epoch, 2, 'y')), { kind: 'unknown' })
    await a.mend()
    t.match(await a.retake(1, epoch, 'a'), { kind: 'taken' })
    t.strictSame(await a.texts(1), ['1 x'])
  })

  test('an append whose answer was lost is unknown; retake and read show that it has happened', async (t, node) => {
    const a = node()
    const epoch = await a.own(1, 'a')
    await a.write(1, epoch, 1, 'x')
    a.connection.dropAnswers()
    t.match(await a.append(record(1, epoch, 2, 'y')), { kind: 'unknown' })
    await a.mend()
    t.match(await a.retake(1, epoch, 'a'), { kind: 'taken' })
    t.strictSame(await a.texts(1), ['1 x', '2 y'])
  })

  test('an append that arrives long after it was unknown happens, if no node took the shard since', async (t, node) => {
    const [a, b] = [node(), node()]
    const epoch = await a.own(1)
    a.connection.holdRequests()
    t.match(await a.append(record(1, epoch, 1, 'late')), { kind: 'unknown' })
    t.strictSame(await b.texts(1), [])
    a.connection.releaseLate()
    await b.untilReading(1, ({ last }) => last === 1)
    t.strictSame(await b.texts(1), ['1 late'])
  })

  test('an append that arrives after a retake does nothing', async (t, node) => {
    const [a, b] = [node(), node()]
    const [epoch, control] = [await a.own(1), await a.own(2)]
    a.connection.holdRequests()
    const late = [a.append(record(1, epoch, 1, 'late')), a.append(record(2, control, 1, 'control'))]
    for (const outcome of await Promise.all(late)) t.match(outcome, { kind: 'unknown' })
    t.match(await b.retake(1, epoch), { kind: 'taken' })
    a.connection.releaseLate()
    await b.untilReading(2, ({ last }) => last === 1)
    for (let looks = 5; looks > 0; looks--) t.strictSame(await b.texts(1), [])
  })

  test('a takeover whose answer was lost is the latest all the same', async (t, node) => {
    const [a, b] = [node(), node()]
    t.match(await a.takeovers(), { kind: 'read' })
    const epoch = await b.own(1, 'b')
    a.connection.dropAnswers()
    t.match(await a.takeOver(1, 'a'), { kind: 'unknown' })
    t.match(await b.append(record(1, epoch, 1, 'x')), { kind: 'superseded' })
    t.equal((await b.reading(1)).takeover?.owner, 'a')
  })

  test('while the engine is away every outcome is unknown in time, and afterwards all goes on', async (t, node, engine) => {
    const a = node()
    const epoch = await a.own(1)
    await engine.goAway()
    const outcomes = await Promise.all([
      a.takeOver(1),
      a.retake(1, epoch),
      a.append(record(1, epoch, 1, 'x')),
      a.read(1),
      a.takeovers(),
      a.createOnce('id', 'x'),
    ])
    t.strictSame(new Set(outcomes.map(({ kind }) => kind)), new Set(['unknown']))
    await engine.comeBack()
    await a.untilReading(1, () => true)
    t.match(await a.takeOver(1), { kind: 'taken' })
  })

  test('a closed log gives waiting callers their outcomes, and refuses later ones', async (t, node, engine) => {
    const a = node()
    const epoch = await a.own(1)
    const asked = a.append(record(1, epoch, 1, 'x'))
    await engine.run(a.log.close())
    t.strictSame(await asked, { kind: 'appended' })
    t.match(await a.append(record(1, epoch, 2, 'y')), { kind: 'unknown', reason: /closed/ })
  })
}

function reading(test: Define): void {
  test('an empty log has no records, no last one and no takeover', async (t, node) => {
    t.strictSame(await node().read(1), { kind: 'read', records: [], last: 0, takeover: undefined })
  })

  test('a log is read in pages without gaps, for all sizes of pages and records', async (t, node) => {
    const a = node()
    const epoch = await a.own(1)
    const texts = Array.from({ length: 40 }, (_, n) => String(n).repeat(1 + ((n * 37) % 90)))
    await a.write(1, epoch, 1, ...texts)
    const expected = texts.map((text, n) => `${n + 1} ${text}`)
    for (const bytesMax of [1, 100, 1000, 1_000_000]) t.strictSame(await a.texts(1, bytesMax), expected)
  })

  test('a page has about the requested number of bytes, and one record at least', async (t, node) => {
    const a = node()
    const epoch = await a.own(1)
    await a.write(1, epoch, 1, 'x'.repeat(5000), 'y'.repeat(50), 'z'.repeat(5000))
    t.equal((await a.reading(1, 0, 10)).records.length, 1)
    for (let again = 2; again > 0; again--) t.ok((await a.reading(1, 0, 5060)).records.length <= 2)
    t.strictSame(
      (await a.reading(1, 2, 10)).records.map(({ sequence }) => sequence),
      [3],
    )
    t.match(await a.reading(1, 3), { records: [], last: 3, takeover: { epoch } })
  })

  test('records of the largest size are read in pages of several', async (t, node) => {
    const a = node()
    const epoch = await a.own(1)
    const { appendBytesMax } = a.log
    for (const [n, letter] of ['a', 'b', 'c', 'd', 'e'].entries()) {
      const bytes = Buffer.alloc(appendBytesMax, letter)
      t.match(await a.append({ shard: 1, epoch, sequence: n + 1, bytes }), { kind: 'appended' })
    }
    const { records, last } = await a.reading(1, 1, 3 * appendBytesMax)
    t.strictSame(
      records.map(({ sequence, bytes }) => `${sequence} ${bytes.length} ${bytes.toString('latin1', 0, 1)}`),
      [`2 ${appendBytesMax} b`, `3 ${appendBytesMax} c`, `4 ${appendBytesMax} d`],
    )
    t.equal(last, 5)
  })

  test('behind a trim reading begins at the first record that is kept', async (t, node) => {
    const a = node()
    const epoch = await a.own(1)
    await a.write(1, epoch, 1, 'a', 'b', 'c', 'd')
    await a.own(2)
    a.log.trim(1, 2)
    await a.untilReading(1, ({ records }) => records[0]?.sequence === 3)
    t.strictSame(await a.texts(1), ['3 c', '4 d'])
    t.equal((await a.reading(1, 4)).last, 4)
    t.strictSame(await a.append(record(1, epoch, 5, 'e')), { kind: 'appended' })
  })

  test('a trim keeps the last record, and its number, for every given number', async (t, node) => {
    const a = node()
    const epoch = await a.own(1)
    await a.write(1, epoch, 1, 'a', 'b', 'c')
    a.log.trim(1, 1)
    a.log.trim(1, 1_000_000)
    await a.untilReading(1, ({ records }) => records[0]?.sequence === 3)
    t.strictSame(await a.texts(1), ['3 c'])
    t.match(await a.reading(1, 3), { records: [], last: 3, takeover: { epoch } })
    a.log.trim(2, 10)
    t.equal((await a.reading(2)).last, 0)
  })
}

function following(test: Define, stride: number): void {
  const second = 1 + stride
  test('a follower gets all takeovers and the records of the shards that it wants, in order', async (t, node) => {
    const [a, b] = [node(), node()]
    const followed = b.follow(shard => shard !== second)
    await followed.until('gap')
    const epoch = await a.own(1, 'a')
    const other = await a.own(second, 'a')
    await a.write(1, epoch, 1, 'x', 'y')
    await a.append(record(1, epoch, 3, 'z'), record(second, other, 1, 'unwanted'))
    const newer = await b.own(1, 'b')
    await b.write(1, newer, 4, 'end')
    await followed.until('record 1 4 end')
    t.strictSame(eventsIn(followed), [
      'gap',
      'takeover 1 a',
      `takeover ${second} a`,
      'record 1 1 x',
      'record 1 2 y',
      'record 1 3 z',
      'takeover 1 b',
      'record 1 4 end',
    ])
  })

  test('the reports after the first gap, and the records read after it, are together everything', async (t, node) => {
    const [a, b] = [node(), node()]
    const epoch = await a.own(1)
    const writing = a.write(1, epoch, 1, ...Array.from({ length: 100 }, () => 'x'))
    const followed = b.follow()
    await followed.until('gap')
    // A reading has one page of records, and reports the last number of the log.
    const { last } = await b.reading(1)
    await writing
    await followed.until('record 1 100 x')
    const first = followed.events.find(text => text.startsWith('record'))?.split(' ')[2]
    t.ok(Number(first) <= last + 1, `the log went up to ${last}, told from ${first}`)
  })

  test('trims are not reported', async (t, node) => {
    const a = node()
    const followed = a.follow()
    await followed.until('gap')
    const epoch = await a.own(1, 'a')
    await a.write(1, epoch, 1, 'x', 'y')
    a.log.trim(1, 1)
    await a.untilReading(1, ({ records }) => records[0]?.sequence === 2)
    await a.write(1, epoch, 3, 'z')
    await followed.until('record 1 3 z')
    t.strictSame(eventsIn(followed), ['gap', 'takeover 1 a', 'record 1 1 x', 'record 1 2 y', 'record 1 3 z'])
  })

  test('after an absence of the engine a follower gets a gap, and then later events', async (t, node, engine) => {
    const [a, b] = [node(), node()]
    const followed = b.follow()
    await followed.until('gap')
    await a.own(1, 'before')
    await followed.until('takeover 1 before')
    const from = followed.events.length
    await engine.goAway()
    await engine.comeBack()
    await followed.until('gap', from)
    await a.untilReading(1, () => true)
    const epoch = await a.own(1, 'after')
    await a.write(1, epoch, 1, 'x')
    await followed.until('record 1 1 x')
    t.strictSame(followed.events.slice(-2), ['takeover 1 after', 'record 1 1 x'])
  })

  test('a closed log reports nothing more to its follower', async (t, node, engine) => {
    const [a, b] = [node(), node()]
    const [followed, witness] = [a.follow(), b.follow()]
    await Promise.all([followed.until('gap'), witness.until('gap')])
    await engine.run(a.log.close())
    await b.own(1, 'b')
    await witness.until('takeover 1 b')
    t.strictSame(eventsIn(followed), ['gap'])
  })
}

/** The events, with one gap for those of all engines when following begins. */
const eventsIn = ({ events }: Followed): readonly string[] =>
  events.filter((event, n) => event !== 'gap' || events.indexOf('gap') === n)
