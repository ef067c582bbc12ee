// Calls over real gRPC: a message there and one back, in time or not at all, and limits on both sides.

import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Client, credentials, Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader'
import t, { type Test } from 'tap'
import { Calls, callService, callTaker, decodePacket, encodePacket } from '../../cluster/asks/grpc-calls.js'
import { grpcTransport } from '../../cluster/asks/grpc-transport.js'
import { callBytesMax, callsMax, callsPerConnectionMax } from '../../cluster/options.js'
import type { OnCall, Transport } from '../../cluster/ports.js'
import { root } from '../support/project.js'
import fc from '../support/properties.js'
import { callAddresses, inTime, NodeProcess, openFiles, socketDirectory, Wire } from './nodes.js'

const echo: OnCall = (message, onReply) => onReply(message)

const { Exchange } = loadSync(join(root, 'proto/calls.proto'))['orrery.cluster.Calls'] as ServiceDefinition

/** Listens for calls until the test ends; returns the address. */
async function listen(
  t: Test,
  onCall?: OnCall,
  address = '127.0.0.1:0',
  onUnreadableCall?: () => void,
): Promise<string> {
  const onStream = () => t.fail('no stream was dialed') as never
  const listening = await grpcTransport().listen(address, { onStream, onCall, onUnreadableCall })
  t.teardown(() => listening.close())
  return listening.address
}

/** A caller, until the test ends. */
function caller(t: Test, calls: Pick<Calls, 'call' | 'close'> = grpcTransport()): Pick<Transport, 'call'> {
  t.teardown(() => calls.close())
  return calls
}

/** The reply to a call, or the reason why there is none. */
function call(
  calls: Pick<Transport, 'call'>,
  address: string,
  message: string | Buffer,
  waitMs = 5000,
): Promise<string> {
  return inTime('the end of a call', resolve => {
    let isBack = false
    let ends = 0
    calls.call(address, Buffer.from(message), waitMs, (reply, reason) => {
      if (!isBack || ++ends > 1) throw new Error('a call ends once, and after it has begun')
      resolve(reply ? reply.toString() : `none: ${reason}`)
    })
    isBack = true
  })
}

t.test('packets follow proto/calls.proto', async t => {
  t.equal(Exchange!.path, callService.exchange.path)
  t.notOk(Exchange!.requestStream || Exchange!.responseStream)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), array => {
      const message = Buffer.from(array)
      t.strictSame(decodePacket(Exchange!.requestSerialize({ message })), message) || t.bailout()
      t.match(Exchange!.responseDeserialize(encodePacket(message)), { message }) || t.bailout()
    }),
  )
  t.equal(decodePacket(Buffer.from([0x0a, 5, 1])), undefined, 'cut off')
})

for (const [kind, address] of Object.entries(callAddresses)) {
  t.test(`over ${kind} every call gets its own reply`, async t => {
    const at = await listen(t, echo, address(t, 's'))
    const calls = caller(t)
    const texts = Array.from({ length: 20 }, (_, n) => `call ${n}`)
    t.strictSame(await Promise.all(texts.map(text => call(calls, at, text))), texts)
    t.equal(await call(calls, at, ''), '')
  })
}

t.test('messages and replies have up to 64 KiB', async t => {
  const big = 'x'.repeat(callBytesMax)
  const at = await listen(t, (message, onReply) =>
    onReply(message.length < 10 ? Buffer.alloc(callBytesMax + 1) : message),
  )
  const calls = caller(t)
  t.equal(await call(calls, at, big), big)
  t.equal(await call(calls, at, 'more'), `none: a reply of more than ${callBytesMax} bytes`)
  t.throws(() => calls.call(at, Buffer.alloc(callBytesMax + 1), 1000, () => {}), /more than 65536 bytes/)
})

t.test('calls to one address share a connection, which stays for the next ones', async t => {
  const wire = await Wire.to(t, await listen(t, echo))
  const calls = caller(t)
  await Promise.all(Array.from({ length: 10 }, () => call(calls, wire.address, 'x')))
  await call(calls, wire.address, 'later')
  t.equal(wire.dialed, 1)
})

t.test('a connection that no call has used for a while is closed', async t => {
  const wire = await Wire.to(t, await listen(t, echo))
  const calls = caller(t, new Calls(undefined, 30))
  t.equal(await call(calls, wire.address, 'x'), 'x')
  await wire.untilEmpty()
  t.equal(await call(calls, wire.address, 'y'), 'y')
  t.equal(wire.dialed, 2)
})

