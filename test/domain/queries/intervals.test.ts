import fc from 'fast-check'
import t from 'tap'
import { Intervals } from '../../../src/domain/queries/intervals.js'

type Ends = readonly [low: number | undefined, high: number | undefined]

const end = fc.option(fc.integer({ min: -5, max: 5 }), { nil: undefined })
const act = fc.record({ ends: fc.tuple(end, end), removes: fc.boolean(), choice: fc.nat() })
const looks = fc.array(fc.tuple(fc.integer({ min: -6, max: 6 }), fc.nat({ max: 3 })), { minLength: 4, maxLength: 4 })

const holds = ([low, high]: Ends, least: number, most: number): boolean =>
  (low === undefined || low <= most) && (high === undefined || high >= least)

function found(intervals: Intervals<number, number>, least: number, most: number): number[] {
  const items: number[] = []
  intervals.visit(least, most, item => items.push(item))
  return items.sort((a, b) => a - b)
}

t.test('a look finds what a walk through all intervals would', async t => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 300, size: 'max' }), looks, (acts, looks) => {
      const intervals = new Intervals<number, number>()
      const there = new Map<number, Ends>()
      for (const [at, { ends, removes, choice }] of acts.entries()) {
        const items = [...there.keys()]
        if (removes && items.length > 0) {
          const item = items[choice % items.length]!
          intervals.remove(...there.get(item)!, item)
          there.delete(item)
        } else {
          intervals.add(...ends, at)
          there.set(at, ends)
        }
        // Some of them wait, some stand in the tree, and some are holes in it.
        if (at % 50 === 0) found(intervals, 0, 0)
      }
      if (intervals.size !== there.size) throw new Error(`${intervals.size} are not ${there.size}`)
      for (const [least, width] of looks) {
        const wanted = [...there].filter(([, ends]) => holds(ends, least, least + width)).map(([item]) => item)
        const told = found(intervals, least, least + width)
        if (String(told) !== String(wanted.sort((a, b) => a - b))) throw new Error(`${told} is not ${wanted}`)
      }
    }),
    { numRuns: 500 },
  )
  t.pass()
})

t.test('the same interval may stand there many times, and each goes by itself', async t => {
  const intervals = new Intervals<number, number>()
  for (let n = 0; n < 200; n++) intervals.add(1, undefined, n)
  t.equal(found(intervals, 1, 1).length, 200)
  intervals.remove(1, undefined, 150)
  t.equal(found(intervals, 1, 1).includes(150), false)
  t.equal(found(intervals, 1, 1).length, 199)
})

t.test('texts are compared as the language compares them', async t => {
  const intervals = new Intervals<string, string>()
  intervals.add('b', undefined, 'from b')
  intervals.add(undefined, 'Z', 'to Z')
  const told = (text: string): string[] => {
    const items: string[] = []
    intervals.visit(text, text, item => items.push(item))
    return items
  }
  t.strictSame(told('b'), ['from b'])
  t.strictSame(told('a'), [])
  t.strictSame(told('A'), ['to Z'])
})

t.test('a value that few of very many intervals hold is found without a walk through them', async t => {
  const intervals = new Intervals<number, number>()
  for (let n = 0; n < 100_000; n++) intervals.add(n, n + 1, n)
  t.strictSame(found(intervals, 500.5, 500.5), [500])
  const before = performance.now()
  for (let n = 0; n < 1000; n++) found(intervals, n + 0.5, n + 0.5)
  t.ok(performance.now() - before < 1000, 'a thousand looks take less than a second, not the minute of as many walks')
})
