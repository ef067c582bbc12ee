// The node:http front: the contract, and the behaviour of this front alone.

import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { openNodeFront } from '../../src/http/node-front.js'
import { echo, frontContract, serve } from './front-contract.js'

frontContract(t, openNodeFront)

t.test('HTTP/1.0 is served, and its connection closed', async t => {
  const { wire } = await serve(t, openNodeFront, echo)
  await wire.send('POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi')
  t.match(await wire.answer(), { status: 200, body: 'hi' })
  t.ok(await wire.closed)
})

t.test('requests behind one that waits for its answer are answered in order', async t => {
  const { wire } = await serve(t, openNodeFront, exchange => {
    if (exchange.path === '/1') setImmediate(() => exchange.reply(200, [], '1'))
    else exchange.reply(200, [], '2')
    return undefined
  })
  await wire.send('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n')
  t.equal((await wire.answer()).body, '1')
  t.equal((await wire.answer()).body, '2')
})

t.test('a method its parser does not know is answered 400', async t => {
  const { wire } = await serve(t, openNodeFront, echo)
  await wire.request('BREW /')
  t.match(await wire.answer(), { status: 400, headers: { connection: 'close' } })
})

t.test('the address of a proxy request is its path', async t => {
  const { wire } = await serve(t, openNodeFront, exchange => {
    exchange.reply(200, [], `${exchange.path} ${exchange.query}`)
    return undefined
  })
  await wire.request('GET http://broker:1026/v2/types?limit=1')
  t.equal((await wire.answer()).body, '/v2/types limit=1')
})

t.test('an expectation other than 100-continue is left to the handler', async t => {
  const { wire } = await serve(t, openNodeFront, echo)
  await wire.request('POST /', ['Expect: the-best'], 'x')
  t.match(await wire.answer(), { status: 200, body: 'x' })
})

t.test('more than a hundred headers are answered 431', async t => {
  const { wire } = await serve(t, openNodeFront, echo)
  await wire.request(
    'GET /',
    Array.from({ length: 101 }, (_, i) => `h${i}: v`),
  )
  t.equal((await wire.answer()).status, 431)
  t.ok(await wire.closed)
})

t.test('an idle connection is closed after the time given', async t => {
  const { wire } = await serve(t, openNodeFront, echo, { idleTimeoutS: 1 })
  await wire.request('GET /')
  await wire.answer()
  t.ok(await wire.closed)
})

t.test('bytes to a connection that the server has ended are read and dropped, and reset nothing', async t => {
  const received: string[] = []
  const { front, port } = await serve(t, openNodeFront, exchange => {
    received.push(exchange.path)
    exchange.reply(200, [])
    return undefined
  })
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  await once(socket.resume(), 'connect')
  const closed = front.close(60_000)
  await once(socket, 'end')
  const ended = once(socket, 'close') // Rejects if the connection is reset.
  socket.write('GET /late HTTP/1.1\r\nHost: a\r\n\r\n')
  socket.end()
  t.strictSame(await ended, [false])
  t.equal(await closed, undefined)
  t.strictSame(received, [])
})
