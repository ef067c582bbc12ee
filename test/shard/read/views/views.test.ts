// Views: they agree with the store through all changes, during their building and afterwards, and keep to their memory.

import t from 'tap'
import type { Json } from '../../../../src/domain/json.js'
import type { CountedRange } from '../../../../src/shard/read/entity-place.js'
import { type BuildScan, buildTables, type Scanner, StepwiseScanner } from '../../../../src/shard/read/scans.js'
import { named } from '../../../../src/shard/read/views/column.js'
import { bytesFor, type Layout, Table, type TableParts } from '../../../../src/shard/read/views/table.js'
import { Views } from '../../../../src/shard/read/views/views.js'
import { Changes, tenant } from '../../../support/changes.js'
import fc from '../../../support/properties.js'
import { statementOf } from '../../../support/statements.js'
import { contentOf } from '../../../support/tables.js'

const layoutOf = (...names: string[]): Layout => ({
  columns: names.map(name => named(statementOf(name).path)),
  places: false,
})
const layout = layoutOf('a')
const range = (type = 'T', count = 20): CountedRange => ({ path: '/', type, count })
const lots = 64 * 1024 * 1024
/** Bytes of a table of up to 51 entities with its bookkeeping, without texts. */
const bytesOfOne = (columns = 1): number => bytesFor(20, layoutOf(...['a', 'b', 'c'].slice(0, columns))) + 2048

/** A table built from the store as it is now. */
async function fresh({ store, shardMap, clock }: Changes, wanted: Layout, type = 'T'): Promise<Table> {
  const ground = { store, shardMap, clock, breathe: async () => {} }
  const [parts] = await buildTables({ tenant, parts: [{ path: '/', type, count: 20, layout: wanted }] }, ground)
  return Table.of(parts!)
}

/** A build that the test holds: it reads the store at its sweep, and the views get it when it is released. */
class Held {
  readonly scan: BuildScan
  readonly outcome: Promise<readonly TableParts[]>
  private end: (outcome: Promise<readonly TableParts[]>) => void = () => {}
  private tables: readonly TableParts[] | undefined

  constructor(scan: BuildScan) {
    this.scan = scan
    this.outcome = new Promise(resolve => {
      this.end = resolve
    })
  }

  async sweep({ store, shardMap, clock }: Changes): Promise<void> {
    this.tables = await buildTables(this.scan, { store, shardMap, clock, breathe: async () => {} })
  }

  async release(changes: Changes): Promise<void> {
    if (!this.tables) await this.sweep(changes)
    await this.answer(this.tables!)
  }

  async answer(tables: readonly TableParts[]): Promise<void> {
    this.end(Promise.resolve(tables))
    await this.outcome
  }

  fail(reason: string): void {
    this.end(Promise.reject(new Error(reason)))
  }
}

class HeldScanner implements Pick<Scanner, 'build'> {
  readonly builds: Held[] = []

  build(scan: BuildScan): Promise<readonly TableParts[]> {
    const held = new Held(scan)
    this.builds.push(held)
    return held.outcome
  }

  /** The names of the attributes of each build. */
  get columns(): string[] {
    return this.builds.map(({ scan }) =>
      scan.parts.map(part => part.layout.columns.map(column => column.path.attribute).join()).join(' '),
    )
  }
}

/** Views with some entities in the store, and nothing built. */
async function setting({ bytesMax = lots, entities = 20, types = ['T'] } = {}) {
  const changes = new Changes()
  for (const type of types)
    for (let n = 0; n < entities; n++) changes.put(`${type}${n}`, { a: n, b: `text ${n}`, c: null }, { type })
  await changes.settle()
  const scanner = new HeldScanner()
  const logged: string[] = []
  const views = new Views(bytesMax, scanner, changes.commit, changes.clock, { info: message => logged.push(message) })
  changes.commit.addFollower(views)
  const content = (wanted = layout, type = 'T'): string[] | undefined => {
    const [table] = views.tables(tenant, [range(type)], wanted) ?? []
    return table && contentOf(table)
  }
  /** Requests views, and waits until their build waits for its sweep. */
  const begun = async (wanted = layout, types = ['T']) => {
    const ready = views.prepare(
      tenant,
      types.map(type => range(type)),
      wanted,
    )
    await changes.settle()
    return { ready, build: scanner.builds.at(-1) as Held }
  }
  /** Builds a view without changes meanwhile. */
  const built = async (wanted = layout, type = 'T'): Promise<boolean> => {
    const { ready, build } = await begun(wanted, [type])
    await build?.release(changes)
    return ready
  }
  return { changes, scanner, views, logged, content, begun, built }
}

const stored = async (changes: Changes, wanted = layout, type?: string): Promise<string[]> =>
  contentOf(await fresh(changes, wanted, type))

