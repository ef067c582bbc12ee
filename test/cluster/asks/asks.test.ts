// Asks between nodes over real gRPC, on unix sockets and TCP, and over bare sockets: both ways, long replies,
// greetings, lost connections, restarts, full wires, and an end.

import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { commonVersion } from '../../../cluster/asks/asks.js'
import { decodeFrame, encodeFrame, type Frame } from '../../../cluster/asks/frames.js'
import { grpcTransport } from '../../../cluster/asks/grpc-transport.js'
import type { AskHost, Asks, Outcome, Peer } from '../../../cluster/index.js'
import type { Stream } from '../../../cluster/ports.js'
import { askOutcomes, longReplyBytes } from '../node-main.js'
import { addresses, ask, echo, inTime, NodeProcess, socketDirectory, startNode, untilLink, Wire } from '../nodes.js'

/** Time for 30 MB on a busy machine: the deadline of asks is not tested with it. */
const patient = { askDeadlineMs: 15_000 }

/** Two nodes that can reach each other, with a long deadline. `a` dials. */
async function pair(
  t: Test,
  address: (t: Test, name: string) => string,
  hosts: { a?: AskHost; b?: AskHost } = {},
): Promise<{ a: Asks; b: Asks }> {
  const names: Peer[] = ['a', 'b'].map(name => ({ name, address: address(t, name) }))
  const b = await startNode(t, names[1]!, [names[0]!], hosts.b, patient)
  const a = await startNode(t, names[0]!, [{ name: 'b', address: b.address }], hosts.a, patient)
  await Promise.all([untilLink(a, 'b'), untilLink(b, 'a')])
  return { a, b }
}

const reply = (text: string): Outcome => ({ kind: 'reply', reply: Buffer.from(text) })

for (const [kind, address] of Object.entries(addresses)) {
  t.test(`over ${kind} both nodes ask over one stream`, async t => {
    const { a, b } = await pair(t, address)
    t.strictSame(await ask(a, 'b', 3, 'to b'), reply('to b'))
    t.strictSame(await ask(b, 'a', 3, 'to a'), reply('to a'))
    t.strictSame(await ask(a, 'b', 3, ''), reply(''))
  })

  t.test(`over ${kind} a thousand asks get each their own reply`, async t => {
    const { a, b } = await pair(t, address)
    const asks = Array.from({ length: 1000 }, (_, n) =>
      ask(n % 2 ? a : b, n % 2 ? 'b' : 'a', 0, `ask ${n} ${'x'.repeat(n)}`),
    )
    const outcomes = await Promise.all(asks)
    t.ok(outcomes.every((outcome, n) => outcome.kind === 'reply' && outcome.reply.toString().startsWith(`ask ${n} `)))
  })

  t.test(`over ${kind} a reply of 30 MB comes whole, and short ones do not wait for it`, async t => {
    const order: string[] = []
    const host: AskHost = {
      onAsk: (shard, request, onReply) => onReply(shard === 1 ? Buffer.alloc(longReplyBytes, request) : request),
    }
    const { a } = await pair(t, address, { b: host })
    const long = ask(a, 'b', 1, 'orrery').then(outcome => {
      order.push('long')
      return outcome
    })
    const short = ask(a, 'b', 0, 'short').then(() => order.push('short'))
    const outcome = await long
    await short
    t.ok(outcome.kind === 'reply' && outcome.reply.equals(Buffer.alloc(longReplyBytes, 'orrery')), outcome.kind)
    t.strictSame(order, ['short', 'long'])
  })

  t.test(`over ${kind} a request of 30 MB comes whole`, async t => {
    const { a } = await pair(t, address)
    const request = Buffer.alloc(longReplyBytes, 'request')
    const outcome = await ask(a, 'b', 0, request)
    t.ok(outcome.kind === 'reply' && outcome.reply.equals(request), outcome.kind)
  })

  t.test(`over ${kind} closing ends asks that wait, and the address is free again`, async t => {
    const { a, b } = await pair(t, address, { b: { onAsk: () => {} } })
    const sent = ask(a, 'b', 0, 'sent')
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    const held = ask(a, 'b', 0, 'held')
    const closed = a.close()
    t.match(await sent, { kind: 'unknown' })
    t.match(await held, { kind: 'unavailable' })
    await closed
    t.match(await ask(a, 'b', 0, 'later'), { kind: 'unavailable' })
    await untilLink(b, 'a', false)
    await b.close()
    await startNode(t, { name: 'b', address: b.address }, [])
  })

  t.test(`over ${kind} a process that is killed is soon unavailable, and reachable again when it is back`, async t => {
    const self = { name: 'a', address: address(t, 'a') }
    const setting = { self: { name: 'b', address: address(t, 'b') }, parent: self }
    const first = await NodeProcess.start(t, setting)
    const a = await startNode(t, self, [{ name: 'b', address: first.peer }])
    await untilLink(a, 'b')
    const open = ask(a, 'b', askOutcomes.noReply, 'open')
    await first.until('begun', () => first.begun.includes('open'))
    await first.kill()
    await untilLink(a, 'b', false)
    t.match(await ask(a, 'b', askOutcomes.echo, 'nobody'), { kind: 'unavailable' })
    await NodeProcess.start(t, { ...setting, self: { name: 'b', address: first.peer } })
    await untilLink(a, 'b')
    t.match(await open, { kind: 'unknown' })
    t.strictSame(await ask(a, 'b', askOutcomes.echo, 'again'), reply('again'))
  })
}

