// The output of `orrery watch`: lines of events, and a table that is drawn over itself.

import t from 'tap'
import { drawIntervalMs, EventLines, LatestTable } from '../../src/watch/display.js'
import type { WatchedEvent } from '../../src/watch/resuming.js'
import { FakeClock } from '../support/fake-clock.js'

class Screen {
  readonly writes: string[] = []
  columns = 80
  rows = 24
  constructor(readonly isTTY: boolean) {}
  write(text: string): boolean {
    this.writes.push(text)
    return true
  }
  get text(): string {
    return this.writes.join('')
  }
}

/** The lines that a terminal shows after these writes, which use only the few sequences of a table. */
function shown(writes: readonly string[]): string[] {
  const lines: string[] = ['']
  let row = 0
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the sequences of a terminal
  for (const [piece] of writes.join('').matchAll(/\x1b\[\??(\d*)[A-Za-z]|\n|\r|[^\x1b\n\r]+/g)) {
    if (piece === '\n') row++
    else if (piece.startsWith('\u001b') && piece.endsWith('A')) row = Math.max(0, row - Number(piece.slice(2, -1)))
    else if (piece === '\u001b[J') lines.length = row
    else if (!piece.startsWith('\u001b') && piece !== '\r') lines[row] = piece
    while (lines.length <= row) lines.push('')
  }
  return lines.filter((line, at) => line !== '' || at < lines.length - 1)
}

const snapshot = (...entities: readonly Record<string, string | number>[]): WatchedEvent => ({
  kind: 'snapshot',
  members: { data: entities },
})
const end: WatchedEvent = { kind: 'snapshot', members: { end: true, count: 1 } }
const room = (id: string, n: number) => ({ id, type: 'Room', n })

function table(isTTY = true) {
  const [out, errors, clock] = [new Screen(isTTY), new Screen(true), new FakeClock()]
  return { out, errors, clock, display: new LatestTable(out, errors, clock) }
}

t.test('each event is a line of JSON without control characters', async t => {
  const [out, errors] = [new Screen(false), new Screen(false)]
  const lines = new EventLines(out, errors)
  const members = { cursor: 'c', data: [{ id: 'R1', type: 'Room', v: '\u001b[2J\n\u009b\u202e' }] }
  lines.event({ kind: 'entityChange', members })
  lines.event({ kind: 'bookmark', members: { cursor: 'd' } })
  lines.event({ kind: 'gap', members: { reason: 'too old' } })
  lines.end()
  const written = out.text.split('\n')
  t.strictSame(
    written.slice(0, 2).map(line => JSON.parse(line)),
    [
      { event: 'entityChange', ...members },
      { event: 'gap', reason: 'too old' },
    ],
  )
  t.equal(written.length, 3)
  t.match(out.text, /^[\x20-\x7e\n]*$/)
})

t.test('notes go to standard error, without control characters and not too long', async t => {
  const [out, errors] = [new Screen(false), new Screen(false)]
  new EventLines(out, errors).note(`\u001b[2J${'x'.repeat(100_000)}`)
  t.equal(out.text, '')
  t.match(errors.text, /^orrery watch: \\u001b\[2Jx+\n$/)
  t.ok(errors.text.length < 1_100)
})

t.test('a table on a terminal is drawn over itself', async t => {
  const { out, clock, display } = table()
  display.begun(true)
  t.strictSame(shown(out.writes), ['ID  TYPE', '-- 0 entities, not complete yet'])
  display.event(snapshot(room('R1', 1), room('R2', 2)))
  display.event(end)
  clock.advance(drawIntervalMs)
  t.strictSame(shown(out.writes), ['ID  TYPE  n', 'R1  Room  1', 'R2  Room  2', '-- 2 entities, live'])
  display.event({ kind: 'entityLeave', members: { id: 'R1', type: 'Room', servicePath: '/' } })
  clock.advance(drawIntervalMs)
  t.strictSame(shown(out.writes), ['ID  TYPE  n', 'R2  Room  2', '-- 1 entity, live'])
})

t.test('it is drawn ten times a second at most, and the last state is never left out', async t => {
  const { out, clock, display } = table()
  display.begun(true)
  for (let n = 1; n <= 1_000; n++) {
    display.event(snapshot(room('R1', n)))
    clock.advance(1)
  }
  clock.advance(drawIntervalMs)
  t.ok(out.writes.length >= 10 && out.writes.length <= 12, `${out.writes.length} drawings`)
  t.match(out.writes.at(-1), 'R1  Room  1000')
  const { length } = out.writes
  clock.advance(10_000)
  t.equal(out.writes.length, length, 'nothing is drawn when nothing changes')
})

t.test('it fits the terminal, and follows its size', async t => {
  const { out, clock, display } = table()
  display.begun(true)
  display.event(snapshot(...Array.from({ length: 100 }, (_, at) => room(`R${at}`, at))))
  out.rows = 6
  clock.advance(drawIntervalMs)
  t.strictSame(shown([out.writes.at(-1) as string]), [
    'ID  TYPE  n',
    'R0  Room  0',
    'R1  Room  1',
    '… 98 more',
    '-- 100 entities, not complete yet',
  ])
  out.rows = 8
  display.resized()
  clock.advance(drawIntervalMs)
  t.match(shown([out.writes.at(-1) as string]), ['ID  TYPE  n', 'R0  Room  0', 'R1  Room  1', 'R2  Room  2'])
})

t.test('a note stays above the table, which says that it is cut', async t => {
  const { out, errors, clock, display } = table()
  display.begun(true)
  display.event(snapshot(room('R1', 1)))
  display.event(end)
  clock.advance(drawIntervalMs)
  display.note('the connection was lost')
  t.strictSame(shown(out.writes), [], 'the table made room')
  t.equal(errors.text, 'orrery watch: the connection was lost\n')
  clock.advance(drawIntervalMs)
  t.strictSame(shown(out.writes), ['ID  TYPE  n', 'R1  Room  1', '-- 1 entity, not connected'])
  display.begun(false)
  clock.advance(drawIntervalMs)
  t.strictSame(shown(out.writes), ['ID  TYPE  n', 'R1  Room  1', '-- 1 entity, live'], 'the rows are still there')
  display.begun(true)
  clock.advance(drawIntervalMs)
  t.strictSame(shown(out.writes), ['ID  TYPE', '-- 0 entities, not complete yet'])
})

t.test('elsewhere the table comes once, at the end, whole', async t => {
  const { out, clock, display } = table(false)
  display.begun(true)
  display.event(snapshot(...Array.from({ length: 100 }, (_, at) => room(`R${at}`, at))))
  clock.advance(1_000)
  t.equal(out.text, '')
  display.end()
  const lines = out.text.split('\n')
  t.strictSame([lines.length, lines[0], lines[100], lines[101]], [102, 'ID   TYPE  n', 'R99  Room  99', ''])
})

t.test('a watch that never began has no table', async t => {
  for (const isTTY of [true, false]) {
    const { out, display } = table(isTTY)
    display.note('no connection')
    display.end()
    t.equal(out.text, '')
  }
})
