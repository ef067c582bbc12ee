// The queue of a slow reader: everything, then the newest state of each entity, then too much.

import t from 'tap'
import {
  foldedFrom,
  itemCharacters,
  ReaderQueue,
  WaitingBudget,
  waitingMax,
} from '../../../src/broker/streams/reader-queue.js'
import { ChangeTexts, type ReadChange, type StreamEvent } from '../../../src/broker/streams/stream-event.js'
import type { SentChange } from '../../../src/messages/streams.js'
import { changeOf } from '../../support/sent-changes.js'

const form = { view: { mode: 'keyValues', attrs: undefined, metadata: undefined }, onlyChangedAttrs: false } as const

const partForm = { ...form, onlyChangedAttrs: true }

interface PushOptions {
  readonly how?: ReadChange['how']
  readonly cursor?: string
  /** With `onlyChangedAttrs`. */
  readonly isPart?: boolean
}

class Scene {
  constructor(budget = new WaitingBudget()) {
    this.queue = new ReaderQueue({
      frame: ({ kind, data, cursor }) => `${kind} ${data}${cursor === undefined ? '' : ` at ${cursor}`}\n`,
      texts: this.texts,
      budget,
      onFolded: count => {
        this.folded += count
      },
    })
  }

  readonly texts = new ChangeTexts()
  folded = 0
  readonly queue: ReaderQueue

  push(change: SentChange, watch = 'w', { how = 'found', cursor, isPart = false }: PushOptions = {}): boolean {
    const read = { change, how, key: this.texts.keyOf(change) }
    const wanted = isPart ? partForm : form
    const text = this.texts.textOf(read, wanted)!
    this.queue.push({ ...text, cursor, change: read } satisfies StreamEvent, watch, wanted)
    return this.queue.hasRoom
  }

  all(): string[] {
    const lines: string[] = []
    for (let texts = this.queue.take(); texts; texts = this.queue.take())
      lines.push(...texts.map(text => text.trimEnd()))
    return lines
  }
}

t.test('a reader that follows gets everything, some at a time', async t => {
  const scene = new Scene()
  for (let n = 0; n < 100; n++) t.ok(scene.push(changeOf('e', n, 1_000)))
  const first = scene.queue.take()!
  const { length } = first.join('')
  t.ok(length <= 65_536 && length > 32_768, `${length} characters at once`)
  t.equal(first.length + scene.all().length, 100)
  t.strictSame([scene.queue.length, scene.queue.isEmpty, scene.folded], [0, true, 0])
})

