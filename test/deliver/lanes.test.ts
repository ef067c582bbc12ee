// Order, widths, retries, breaker and room, with a fake clock and a sender that the test controls.

import t from 'tap'
import { failuresToOpen } from '../../src/deliver/breaker.js'
import { Random } from '../support/random.js'
import { answer, LanesBench, lost, ok } from './lanes-bench.js'

t.test('a delivery is sent at once and ends with its answer', async t => {
  const bench = new LanesBench()
  t.equal(bench.offer('a', { key: '1' }), 'taken')
  t.same(bench.underWay, ['1'])
  bench.end(answer(404))
  t.same(bench.outcomes, [['1', { kind: 'delivered', code: 404 }]])
})

t.test('the order of a subscription and an entity is kept, and no other waits for it', async t => {
  const bench = new LanesBench()
  bench.prove('a')
  bench.offer('a', { key: '1', entity: 'lamp' })
  bench.offer('a', { key: '2', entity: 'lamp' })
  bench.offer('a', { key: '3', entity: 'lamp', subscription: 'other' })
  bench.offer('a', { key: '4', entity: 'door' })
  bench.offer('a', { key: '5', entity: 'lamp' })
  t.same(bench.underWay, ['1', '3', '4'])
  bench.end(ok, '1')
  t.same(bench.underWay, ['3', '4', '2'])
  bench.end(ok, '2')
  t.same(bench.underWay, ['3', '4', '5'])
})

t.test('the time that a notification waits in the queue is counted', async t => {
  const bench = new LanesBench()
  const waitedMs = (): number => bench.lanes.table.pools.reduce((sum, { counters }) => sum + counters.timeInQueueMs, 0)
  bench.prove('a')
  bench.offer('a', { key: '1', entity: 'lamp' })
  bench.offer('a', { key: '2', entity: 'lamp' })
  bench.clock.advance(70)
  t.equal(waitedMs(), 0, 'one was sent at once, the other one waits')
  bench.end(ok, '1')
  t.equal(waitedMs(), 70)
})

t.test('a delivery that is put off does not delay later ones, and is overtaken', async t => {
  const bench = new LanesBench()
  bench.offer('a', { key: '1', entity: 'lamp' })
  bench.offer('a', { key: '2', entity: 'lamp' })
  bench.end(answer(503))
  t.same(bench.underWay, ['2'])
  bench.end(ok)
  bench.clock.advance(1000)
  t.same(bench.sent, ['1', '2', '1'])
})

t.test(
  'a delivery that is put off is tried again after 1, 5, 30 and 120 seconds, and is dead after five tries',
  async t => {
    const bench = new LanesBench()
    const start = bench.clock.wallMs()
    bench.offer('a', { key: '1' })
    for (const seconds of [1, 5, 30, 120]) {
      bench.end(answer(503))
      const [, outcome] = bench.outcomes.at(-1)!
      t.match(outcome, { kind: 'failed', reason: 'the receiver has answered 503', code: 503, sent: true, held: true })
      t.equal(outcome.kind === 'failed' && outcome.nextAttemptMs, bench.clock.wallMs() + seconds * 1000)
      bench.clock.advance(seconds * 1000 - 1)
      t.same(bench.underWay, [], `not before ${seconds} s`)
      bench.clock.advance(1)
      t.same(bench.underWay, ['1'])
    }
    bench.end(answer(503))
    t.match(bench.outcomes.at(-1), ['1', { kind: 'dead', code: 503, attempts: 5 }])
    bench.clock.advance(1_000_000)
    t.equal(bench.sent.length, 5)
    t.equal(bench.clock.wallMs() - start, 1_156_000)
  },
)

t.test('retries that failed together are spread', async t => {
  const fractions = [0, 0.999999]
  const bench = new LanesBench({ fraction: () => fractions.shift() ?? 0.5 })
  bench.offer('a', { key: 'early' })
  bench.offer('a', { key: 'late' })
  bench.endAll(answer(503))
  bench.clock.advance(800)
  t.same(bench.underWay, ['early'])
  bench.clock.advance(399)
  t.same(bench.underWay, ['early'])
  bench.clock.advance(1)
  t.same(bench.underWay, ['early', 'late'])
})