t.test('an ask that runs while its stream is cut is answered over the next one', async t => {
  const replies: (() => void)[] = []
  const host: AskHost = { onAsk: (_shard, request, onReply) => replies.push(() => onReply(request)) }
  const b = await startNode(t, { name: 'b', address: '127.0.0.1:0' }, [{ name: 'a', address: '127.0.0.1:0' }], host)
  const wire = await Wire.to(t, b.address)
  const a = await startNode(
    t,
    { name: 'a', address: '127.0.0.1:0' },
    [{ name: 'b', address: wire.address }],
    echo,
    patient,
  )
  await untilLink(a, 'b')
  const outcome = ask(a, 'b', 0, 'patience')
  while (replies.length === 0) await new Promise(resolve => setImmediate(resolve))
  wire.cut()
  await untilLink(a, 'b', false)
  replies[0]!()
  t.strictSame(await outcome, reply('patience'))
  t.equal(replies.length, 1, 'it was asked once')
})

t.test('when the wire takes nothing asks wait within bounds, and none is begun after its time', async t => {
  let begun = 0
  const host: AskHost = {
    onAsk: (_shard, _request, onReply) => {
      begun++
      onReply(Buffer.alloc(0))
    },
  }
  const b = await startNode(t, { name: 'b', address: '127.0.0.1:0' }, [{ name: 'a', address: '127.0.0.1:0' }], host)
  const wire = await Wire.to(t, b.address)
  const a = await startNode(t, { name: 'a', address: '127.0.0.1:0' }, [{ name: 'b', address: wire.address }], echo, {
    askDeadlineMs: 3000,
  })
  await untilLink(a, 'b')
  wire.clog()
  const request = Buffer.alloc(1_000_000)
  const outcomes = await Promise.all(Array.from({ length: 100 }, () => ask(a, 'b', 0, request)))
  const count = (kind: string) => outcomes.filter(outcome => outcome.kind === kind).length
  t.ok(count('unknown') > 0 && count('unavailable') > 36, `${count('unknown')} sent, ${count('unavailable')} not`)
  const reasons = new Set(outcomes.map(outcome => ('reason' in outcome ? outcome.reason : 'none')))
  t.ok(reasons.has('too many asks to node b are waiting') && reasons.has('it could not be sent in time'))
  wire.unclog()
  await untilLink(a, 'b')
  t.match(await ask(a, 'b', 0, 'again'), { kind: 'reply' })
  t.equal(begun, 1, 'only the last one')
})

const greeting = (hello: Partial<Frame['hello'] & object>): Buffer =>
  encodeFrame({
    sentMs: 1,
    echoMs: undefined,
    ping: true,
    hello: { lowest: 2, highest: 2, name: 'a', incarnation: 'i', to: 'b', ...hello },
    trouble: undefined,
    asks: [],
    answers: [],
  })