t.test('there is no view before one is built', async t => {
  const { content, built, changes } = await setting()
  t.equal(content(), undefined)
  t.equal(await built(), true)
  t.strictSame(content(), await stored(changes))
})

t.test('a view follows creations, changes and removals', async t => {
  const { content, built, changes } = await setting()
  await built()
  changes.put('new', { a: 'new' })
  changes.put('T3', { a: [1] })
  changes.put('T4', {})
  changes.remove('T5')
  changes.remove('T19')
  changes.put('T19', { a: 'again' })
  changes.put('other', { a: 1 }, { type: 'U' })
  changes.put('other', { a: 1 }, { path: '/other' })
  await changes.settle()
  t.equal(content()?.length, 20)
  t.strictSame(content(), await stored(changes))
})

t.test('a view shows nothing that may yet be lost', async t => {
  const { content, built, changes } = await setting()
  await built()
  const before = content()
  changes.hold(true)
  changes.put('T3', { a: 'flying' })
  await changes.step()
  changes.put('T4', { a: 'staged' })
  t.strictSame(content(), before)
  await changes.settle()
  t.strictSame(content(), await stored(changes))
})

t.test('changes before and after the sweep came by are in the view', async t => {
  const { content, changes, begun } = await setting()
  const { ready, build } = await begun()
  changes.put('T1', { a: 'before' })
  changes.put('before', { a: 1 })
  changes.remove('T2')
  await changes.settle()
  await build.sweep(changes)
  changes.put('T1', { a: 'after' })
  changes.put('after', { a: 1 })
  changes.remove('T3')
  changes.remove('before')
  await changes.settle()
  await build.release(changes)
  t.equal(await ready, true)
  t.strictSame(content(), await stored(changes))
})

t.test('an entity that changes and goes before the sweep comes by does not spoil the view', async t => {
  const { content, changes, begun } = await setting()
  const { ready, build } = await begun()
  changes.put('T1', { a: 'changed' })
  changes.remove('T1')
  await changes.settle()
  await build.release(changes)
  t.equal(await ready, true)
  t.strictSame(content(), await stored(changes))
})

t.test('a view that lacks an entity which is there is not taken', async t => {
  const { content, changes, begun } = await setting()
  const { ready, build } = await begun()
  const whole = await fresh(changes, layout)
  const half = new Table(layout)
  for (let row = 10; row < 20; row++)
    half.append(whole.created[row]!, whole.shards[row]!, { targets: [row], geometry: undefined })
  changes.put('T1', { a: 'changed' })
  await changes.settle()
  await build.answer([half.parts])
  t.equal(await ready, false)
  t.equal(content(), undefined)
})

t.test('changes staged when a build begins are in the view', async t => {
  const { content, changes, begun } = await setting()
  changes.put('staged', { a: 1 })
  changes.remove('T7')
  const { ready, build } = await begun()
  await build.release(changes)
  t.equal(await ready, true)
  t.strictSame(content(), await stored(changes))
})

t.test('a view that went and is built again while changes are staged misses none of them', async t => {
  const { content, built, changes, scanner, views } = await setting({ types: ['T', 'U'], bytesMax: 1.5 * bytesOfOne() })
  await built(layout, 'T')
  changes.put('while it is there', { a: 1 })
  void views.prepare(tenant, [range('U')], layout) // takes its memory
  t.equal(content(), undefined)
  changes.put('while it is not', { a: 2 })
  const ready = views.prepare(tenant, [range('T')], layout)
  changes.put('while it is built', { a: 3 })
  await changes.settle()
  for (const build of scanner.builds.slice(1)) await build.release(changes)
  t.equal(await ready, true)
  t.strictSame(content(), await stored(changes))
})

// The sweep goes from shard to shard, a step each, while entities come, change and go everywhere.

const ids = Array.from({ length: 12 }, (_, n) => `E${n}`)
type Step = 'step' | 'hold' | 'land' | { readonly put: string; readonly a: Json } | { readonly remove: string }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ put: fc.constantFrom(...ids), a: fc.constantFrom<Json>(1, 'x', null) }) },
  { weight: 2, arbitrary: fc.record({ remove: fc.constantFrom(...ids) }) },
  { weight: 3, arbitrary: fc.constant('step' as const) },
)
const stepOrHold = fc.oneof(
  { weight: 10, arbitrary: step },
  { weight: 2, arbitrary: fc.constant<Step>('hold') },
  { weight: 1, arbitrary: fc.constant<Step>('land') },
)

interface Run {
  readonly isReady: boolean
  readonly content: string[] | undefined
  readonly stored: string[]
  /** Whether the view was empty at some time: then it may be missing. */
  readonly wasEmpty: boolean
}

