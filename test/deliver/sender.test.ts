// A sender that is loaded late.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import { httpAddress } from '../../src/deliver/address.js'
import { LazySender, type Sendable } from '../../src/deliver/sender.js'
import { post } from './messages.js'

/** A sender that is loaded one turn of the event loop later, and the record of its calls. */
function recorded() {
  const done: string[] = []
  const sender = new LazySender(async () => {
    await turnOfTheLoop()
    done.push('loaded')
    return {
      send: ({ message }) => void done.push(`sent ${message.url}`),
      prepare: ({ url }) => void done.push(`prepared ${url}`),
      stats: () => ({ connections: 7 }),
      close: () => void done.push('closed'),
    }
  })
  return { sender, done }
}

const jobTo = (host: string): Sendable => {
  const message = post(`http://${host}`)
  return { message, address: httpAddress(message)!, endByMs: Number.POSITIVE_INFINITY }
}

t.test('it is loaded once, when it is needed, and sends in the order of the calls', async t => {
  const { sender, done } = recorded()
  t.same([done, sender.stats()], [[], { connections: 0 }])
  sender.prepare(post('http://a'))
  sender.send(jobTo('b'), () => {})
  sender.send(jobTo('c'), () => {})
  t.same(done, [])
  await turnOfTheLoop()
  await turnOfTheLoop()
  sender.send(jobTo('d'), () => {})
  t.same(done, ['loaded', 'prepared http://a', 'sent http://b', 'sent http://c', 'sent http://d'])
  t.same(sender.stats(), { connections: 7 })
})

t.test('one that is closed while it is loaded sends nothing', async t => {
  const { sender, done } = recorded()
  sender.send(jobTo('a'), () => {})
  sender.close()
  await turnOfTheLoop()
  await turnOfTheLoop()
  t.same(done, ['loaded', 'closed'])
})
