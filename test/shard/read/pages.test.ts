// The answer of a list: entities, or the keys by which several owners' parts are merged. A page is read no further than
// its bytes allow, in steps that begin small. Of many long reads, one continues in each turn of the event loop.

import t from 'tap'
import { refusals } from '../../../src/domain/refusal.js'
import type { EntityPosition } from '../../../src/messages/messages.js'
import { KeyColumns, keysMax, keysReply, PageEntities, Turns, turnBytesMax } from '../../../src/shard/read/pages.js'

const positionAt = (created: number, path = '/', type = 'T'): EntityPosition => ({
  created,
  shard: created % 7,
  path,
  type,
})

t.test('keys are columns, each path and type is there once, and a missing value is null', async t => {
  const places = [positionAt(3, '/a'), positionAt(1), positionAt(2, '/a'), positionAt(9, '/a', 'U')]
  const values = [
    ['x', undefined],
    [null, 1],
    [true, 'y'],
    [[], {}],
  ]
  t.strictSame(keysReply({ places, values, total: 44 }), {
    kind: 'part',
    keys: {
      created: Float64Array.of(3, 1, 2, 9),
      shards: Uint16Array.of(3, 1, 2, 2),
      rangeOf: Uint32Array.of(0, 1, 0, 2),
      ranges: [
        ['/a', 'T'],
        ['/', 'T'],
        ['/a', 'U'],
      ],
      values: [
        ['x', null],
        [null, 1],
        [true, 'y'],
        [[], {}],
      ],
    },
    encodedEntities: undefined,
    total: 44,
  })
})

t.test('as many keys as may be are given, and one more is refused', async t => {
  const keys = new KeyColumns()
  const place = positionAt(1)
  for (let count = 0; count < keysMax; count++) keys.add(place, undefined)
  t.equal(keys.reply(0).kind, 'part')
  keys.add(place, undefined)
  t.strictSame(keys.reply(0), { kind: 'refused', refusal: refusals.pageTooDeep })
})

t.test('long texts count', async t => {
  const text = 'x'.repeat(1024 * 1024)
  const page = (count: number) =>
    keysReply({ places: Array(count).fill(positionAt(1)), values: Array(count).fill([text]), total: count })
  t.equal(page(60).kind, 'part')
  t.strictSame(page(65), { kind: 'refused', refusal: refusals.pageTooDeep })
})

/** A page of entities of these sizes; 0: the entity has gone. */
function pageOf(sizes: readonly number[], bytesMax: number | undefined, needed?: number) {
  const steps: number[] = []
  const page = new PageEntities(
    sizes.length,
    bytesMax,
    (from, count) => {
      steps.push(count)
      return sizes.slice(from, from + count).map(size => (size === 0 ? undefined : Buffer.alloc(size)))
    },
    needed,
  )
  return { page, steps }
}

const lengths = (encodedEntities: readonly (Buffer | undefined)[]): number[] =>
  encodedEntities.map(encoded => encoded?.length ?? 0)

t.test('a page of small entities is read in larger and larger steps, to its end', async t => {
  const { page, steps } = pageOf(new Array<number>(100).fill(1), undefined)
  t.equal(page.all().length, 100)
  t.strictSame(steps, [1, 2, 4, 8, 16, 32, 32, 5])
})

t.test('of 1,000 entities of 1 MB no more than the step is read that passes 64 MB', async t => {
  const shared = Buffer.alloc(1_000_000)
  let read = 0
  const page = new PageEntities(1000, 64_000_000, (_, count) => {
    read += count
    return new Array<Buffer>(count).fill(shared)
  })
  t.equal(page.all().length, 64)
  t.equal(read, 65)
})

t.test('an entity that fits exactly is taken, one with a byte more is not, and nothing behind it', async t => {
  t.strictSame(lengths(pageOf([5, 0, 5, 1, 1], 10).page.all()), [5, 0, 5])
  t.strictSame(lengths(pageOf([5, 0, 6, 1, 1], 10).page.all()), [5, 0])
  t.strictSame(lengths(pageOf([5, 0, 5], 10).page.all()), [5, 0, 5])
  t.strictSame(lengths(pageOf([11, 1], 10).page.all()), [])
  t.strictSame(lengths(pageOf([], 0).page.all()), [])
})

t.test('the needed entities are taken with any size', async t => {
  t.strictSame(lengths(pageOf([11, 1], 10, 1).page.all()), [11])
  t.strictSame(lengths(pageOf([0, 11, 1], 10, 1).page.all()), [0])
})

/** A clock whose ticks end one at a time. */
class Ticks {
  private pending: (() => void)[] = []

  endOfTick(run: () => void): void {
    this.pending.push(run)
  }

  get waiting(): number {
    return this.pending.length
  }

  tick(): void {
    const now = this.pending
    this.pending = []
    for (const run of now) run()
  }
}

t.test('reads go on one in each turn, in the order of their requests', async t => {
  const clock = new Ticks()
  const turns = new Turns(clock)
  const steps: string[] = []
  const read = async (name: string): Promise<void> => {
    for (let step = 1; step <= 2; step++) {
      await turns.next()
      steps.push(`${name}${step}`)
    }
  }
  const all = Promise.all(['a', 'b', 'c'].map(read))
  for (const expected of [1, 2, 3, 4, 5, 6]) {
    clock.tick()
    await new Promise(resolve => setImmediate(resolve))
    t.equal(steps.length, expected)
  }
  await all
  t.strictSame(steps, ['a1', 'b1', 'c1', 'a2', 'b2', 'c2'])
})

t.test('a turn is over when much was read in it, and the next one begins anew', async t => {
  const clock = new Ticks()
  const turns = new Turns(clock)
  turns.note(1000)
  t.equal(clock.waiting, 0, 'what is small costs nothing')
  turns.note(turnBytesMax)
  t.notOk(turns.isOver)
  turns.note(turnBytesMax)
  t.ok(turns.isOver)
  clock.tick()
  t.notOk(turns.isOver)
})
