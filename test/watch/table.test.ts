// The table of the latest states: the effect of events on it, and its form in the given room.

import t from 'tap'
import type { JsonObject } from '../../src/domain/json.js'
import { LatestStates, tableColumnsMax, tableRowsMax } from '../../src/watch/table.js'

const wide = { columns: 200, rows: 50 }

const states = (...entities: readonly JsonObject[]): LatestStates => {
  const table = new LatestStates()
  table.apply({ kind: 'snapshot', members: { data: entities } })
  return table
}
const room = (id: string, more: JsonObject = {}): JsonObject => ({ id, type: 'Room', servicePath: '/', ...more })

t.test('a snapshot becomes rows, with a column for each attribute', async t => {
  const table = states(
    room('R1', { temperature: 21.5, name: 'Hall' }),
    room('R2', { on: true, tags: ['a', { b: null }] }),
  )
  t.strictSame(table.lines(wide), [
    'ID  TYPE  temperature  name  on    tags',
    'R1  Room  21.5         Hall',
    'R2  Room                     true  ["a",{"b":null}]',
  ])
})

t.test('changes replace a row in its place, deletions and leaves remove it', async t => {
  const table = states(room('R1', { n: 1 }), room('R2', { n: 2 }), room('R3', { n: 3 }))
  table.apply({ kind: 'entityChange', members: { data: [room('R1', { n: 10 })], servicePath: '/' } })
  table.apply({ kind: 'entityDelete', members: { data: [room('R2', { n: 2 })], servicePath: '/' } })
  table.apply({ kind: 'entityLeave', members: { id: 'R3', type: 'Room', servicePath: '/' } })
  table.apply({ kind: 'entityCreate', members: { data: [room('R4', { n: 4 })], servicePath: '/' } })
  t.strictSame(table.lines(wide), ['ID  TYPE  n', 'R1  Room  10', 'R4  Room  4'])
})

t.test('a column disappears when its last entity loses the attribute, and the others keep their order', async t => {
  const table = states(room('R1', { a: 1, b: 2 }))
  table.apply({ kind: 'entityChange', members: { data: [room('R1', { b: 3, c: 4 })] } })
  t.strictSame(table.lines(wide), ['ID  TYPE  b  c', 'R1  Room  3  4'])
})

t.test('entities of one id in two paths are two rows', async t => {
  const table = states(room('R1', { n: 1 }), room('R1', { n: 2, servicePath: '/a' }))
  t.strictSame(table.lines(wide), ['ID  TYPE  PATH  n', 'R1  Room  /     1', 'R1  Room  /a    2'])
  table.apply({ kind: 'entityLeave', members: { id: 'R1', type: 'Room', servicePath: '/a' } })
  t.strictSame(table.lines(wide), ['ID  TYPE  n', 'R1  Room  1'])
})

t.test('a gap empties it', async t => {
  const table = states(room('R1', { n: 1 }))
  table.apply({ kind: 'gap', members: { reason: 'too old' } })
  t.equal(table.size, 0)
  t.strictSame(table.lines(wide), ['ID  TYPE'])
})

t.test('events of other kinds, and such as no broker sends, change nothing', async t => {
  const table = states(room('R1', { n: 1 }))
  for (const members of [{}, { end: true, count: 1 }, { data: 7 }, { data: [7, null, []] }, { count: 3 }])
    table.apply({ kind: 'snapshot', members })
  t.strictSame(table.lines(wide), ['ID  TYPE  n', 'R1  Room  1'])
})

t.test('control characters of ids, types, names and values are escapes', async t => {
  const evil = '\u001b[2J\n'
  const table = states({ id: evil, type: evil, servicePath: evil, [evil]: evil, v: { [evil]: [evil] } })
  const text = table.lines(wide).join('')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  t.notMatch(text, /[\x00-\x1f\x7f-\x9f]/)
  t.match(text, /\\u001b\[2J/)
})

t.test('names that objects have by themselves are names', async t => {
  const table = states(JSON.parse('{"id":"R1","type":"Room","servicePath":"/","__proto__":1,"constructor":2}'))
  t.strictSame(table.lines(wide), ['ID  TYPE  __proto__  constructor', 'R1  Room  1          2'])
})

t.test('rows beyond the room are counted', async t => {
  const table = states(...Array.from({ length: 10 }, (_, at) => room(`R${at}`)))
  t.strictSame(table.lines({ columns: 80, rows: 5 }), ['ID  TYPE', 'R0  Room', 'R1  Room', 'R2  Room', '… 7 more'])
  t.equal(table.lines({ columns: 80, rows: 11 }).at(-1), 'R9  Room', 'what just fits is not cut')
})

t.test('columns beyond the room are counted', async t => {
  const table = states(room('R1', { a: 'xxxxxxxx', b: 'yyyyyyyy', c: 'zzzzzzzz' }))
  t.strictSame(table.lines({ columns: 30, rows: 9 }), ['ID  TYPE  a         … 2 more', 'R1  Room  xxxxxxxx'])
  for (let columns = 12; columns < 60; columns++)
    for (const line of table.lines({ columns, rows: 9 }))
      t.ok(line.length <= Math.max(columns, 20), `${columns}: ${line}`)
})

t.test('rows have a limit, and the table says that there are others', async t => {
  const table = new LatestStates()
  for (let at = 0; at < tableRowsMax + 5; at++)
    table.apply({ kind: 'entityCreate', members: { data: [room(`R${at}`, { n: at })] } })
  t.equal(table.size, tableRowsMax)
  t.equal(table.lines({ columns: 80, rows: 4 }).at(-1), `… ${tableRowsMax - 2}+ more`)
  table.apply({ kind: 'entityChange', members: { data: [room('R0', { n: -1 })] } })
  t.equal(table.lines({ columns: 80, rows: 4 })[1], 'R0  Room  -1', 'rows that are there go on')
  t.equal(table.lines({ columns: 80, rows: Number.POSITIVE_INFINITY }).at(-1), '… more')
})

t.test('columns have a limit, and so have values', async t => {
  const many = Object.fromEntries(Array.from({ length: tableColumnsMax + 3 }, (_, at) => [`a${at}`, at]))
  const [head = ''] = states(room('R1', many)).lines({ columns: 1_000, rows: 5 })
  t.match(head, new RegExp(`a${tableColumnsMax - 1}  … more$`))
  t.notMatch(head, `a${tableColumnsMax} `)
  const long = states(room('R1', { v: 'x'.repeat(1_000_000) })).lines({ columns: 10_000, rows: 5 })
  t.match(long[1], /^R1 {2}Room {2}x{39}…$/)
})