t.test('answers that mean "not now" are tried again and report their code; others are not', async t => {
  for (const code of [408, 429, 500, 503, 599]) {
    const bench = new LanesBench()
    bench.offer('a', { key: '1' })
    bench.end(answer(code))
    t.match(bench.outcomes, [['1', { kind: 'failed', code, held: true, attempts: 1 }]], `${code}`)
  }
  for (const code of [200, 204, 301, 400, 404, 409]) {
    const bench = new LanesBench()
    bench.offer('a', { key: '1' })
    bench.end(answer(code))
    t.same(bench.outcomes, [['1', { kind: 'delivered', code }]], `${code}`)
  }
})

t.test('without retries one try decides, for every answer, and nothing is held back', async t => {
  const bench = new LanesBench({ retries: false })
  bench.offer('a', { key: '1' })
  bench.end(answer(503))
  t.same(bench.outcomes, [['1', { kind: 'delivered', code: 503 }]])
  for (let n = 0; n < failuresToOpen + 5; n++) {
    bench.offer('a', { key: `lost ${n}` })
    t.same(bench.underWay, [`lost ${n}`])
    bench.end(lost)
    t.match(bench.outcomes.at(-1), [`lost ${n}`, { kind: 'dead', reason: 'lost', attempts: 1 }])
  }
  t.equal(bench.clock.waiting, 0)
})

t.test('an unsendable delivery is dead at once, and does not count against the receiver', async t => {
  const bench = new LanesBench()
  for (let n = 0; n < failuresToOpen; n++) {
    bench.offer('a', { key: '1' })
    bench.end({ kind: 'unsendable', reason: 'nonsense' })
  }
  t.match(bench.outcomes[0], ['1', { kind: 'dead', reason: 'nonsense', attempts: 1 }])
  t.same(bench.changes, [])
})

t.test('a receiver that has not answered gets four at a time, one that has gets 32', async t => {
  const bench = new LanesBench()
  for (let n = 0; n < 40; n++) bench.offer('a')
  t.equal(bench.sending.length, 4)
  bench.end(ok)
  t.equal(bench.sending.length, 32)
  bench.end(lost)
  t.equal(bench.sending.length, 31, 'and after a failure no more than four again')
})

t.test('persistent mode sends one at a time to a receiver', async t => {
  const bench = new LanesBench({ mode: 'persistent' })
  bench.prove('a')
  for (const key of ['1', '2']) bench.offer('a', { key })
  bench.offer('b', { key: '3' })
  t.same(bench.underWay, ['1', '3'])
  bench.end(ok)
  t.same(bench.underWay, ['3', '2'])
})

t.test('threadpool mode sends n at a time over all receivers, in turns', async t => {
  const bench = new LanesBench({ mode: 'threadpool:100:2' })
  bench.prove('a')
  bench.prove('b')
  for (const key of ['a1', 'a2', 'a3', 'a4']) bench.offer('a', { key })
  for (const key of ['b1', 'b2', 'b3', 'b4']) bench.offer('b', { key })
  t.same(bench.underWay, ['a1', 'a2'])
  const order: string[] = []
  while (bench.sending.length > 0) {
    order.push(bench.underWay[0]!)
    bench.end(ok)
  }
  t.same(order, ['a1', 'a2', 'b1', 'b2', 'a3', 'a4', 'b3', 'b4'])
})

t.test('a tenant with a pool of its own shares neither queue nor width', async t => {
  const bench = new LanesBench({ mode: 'threadpool:1:1,acme:2:1', retries: false })
  t.same(
    ['x', 'y', 'z'].map(key => bench.offer('a', { key })),
    ['taken', 'taken', 'full'],
  )
  t.same(
    ['1', '2', '3', '4'].map(key => bench.offer('a', { key, tenant: 'acme' })),
    ['taken', 'taken', 'taken', 'full'],
  )
  t.same(bench.underWay, ['x', '1'])
  t.equal(bench.lanes.table.poolOf('acme').waiting, 2)
  t.equal(bench.lanes.table.poolOf('other').waiting, 1)
})

t.test('receivers that do not answer leave a quarter of the width to those that do', async t => {
  const bench = new LanesBench({ mode: 'threadpool:1000:8' })
  bench.prove('alive')
  for (const host of ['dead1', 'dead2', 'dead3']) for (let n = 0; n < 10; n++) bench.offer(host)
  t.equal(bench.sending.length, 6)
  bench.offer('alive', { key: '1' })
  bench.offer('alive', { key: '2' })
  bench.offer('alive', { key: '3' })
  t.same(bench.underWay.slice(6), ['1', '2'])
  bench.end(ok, '1')
  t.ok(bench.underWay.includes('3'))
})

