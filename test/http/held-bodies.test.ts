// Bodies that come before it is known who asks: they are kept within one limit, and handed on once.

import t from 'tap'
import { HeldBodies, HeldBody } from '../../src/http/held-bodies.js'

const body = Buffer.from('0123456789')

t.test('a body is handed on when it is known who asks, and its room is free again', async t => {
  const room = new HeldBodies(10)
  for (let nth = 0; nth < 3; nth++) {
    const received: string[] = []
    const held = new HeldBody(room, () => t.fail('there is room'))
    held.handlerNow(true)?.(body, undefined)
    t.strictSame(received, [])
    held.give(bytes => void received.push(Buffer.from(bytes).toString()))
    t.strictSame(received, ['0123456789'])
  }
})

t.test('a body without room is refused, and kept bodies stay', async t => {
  const room = new HeldBodies(19)
  const received: string[] = []
  let refused = 0
  const [first, second] = [new HeldBody(room, () => t.fail('there is room')), new HeldBody(room, () => refused++)]
  first.handlerNow(true)?.(body, undefined)
  second.handlerNow(true)?.(body, undefined)
  t.equal(refused, 1)
  t.ok(second.isRefused)
  first.give(bytes => void received.push(Buffer.from(bytes).toString()))
  t.strictSame(received, ['0123456789'])
  t.ok(room.take(19), 'all of it is free')
})

t.test('a request that is refused gives its room back', async t => {
  const room = new HeldBodies(10)
  const held = new HeldBody(room, () => t.fail('there is room'))
  held.handlerNow(true)?.(body, undefined)
  held.give(undefined)
  t.ok(room.take(10))
})
