// The promises of every store, as tests that each store runs.
//
// The property at the end compares a store with a plain model: a list of pairs, sorted at each read.
//
// Not here: the behaviour of one store alone (its own test file), data directories.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import type { Batch, Durability, Range, Row, Store } from '../../src/ports.js'
import { plainly } from '../support/broker-process.js'
import fc from '../support/properties.js'

export interface StoreUnderTest {
  /** Opens the store of a directory; a store without files ignores it. */
  open(directory: string, durability: Durability): Promise<Store>
  /** Absent for a store without files. */
  readonly onDisk?: {
    /** A function of this module opens the store in another process, by `(directory, { durability })`. */
    readonly module: URL
    readonly opener: string
  }
}

const bytes = (...values: number[]) => Buffer.from(values)
const text = (value: string) => Buffer.from(value)
const everything: Range = { gte: bytes(), lt: bytes(0xff, 0xff, 0xff, 0xff) }

/** A directory that is removed after the teardowns registered later; `t.testdir` is removed before them. */
export function temporaryDirectory(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'orrery-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

export function commit(store: Store, fill: (batch: Batch) => void, batch = store.batch()): Promise<void> {
  fill(batch)
  return new Promise((resolve, reject) => store.commit(batch, error => (error ? reject(error) : resolve())))
}

export async function rowsOf(store: Store, range: Range = everything, rowsMax = 1000): Promise<Row[]> {
  const cursor = store.cursor(range)
  const rows: Row[] = []
  try {
    for (;;) {
      const more = await cursor.next(rowsMax)
      if (more.length === 0) return rows
      rows.push(...more)
    }
  } finally {
    await cursor.close()
  }
}

const keysOf = async (store: Store, range?: Range, rowsMax?: number) =>
  (await rowsOf(store, range, rowsMax)).map(row => row.key.toString('hex'))

export function storeContract(t: Test, subject: StoreUnderTest): void {
  for (const durability of ['sync', 'os'] as const) {
    t.test(`with durability ${durability}`, async t => contract(t, subject, durability))
  }
}

function contract(t: Test, subject: StoreUnderTest, durability: Durability): void {
  const opened = async (t: Test) => {
    const store = await subject.open(temporaryDirectory(t), durability)
    t.teardown(() => store.close())
    return store
  }

  t.test('a committed row is found, and others are not', async t => {
    const store = await opened(t)
    await commit(store, batch => batch.put(text('a'), text('1')))
    t.equal(store.get(text('a'))?.toString(), '1')
    t.equal(store.get(text('b')), undefined)
    t.equal(store.get(text('')), undefined)
  })

  t.test('many keys are answered in the requested order, with gaps and repetitions', async t => {
    const store = await opened(t)
    await commit(store, batch => {
      batch.put(text('a'), text('1'))
      batch.put(text('b'), text('2'))
    })
    const found = store.getMany([text('b'), text('x'), text('a'), text('b')])
    t.same(
      found.map(value => value?.toString()),
      ['2', undefined, '1', '2'],
    )
    t.same(store.getMany([]), [])
  })

  t.test('empty values and plain Uint8Arrays are rows like others', async t => {
    const store = await opened(t)
    await commit(store, batch => {
      batch.put(new Uint8Array([1, 2]), new Uint8Array([3]))
      batch.put(bytes(9), bytes())
    })
    t.equal(store.get(new Uint8Array([1, 2]))?.toString('hex'), '03')
    t.equal(store.getMany([new Uint8Array([9])])[0]?.length, 0)
  })

  t.test('a key or value may be overwritten by its owner once it is in the batch', async t => {
    const store = await opened(t)
    const scratch = text('k1')
    const value = text('v1')
    await commit(store, batch => {
      batch.put(scratch, value)
      scratch.write('k2')
      value.write('v2')
      batch.put(scratch, value)
      scratch.write('k1')
      batch.del(scratch)
      scratch.write('k3')
    })
    t.same(await keysOf(store), [text('k2').toString('hex')])
    t.equal(store.get(text('k2'))?.toString(), 'v2')
  })

  t.test('the bytes of a read belong to the reader', async t => {
    const store = await opened(t)
    await commit(store, batch => batch.put(text('a'), text('1')))
    store.get(text('a'))?.fill(0)
    for (const row of await rowsOf(store)) {
      row.key.fill(0)
      row.value.fill(0)
    }
    t.equal(store.get(text('a'))?.toString(), '1')
  })

  t.test('the operations of a batch take effect in their order', async t => {
    const store = await opened(t)
    await commit(store, batch => {
      batch.put(text('kept'), text('1'))
      batch.del(text('kept'))
      batch.put(text('kept'), text('2'))
      batch.put(text('gone'), text('1'))
      batch.del(text('gone'))
      batch.del(text('never there'))
      t.equal(batch.length, 6)
    })
    t.equal(store.get(text('kept'))?.toString(), '2')
    t.equal(store.get(text('gone')), undefined)
  })

  t.test('of a commit in flight all is seen or nothing', async t => {
    const store = await opened(t)
    const keys = Array.from({ length: 200 }, (_, i) => text(`k${i}`))
    const committed = commit(store, batch => {
      for (const key of keys) batch.put(key, text('1'))
    })
    const seen = store.getMany(keys).filter(value => value !== undefined).length
    t.ok(seen === 0 || seen === keys.length, `${seen} of ${keys.length}`)
    const cursor = store.cursor(everything)
    await committed
    const shown = (await cursor.next(1000)).length
    await cursor.close()
    t.ok(shown === 0 || shown === keys.length, `${shown} of ${keys.length}`)
    t.equal(store.getMany(keys).filter(value => value !== undefined).length, keys.length)
  })

  t.test('a batch can be cleared and used again', async t => {
    const store = await opened(t)
    const batch = store.batch()
    await commit(store, batch => batch.put(text('a'), text('1')), batch)
    batch.clear()
    t.equal(batch.length, 0)
    await commit(store, batch => batch.put(text('b'), text('2')), batch)
    batch.clear()
    await commit(store, batch => batch.del(text('a')), batch)
    t.same(await keysOf(store), ['62'])
  })

  t.test('an empty batch commits', async t => {
    const store = await opened(t)
    await commit(store, () => undefined)
    t.same(await keysOf(store), [])
  })

  t.test('a commit never answers before it has returned', async t => {
    const store = await opened(t)
    for (let i = 0; i < 20; i++) {
      let returned = false
      await new Promise<void>(resolve => {
        const batch = store.batch()
        batch.put(text('a'), text(String(i)))
        store.commit(batch, () => {
          t.ok(returned)
          resolve()
        })
        returned = true
      })
    }
  })

  t.test('the next commit may be made where the last one is answered', async t => {
    const store = await opened(t)
    const batch = store.batch()
    await new Promise<void>((resolve, reject) => {
      let left = 50
      const again = (error?: Error) => {
        if (error) return reject(error)
        if (left === 0) return resolve()
        batch.clear()
        batch.put(text('count'), text(String(left--)))
        store.commit(batch, again)
      }
      again()
    })
    t.equal(store.get(text('count'))?.toString(), '1')
  })

  t.test('two commits at a time, or a batch changed while it is committed, are bugs', async t => {
    const store = await opened(t)
    const batch = store.batch()
    const committed = commit(store, batch => batch.put(text('a'), text('1')), batch)
    t.throws(() => store.commit(store.batch(), () => undefined), /another commit is in flight/)
    t.throws(() => batch.put(text('a'), text('1')), /being committed/)
    t.throws(() => batch.del(text('a')), /being committed/)
    t.throws(() => batch.clear(), /being committed/)
    await committed
  })

  t.test('a sync answers once it has returned, and is one write among others', async t => {
    const store = await opened(t)
    await commit(store, batch => batch.put(text('a'), text('1')))
    let hasReturned = false
    await new Promise<void>((resolve, reject) => {
      store.sync(error => {
        t.equal(hasReturned, true)
        return error ? reject(error) : resolve()
      })
      hasReturned = true
      t.throws(() => store.sync(() => {}), 'one at a time')
    })
    await commit(store, batch => batch.put(text('b'), text('2')))
    await new Promise<void>((resolve, reject) => store.sync(error => (error ? reject(error) : resolve())))
    t.strictSame(await keysOf(store), ['61', '62'], 'it leaves no row')
  })

  t.test('closing waits for a sync', async t => {
    const store = await opened(t)
    let hasEnded = false
    store.sync(() => {
      hasEnded = true
    })
    await store.close()
    t.equal(hasEnded, true)
  })

  t.test('keys come in the order of their bytes, unsigned', async t => {
    const store = await opened(t)
    const keys = [
      bytes(0),
      bytes(0, 0),
      bytes(0, 0xff),
      bytes(1),
      bytes(0x7f),
      bytes(0x80),
      bytes(0xfe),
      bytes(0xff, 0),
    ]
    await commit(store, batch => {
      for (const key of keys.toReversed()) batch.put(key, bytes(1))
    })
    const inOrder = keys.map(key => key.toString('hex'))
    t.same(await keysOf(store), inOrder)
    t.same(await keysOf(store, everything, 1), inOrder)
    t.same(await keysOf(store, everything, 3), inOrder)
  })

  t.test('a range begins with its first key and ends before its last', async t => {
    const store = await opened(t)
    const keys = [text('a'), text('a\0'), text('ab'), text('a\xff'), text('b'), text('b\0'), text('c')]
    await commit(store, batch => {
      for (const key of keys) batch.put(key, bytes(1))
    })
    const range = async (gte: string, lt: string) =>
      (await rowsOf(store, { gte: text(gte), lt: text(lt) })).map(row => row.key.toString())
    t.same(await range('a', 'b'), ['a', 'a\0', 'ab', 'a\xff'])
    t.same(await range('a', 'a\0'), ['a'])
    t.same(await range('a\0', 'ab'), ['a\0'])
    t.same(await range('', 'a\0'), ['a'])
    t.same(await range('b\0', 'zz'), ['b\0', 'c'])
    t.same(await range('a', 'a'), [])
    t.same(await range('x', 'z'), [])
    t.same(await range('c', 'a'), [])
    t.same(await range('', ''), [])
  })

  t.test('a cursor shows the rows of the time when it was opened', async t => {
    const store = await opened(t)
    await commit(store, batch => {
      for (let i = 0; i < 10; i++) batch.put(text(`k${i}`), text('old'))
    })
    const cursor = store.cursor(everything)
    const rows = await cursor.next(2)
    await commit(store, batch => {
      for (let i = 0; i < 10; i += 2) batch.put(text(`k${i}`), text('new'))
      for (let i = 1; i < 10; i += 2) batch.del(text(`k${i}`))
      batch.put(text('k5a'), text('new'))
    })
    rows.push(...(await cursor.next(3)), ...(await cursor.next(1000)))
    t.same(await cursor.next(1), [])
    await cursor.close()
    await cursor.close()
    t.same(
      rows.map(row => `${row.key}=${row.value}`),
      Array.from({ length: 10 }, (_, i) => `k${i}=old`),
    )
    t.same(
      (await rowsOf(store)).map(row => `${row.key}=${row.value}`),
      ['k0=new', 'k2=new', 'k4=new', 'k5a=new', 'k6=new', 'k8=new'],
    )
  })

  t.test('a value of 5 MB comes back whole, from a read and from a cursor', async t => {
    const store = await opened(t)
    const large = Buffer.alloc(5 * 1024 * 1024, 'orrery')
    await commit(store, batch => {
      for (let i = 0; i < 3; i++) batch.put(text(`large${i}`), large)
    })
    t.ok(store.get(text('large1'))?.equals(large))
    const rows = await rowsOf(store)
    t.same(
      rows.map(row => [row.key.toString(), row.value.equals(large)]),
      [0, 1, 2].map(i => [`large${i}`, true]),
    )
  })

  t.test('closing waits for the commit in flight, and may be requested twice', async t => {
    const store = await subject.open(temporaryDirectory(t), durability)
    let answered = false
    const batch = store.batch()
    batch.put(text('a'), text('1'))
    store.commit(batch, () => {
      answered = true
    })
    const closed = store.close()
    await Promise.all([closed, store.close()])
    t.ok(answered)
  })

  t.test('a closed store accepts nothing more, and reports that', async t => {
    const store = await subject.open(temporaryDirectory(t), durability)
    const batch = store.batch()
    const cursor = store.cursor(everything)
    await store.close()
    t.throws(() => store.get(text('a')), /closed/)
    t.throws(() => store.getMany([text('a')]), /closed/)
    t.throws(() => store.cursor(everything), /closed/)
    t.throws(() => store.batch(), /closed/)
    t.throws(() => store.commit(batch, () => undefined), /closed/)
    await cursor.close()
  })

  t.test('random operations leave the same as in a sorted list', async t => {
    const store = await opened(t)
    await t.resolves(fc.assert(fc.asyncProperty(commands, ranges, matchesModel(store)), { numRuns: 40 }))
  })

  if (subject.onDisk) durable(t, subject, subject.onDisk, durability)
}

const key = fc
  .array(fc.constantFrom(0, 1, 0x61, 0x7f, 0x80, 0xfe, 0xff), { minLength: 1, maxLength: 4 })
  .map(values => Buffer.from(values))
const operation = fc.record({ key, value: fc.option(fc.uint8Array({ maxLength: 20 }), { nil: undefined }) })
const commands = fc.array(fc.array(operation, { maxLength: 30 }), { maxLength: 6 })
const ranges = fc.array(fc.tuple(key, key, fc.integer({ min: 1, max: 300 })), { maxLength: 5 })

type Operations = readonly { readonly key: Buffer; readonly value: Uint8Array | undefined }[]

function matchesModel(store: Store) {
  return async (batches: Operations[], ranges: [Buffer, Buffer, number][]): Promise<boolean> => {
    const model = new Map<string, string>()
    // All runs share the store, so each begins by emptying it.
    const before = await rowsOf(store, { gte: bytes(), lt: bytes(0xff, 0xff, 0xff, 0xff, 0xff) })
    await commit(store, batch => {
      for (const row of before) batch.del(row.key)
    })
    for (const operations of batches) {
      await commit(store, batch => {
        for (const { key, value } of operations) {
          if (value) batch.put(key, value)
          else batch.del(key)
        }
      })
      for (const { key, value } of operations) {
        if (value) model.set(key.toString('hex'), Buffer.from(value).toString('hex'))
        else model.delete(key.toString('hex'))
      }
      const keys = operations.map(({ key }) => key)
      const found = store.getMany(keys).map(value => value?.toString('hex'))
      if (!keys.every((key, i) => found[i] === model.get(key.toString('hex')))) return false
    }
    for (const [gte, lt, rowsMax] of ranges) {
      const expected = [...model]
        .filter(([key]) => key >= gte.toString('hex') && key < lt.toString('hex'))
        .sort(([a], [b]) => (a < b ? -1 : 1))
      const rows = await rowsOf(store, { gte, lt }, rowsMax)
      const found = rows.map(row => [row.key.toString('hex'), row.value.toString('hex')])
      if (JSON.stringify(found) !== JSON.stringify(expected)) return false
    }
    return true
  }
}

function durable(
  t: Test,
  subject: StoreUnderTest,
  onDisk: NonNullable<StoreUnderTest['onDisk']>,
  durability: Durability,
): void {
  t.test('committed rows are there after closing and opening again', async t => {
    const directory = temporaryDirectory(t)
    const first = await subject.open(directory, durability)
    await commit(first, batch => batch.put(text('a'), text('1')))
    await commit(first, batch => batch.put(text('b'), text('2')))
    await first.close()
    const second = await subject.open(directory, durability)
    t.teardown(() => second.close())
    t.same(await keysOf(second), ['61', '62'])
  })

  t.test('an open cursor and unused batches do not prevent closing', async t => {
    const directory = temporaryDirectory(t)
    const store = await subject.open(directory, durability)
    await commit(store, batch => {
      for (let i = 0; i < 1000; i++) batch.put(text(`k${i}`), text('1'))
    })
    const cursor = store.cursor(everything)
    const reading = cursor.next(1000)
    store.batch().put(text('unused'), text('1'))
    await store.close()
    t.equal((await reading).length, 1000)
    await t.rejects(cursor.next(1))
    await (await subject.open(directory, durability)).close()
  })

  t.test('a directory in use is refused, and free again after closing', async t => {
    const directory = temporaryDirectory(t)
    const first = await subject.open(directory, durability)
    await t.rejects(subject.open(directory, durability), { cause: { code: 'LEVEL_LOCKED' } })
    await commit(first, batch => batch.put(text('a'), text('1')))
    await first.close()
    await (await subject.open(directory, durability)).close()
  })

  t.test('committed rows survive the death of the process', async t => {
    const directory = temporaryDirectory(t)
    const child = openedElsewhere(onDisk, directory, durability)
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
    t.equal((await lines.next()).value, 'committed')
    child.kill('SIGKILL')
    await once(child, 'exit')
    const store = await subject.open(directory, durability)
    t.teardown(() => store.close())
    t.equal(store.get(text('a'))?.toString(), '1')
  })

  t.test('a failed commit fails all later ones with the same error, and the store still closes', async t => {
    const directory = temporaryDirectory(t)
    const store = await subject.open(join(directory, 'store'), durability)
    t.teardown(() => store.close())
    await commit(store, batch => batch.put(text('a'), text('1')))
    // Without its folder the store cannot begin a new log, as on a disk that is full.
    rmSync(join(directory, 'store'), { recursive: true })
    const failures: unknown[] = []
    for (let i = 0; i < 200 && failures.length < 3; i++) {
      await commit(store, batch => batch.put(text(`k${i}`), Buffer.alloc(256 * 1024, i))).catch(error =>
        failures.push(error),
      )
    }
    t.equal(failures.length, 3)
    t.match(failures[0], { message: /the store could not (write|flush): /, cause: Error })
    t.equal(failures[1], failures[0])
    t.equal(failures[2], failures[0])
    await store.close()
  })
}

function openedElsewhere(onDisk: NonNullable<StoreUnderTest['onDisk']>, directory: string, durability: Durability) {
  const script = `
    const { ${onDisk.opener}: open } = await import(${JSON.stringify(onDisk.module.href)})
    const store = await open(${JSON.stringify(directory)}, { durability: ${JSON.stringify(durability)} })
    const batch = store.batch()
    batch.put(Buffer.from('a'), Buffer.from('1'))
    store.commit(batch, error => console.log(error ? String(error) : 'committed'))
    setInterval(() => undefined, 60_000)`
  return spawn(...plainly([process.execPath, '--input-type=module', '-e', script]), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}