t.test('retries that are due take no place of a first try', async t => {
  const bench = new LanesBench({ mode: 'persistent' })
  bench.offer('a', { key: 'again' })
  bench.end(answer(503))
  bench.clock.advance(1000)
  t.same(bench.underWay, ['again'])
  bench.offer('a', { key: 'new' })
  t.same(bench.underWay, ['again', 'new'])
})

t.test('five failures in a row open the breaker, and waiting and new deliveries fail at once', async t => {
  const bench = new LanesBench()
  bench.prove('a')
  for (let n = 0; n < 40; n++) bench.offer('a', { key: `${n}` })
  for (let n = 0; n < failuresToOpen; n++) bench.end({ kind: 'failed', reason: "Couldn't connect to server" })
  t.same(bench.changes, ['open'])
  bench.clock.tick()
  const held = { kind: 'failed', reason: "Couldn't connect to server", sent: false, attempts: 1, held: true }
  t.match(bench.outcomes.find(([key]) => key === '39')?.[1], held)
  bench.offer('a', { key: 'late' })
  t.same(bench.kinds('late'), [], 'never before offer returns')
  bench.clock.tick()
  t.match(bench.outcomes.at(-1), ['late', held])
})

t.test('when the pause is over the oldest is sent to find out, and an answer releases all, in order', async t => {
  const bench = new LanesBench()
  openBreaker(bench)
  bench.offer('a', { key: 'meanwhile', entity: '0' })
  bench.clock.tick()
  t.same(bench.kinds('meanwhile'), ['failed'])
  bench.clock.advance(999)
  t.same(bench.underWay, [])
  bench.clock.advance(1)
  t.same(bench.underWay, ['0'], 'the oldest')
  bench.end(ok)
  t.same(bench.changes, ['open', 'closed'])
  t.same(bench.underWay, ['1', '2', '3', '4', 'meanwhile'])
})

/** Five deliveries, each of its own entity, get no answer. */
function openBreaker(bench: LanesBench): void {
  for (let n = 0; n < failuresToOpen; n++) bench.offer('a', { key: `${n}`, entity: `${n}` })
  while (bench.sending.length > 0) bench.end(lost)
}

t.test('a receiver that does not answer is tried with one delivery, never more than five seconds apart', async t => {
  for (const fraction of [0, 0.999]) {
    const bench = new LanesBench({ fraction: () => fraction })
    bench.offer('a', { key: '1' })
    bench.offer('a', { key: '2', entity: 'lamp' })
    bench.offer('a', { key: '3', entity: 'lamp' })
    let lastMs = 0
    for (let round = 0; round < 200; round++) {
      if (round > 2) t.equal(bench.sending.length, 1)
      bench.endAll(lost)
      while (bench.sending.length === 0) bench.clock.advance(50)
      const nowMs = bench.clock.monoMs()
      if (nowMs - lastMs > 5000) t.fail(`${nowMs - lastMs} ms`)
      lastMs = nowMs
    }
    t.equal(bench.outcomes.filter(([, { kind }]) => kind === 'dead').length, 0)
    while (bench.sending.length > 0) bench.end(ok)
    t.same(bench.sent.slice(-3), ['1', '2', '3'])
  }
})

t.test('a delivery without an answer keeps its place, and is tried after a second', async t => {
  const bench = new LanesBench()
  bench.offer('a', { key: '1', entity: 'lamp' })
  bench.offer('a', { key: '2', entity: 'lamp' })
  bench.end(lost)
  t.match(bench.outcomes, [['1', { kind: 'failed', attempts: 1, held: true, nextAttemptMs: undefined }]])
  bench.clock.advance(999)
  t.same(bench.sent, ['1'])
  bench.clock.advance(1)
  t.same(bench.sent, ['1', '1'])
  bench.end(ok)
  t.same(bench.underWay, ['2'])
})

