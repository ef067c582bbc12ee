// The writer of one connection: it sends once a tick, sooner when much waits, and no more than the system takes.

import t from 'tap'
import { EndOfTick } from '../../src/broker/streams/end-of-tick.js'
import { WaitingBudget, waitingMax } from '../../src/broker/streams/reader-queue.js'
import { ChangeTexts } from '../../src/broker/streams/stream-event.js'
import { EventWriter } from '../../src/http/event-writer.js'

class Scene {
  readonly sent: (readonly string[])[] = []
  takes = true
  private ends: (() => void)[] = []
  readonly endOfTick = new EndOfTick({ endOfTick: run => void this.ends.push(run) })
  readonly writer = this.another()

  another(): EventWriter {
    return new EventWriter({
      frame: event => event.data,
      texts: new ChangeTexts(),
      budget: new WaitingBudget(),
      endOfTick: this.endOfTick,
      onFolded: () => {},
      send: texts => {
        this.sent.push(texts)
        return this.takes
      },
    })
  }

  event(data: string): void {
    const form = {
      view: { mode: 'keyValues', attrs: undefined, metadata: undefined },
      onlyChangedAttrs: false,
    } as const
    this.writer.event({ kind: 'bookmark', cursor: undefined, data }, '', form)
  }

  /** Ends the tick. Returns how many callbacks it had. */
  end(): number {
    const ends = this.ends.splice(0)
    for (const run of ends) run()
    return ends.length
  }
}

t.test('all that a tick brings is sent at its end, at once and in order', async t => {
  const scene = new Scene()
  scene.event('a')
  scene.writer.text('b')
  scene.event('c')
  t.strictSame(scene.sent, [], 'nothing is sent within the tick')
  t.equal(scene.end(), 1)
  t.strictSame(scene.sent, [['a', 'b', 'c']])
  t.equal(scene.end(), 0, 'the next tick has nothing to do')
})

t.test('the writers of many connections share one callback', async t => {
  const scene = new Scene()
  for (let n = 0; n < 10; n++) scene.another().text(String(n))
  t.equal(scene.end(), 1)
  t.equal(scene.sent.length, 10)
})

t.test('many events do not wait for the end of the tick: a quick reader is never taken for a slow one', async t => {
  const scene = new Scene()
  for (let n = 0; n < 100; n++) scene.event('x'.repeat(10_000))
  t.ok(scene.sent.length >= 10, `${scene.sent.length} sends before the end of the tick`)
  scene.end()
  t.equal(scene.sent.flat().length, 100)
})

t.test('a text above the limit of waiting bytes reaches a quick reader', async t => {
  const scene = new Scene()
  t.ok(scene.writer.text('x'.repeat(waitingMax + 1)))
  t.equal(scene.sent.flat().join('').length, waitingMax + 1)
  scene.takes = false
  scene.writer.text('y')
  scene.end()
  t.notOk(scene.writer.text('x'.repeat(waitingMax + 1)), 'and is too much for one that reads nothing')
})

t.test('nothing is sent while the system takes no more, and all of it when there is room', async t => {
  const scene = new Scene()
  scene.takes = false
  scene.event('a')
  scene.end()
  scene.event('b')
  scene.end()
  t.strictSame(scene.sent, [['a']])
  t.notOk(scene.writer.hasRoom)
  scene.takes = true
  scene.writer.onRoom()
  t.strictSame(scene.sent, [['a'], ['b']])
})

t.test('a caller that asks for room is called when the waiting texts were sent', async t => {
  const scene = new Scene()
  scene.takes = false
  scene.event('a')
  let hasRoom = false
  scene.writer.whenRoom(() => {
    hasRoom = true
  })
  t.strictSame(scene.sent, [['a']], 'the tick has not ended')
  t.notOk(hasRoom)
  scene.takes = true
  scene.writer.onRoom()
  t.ok(hasRoom)
})

t.test('a closed writer sends nothing, not even waiting texts', async t => {
  const scene = new Scene()
  scene.event('a')
  scene.writer.close()
  scene.end()
  t.strictSame(scene.sent, [])
})
