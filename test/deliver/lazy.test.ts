import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import { Lazy } from '../../src/deliver/lazy.js'

t.test('it is loaded once, when it is needed, and handed over in order', async t => {
  let loads = 0
  const lazy = new Lazy(async () => {
    await turnOfTheLoop()
    return ++loads
  })
  t.same([loads, lazy.loaded], [0, undefined])
  const order: string[] = []
  lazy.use(made => order.push(`first ${made}`))
  lazy.use(made => order.push(`second ${made}`))
  t.same(order, [])
  await turnOfTheLoop()
  await turnOfTheLoop()
  lazy.use(made => order.push(`third ${made}`))
  t.same(order, ['first 1', 'second 1', 'third 1'])
  t.equal(lazy.loaded, 1)
})