t.test('deliveries behind one without an answer fail with it, once, and are not sent before it', async t => {
  const bench = new LanesBench()
  for (const key of ['1', '2', '3']) bench.offer('a', { key, entity: 'lamp' })
  bench.end(lost)
  const failure = { kind: 'failed', attempts: 1, held: true }
  t.match(bench.outcomes, [
    ['1', { ...failure, sent: true }],
    ['2', { ...failure, sent: false }],
    ['3', { ...failure, sent: false }],
  ])
  bench.clock.advance(1000)
  t.same(bench.underWay, ['1'])
  bench.end(lost)
  t.same(bench.kinds('2'), ['failed'])
})

t.test(
  'something new has the one without an answer that it waits for tried at once, and both fail or both go',
  async t => {
    const bench = new LanesBench()
    bench.offer('a', { key: '1', entity: 'lamp' })
    bench.end(lost)
    bench.offer('a', { key: 'of another entity' })
    bench.end(lost, 'of another entity')
    bench.offer('a', { key: '2', entity: 'lamp' })
    t.same(bench.underWay, ['1'], 'no time has passed')
    bench.end(lost)
    t.same(bench.kinds('2'), ['failed'])
    bench.offer('a', { key: '3', entity: 'lamp' })
    bench.end(ok, '1')
    t.match(bench.underWay, ['of another entity', '2'])
  },
)

t.test('a delivery that had no answer is tried at once when another one has one', async t => {
  const bench = new LanesBench()
  bench.offer('a', { key: '1' })
  bench.offer('a', { key: '2' })
  bench.end(lost, '1')
  bench.end(ok, '2')
  t.same(bench.underWay, ['1'])
})

t.test('a delivery that alone has no answer is dead after five tries, and overtaken', async t => {
  const bench = new LanesBench()
  bench.offer('a', { key: 'bad', entity: 'lamp' })
  bench.offer('a', { key: 'next', entity: 'lamp' })
  for (let tries = 1; tries < 5; tries++) {
    bench.end(lost, 'bad')
    bench.offer('a', { key: `good ${tries}` })
    bench.end(ok, `good ${tries}`)
    while (!bench.underWay.includes('bad')) bench.clock.advance(100)
    if (tries === 2) t.ok(bench.underWay.includes('next'))
  }
  bench.end(lost, 'bad')
  t.match(bench.outcomes.at(-1), ['bad', { kind: 'dead', attempts: 5 }])
})

t.test('while a receiver does not answer each delivery fails once, and the pauses grow to four seconds', async t => {
  const bench = new LanesBench()
  openBreaker(bench)
  for (const pauseMs of [1000, 2000, 4000, 4000, 4000]) {
    bench.clock.advance(pauseMs - 1)
    t.same(bench.underWay, [])
    bench.clock.advance(1)
    t.same(bench.underWay, ['0'])
    bench.end(lost)
  }
  bench.clock.tick()
  for (const key of ['1', '2', '3', '4']) t.same(bench.kinds(key), ['failed'])
  t.ok(bench.outcomes.every(([, outcome]) => outcome.kind === 'failed' && outcome.attempts === 1))
})

t.test(
  'deliveries for a dead receiver are given up only where there is little room, and one stays for probes',
  async t => {
    let isCrowded = false
    const bench = new LanesBench({ isCrowded: () => isCrowded })
    const busy = setDead(bench)
    for (let n = 0; n < 200; n++) bench.offer('a', { key: `${n}` })
    bench.clock.advance(600_000)
    t.equal(bench.lanes.counters.dead, 0)
    isCrowded = true
    bench.clock.advance(10_000)
    t.equal(bench.lanes.counters.dead, 199)
    t.match(
      bench.outcomes.find(([, { kind }]) => kind === 'dead'),
      ['0', { attempts: 1, code: undefined }],
      'the oldest first',
    )
    t.ok(bench.sent.length < 170, `${bench.sent.length} messages were sent`)
    busy.stop()
  },
)

t.test('so many dead receivers are tried in a second, and each of them has its turn', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const bench = new LanesBench({ fraction: () => random.fraction(), limits: { probesPerSecondMax: 5 } })
  const busy = setDead(bench)
  for (let host = 0; host < 40; host++)
    for (let n = 0; n < failuresToOpen; n++) bench.offer(`h${host}`, { key: `${host} ${n}` })
  bench.clock.advance(5000)
  const before = bench.sent.length
  bench.clock.advance(60_000)
  const tried = bench.sent.slice(before)
  t.ok(tried.length > 200 && tried.length <= 305, `${tried.length} in a minute`)
  t.equal(new Set(tried.map(key => key.split(' ')[0])).size, 40)
  busy.stop()
})