/** The answer of a listening node `b`, which knows `a` and `c`, to a node that sends this as the first message. */
async function received(t: Test, first: Buffer | undefined, options = {}, troubles: string[] = []): Promise<string> {
  const unused = '127.0.0.1:0'
  const peers = ['a', 'c'].map(name => ({ name, address: unused }))
  const b = await startNode(t, { name: 'b', address: unused }, peers, echo, options)
  b.onTrouble(trouble => troubles.push(trouble))
  return new Promise(resolve => {
    const stream = grpcTransport().dial(b.address, {
      onMessage: message => {
        const { name, refusal } = decodeFrame(message)?.hello ?? {}
        resolve(refusal ?? `hello from ${name}`)
        stream.close('enough')
      },
      onDrain: () => {},
      onClosed: resolve,
    })
    if (first) stream.send(first)
  })
}

t.test('a proper greeting is answered with a greeting', async t => {
  t.equal(await received(t, greeting({})), 'hello from b')
})

t.test('an unknown node is rejected, and so is one that dials although it should be dialed', async t => {
  t.equal(await received(t, greeting({ name: 'x' })), 'this node does not expect you')
  t.equal(await received(t, greeting({ name: 'c' })), 'this node does not expect you')
})

t.test('a node that means another node is rejected', async t => {
  t.equal(await received(t, greeting({ to: 'z' })), 'this is node b, not z')
})

t.test('a common version gets a greeting; without one the node gets the reason, which is logged', async t => {
  t.equal(await received(t, greeting({ lowest: 1, highest: 9 })), 'hello from b')
  const troubles: string[] = []
  const others = { lowest: 7, highest: 9 }
  const reason = 'node a speaks versions 7 to 9 of the protocol, and node b version 2: upgrade the older one'
  t.equal(await received(t, greeting(others), {}, troubles), reason)
  t.strictSame(troubles, [reason])
})

t.test('of the versions that both speak the highest is spoken', async t => {
  t.equal(commonVersion({ lowest: 2, highest: 4 }, { lowest: 1, highest: 3 }), 3)
  t.equal(commonVersion({ lowest: 2, highest: 2 }, { lowest: 1, highest: 2 }), 2)
  t.equal(commonVersion({ lowest: 3, highest: 4 }, { lowest: 1, highest: 2 }), undefined)
  t.equal(commonVersion({ lowest: 2, highest: 2 }, { lowest: 2, highest: 1 }), undefined, 'nonsense')
})

t.test('a node that is rejected for its version logs that, and tries again', async t => {
  const greetings: string[] = []
  const listening = await grpcTransport().listen('127.0.0.1:0', {
    onStream: stream => ({
      onMessage: () => {
        greetings.push('greeted')
        stream.send(greeting({ name: 'b', to: 'a', lowest: 8, highest: 8, refusal: 'b is much newer' }))
        stream.close()
      },
      onDrain: () => {},
      onClosed: () => {},
    }),
  })
  t.teardown(() => listening.close())
  const a = await startNode(t, { name: 'a', address: '127.0.0.1:0' }, [{ name: 'b', address: listening.address }])
  const troubles: string[] = []
  a.onTrouble(trouble => troubles.push(trouble))
  await inTime('two greetings', resolve => {
    const timer = setInterval(() => greetings.length >= 2 && resolve(clearInterval(timer)), 5)
  })
  t.strictSame(troubles, ['b is much newer'], 'once a minute')
  t.match(await ask(a, 'b', 0, 'ask'), { kind: 'unavailable', reason: /b is much newer/ })
})