t.test('of more connections than may be kept the longest unused goes', async t => {
  const at = await listen(t, (message, onReply) => message.toString() !== 'wait' && onReply(message))
  const wires = await Promise.all([1, 2, 3].map(() => Wire.to(t, at)))
  const [first, second, third] = wires.map(({ address }) => address) as [string, string, string]
  const calls = caller(t, new Calls(undefined, 60_000, 2))
  for (const address of [first, second, first, third, first, second]) t.equal(await call(calls, address, 'x'), 'x')
  t.strictSame(
    wires.map(({ dialed }) => dialed),
    [1, 2, 1],
  )
  const waiting = [first, second].map(address => call(calls, address, 'wait', 300))
  t.equal(await call(calls, third, 'x'), 'none: calls to too many addresses are under way')
  t.strictSame(await Promise.all(waiting), ['none: no reply in time', 'none: no reply in time'])
})

t.test('more calls to one address than it may have at a time are refused at once', async t => {
  const begun: (() => void)[] = []
  const at = await listen(t, (message, onReply) => begun.push(() => onReply(message)))
  const calls = caller(t)
  const outcomes = Array.from({ length: callsPerConnectionMax }, (_, n) => call(calls, at, `${n}`))
  t.equal(await call(calls, at, 'one more'), 'none: too many calls to this address are under way')
  while (begun.length < callsPerConnectionMax) await new Promise(resolve => setImmediate(resolve))
  for (const end of begun) end()
  t.equal((await Promise.all(outcomes)).filter(text => text.startsWith('none')).length, 0)
})

t.test('a node with too many calls at a time refuses further ones', async t => {
  const ends: (() => void)[] = []
  const at = await listen(t, (message, onReply) => ends.push(() => onReply(message)))
  const callers = Array.from({ length: callsMax / callsPerConnectionMax + 1 }, () => caller(t))
  let refused = 0
  const outcomes = callers.flatMap(one =>
    Array.from({ length: callsPerConnectionMax }, async () => {
      if ((await call(one, at, 'x', 60_000)) === 'none: too many calls are running there') refused++
    }),
  )
  while (ends.length < callsMax || refused < callsPerConnectionMax) await new Promise(resolve => setImmediate(resolve))
  for (const end of ends) end()
  await Promise.all(outcomes)
  t.equal(ends.length, callsMax)
  t.equal(refused, callsPerConnectionMax)
})

t.test('a call to a port without a listener, or to an invalid address, ends soon with the reason', async t => {
  const calls = caller(t)
  const refused = await inTime('the end of a call', resolve =>
    calls.call('127.0.0.1:1', Buffer.from('x'), 5000, (...outcome) => resolve(outcome)),
  )
  t.match(refused, [undefined, /ECONNREFUSED/, 'refused'])
  t.match(await call(calls, `unix:${socketDirectory(t)}/none`, 'x'), /none: .*ENOENT/)
  t.equal(await call(calls, 'nonsense', 'x'), 'none: not an address: "nonsense"')
})

t.test('a node that accepts no calls reports that', async t => {
  t.equal(await call(caller(t), await listen(t), 'x'), 'none: this node takes no calls')
})

t.test('a call without a reply ends in time; after a silent connection the next call opens another', async t => {
  const wire = await Wire.to(
    t,
    await listen(t, (message, onReply) => message.toString() !== 'wait' && onReply(message)),
  )
  const calls = caller(t)
  const beganMs = performance.now()
  t.equal(await call(calls, wire.address, 'wait', 100), 'none: no reply in time')
  const tookMs = performance.now() - beganMs
  t.ok(tookMs >= 99 && tookMs < 1000, `${tookMs} ms`)
  t.equal(await call(calls, wire.address, 'x'), 'x')
  t.equal(wire.dialed, 2)
})

t.test('one slow call leaves a connection alone that answers others', async t => {
  const wire = await Wire.to(
    t,
    await listen(t, (message, onReply) => message.toString() !== 'wait' && onReply(message)),
  )
  const calls = caller(t)
  const slow = call(calls, wire.address, 'wait', 200)
  t.equal(await call(calls, wire.address, 'x'), 'x')
  await slow
  t.equal(await call(calls, wire.address, 'y'), 'y')
  t.equal(wire.dialed, 1)
})

t.test('calls to a process that is stopped end in time, and leave no sockets behind', async t => {
  const nobody = { name: 'a', address: '127.0.0.1:1' }
  const child = await NodeProcess.start(t, { self: { name: 'b', address: '127.0.0.1:0' }, parent: nobody })
  const calls = caller(t)
  t.equal(await call(calls, child.peer, 'x'), 'none: this node takes no calls')
  child.child.kill('SIGSTOP')
  const files: number[] = []
  for (let round = 0; round < 30; round++) {
    const beganMs = performance.now()
    const reasons = await Promise.all([1, 2, 3].map(() => call(calls, child.peer, 'x', 100)))
    const tookMs = performance.now() - beganMs
    if (reasons.some(reason => reason !== 'none: no reply in time') || tookMs > 2000) t.fail(`${reasons} ${tookMs}`)
    files.push(openFiles())
  }
  t.ok(files[29]! - files[14]! < 4, `open files: ${files}`)
})