t.test('a receiver that has just gone loses nothing where there is little room', async t => {
  const bench = new LanesBench({ isCrowded: () => true })
  const busy = setDead(bench)
  for (let n = 0; n < 200; n++) bench.offer('a', { key: `${n}` })
  bench.clock.advance(150_000)
  t.equal(bench.lanes.counters.dead, 0)
  busy.stop()
})

t.test('deliveries without room to be held go back to their owner, in order, and come again in order', async t => {
  const bench = new LanesBench({ limits: { laneRetriesMax: 10 } })
  for (let n = 0; n < 40; n++) bench.offer('a', { key: `${n}`, entity: 'lamp' })
  for (let tries = 0; tries < failuresToOpen; tries++) {
    bench.endAll(lost)
    bench.clock.advance(4000)
  }
  bench.clock.tick()
  const back = bench.outcomes.flatMap(([key, outcome]) => (outcome.kind === 'failed' && !outcome.held ? [key] : []))
  t.same(
    back,
    Array.from({ length: 30 }, (_, n) => `${n + 10}`),
  )
  bench.onRoom = () => {
    while (back[0] && bench.offer('a', { key: back[0], entity: 'lamp', attempt: 1 }) === 'taken') back.shift()
  }
  bench.onRoom(undefined)
  const before = bench.sent.length - 1
  while (bench.sending.length > 0) {
    bench.end(ok)
    bench.clock.tick()
  }
  t.same(
    bench.sent.slice(before),
    Array.from({ length: 40 }, (_, n) => `${n}`),
  )
})

/** Until `stop`, no message gets an answer. */
function setDead(bench: LanesBench): { stop(): void } {
  let stopped = false
  const step = (): void => {
    bench.endAll(lost)
    if (!stopped) bench.clock.after(50, step)
  }
  step()
  return {
    stop() {
      stopped = true
    },
  }
}

t.test('a late answer closes an open breaker, a late failure does not prolong it', async t => {
  const bench = new LanesBench()
  bench.prove('a')
  for (let n = 0; n < failuresToOpen + 2; n++) bench.offer('a', { key: `${n}` })
  for (let n = 0; n < failuresToOpen; n++) bench.end(lost)
  bench.clock.advance(900)
  bench.end(lost)
  bench.clock.advance(100)
  t.same(bench.underWay, ['6', '0'], 'the probe goes out as if nothing had been')
  bench.end(ok, '6')
  t.same(bench.changes, ['open', 'closed'])
})

t.test('a full lane refuses, and reports when half of it is free', async t => {
  const bench = new LanesBench({ limits: { laneQueueMax: 4, laneSendsMax: 4 } })
  for (let n = 0; n < 8; n++) t.equal(bench.offer('a', { key: `${n}` }), 'taken')
  t.equal(bench.offer('a', { key: '8' }), 'full')
  t.equal(bench.offer('b', { key: 'other' }), 'taken')
  bench.clock.tick()
  bench.end(answer(404), '0')
  bench.clock.tick()
  t.same(bench.rooms, [])
  bench.end(answer(404), '1')
  bench.clock.tick()
  t.same(bench.rooms, ['http://a:80'])
  t.equal(bench.offer('a', { key: '8' }), 'taken')
  bench.endAll(ok)
  bench.clock.tick()
  t.equal(bench.rooms.length, 1, 'it is told once')
})

t.test('a lane is bounded in bytes, and one message always fits', async t => {
  const bench = new LanesBench({ limits: { laneBytesMax: 1000 } })
  for (let n = 0; n < 4; n++) bench.offer('a')
  t.equal(bench.offer('a', {}, 5000), 'taken')
  t.equal(bench.offer('a', {}, 1), 'full')
})

t.test('all lanes together are bounded in bytes, messages in flight included', async t => {
  const bench = new LanesBench({ limits: { bytesMax: 1000 } })
  t.same(
    ['a', 'b', 'c'].map(host => bench.offer(host, {}, 400)),
    ['taken', 'taken', 'full'],
  )
  bench.end(ok)
  bench.clock.tick()
  t.same(bench.rooms, ['http://c:80'])
})

