// Clients that send slowly, or not at all, do not affect others, on every server (docs/operations/connections.md).

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { bodyBytesPerS, bodyWindowMs, headMsMax } from '../../src/http/connections.js'
import { openNodeFront } from '../../src/http/node-front.js'
import { openUwsFront } from '../../src/http/uws-front.js'
import type { DropReason } from '../../src/ports.js'
import { certificate, echo, type Open, serve } from './front-contract.js'
import { Wire } from './wire.js'

const openKnown: Open = (options, handler) =>
  openUwsFront({ ...options, connectionsPerAddressMax: options.connectionsPerAddressMax || 10_000 }, handler)

const servers: Readonly<Record<string, Open>> = { uws: openUwsFront, 'uws, known': openKnown, node: openNodeFront }

const part = 'POST / HTTP/1.1\r\nHost: a\r\n'
const parts: readonly string[] = ['', part, `${part}Content-Length: 900\r\n\r\nhalf a bo`]

/** A front that accepts few connections, and a count of those that it has closed. */
async function small(t: Test, open: Open, connectionsMax: number) {
  const dropped: Partial<Record<DropReason, number>> = {}
  const onDropped = (reason: DropReason): void => {
    dropped[reason] = (dropped[reason] ?? 0) + 1
  }
  const { port, wire } = await serve(t, open, echo, { connectionsMax, onDropped, bodyBytesMax: 1_000_000 })
  wire.leave()
  return { port, dropped }
}

async function asks(wire: Wire, body: string): Promise<string> {
  await wire.request('POST /', [], body)
  return (await wire.answer()).body
}