t.test('unreadable bytes end the stream, are counted, and are reported to the log and to their sender', async t => {
  const b = await startNode(t, { name: 'b', address: '127.0.0.1:0' }, [{ name: 'a', address: '127.0.0.1:0' }])
  const troubles: string[] = []
  b.onTrouble(trouble => troubles.push(trouble))
  const reported = new Promise<string>(resolve => {
    const stream = grpcTransport().dial(b.address, {
      onMessage: () => stream.send(Buffer.from('nonsense')),
      onDrain: () => {},
      onClosed: resolve,
    })
    stream.send(greeting({}))
  })
  t.equal(await reported, 'it sent something that is no frame')
  t.match(b.statsOf('a'), { protocol: 2, undecodable: 1 })
  t.strictSame(troubles, ['node a sent something that cannot be read: something that is no frame'])
})

t.test('a node without an incarnation, or one that does not begin with a greeting, is rejected', async t => {
  t.equal(await received(t, greeting({ incarnation: '' })), 'no incarnation')
  t.equal(await received(t, Buffer.from('hello')), 'this node does not expect you')
})

t.test('a silent connection is rejected in time', async t => {
  t.equal(await received(t, undefined, { pingMs: 50, silentMs: 100 }), 'no greeting in time')
})

t.test('a newer stream of a node takes the place of the older one', async t => {
  const b = await startNode(t, { name: 'b', address: '127.0.0.1:0' }, [{ name: 'a', address: '127.0.0.1:0' }])
  const first = new Promise<string>(resolve => {
    const stream = grpcTransport().dial(b.address, { onMessage: () => {}, onDrain: () => {}, onClosed: resolve })
    stream.send(greeting({ incarnation: 'first' }))
  })
  await untilLink(b, 'a')
  const second = grpcTransport().dial(b.address, { onMessage: () => {}, onDrain: () => {}, onClosed: () => {} })
  second.send(greeting({ incarnation: 'second' }))
  t.equal(await first, 'there is a newer stream')
  second.close('enough')
})

t.test('of many silent connections the oldest is rejected, so that a greeting node is accepted', async t => {
  const neighbours = [{ name: 'a', address: '127.0.0.1:0' }]
  const patient = { silentMs: 60_000, abandonMs: 60_000 }
  const b = await startNode(t, { name: 'b', address: '127.0.0.1:0' }, neighbours, echo, patient)
  const strangers = new Set<Stream>()
  const reason = await new Promise<string>(resolve => {
    for (let left = 65; left > 0; left--) {
      strangers.add(grpcTransport().dial(b.address, { onMessage: () => {}, onDrain: () => {}, onClosed: resolve }))
    }
  })
  t.equal(reason, 'too many strangers')
  const node = grpcTransport().dial(b.address, { onMessage: () => {}, onDrain: () => {}, onClosed: () => {} })
  node.send(greeting({}))
  await untilLink(b, 'a')
  for (const stream of [...strangers, node]) stream.close('enough')
})

t.test('callers at a rejected node get the reason of the rejection', async t => {
  const unused = '127.0.0.1:0'
  const b = await startNode(t, { name: 'b', address: unused }, [])
  const a = await startNode(t, { name: 'a', address: unused }, [{ name: 'b', address: b.address }])
  let outcome = await ask(a, 'b', 0, '')
  while ('reason' in outcome && /no connection yet/.test(outcome.reason)) {
    await new Promise(resolve => setTimeout(resolve, 5))
    outcome = await ask(a, 'b', 0, '')
  }
  t.match(outcome, { kind: 'unavailable', reason: 'node b cannot be reached: this node does not expect you' })
})

t.test('a node that is met later can be asked, and so can we', async t => {
  const a = await startNode(t, { name: 'a', address: '127.0.0.1:0' }, [])
  const b = await startNode(t, { name: 'b', address: '127.0.0.1:0' }, [])
  b.meet({ name: 'a', address: a.address })
  a.meet({ name: 'b', address: b.address })
  await Promise.all([untilLink(a, 'b'), untilLink(b, 'a')])
  t.strictSame(await ask(a, 'b', 0, 'to b'), reply('to b'))
  t.strictSame(await ask(b, 'a', 0, 'to a'), reply('to a'))
})