t.test('a full pool reports to all refused owners when half of it is free', async t => {
  const bench = new LanesBench({ mode: 'threadpool:4:1', retries: false })
  for (let n = 0; n < 5; n++) bench.offer('a')
  const hosts = Array.from({ length: 200 }, (_, n) => `h${n}`)
  t.ok(hosts.every(host => bench.offer(host) === 'full'))
  bench.end(ok)
  bench.clock.tick()
  t.same(bench.rooms, [])
  bench.end(ok)
  bench.clock.tick()
  t.same(
    bench.rooms,
    hosts.map(host => `http://${host}:80`),
  )
})

t.test('a receiver that does not answer leaves half of a small queue to others', async t => {
  const bench = new LanesBench({ mode: 'threadpool:10:2' })
  let taken = 0
  while (bench.offer('dead') === 'taken') taken++
  t.equal(taken, 2 + 5)
  t.equal(bench.offer('alive'), 'taken')
})

t.test('deliveries that were put off beyond the bound go back to their owner, which offers them again', async t => {
  const bench = new LanesBench({ limits: { laneRetriesMax: 1 } })
  bench.offer('a', { key: '1' })
  bench.offer('a', { key: '2' })
  bench.endAll(answer(503))
  t.match(bench.outcomes, [
    ['1', { kind: 'failed', held: true }],
    ['2', { kind: 'failed', held: false, attempts: 1 }],
  ])
  const again = { key: '2', attempt: 1, dueMs: bench.clock.wallMs() + 1500 }
  t.equal(bench.offer('a', again), 'full')
  bench.clock.advance(1000)
  bench.endAll(ok)
  bench.clock.tick()
  t.same(bench.rooms, ['http://a:80'])
  t.equal(bench.offer('a', again), 'taken')
  t.same(bench.underWay, [])
  bench.clock.advance(500)
  t.same(bench.underWay, ['2'])
})

t.test('deliveries that were put off have half as many bytes of their own, and take no room from new ones', async t => {
  const bench = new LanesBench({ limits: { bytesMax: 400 } })
  for (const key of ['1', '2', '3']) {
    bench.offer('a', { key })
    bench.end(answer(503))
  }
  t.match(
    bench.outcomes.map(([, outcome]) => outcome),
    [{ held: true }, { held: true }, { held: false }],
  )
  t.same(
    [1, 2, 3, 4].map(() => bench.offer('b')),
    ['taken', 'taken', 'taken', 'taken'],
  )
})

t.test('lanes are bounded: an idle one gives way, and an owner that got none is called later', async t => {
  const bench = new LanesBench({ limits: { lanesMax: 2 } })
  bench.prove('idle')
  bench.offer('a')
  t.equal(bench.offer('b'), 'taken')
  t.equal(bench.lanes.table.size, 2)
  t.equal(bench.offer('c'), 'full')
  bench.clock.tick()
  t.same(bench.rooms, [])
  bench.end(ok)
  bench.clock.tick()
  t.same(bench.rooms, [undefined])
  t.equal(bench.offer('c'), 'taken')
})

t.test('deliveries behind an open breaker are settled in slices, and all of them', async t => {
  const bench = new LanesBench()
  for (let n = 0; n < 1000; n++) bench.offer('a')
  while (bench.sending.length > 0) bench.end(lost)
  const before = bench.outcomes.length
  bench.lanes.onLater()
  t.equal(bench.outcomes.length - before, 128 - 4, 'four have failed on their own')
  bench.clock.tick()
  t.equal(bench.outcomes.length, 1000)
})

t.test('clear forgets waiting deliveries, and none of them is sent', async t => {
  const bench = new LanesBench()
  for (let n = 0; n < 10; n++) bench.offer('a', { entity: n < 5 ? 'same' : `${n}` })
  bench.offer('b', { key: 'again' })
  bench.end(lost, 'again')
  bench.lanes.clear()
  bench.endAll(ok)
  bench.clock.advance(1_000_000)
  t.same(bench.sending, [])
  t.equal(bench.lanes.table.poolOf('').waiting, 0)
})