for (const [name, open] of Object.entries(servers)) {
  t.test(`${name}: senders that never finish do not keep others out`, async t => {
    const { port, dropped } = await small(t, open, 50)
    const senders: Wire[] = []
    t.teardown(() => {
      for (const sender of senders) sender.leave()
    })
    for (let round = 0; round < 20; round++) {
      for (let nth = 0; nth < 15; nth++) {
        const sender = await Wire.to(port)
        senders.push(sender)
        await sender.send(parts[nth % parts.length]!)
      }
      const honest = await Wire.to(port)
      t.equal(await asks(honest, `round ${round}`), `round ${round}`)
      honest.leave()
      await honest.closed
    }
    t.ok((dropped.room ?? 0) > 200, `${dropped.room} made room`)
    t.equal(dropped.full, undefined)
  })

  t.test(`${name}: idle connections make room as well`, async t => {
    const { port } = await small(t, open, 20)
    for (let nth = 0; nth < 60; nth++) {
      const idle = await Wire.to(port)
      t.teardown(() => idle.leave())
      t.equal(await asks(idle, `client ${nth}`), `client ${nth}`)
    }
  })

  t.test(`${name}: the same over TLS, with clients that do not even greet`, async t => {
    const { port } = await serve(t, open, echo, { connectionsMax: 20, tls: certificate(t) })
    for (let nth = 0; nth < 60; nth++) {
      const silent = await Wire.to(port)
      t.teardown(() => silent.leave())
    }
    const honest = await Wire.overTls(port)
    t.equal(await asks(honest, 'honest'), 'honest')
    honest.leave()
  })

  t.test(`${name}: heads and bodies that come too slowly are closed, and slow ones that go on are not`, async t => {
    const { port } = await small(t, open, 50)
    const startedMs = performance.now()
    const over = async (wire: Wire): Promise<number> => {
      await wire.closed
      return performance.now() - startedMs
    }
    const drip = async (head: string, bytes: number, everyMs: number) => {
      const wire = await Wire.to(port)
      await wire.send(head)
      const timer = setInterval(() => void wire.send('x'.repeat(bytes)), everyMs)
      t.teardown(() => clearInterval(timer))
      void wire.closed.then(() => clearInterval(timer))
      return wire
    }
    const length = 'Host: a\r\nContent-Length: '
    const [head, stalled, slow] = await Promise.all([
      drip(`${part}A: `, 1, 500),
      drip(`POST / HTTP/1.1\r\n${length}900\r\n\r\nx`, 0, 60_000),
      drip(`POST / HTTP/1.1\r\n${length}100000\r\n\r\n`, bodyBytesPerS / 4, 500),
    ])
    const steady = await Wire.to(port)
    const steadyOver = over(steady)
    let isClosed = false
    void steadyOver.then(() => {
      isClosed = true
    })
    const pieces = (1.6 * bodyWindowMs) / 500
    await steady.send(`POST /steady HTTP/1.1\r\n${length}${pieces * bodyBytesPerS}\r\n\r\n`)
    const closings = Promise.all([over(head), over(stalled), over(slow)])
    for (let piece = 0; piece < pieces && !isClosed; piece++) {
      await pause(500)
      await steady.send('s'.repeat(bodyBytesPerS))
    }
    t.equal(isClosed ? 'closed' : (await steady.answer()).body.length, pieces * bodyBytesPerS)
    const [headMs, stalledMs, slowMs] = await closings
    // The timers of the binary run every 4 s.
    t.match([headMs > headMsMax - 4000, headMs < headMsMax + 8000], [true, true], `head: ${headMs}`)
    t.match([stalledMs > bodyWindowMs - 4000, stalledMs < bodyWindowMs + 8000], [true, true], `stalled: ${stalledMs}`)
    t.match([slowMs > bodyWindowMs - 4000, slowMs < bodyWindowMs + 8000], [true, true], `slow: ${slowMs}`)
    steady.leave()
  })

  t.test(`${name}: one address has no more connections than it may`, async t => {
    const reasons: DropReason[] = []
    const onDropped = (reason: DropReason): void => void reasons.push(reason)
    const options = { connectionsPerAddressMax: 3, host: undefined, family: 'ipv4' as const, onDropped }
    const { port, wire } = await serve(t, open, echo, options)
    const all = [wire, await Wire.to(port), await Wire.to(port)]
    for (const each of all) t.equal(await asks(each, 'in'), 'in')
    t.ok(await (await Wire.to(port)).closed)
    t.strictSame(reasons, ['address'])
    const [left] = all
    left!.leave()
    await left!.closed
    let served = ''
    while (served === '') {
      const next = await Wire.to(port)
      served = await asks(next, 'next').catch(() => '') // The server may not have noticed the end yet.
      next.leave()
    }
    t.equal(served, 'next')
    for (const each of all) each.leave()
  })

  t.test(`${name}: addresses count apart`, { skip: process.platform !== 'linux' }, async t => {
    const options = { connectionsPerAddressMax: 1, host: undefined, family: 'ipv4' as const }
    const { port, wire } = await serve(t, open, echo, options)
    t.equal(await asks(wire, 'one'), 'one')
    const other = await Wire.to(port, '127.0.0.1', '127.0.0.2')
    t.equal(await asks(other, 'two'), 'two')
    other.leave()
    wire.leave()
  })

  t.test(`${name}: closing, ending and asking in any order does no harm`, async t => {
    const { port } = await small(t, open, 12)
    const seed = Number(process.env.SEED ?? Date.now() % 1e6)
    t.comment(`seed ${seed}`)
    let state = seed
    const random = (below: number): number => {
      state = (state * 1103515245 + 12345) % 2147483648
      return Math.floor((state / 2147483648) * below)
    }
    const whole = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi'
    const wholes = [
      whole,
      `${whole}${whole}`,
      `${whole}GET /`,
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    ]
    const chunked = ['POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n', '2\r\nhi\r\n0\r\n\r\n']
    const all = [...wholes, ...parts, ...chunked, chunked.join(''), 'nonsense\r\n\r\n']
    const open30: Wire[] = []
    for (let step = 0; step < 1500; step++) {
      if (open30.length < 30) open30.push(await Wire.to(port))
      const at = random(open30.length)
      const wire = open30[at]!
      if (random(4) === 0) {
        wire.leave()
        open30.splice(at, 1)
      } else void wire.send(all[random(all.length)]!)
      if (random(8) === 0) await pause(1)
    }
    for (const wire of open30) wire.leave()
    const honest = await Wire.to(port)
    t.equal(await asks(honest, 'alive'), 'alive')
    honest.leave()
  })
}
