// Asking providers over real sockets: some answer, stall, reset, send nonsense or send too much. None may cost the
// others much.

import type { ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/clock.js'
import {
  Forwarder,
  type ForwarderLimits,
  type ForwarderOptions,
  forwarderLimitsByDefault,
} from '../../src/deliver/forwarder.js'
import { openSockets } from '../../src/deliver/sockets/sockets.js'
import type { ProviderAnswer } from '../../src/ports.js'
import { freePort } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'
import { certificateFor, httpReceiver, plainReceiver, until } from './receivers.js'

t.setTimeout(600_000)

interface Given extends Partial<ForwarderOptions> {
  readonly few?: Partial<ForwarderLimits>
  readonly clock?: ConstructorParameters<typeof Forwarder>[0]
  readonly tls?: Parameters<typeof openSockets>[0]
}

function started(t: Test, given: Given = {}): Forwarder {
  const { few, clock = systemClock, tls = { insecure: false, caFile: undefined }, ...options } = given
  const limits = { ...forwarderLimitsByDefault, ...few }
  const forwarder = new Forwarder(clock, openSockets(tls), {
    timeoutMs: 5_000,
    messageBytesMax: 8_388_608,
    limits,
    ...options,
  })
  t.teardown(() => forwarder.close())
  return forwarder
}

interface More {
  readonly body?: string
  readonly headers?: readonly string[]
  readonly isRepeatable?: boolean
}

const ask = (forwarder: Forwarder, url: string, more: More = {}): Promise<ProviderAnswer> =>
  new Promise(resolve => forwarder.ask({ url, headers: [], body: '{}', isRepeatable: true, ...more }, resolve))

/** The answer in short: its status and body, or the reason. */
const shown = (answer: ProviderAnswer): string =>
  answer.kind === 'answered' ? `${answer.status} ${answer.body}` : answer.reason

t.test('a provider gets the request as it was made, and its answer comes back as a whole', async t => {
  const provider = await httpReceiver(t, (_request, response) => {
    response.writeHead(404, { 'Ctx-Total-Count': '7', 'Content-Type': 'application/json' })
    response.write('[{"id"')
    response.end(':"é"}]')
  })
  const forwarder = started(t)
  const headers = ['Ctx-Correlator', 'é; cbfwd=1', 'X-Auth-Token', 'secret']
  const url = `${provider.url}/v2/op/query?limit=20&a=é`
  const answer = await ask(forwarder, url, { body: '{"é":1}', headers })
  t.equal(shown(answer), '404 [{"id":"é"}]')
  t.equal(answer.kind === 'answered' && answer.header('ctx-total-count'), '7')
  const [request] = provider.received
  t.match(request, { method: 'POST', path: '/v2/op/query?limit=20&a=%C3%A9', body: '{"é":1}' })
  const sent = Object.fromEntries(
    Array.from({ length: request!.headers.length / 2 }, (_, at) => [
      request!.headers[2 * at]!.toLowerCase(),
      Buffer.from(request!.headers[2 * at + 1]!, 'latin1').toString(),
    ]),
  )
  t.match(sent, {
    host: `127.0.0.1:${provider.port}`,
    'content-length': '8',
    'ctx-correlator': 'é; cbfwd=1',
    'x-auth-token': 'secret',
  })
})

t.test('a connection is used again', async t => {
  const provider = await httpReceiver(t)
  const forwarder = started(t)
  for (let n = 0; n < 5; n++) t.equal(shown(await ask(forwarder, provider.url)), '204 ')
  t.equal(provider.connections, 1)
})

t.test('a provider that closes its connections is asked on new ones', async t => {
  const provider = await httpReceiver(t, (_request, response) => {
    response.writeHead(204, { Connection: 'close' }).end()
  })
  const forwarder = started(t)
  for (let n = 0; n < 5; n++) t.equal(shown(await ask(forwarder, provider.url, { isRepeatable: false })), '204 ')
  t.equal(provider.connections, 5)
})

/** A provider that serves one request of a connection, and resets the connection at the next one. */
async function forgetful(t: Test) {
  let served = 0
  const provider = await plainReceiver(t, socket => {
    let seen = 0
    socket.on('data', () => {
      served++
      if (++seen === 1) socket.write('HTTP/1.1 204 No Content\r\n\r\n')
      else socket.resetAndDestroy()
    })
  })
  return { provider, served: () => served }
}

t.test('a query on a connection that is lost goes out once more', async t => {
  const { provider, served } = await forgetful(t)
  const forwarder = started(t)
  t.equal(shown(await ask(forwarder, provider.url)), '204 ')
  t.equal(shown(await ask(forwarder, provider.url)), '204 ')
  t.equal(served(), 3)
})

t.test('an update never goes out twice', async t => {
  const { provider, served } = await forgetful(t)
  const forwarder = started(t)
  await ask(forwarder, provider.url)
  t.equal(
    shown(await ask(forwarder, provider.url, { isRepeatable: false })),
    'Server returned nothing (no headers, no data)',
  )
  t.equal(served(), 2)
})

t.test('an update is not sent on a connection that has rested', async t => {
  const provider = await httpReceiver(t)
  const clock = new FakeClock()
  const forwarder = started(t, { clock })
  await ask(forwarder, provider.url)
  clock.advance(1_001)
  await ask(forwarder, provider.url, { isRepeatable: false })
  t.equal(provider.connections, 2)
  await ask(forwarder, provider.url, { isRepeatable: false })
  t.equal(provider.connections, 2)
})

t.test('failures are reported in the words of notifications', async t => {
  const forwarder = started(t, { timeoutMs: 200, messageBytesMax: 1_000 })
  const silent = await plainReceiver(t, () => {})
  const closing = await plainReceiver(t, socket => socket.on('data', () => socket.end()))
  const garbage = await plainReceiver(t, socket => socket.on('data', () => socket.end('nonsense\r\n\r\n')))
  const half = await plainReceiver(t, socket =>
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[')),
  )
  const refusing = `http://127.0.0.1:${await freePort()}`
  const table: readonly (readonly [url: string, reason: string, more?: More])[] = [
    [silent.url, 'Timeout was reached'],
    [half.url, 'Timeout was reached'],
    [closing.url, 'Server returned nothing (no headers, no data)'],
    [garbage.url, 'The answer is not HTTP'],
    [refusing, "Couldn't connect to server"],
    ['http://no.such.host.invalid', "Couldn't resolve host name"],
    [silent.url, 'total outgoing message size is too big', { body: 'x'.repeat(900), headers: ['a', 'b'.repeat(60)] }],
    ['mqtt://h', 'Not a URL of a provider'],
  ]
  for (const [url, reason, more] of table) {
    const answer = await ask(forwarder, url, more)
    // A machine without a resolver reports the missing host later.
    if (url.endsWith('invalid')) t.match(shown(answer), /^(Couldn't resolve host name|Timeout was reached)$/)
    else t.equal(shown(answer), reason)
  }
})

t.test('an answer that is too large is not read to its end', async t => {
  let written = 0
  const provider = await httpReceiver(t, (_request, response) => {
    response.writeHead(200)
    const chunk = Buffer.alloc(64 * 1024, 0x20)
    const more = (): void => {
      while (!response.destroyed && response.write(chunk)) written += chunk.length
    }
    response.on('drain', more)
    more()
  })
  const forwarder = started(t)
  t.equal(shown(await ask(forwarder, provider.url)), 'The answer is too large')
  await until(() => provider.open === 0, 'the connection is closed')
  t.ok(written < 30 * 1024 * 1024, `${written} bytes`)
})

t.test('an answer of ten megabytes is read', async t => {
  const text = `[${'"é",'.repeat(1_900_000)}1]`
  const provider = await httpReceiver(t, (_request, response) => void response.writeHead(200).end(text))
  const answer = await ask(started(t), provider.url)
  t.ok(answer.kind === 'answered' && answer.body.equals(Buffer.from(text)))
})

t.test('a request that is given up while it is connecting costs no more than its deadline', async t => {
  // A server with a queue of one connection. The requests below do not use it.
  const server = createServer()
  await new Promise<void>(resolve => server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, resolve))
  t.teardown(() => server.close())
  const clock = new FakeClock()
  const forwarder = started(t, { clock, timeoutMs: 1_000, few: { laneUnprovenSendsMax: 2 } })
  // No host has the address 10.255.255.1: a connection there never completes, or is refused at once on a machine
  // without a network.
  const answers = [1, 2, 3].map(() => ask(forwarder, 'http://10.255.255.1:9'))
  clock.advance(1_000)
  for (const answer of await Promise.all(answers)) t.equal(answer.kind, 'failed')
})

t.test('the time of a request may have begun before the call', async t => {
  const provider = await plainReceiver(t, () => {})
  const clock = new FakeClock()
  const forwarder = started(t, { clock, timeoutMs: 1_000 })
  const sinceMs = clock.monoMs()
  clock.advance(900)
  let failure: string | undefined
  const answer = new Promise<void>(resolve =>
    forwarder.ask({ url: provider.url, headers: [], body: '{}', isRepeatable: true, sinceMs }, answer => {
      failure = shown(answer)
      resolve()
    }),
  )
  clock.advance(99)
  t.equal(failure, undefined)
  clock.advance(1)
  await answer
  t.equal(failure, 'Timeout was reached')
  t.equal(
    await new Promise(resolve =>
      forwarder.ask({ url: provider.url, headers: [], body: '{}', isRepeatable: true, sinceMs }, late =>
        resolve(shown(late)),
      ),
    ),
    'Timeout was reached',
  )
})

/** A provider that answers when the test calls `release`. */
async function patient(t: Test) {
  const held: ServerResponse[] = []
  const provider = await httpReceiver(t, (_request, response) => void held.push(response))
  const release = (): void => {
    for (const response of held.splice(0)) response.writeHead(204).end()
  }
  return { provider, held, release }
}

t.test('to one provider so many requests go at a time, fewer until it has answered', async t => {
  const { provider, held, release } = await patient(t)
  const forwarder = started(t, { few: { laneSendsMax: 5, laneUnprovenSendsMax: 2 } })
  const answers = Array.from({ length: 12 }, () => ask(forwarder, provider.url))
  await until(() => held.length === 2, 'the first two')
  release()
  await until(() => held.length === 5, 'the next five')
  await new Promise(resolve => setImmediate(resolve))
  t.equal(held.length, 5)
  release()
  await until(() => held.length === 5, 'the last five')
  release()
  t.strictSame([...new Set((await Promise.all(answers)).map(shown))], ['204 '])
})

t.test('a provider that does not answer delays no other one', async t => {
  const dead = await patient(t)
  const alive = await httpReceiver(t)
  const forwarder = started(t, { few: { laneUnprovenSendsMax: 2, sendsMax: 4 } })
  const lost = Array.from({ length: 20 }, () => ask(forwarder, dead.provider.url))
  await until(() => dead.held.length === 2, 'two requests hang')
  const startMs = performance.now()
  for (let n = 0; n < 20; n++) t.equal(shown(await ask(forwarder, alive.url)), '204 ')
  t.ok(performance.now() - startMs < 2_000)
  forwarder.close()
  for (const answer of await Promise.all(lost)) t.equal(shown(answer), 'The broker is stopping')
})

t.test('many providers that do not answer leave room for those that do', async t => {
  const dead = await Promise.all([1, 2, 3, 4].map(() => patient(t)))
  const alive = await httpReceiver(t)
  const forwarder = started(t, { few: { laneUnprovenSendsMax: 2, sendsMax: 6 } })
  t.equal(shown(await ask(forwarder, alive.url)), '204 ')
  for (const { provider } of dead) for (let n = 0; n < 3; n++) ask(forwarder, provider.url)
  await until(() => dead.flatMap(({ held }) => held).length === 5, 'five requests hang')
  t.equal(shown(await ask(forwarder, alive.url)), '204 ')
})

t.test('waiting counts within the deadline, and a request without room fails at once', async t => {
  const { provider } = await patient(t)
  const clock = new FakeClock()
  const few = { laneUnprovenSendsMax: 1, laneQueueMax: 2 }
  const forwarder = started(t, { clock, timeoutMs: 1_000, few })
  // After this first request, later ones are in flight at once.
  await ask(forwarder, (await httpReceiver(t)).url)
  const answers = [1, 2, 3].map(() => ask(forwarder, provider.url))
  t.equal(shown(await ask(forwarder, provider.url)), 'Too many requests wait for providers')
  clock.advance(999)
  await new Promise(resolve => setImmediate(resolve))
  clock.advance(1)
  for (const answer of await Promise.all(answers)) t.equal(shown(answer), 'Timeout was reached')
  const next = ask(forwarder, provider.url)
  clock.advance(1_000)
  t.equal(shown(await next), 'Timeout was reached', 'and there is room again')
})

t.test('a request that has waited for nearly all of its time is not begun, and fails when it is over', async t => {
  const { provider } = await patient(t)
  const clock = new FakeClock()
  const forwarder = started(t, { clock, timeoutMs: 1_000, few: { laneUnprovenSendsMax: 1, timeLeftShareMin: 0.1 } })
  await ask(forwarder, (await httpReceiver(t)).url)
  const ended: string[] = []
  const asked = (name: string): void =>
    void ask(forwarder, provider.url, { body: name }).then(answer => ended.push(`${name}: ${shown(answer)}`))
  asked('first')
  clock.advance(50)
  asked('late')
  await until(() => provider.received.length === 1)
  clock.advance(150)
  asked('in time')
  clock.advance(800)
  await until(() => provider.received.length === 2)
  t.strictSame(
    provider.received.map(({ body }) => body),
    ['first', 'in time'],
  )
  t.strictSame(ended, ['first: Timeout was reached'])
  clock.advance(50)
  await until(() => ended.length === 2)
  t.equal(ended[1], 'late: Timeout was reached')
  clock.advance(150)
  await until(() => ended.length === 3)
  t.equal(ended[2], 'in time: Timeout was reached')
})

t.test('there are no more connections than requests at a time: the longest idle ones are closed', async t => {
  const providers = await Promise.all([1, 2, 3, 4].map(() => httpReceiver(t)))
  const forwarder = started(t, { few: { lanesMax: 2, sendsMax: 1 } })
  for (const { url } of providers) await ask(forwarder, url)
  await until(() => providers.filter(({ open }) => open > 0).length === 2, 'two connections are closed')
  t.strictSame(
    providers.map(({ open }) => open),
    [0, 0, 1, 1],
  )
})

t.test('a provider over HTTPS is verified', async t => {
  const certificate = certificateFor(t, 'IP:127.0.0.1')
  const provider = await httpReceiver(t, undefined, certificate)
  const unknown = 'Peer certificate cannot be authenticated with given CA certificates'
  t.equal(shown(await ask(started(t), provider.url)), unknown)
  const trusting = started(t, { tls: { insecure: false, caFile: certificate.certFile } })
  t.equal(shown(await ask(trusting, provider.url)), '204 ')
  t.equal(shown(await ask(started(t, { tls: { insecure: true, caFile: undefined } }), provider.url)), '204 ')
})

t.test('when the forwarder is closed everything ends', async t => {
  const { provider, held } = await patient(t)
  const forwarder = started(t)
  const answer = ask(forwarder, provider.url)
  await until(() => held.length === 1)
  forwarder.close()
  t.equal(shown(await answer), 'The broker is stopping')
  t.equal(shown(await ask(forwarder, provider.url)), 'The broker is stopping')
  await until(() => provider.open === 0, 'the connection is closed')
})