t.test(
  'a job with a deadline is not begun when too little of its time is left, and waits until it is withdrawn',
  async t => {
    const bench = new LanesBench({
      retries: false,
      timeLeftMsMin: 100,
      limits: { laneUnprovenSendsMax: 1, laneQueueMax: 3 },
    })
    bench.offer('a', { key: '1', timeMs: 1000 })
    bench.offer('a', { key: 'late', timeMs: 1000 })
    const late = bench.last!
    bench.clock.advance(500)
    bench.offer('a', { key: 'in time', timeMs: 1000 })
    bench.clock.advance(450)
    bench.end(lost)
    t.same(bench.underWay, ['in time'])
    t.equal(late.lane.waiting, 1, 'it still counts')
    bench.lanes.withdraw(late)
    t.equal(late.lane.waiting, 0)
    t.equal(bench.lanes.table.pools[0]?.waiting, 0)
  },
)

t.test('a withdrawn delivery leaves room, and nothing behind', async t => {
  const bench = new LanesBench({ retries: false, limits: { laneUnprovenSendsMax: 1, laneQueueMax: 2 } })
  for (let round = 0; round < 3; round++) {
    if (round === 0) bench.offer('a', { timeMs: 10_000 })
    const waiting = [1, 2].map(() => {
      t.equal(bench.offer('a', { timeMs: 100 }), 'taken')
      return bench.last!
    })
    t.equal(bench.offer('a', { timeMs: 100 }), 'full')
    bench.clock.advance(101)
    for (const job of waiting) bench.lanes.withdraw(job)
  }
  t.equal(bench.sent.length, 1)
  bench.end(ok)
  t.ok([...bench.lanes.table.all()][0]?.isIdle)
})

t.test('jobs without an order do not wait for each other', async t => {
  const bench = new LanesBench({ retries: false })
  bench.prove('a')
  for (let n = 0; n < 3; n++) bench.offer('a', { entity: 'lamp', timeMs: 1000 })
  t.equal(bench.underWay.length, 3)
})

t.test('a dead letter that is sent again has one try, and reports the reason of its failure', async t => {
  for (const [result, more] of [
    [answer(503), { cause: 'notNow', code: 503, sent: true }],
    [lost, { cause: 'noAnswer', code: undefined, sent: true }],
    [
      { kind: 'unsendable', reason: 'nonsense' },
      { cause: 'unsendable', sent: true },
    ],
  ] as const) {
    const bench = new LanesBench()
    bench.offer('a', { key: '1', attempt: 5, isReplay: true })
    bench.end(result)
    t.match(bench.outcomes, [['1', { kind: 'dead', attempts: 6, ...more }]])
    bench.clock.advance(1_000_000)
    t.strictSame([bench.sent, bench.lanes.counters.dead], [['1'], 0], 'and does not count as given up anew')
  }
})

t.test('dead letters go back when their receiver is away, and other waiting deliveries stay', async t => {
  const bench = new LanesBench()
  bench.prove('a')
  for (let n = 0; n < failuresToOpen; n++) bench.offer('a', { key: `n${n}` })
  bench.offer('a', { key: 'new', entity: 'lamp' })
  bench.offer('a', { key: 'behind', entity: 'lamp', attempt: 5, isReplay: true })
  bench.offer('a', { key: 'letter', attempt: 5, isReplay: true })
  bench.end(ok, 'letter')
  for (let n = 0; n < failuresToOpen; n++) bench.end(lost, `n${n}`)
  bench.offer('a', { key: 'late', attempt: 5, isReplay: true })
  bench.clock.tick()
  const back = { kind: 'dead', cause: 'noAnswer', sent: false, attempts: 5 }
  t.match(
    bench.outcomes.filter(([, { kind }]) => kind === 'dead'),
    [
      ['behind', back],
      ['late', back],
    ],
  )
  t.strictSame(bench.changes, ['open'])
  bench.endAll(lost)
  bench.clock.advance(5_000)
  t.equal(bench.sending.length, 1, 'a notification that waits finds out when the receiver is back')
  bench.endAll(ok)
  bench.endAll(ok)
  t.strictSame(bench.kinds('new').at(-1), 'delivered')
})

t.test('a receiver that begins to answer is reported: the first time, and after a failure', async t => {
  const bench = new LanesBench()
  bench.offer('a')
  t.strictSame(bench.answering, [])
  bench.end(answer(503))
  bench.offer('a')
  bench.end(ok)
  t.strictSame(bench.answering, ['http://a:80'])
  bench.offer('a')
  bench.end(lost)
  bench.clock.advance(1_000)
  bench.end(ok)
  t.strictSame(bench.answering, ['http://a:80', 'http://a:80'])
})