t.test('beyond a bound the newest state of each entity waits, in the order of changes', async t => {
  const scene = new Scene()
  const rounds = 500
  for (let n = 0; n < rounds; n++) t.ok(scene.push(changeOf(n % 2 === 0 ? 'a' : 'b', n, 2_000)))
  t.ok(scene.queue.length < foldedFrom)
  const lines = scene.all()
  t.match(lines[0], `coalesced {"count":${rounds - lines.length + 1}}`)
  t.match(lines.at(-2), /"id":"a".*"498 /)
  t.match(lines.at(-1), /"id":"b".*"499 /)
  t.match(lines.at(-1), /"changed":\["c1",/, 'the names of all changes')
  t.equal(scene.folded, rounds - lines.length + 1)
  scene.push(changeOf('a', 1_000, 10))
  t.match(scene.all(), [/^entityChange/], 'and then everything again')
})

t.test('a new entity stays new, and a deletion stays', async t => {
  const scene = new Scene()
  for (let n = 0; n < 200; n++) scene.push(changeOf('filler', n, 2_000))
  scene.push(changeOf('a', 1_000, 10, 'create'))
  scene.push(changeOf('a', 1_001, 10))
  scene.push(changeOf('b', 1_002, 10))
  scene.push(changeOf('b', 1_003, 10, 'delete'))
  const kinds = scene
    .all()
    .filter(line => /"id":"[ab]"/.test(line))
    .map(line => line.split(' ')[0])
  t.strictSame(kinds, ['entityCreate', 'entityDelete'])
})

t.test('watches of one connection are not folded with each other', async t => {
  const scene = new Scene()
  for (let n = 0; n < 200; n++) scene.push(changeOf('filler', n, 2_000))
  for (const watch of ['v', 'w']) scene.push(changeOf('a', 1_000, 10), watch)
  t.equal(scene.all().filter(line => /"id":"a"/.test(line)).length, 2)
})

t.test('the number of folded events precedes an event of their watch, and nothing else', async t => {
  const scene = new Scene()
  for (let n = 0; n < 200; n++) scene.push(changeOf('filler', n, 2_000))
  scene.all()
  for (let n = 0; n < 200; n++) scene.push(changeOf(`v${n}`, n, 2_000), 'v')
  scene.queue.pushText('watching w\n')
  for (let n = 0; n < 3; n++) scene.push(changeOf('a', n, 10), 'w')
  const kinds = scene.all().map(line => line.slice(0, 12))
  const at = kinds.indexOf('watching w')
  t.strictSame(kinds.slice(at), ['watching w', 'coalesced {"', 'entityChange'])
  t.equal(kinds.indexOf('coalesced {"'), at + 1)
})

t.test('with onlyChangedAttrs, no cursor is behind a change that is folded into a later event', async t => {
  for (const isPart of [false, true]) {
    const scene = new Scene()
    for (let n = 0; n < 200; n++)
      scene.push({ ...changeOf(`e${n % 3}`, n, 2_000), named: ['a'] }, 'w', { cursor: `c${n}`, isPart })
    const bookmark = { kind: 'bookmark', data: '{}', cursor: 'c200' } as const
    scene.queue.push(bookmark, 'w', isPart ? partForm : form)
    const cursors = scene.all().flatMap(line => / at (\S+)$/.exec(line)?.[1] ?? [])
    t.strictSame(cursors, isPart ? [] : ['c197', 'c198', 'c199', 'c200'])
    scene.push(changeOf('e', 300, 10), 'w', { cursor: 'c300', isPart })
    t.match(scene.all(), [/ at c300$/])
  }
})

t.test('an entity that has left and is back has the earlier names', async t => {
  const scene = new Scene()
  for (let n = 0; n < 200; n++) scene.push(changeOf('filler', n, 2_000))
  scene.push(changeOf('a', 1_000, 10))
  scene.push(changeOf('a', 1_001, 10), 'w', { how: 'left' })
  scene.push(changeOf('a', 1_002, 10))
  const [line, ...others] = scene.all().filter(one => one.includes('"id":"a"'))
  t.match(line, /^entityChange .*"changed":\["c1000","c1001","c1002"\]/)
  t.strictSame(others, [])
})

t.test('too much is too much', async t => {
  const scene = new Scene()
  let n = 0
  while (scene.push(changeOf(`e${n}`, n, 50_000))) n++
  t.ok(n * 50_000 <= waitingMax && (n + 2) * 50_000 > waitingMax, `${n} events`)
})

t.test('short answers count more than their text', async t => {
  const { queue } = new Scene()
  let n = 0
  for (queue.pushText('{"op":"pong"}'); queue.hasRoom; queue.pushText('{"op":"pong"}')) n++
  t.ok(n > 30_000 && n < 40_000, `${n} answers`)
  t.equal(queue.length, (n + 1) * (13 + itemCharacters))
  while (queue.take()) {}
  t.equal(queue.length, 0)
})

t.test('when too much waits for all readers, those that fold are too slow', async t => {
  const budget = new WaitingBudget(1_000_000)
  const [large, other, small] = [new Scene(budget), new Scene(budget), new Scene(budget)]
  let n = 0
  for (; n < 8; n++) t.ok(large.push(changeOf(`e${n}`, n, 50_000)))
  while (other.push(changeOf(`e${n}`, n, 50_000))) n++
  t.ok(budget.isFull)
  t.notOk(large.push(changeOf('e', 1, 10)), 'it has more than may wait then')
  t.ok(small.push(changeOf('e', 1, 10)))
  large.queue.clear()
  other.queue.clear()
  t.notOk(budget.isFull)
  t.equal(budget.characters, small.queue.length)
  small.all()
  t.equal(budget.characters, 0)
})