async function run(before: number, taken: readonly Step[]): Promise<Run> {
  const changes = new Changes()
  for (const id of ids.slice(0, before)) changes.put(id, { a: 0 })
  await changes.settle()
  const scanner = new StepwiseScanner(changes.store, changes.shardMap, changes.clock)
  const views = new Views(lots, scanner, changes.commit, changes.clock, { info: () => {} })
  changes.commit.addFollower(views)
  const ready = views.prepare(tenant, [range()], layout)
  const there = new Set(ids.slice(0, before))
  let wasEmpty = there.size === 0
  for (const one of taken) {
    if (typeof one === 'object') {
      if ('put' in one) there.add(one.put)
      else there.delete(one.remove)
      if (there.size === 0) wasEmpty = true
    }
    if (one === 'step') await changes.step()
    else if (typeof one === 'string') changes.hold(one === 'hold')
    else if ('put' in one) changes.put(one.put, { a: one.a })
    else changes.remove(one.remove)
  }
  await changes.settle()
  const [table] = views.tables(tenant, [range()], layout) ?? []
  return { isReady: await ready, content: table && contentOf(table), stored: await stored(changes), wasEmpty }
}

t.test('a view is built during any changes, and agrees with the store', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(12), fc.array(step, { maxLength: 40, size: 'max' }), async (before, taken) => {
      const { isReady, content, stored, wasEmpty } = await run(before, taken)
      if (!content && wasEmpty) return true
      return isReady && content?.join('\n') === stored.join('\n')
    }),
    { numRuns: 300 },
  )
})

t.test('changes that are stored and not yet durable when a view is built are not missing in it', async t => {
  let dropped = 0
  await fc.assert(
    fc.asyncProperty(fc.nat(12), fc.array(stepOrHold, { maxLength: 60, size: 'max' }), async (before, taken) => {
      const { content, stored, wasEmpty } = await run(before, taken)
      if (!content && !wasEmpty) dropped++
      return !content || content.join('\n') === stored.join('\n')
    }),
    { numRuns: 300 },
  )
  t.comment(`${dropped} views were dropped`)
  t.ok(dropped < 100)
})

t.test('a view of which nothing is left leaves memory', async t => {
  const { content, built, changes, views } = await setting({ entities: 2 })
  await built()
  changes.remove('T0')
  await changes.settle()
  t.equal(views.size, 1)
  changes.remove('T1')
  await changes.settle()
  t.equal(views.size, 0)
  changes.put('T2', { a: 1 })
  await changes.settle()
  t.equal(await built(), true)
  t.strictSame(content(), await stored(changes))
})

t.test('a change that order of creation does not allow drops the view', async t => {
  const { content, built, changes, views } = await setting()
  await built()
  const [table] = views.tables(tenant, [range()], layout)!
  table!.put(Number.MAX_SAFE_INTEGER, 0, { targets: [1], geometry: undefined })
  changes.put('new', { a: 1 })
  await changes.settle()
  t.equal(content(), undefined)
  t.equal(views.bytes, 0)
  t.equal(await built(), true)
  t.strictSame(content(), await stored(changes))
})

t.test('a caller that needs a view that is being built waits for that one', async t => {
  const { changes, scanner, begun } = await setting()
  const first = await begun()
  const second = await begun()
  await first.build.release(changes)
  t.strictSame(await Promise.all([first.ready, second.ready]), [true, true])
  t.equal(scanner.builds.length, 1)
})

t.test('a view gets further columns without losing those that it has', async t => {
  const { content, built, changes, scanner } = await setting()
  await built(layoutOf('a'))
  t.equal(content(layoutOf('b')), undefined)
  t.equal(await built(layoutOf('b')), true)
  t.strictSame(scanner.columns, ['a', 'b,a'])
  t.strictSame(content(layoutOf('a')), await stored(changes, layoutOf('a', 'b')))
  t.equal(await built(layoutOf('a', 'b')), true)
  t.equal(scanner.builds.length, 2, 'all is there')
})

t.test('a view that gets further columns answers meanwhile, and follows', async t => {
  const { content, begun, built, changes } = await setting()
  await built(layoutOf('a'))
  const { ready, build } = await begun(layoutOf('b'))
  changes.put('T1', { a: 'meanwhile', b: 'meanwhile' })
  await changes.settle()
  t.strictSame(content(layoutOf('a')), await stored(changes, layoutOf('a')))
  await build.release(changes)
  t.equal(await ready, true)
  t.strictSame(content(layoutOf('a')), await stored(changes, layoutOf('a', 'b')))
})

t.test('two lists that want different columns at once get both', async t => {
  const { content, changes, scanner, begun } = await setting()
  const first = await begun(layoutOf('a'))
  const second = await begun(layoutOf('b'))
  await first.build.release(changes)
  t.equal(await first.ready, true)
  await changes.settle()
  await scanner.builds[1]!.release(changes)
  t.equal(await second.ready, true)
  t.strictSame(scanner.columns, ['a', 'b,a'])
  t.strictSame(content(layoutOf('a', 'b')), await stored(changes, layoutOf('a', 'b')))
})