t.test('a process that is back at its address is called at once', async t => {
  const nobody = { name: 'a', address: '127.0.0.1:1' }
  const setting = { self: { name: 'b', address: '127.0.0.1:0' }, parent: nobody }
  const first = await NodeProcess.start(t, setting)
  const calls = caller(t)
  t.equal(await call(calls, first.peer, 'x'), 'none: this node takes no calls')
  await first.kill()
  for (let left = 5; left > 0; left--) t.match(await call(calls, first.peer, 'x'), /none: /)
  await NodeProcess.start(t, { ...setting, self: { name: 'b', address: first.peer } })
  t.equal(await call(calls, first.peer, 'x'), 'none: this node takes no calls')
})

t.test('a connection that breaks ends its calls at once', async t => {
  let begun = 0
  const wire = await Wire.to(t, await listen(t, () => begun++))
  const outcome = call(caller(t), wire.address, 'x', 15_000)
  while (begun === 0) await new Promise(resolve => setImmediate(resolve))
  const beganMs = performance.now()
  wire.cut()
  t.match(await outcome, /none: (?!no reply)/)
  t.ok(performance.now() - beganMs < 5000)
})

t.test('closing ends the calls in flight, and there are no more', async t => {
  let begun = 0
  const at = await listen(t, () => begun++)
  const transport = grpcTransport()
  const outcome = call(transport, at, 'x', 15_000)
  while (begun === 0) await new Promise(resolve => setImmediate(resolve))
  transport.close()
  t.equal(await outcome, 'none: this node is closing')
  t.equal(await call(transport, at, 'x'), 'none: this node is closing')
})

/** The answer to a caller that sends bytes of its own in place of a call. */
function sayRaw(t: Test, address: string, bytes: Buffer): Promise<string> {
  const client = new Client(address, credentials.createInsecure())
  t.teardown(() => client.close())
  return new Promise(resolve => {
    const same = (message: Buffer) => message
    client.makeUnaryRequest(callService.exchange.path, same, same, bytes, (error, reply) =>
      resolve(error ? error.details : `reply ${reply}`),
    )
  })
}

t.test('an invalid or too long packet is refused and counted', async t => {
  let unreadable = 0
  const at = await listen(
    t,
    () => t.fail('it was taken in'),
    '127.0.0.1:0',
    () => unreadable++,
  )
  const says = `a call has one packet of up to ${callBytesMax} bytes`
  t.equal(await sayRaw(t, at, Buffer.from([0xff])), says)
  t.equal(await sayRaw(t, at, encodePacket(Buffer.alloc(callBytesMax + 1))), says)
  t.equal(await sayRaw(t, at, Buffer.alloc(2_000_000)), says)
  t.equal(unreadable, 3)
})

t.test('an invalid reply is reported as unreadable, and silence is not', async t => {
  const server = new Server()
  server.addService(callService, {
    exchange: (call: ServerDuplexStream<Buffer, Buffer>) => {
      call.write(Buffer.from([0xff]))
      call.end()
    },
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  )
  t.teardown(() => server.forceShutdown())
  const calls = caller(t)
  const replyFrom = (address: string): Promise<unknown[]> =>
    inTime('the end of a call', resolve =>
      calls.call(address, Buffer.from('x'), 5000, (...outcome) => resolve(outcome)),
    )
  t.strictSame(await replyFrom(`127.0.0.1:${port}`), [undefined, 'it sent something that is no packet', 'unreadable'])
  t.match(await replyFrom(await listen(t)), [undefined, 'this node takes no calls', undefined])
})

t.test('a call that never gets complete, or never gets a reply, is ended by the called node', async t => {
  const server = new Server()
  server.addService(callService, { exchange: callTaker({ onCall: () => {} }, 50) })
  const entrance = server.createConnectionInjector(ServerCredentials.createInsecure())
  const sockets = new Set<Socket>()
  const listener = createServer(socket => {
    sockets.add(socket)
    entrance.injectConnection(socket)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  const address = `127.0.0.1:${(listener.address() as { port: number }).port}`
  t.equal(await sayRaw(t, address, encodePacket(Buffer.from('x'))), 'no reply in time')
  const client = new Client(address, credentials.createInsecure())
  t.teardown(() => client.close())
  const same = (message: Buffer) => message
  const reply = await new Promise(resolve => {
    const stream = client.makeBidiStreamRequest(callService.exchange.path, same, same)
    stream.on('error', error => resolve((error as Error & { details?: string }).details))
    stream.on('data', () => {})
  })
  t.equal(reply, 'no reply in time')
})
