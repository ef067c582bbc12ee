// Bodies that take long share a slice of each tick.

import t from 'tap'
import { BodyTurns } from '../../src/http/body-turns.js'

/** Turns by a clock that stands still until a handler moves it; `tick` ends a tick of the event loop. */
function setUp() {
  let nowMs = 0
  let ends: (() => void)[] = []
  const handled: string[] = []
  const turns = new BodyTurns({ monoMs: () => nowMs }, run => ends.push(run))
  return {
    handled,
    /** A body that takes so long. */
    take: (body: Uint8Array, takesMs: number) =>
      turns.take(body, bytes => {
        nowMs += takesMs
        handled.push(Buffer.from(bytes).toString())
      }),
    tick: () => {
      const ended = ends
      ends = []
      for (const run of ended) run()
    },
    ticksDue: () => ends.length,
  }
}

const body = (text: string): Uint8Array => Buffer.from(text)

t.test('bodies are handled at once until they have taken 10 ms, then in the next tick, in their order', async t => {
  const { take, tick, handled } = setUp()
  take(body('a'), 6)
  take(body('b'), 6)
  take(body('c'), 6)
  take(body('d'), 6)
  t.strictSame(handled, ['a', 'b'])
  take(body('e'), 1)
  tick()
  t.strictSame(handled, ['a', 'b', 'c', 'd'])
  tick()
  t.strictSame(handled, ['a', 'b', 'c', 'd', 'e'])
})

t.test('a body that waits is a copy: the receive buffer may be used again', async t => {
  const { take, tick, handled } = setUp()
  take(body('first'), 10)
  const buffer = body('second')
  take(buffer, 1)
  buffer.fill(0x78)
  tick()
  t.strictSame(handled, ['first', 'second'])
})

t.test(
  'a body that takes longer than a slice delays the next one by one tick only, and nothing runs when nothing waits',
  async t => {
    const { take, tick, handled, ticksDue } = setUp()
    take(body('a'), 30)
    take(body('b'), 30)
    take(body('c'), 30)
    tick()
    t.strictSame(handled, ['a', 'b'])
    tick()
    t.strictSame(handled, ['a', 'b', 'c'])
    tick()
    t.equal(ticksDue(), 0, 'the loop is left alone')
  },
)
