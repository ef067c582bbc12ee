// Long work as an operator sees it: a bar at a terminal, lines in the log elsewhere.

import t from 'tap'
import { openProgress, type ProgressDisplay } from '../../src/observe/progress.js'
import { FakeClock } from '../support/fake-clock.js'

interface Shown {
  readonly progress: ProgressDisplay
  readonly clock: FakeClock
  readonly logged: string[]
  /** The text written to the terminal. */
  readonly drawn: string[]
}

function shown(terminal: { isTTY?: boolean; columns?: number } = {}): Shown {
  const [logged, drawn]: [string[], string[]] = [[], []]
  const clock = new FakeClock()
  const logger = { info: (message: string) => void logged.push(message) }
  const write = (text: string) => drawn.push(text)
  const options = { title: 'Copying', unit: 'rows', clock, logger, terminal: { ...terminal, write } }
  return { progress: openProgress(options), clock, logged, drawn }
}

t.test('at a terminal a line is drawn over itself, with share, count, rate and time left', async t => {
  const { progress, clock, drawn, logged } = shown({ isTTY: true, columns: 200 })
  progress.show(0, 10_000)
  clock.advance(2000)
  progress.show(2500, 10_000)
  t.strictSame(drawn, [
    '\r\u001b[KCopying  [........................]  0 %  0 of 10,000 rows',
    '\r\u001b[KCopying  [######..................]  25 %  2,500 of 10,000 rows  1,250/s  6 s left',
  ])
  t.strictSame(logged, [])
})

t.test('the line is drawn ten times a second at most, and its last state stays', async t => {
  const { progress, clock, drawn } = shown({ isTTY: true, columns: 200 })
  for (let done = 1; done <= 1000; done++) {
    clock.advance(1)
    progress.show(done, 1000)
  }
  t.equal(drawn.length, 10)
  progress.end()
  t.match(drawn.at(-2), '100 %  1,000 of 1,000 rows')
  t.equal(drawn.at(-1), '\n')
})

t.test('where no bar may be drawn a terminal gets nothing, and the log lines', async t => {
  const logged: string[] = []
  const drawn: string[] = []
  const logger = { info: (message: string) => void logged.push(message) }
  const terminal = { isTTY: true, write: (text: string) => drawn.push(text) }
  const options = { title: 'Copying', unit: 'rows', clock: new FakeClock(), logger, terminal, mayDraw: false }
  const progress = openProgress(options)
  progress.show(5, 10)
  progress.end()
  t.strictSame({ logged, drawn }, { logged: ['Copying: 50 %, 5 of 10 rows'], drawn: [] })
})

t.test('the line is never as wide as the terminal', async t => {
  for (const [columns, length] of [
    [40, 39],
    [0, 79],
  ] as const) {
    const { progress, clock, drawn } = shown({ isTTY: true, columns })
    progress.show(1_000_000, 2_000_000_000_000)
    clock.advance(1000)
    progress.show(1_000_001, 2_000_000_000_000)
    t.equal(drawn.at(-1)?.replace('\r\u001b[K', '').length, length)
  }
})

t.test('elsewhere there is a line of the log at the beginning, every 5 seconds, and at the end', async t => {
  const { progress, clock, drawn, logged } = shown()
  for (let second = 0; second <= 12; second++) {
    progress.show(100 * second, 1200)
    if (second < 12) clock.advance(1000)
  }
  progress.end()
  t.strictSame(logged, [
    'Copying: 0 %, 0 of 1,200 rows',
    'Copying: 41 %, 500 of 1,200 rows, 100/s, 7 s left',
    'Copying: 83 %, 1,000 of 1,200 rows, 100/s, 2 s left',
    'Copying: 100 %, 1,200 of 1,200 rows, 100/s',
  ])
  t.strictSame(drawn, [])
})

t.test('work before the first call does not count for the rate', async t => {
  const { progress, clock, logged } = shown()
  progress.show(900_000, 1_000_000)
  clock.advance(5000)
  progress.show(900_500, 1_000_000)
  t.match(logged[1], /, 100\/s, 16 min 35 s left$/)
})

t.test('hours are shown with minutes', async t => {
  const { progress, clock, logged } = shown()
  progress.show(0, 10_000)
  clock.advance(5000)
  progress.show(5, 10_000)
  t.match(logged[1], /, 1\/s, 2 h 46 min left$/)
})

t.test('work that was never shown leaves nothing behind', async t => {
  for (const isTTY of [true, false]) {
    const { progress, drawn, logged } = shown({ isTTY })
    progress.end()
    t.strictSame([...drawn, ...logged], [])
  }
})

t.test('more than was expected is still all of it', async t => {
  const { progress, logged } = shown()
  progress.show(5, 0)
  t.strictSame(logged, ['Copying: 100 %, 5 of 0 rows'])
})

t.test('where the total is not known, no bar and no share is shown', async t => {
  const { progress, clock, drawn } = shown({ isTTY: true, columns: 200 })
  progress.show(0, undefined)
  clock.advance(2000)
  progress.show(2500, undefined)
  t.equal(drawn.at(-1), '\r\u001b[KCopying  2,500 rows  1,250/s')
})