t.test('asks to a node that parts end at once: unknown if they were sent, else unavailable', async t => {
  for (const parts of ['a', 'b'] as const) {
    const silent: AskHost = { onAsk: () => {} }
    const both = await pair(t, addresses.TCP, { a: silent, b: silent })
    const other = parts === 'a' ? 'b' : 'a'
    const sent = ask(both[parts], other, 0, 'sent')
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    const held = ask(both[parts], other, 0, 'held')
    both[parts].part(other, 'it is gone')
    t.equal(both[parts].reachable(other), false)
    t.match(await sent, { kind: 'unknown', reason: 'it is gone' })
    t.match(await held, { kind: 'unavailable', reason: `node ${other} cannot be reached: it is gone` })
    t.match(await ask(both[parts], other, 0, ''), { kind: 'unavailable', reason: `there is no node ${other}` })
  }
})

t.test('a parted node gets the reason, is not expected any more, and can be met again', async t => {
  const { a, b } = await pair(t, addresses.TCP)
  const reported = new Promise<string>(resolve => a.onChange((_node, _up, reason) => resolve(reason)))
  b.part('a', 'you are taken for gone')
  t.equal(await reported, 'you are taken for gone')
  let outcome = await ask(a, 'b', 0, '')
  while (!('reason' in outcome) || !outcome.reason.includes('does not expect')) {
    await new Promise(resolve => setTimeout(resolve, 5))
    outcome = await ask(a, 'b', 0, '')
  }
  b.meet({ name: 'a', address: a.address })
  await Promise.all([untilLink(a, 'b'), untilLink(b, 'a')])
  t.strictSame(await ask(a, 'b', 0, 'again'), reply('again'))
})

t.test('a late answer to an ask from before a parting is dropped when the node is met again', async t => {
  const replies: (() => void)[] = []
  const host: AskHost = {
    onAsk: (shard, request, onReply) => (shard === 1 ? replies.push(() => onReply(request)) : onReply(request)),
  }
  const { a, b } = await pair(t, addresses.TCP, { b: host })
  const old = ask(a, 'b', 1, 'old')
  while (replies.length === 0) await new Promise(resolve => setImmediate(resolve))
  const down = untilLink(b, 'a', false)
  a.part('b', 'it seems gone')
  t.match(await old, { kind: 'unknown' })
  await down
  replies[0]!()
  a.meet({ name: 'b', address: b.address })
  await Promise.all([untilLink(a, 'b'), untilLink(b, 'a')])
  t.strictSame(await ask(a, 'b', 0, 'new'), reply('new'))
})

t.test('meeting a node that is known changes nothing', async t => {
  const replies: (() => void)[] = []
  const host: AskHost = { onAsk: (_shard, request, onReply) => replies.push(() => onReply(request)) }
  const { a, b } = await pair(t, addresses.TCP, { b: host })
  const changes: string[] = []
  a.onChange((node, up, reason) => changes.push(`${node} is ${up}: ${reason}`))
  const outcome = ask(a, 'b', 0, 'still here')
  while (replies.length === 0) await new Promise(resolve => setImmediate(resolve))
  a.meet({ name: 'b', address: b.address })
  replies[0]!()
  t.strictSame(await outcome, reply('still here'))
  t.strictSame(changes, [])
})

t.test('a node that has moved is found at its new address, and an ask in flight has an outcome', async t => {
  const replies: (() => void)[] = []
  const host: AskHost = { onAsk: (_shard, request, onReply) => replies.push(() => onReply(request)) }
  const { a, b } = await pair(t, addresses.TCP, { b: host })
  const open = ask(a, 'b', 0, 'open')
  while (replies.length === 0) await new Promise(resolve => setImmediate(resolve))
  const elsewhere = await startNode(t, { name: 'b', address: '127.0.0.1:0' }, [{ name: 'a', address: a.address }])
  t.not(elsewhere.address, b.address)
  a.meet({ name: 'b', address: elsewhere.address })
  await untilLink(elsewhere, 'a')
  t.match(await open, { kind: 'unknown', reason: 'the node has restarted' })
  t.strictSame(await ask(a, 'b', 0, 'there'), reply('there'))
})