t.test('views of several types come from one sweep, and only the missing ones', async t => {
  const { content, begun, built, changes, scanner } = await setting({ types: ['T', 'U', 'V'] })
  await built(layout, 'U')
  const { ready, build } = await begun(layout, ['T', 'U', 'V'])
  t.equal(scanner.builds.length, 2)
  t.strictSame(
    build.scan.parts.map(part => part.type),
    ['T', 'V'],
  )
  await build.release(changes)
  t.equal(await ready, true)
  for (const type of ['T', 'U', 'V']) t.strictSame(content(layout, type), await stored(changes, layout, type))
})

t.test('a failed build is reported to all callers, leaves nothing half done, and the next one succeeds', async t => {
  const { content, begun, built, changes, scanner, views } = await setting()
  const first = await begun()
  const second = await begun()
  changes.put('T1', { a: 'meanwhile' })
  await changes.settle()
  first.build.fail('the thread has died')
  await t.rejects(first.ready, { message: 'the thread has died' })
  t.equal(content(), undefined)
  t.equal(views.bytes, 0)
  await changes.settle()
  t.equal(scanner.builds.length, 2, 'who waited tries for itself')
  await scanner.builds[1]!.release(changes)
  t.equal(await second.ready, true)
  t.strictSame(content(), await stored(changes))
  t.equal(await built(), true)
})

t.test('a build that fails does not disturb the view that is there', async t => {
  const { content, begun, built, changes } = await setting()
  await built()
  const { ready, build } = await begun(layoutOf('b'))
  build.fail('no luck')
  await t.rejects(ready, { message: 'no luck' })
  changes.put('T1', { a: 'later' })
  await changes.settle()
  t.strictSame(content(), await stored(changes))
})

// Memory

t.test('a view that is too large is refused, and nothing is read for it', async t => {
  const { scanner, views } = await setting({ bytesMax: bytesOfOne() - 1 })
  t.equal(await views.prepare(tenant, [range()], layout), false)
  t.equal(scanner.builds.length, 0)
})

t.test('without memory there are no views', async t => {
  const { scanner, views } = await setting({ bytesMax: 0 })
  t.equal(await views.prepare(tenant, [range('T', 0)], layout), false)
  t.equal(scanner.builds.length, 0)
})

t.test('a view of more columns than a table may have is refused', async t => {
  const { scanner, views } = await setting()
  const names = Array.from({ length: 65 }, (_, n) => `a${n}`)
  t.equal(await views.prepare(tenant, [range()], layoutOf(...names)), false)
  t.equal(scanner.builds.length, 0)
})

t.test('a view of which the texts do not fit is tried once and not kept', async t => {
  const { built, content, scanner, views } = await setting({ bytesMax: bytesOfOne() + 100 })
  t.equal(await built(layoutOf('b')), false)
  t.equal(scanner.builds.length, 1)
  t.equal(content(layoutOf('b')), undefined)
  t.equal(views.bytes, 0)
})

t.test('the views used least recently go first', async t => {
  const { built, content, views } = await setting({ types: ['T', 'U', 'V'], bytesMax: 2.5 * bytesOfOne() })
  await built(layout, 'T')
  await built(layout, 'U')
  t.ok(content(layout, 'T'))
  t.equal(await built(layout, 'V'), true)
  t.strictSame(
    ['T', 'U', 'V'].map(type => content(layout, type) !== undefined),
    [true, false, true],
  )
  t.ok(views.bytes <= 2.5 * bytesOfOne(), `${views.bytes} bytes`)
})

t.test('columns that do not fit together take turns', async t => {
  const { built, content, scanner } = await setting({ bytesMax: bytesOfOne(1) + 100 })
  t.equal(await built(layoutOf('a')), true)
  t.equal(await built(layoutOf('c')), true)
  t.strictSame(scanner.columns, ['a', 'c'])
  t.equal(content(layoutOf('a')), undefined)
  t.ok(content(layoutOf('c')))
})

t.test('a view that grows beyond the memory goes, when so much has changed that it is looked at', async t => {
  const { built, content, changes, views } = await setting({ bytesMax: 4 * bytesOfOne() })
  await built()
  for (let n = 0; n < 4096; n++) changes.put(`more${n}`, { a: n })
  await changes.settle()
  t.equal(content(), undefined)
  t.equal(views.bytes, 0)
})

t.test('a view that is built is logged with its size', async t => {
  const { built, logged } = await setting()
  await built(layoutOf('a', 'c'))
  t.match(logged, [/^view of 20 entities built in 0 ms: 2 columns; all views take 0\.0 MB$/])
})