t.test('the same process at another address answers earlier asks', async t => {
  const replies: (() => void)[] = []
  const host: AskHost = { onAsk: (_shard, request, onReply) => replies.push(() => onReply(request)) }
  const { a, b } = await pair(t, addresses.TCP, { b: host })
  const wire = await Wire.to(t, b.address)
  const outcome = ask(a, 'b', 0, 'patience')
  while (replies.length === 0) await new Promise(resolve => setImmediate(resolve))
  a.meet({ name: 'b', address: wire.address })
  await untilLink(a, 'b')
  replies[0]!()
  t.strictSame(await outcome, reply('patience'))
  t.equal(wire.dialed, 1)
})

t.test('a node at an invalid address is unavailable, and that is reported', async t => {
  const a = await startNode(t, { name: 'a', address: '127.0.0.1:0' }, [])
  for (const [n, address] of ['here', 'host:99999', 'dns:///x', 'unix:y', `${'x'.repeat(400)}:1`].entries()) {
    a.meet({ name: `b${n}`, address })
    let outcome = await ask(a, `b${n}`, 0, '')
    while ('reason' in outcome && /no connection yet/.test(outcome.reason)) {
      await new Promise(resolve => setTimeout(resolve, 5))
      outcome = await ask(a, `b${n}`, 0, '')
    }
    t.match(outcome, { kind: 'unavailable', reason: /not an address/ }, address.slice(0, 20))
  }
})

t.test('a host gets the view of the ask, and 0 when the asker has none', async t => {
  const views: number[] = []
  const host: AskHost = {
    onAsk: (_shard, request, onReply, view) => {
      views.push(view)
      onReply(request)
    },
  }
  const { a } = await pair(t, addresses.TCP, { b: host })
  await new Promise(resolve => a.ask('b', 0, Buffer.alloc(1), resolve, undefined, 2 ** 53 - 1))
  await ask(a, 'b', 0, '')
  t.strictSame(views, [2 ** 53 - 1, 0])
})

t.test('an unknown node is unavailable', async t => {
  const asks = await startNode(t, { name: 'a', address: '127.0.0.1:0' }, [])
  t.match(await ask(asks, 'z', 0, ''), { kind: 'unavailable', reason: 'there is no node z' })
  t.equal(asks.reachable('z'), false)
})

t.test('two nodes of one name are a bug', async t => {
  const peer = { name: 'a', address: '127.0.0.1:0' }
  await t.rejects(startNode(t, peer, [peer]), /two nodes have one name/)
})

t.test('a port in use is reported', async t => {
  const { address } = await startNode(t, { name: 'a', address: '127.0.0.1:0' }, [])
  await t.rejects(startNode(t, { name: 'b', address }, []), /cannot listen on 127\.0\.0\.1:\d+/)
})

t.test('a unix socket is for this user only, and its file goes with the node', async t => {
  const path = join(socketDirectory(t), 's')
  const asks = await startNode(t, { name: 'a', address: `unix:${path}` }, [])
  t.equal(statSync(path).mode & 0o777, 0o600)
  await asks.close()
  t.equal(statSync(path, { throwIfNoEntry: false }), undefined)
})

t.test('the socket of a process that was killed is taken over, that of a living one is not', async t => {
  const path = join(socketDirectory(t), 's')
  const parent = { name: 'a', address: '127.0.0.1:0' }
  const setting = { self: { name: 'b', address: `unix:${path}` }, parent }
  const first = await NodeProcess.start(t, setting)
  await t.rejects(startNode(t, setting.self, []), { message: `another process listens on ${path}` })
  await first.kill()
  t.ok(statSync(path).isSocket(), 'its file is still there')
  t.equal((await startNode(t, setting.self, [])).address, setting.self.address)
})

t.test('a path that is no place for a socket is refused', async t => {
  const directory = socketDirectory(t)
  const file = join(directory, 'file')
  writeFileSync(file, 'precious')
  await t.rejects(startNode(t, { name: 'a', address: `unix:${file}` }, []), /another file than a socket/)
  const long = join(directory, 'x'.repeat(100))
  await t.rejects(startNode(t, { name: 'a', address: `unix:${long}` }, []), /may have 103 bytes/)
  await t.rejects(startNode(t, { name: 'a', address: 'unix:here' }, []), /begins with a slash/)
})
