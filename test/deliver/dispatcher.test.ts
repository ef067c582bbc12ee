// The dispatcher before the lanes: when it makes messages, and in which order it offers them to lanes that have little
// room. No notification waits for ever.
//
// Receivers are real. The clock is a fake one where retries would take too long.

import t, { type Test } from 'tap'
import { systemClock } from '../../src/clock.js'
import { Dispatcher } from '../../src/deliver/dispatcher.js'
import type { NotifierOptions } from '../../src/deliver/notifier.js'
import type { Transports } from '../../src/deliver/sender.js'
import { transportsOf } from '../../src/deliver/transports.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { NotificationInput } from '../../src/domain/subscriptions/message.js'
import type { Clock, Logger } from '../../src/ports.js'
import { freePort } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'
import { inputOf, options, room, roomAttributes, subscriptionId } from '../support/notification-inputs.js'
import { aedesBroker } from './brokers.js'
import { type Pending, pendingOf, timeouts } from './messages.js'
import { httpReceiver, type Received, until } from './receivers.js'

const byDefault: NotifierOptions = {
  delivery: 'atLeastOnce',
  mode: 'transient',
  messageBytesMax: 8_388_608,
  simulated: false,
  loggedBytesMax: 5000,
}

interface CountedPending extends Pending {
  /** Number of requests for its input. */
  asked: number
}

interface Wish {
  readonly notification: () => JsonObject
  readonly tenant?: string
  /** Notifications of one entity are sent one after the other. */
  readonly entity?: string
  readonly input?: Partial<NotificationInput>
}

function wished(id: string, { notification, tenant = 'acme', entity = id, input }: Wish): CountedPending {
  const one: CountedPending = {
    ...pendingOf({ id, tenant, subscription: subscriptionId }),
    asked: 0,
    input() {
      one.asked++
      const about = { ...room(roomAttributes), id: entity }
      return inputOf(notification(), { notificationId: id, tenant, entity: about, ...input })
    },
    onOutcome(outcome) {
      one.outcomes.push(outcome)
      if (outcome.kind !== 'failed') return
      one.attempts = outcome.attempts
      one.dueMs = outcome.nextAttemptMs
    },
  }
  return one
}

const to = (url: string) => (): JsonObject => ({ http: { url } })
const many = (count: number, wish: Wish, name = ''): CountedPending[] =>
  Array.from({ length: count }, (_, n) => wished(`${name}${n}`, wish))
const ids = (dues: readonly CountedPending[]): string[] => dues.map(({ id }) => id)
const kinds = ({ outcomes }: CountedPending): string[] => outcomes.map(({ kind }) => kind)
const areDelivered = (dues: readonly CountedPending[]) => () => dues.every(one => kinds(one).at(-1) === 'delivered')

function idOf({ headers }: Received): string {
  return headers[headers.indexOf('Ctx-Notification-Id') + 1]!
}

type Setting = Partial<NotifierOptions> & { readonly clock?: Clock; readonly transports?: Transports }

function start(t: Test, { clock = systemClock, transports = transportsOf(timeouts), ...more }: Setting = {}) {
  const lines: string[] = []
  const line = (level: string) => (text: string) => void lines.push(`${level} ${text}`)
  const logger: Logger = {
    level: 'WARN',
    fatal: line('FATAL'),
    error: line('ERROR'),
    warn: line('WARN'),
    info: line('INFO'),
    debug: line('DEBUG'),
    summary: line('SUMMARY'),
  }
  const dispatcher = new Dispatcher({ clock, fraction: () => 0.5, logger, transports }, options, {
    ...byDefault,
    ...more,
  })
  t.teardown(() => dispatcher.stop(0))
  const take = (dues: readonly CountedPending[]): void => {
    for (const due of dues) dispatcher.deliver(due)
  }
  return { dispatcher, take, lines }
}

/** Like `until`, but meanwhile it ends ticks of a fake clock. */
const untilWith = (clock: FakeClock, isSo: () => boolean, what?: string): Promise<void> =>
  until(() => {
    clock.tick()
    return isSo()
  }, what)

t.test('an accepted notification is sent with its contents, and its owner gets the outcome', async t => {
  const receiver = await httpReceiver(t)
  const { take } = start(t)
  const dues = many(3, { notification: to(`${receiver.url}/x`), entity: 'R1' })
  take(dues)
  await until(areDelivered(dues))
  t.strictSame(receiver.received.map(idOf), ids(dues))
  t.match(receiver.received[0], { method: 'POST', path: '/x', body: /"id":"R1".*21\.5/ })
})

t.test('nothing is made before the tick has ended, and only so much in each of the next', async t => {
  const clock = new FakeClock()
  const receiver = await httpReceiver(t)
  const { take, dispatcher } = start(t, { clock })
  const dues = many(200, { notification: to(receiver.url) })
  const ends: (() => void)[] = []
  clock.endOfTick = run => void ends.push(run)
  take(dues)
  const made = (): number => dues.filter(({ asked }) => asked > 0).length
  t.equal(made(), 0)
  t.equal(dispatcher.queueLength('acme'), 200)
  for (let turns = 1; made() < dues.length; turns++) {
    const before = made()
    for (const run of ends.splice(0)) run()
    if (made() - before > 64) t.fail(`${made() - before} in one turn`)
    if (turns > 10) return t.fail('goes on')
  }
})

t.test('the order is kept when a lane is full, and all come after a single report of room', async t => {
  const receiver = await httpReceiver(t)
  const { take, dispatcher } = start(t, { limits: { laneQueueMax: 520 } })
  const entities = ['R0', 'R1', 'R2', 'R3', 'R4', 'R5', 'R6', 'R7']
  const dues = Array.from({ length: 900 }, (_, n) =>
    wished(`${entities[n % 8]} ${n}`, { notification: to(receiver.url), entity: entities[n % 8]! }),
  )
  take(dues)
  await until(areDelivered(dues), 'the last')
  for (const entity of entities) {
    const own = (all: readonly string[]) => all.filter(id => id.startsWith(entity))
    t.strictSame(own(receiver.received.map(idOf)), own(ids(dues)))
  }
  t.equal(dispatcher.stats().queue.size, 0)
})

t.test('a new notification goes behind those that wait in line for the same lane', async t => {
  const held: (() => void)[] = []
  const receiver = await httpReceiver(t, (_request, response) => {
    held.push(() => response.writeHead(204).end())
  })
  const { take } = start(t, { limits: { laneQueueMax: 2 } })
  const early = many(10, { notification: to(receiver.url), entity: 'R1' }, 'early')
  take(early)
  await until(() => early.every(({ asked }) => asked > 0))
  const late = many(5, { notification: to(receiver.url), entity: 'R1' }, 'late')
  take(late)
  await until(() => {
    held.shift()?.()
    return areDelivered([...early, ...late])()
  })
  t.strictSame(receiver.received.map(idOf), [...ids(early), ...ids(late)])
})

t.test('a full lane holds up no other', async t => {
  const slow = await httpReceiver(t, () => {})
  const fast = await httpReceiver(t)
  const { take } = start(t, { limits: { laneQueueMax: 1 } })
  take(many(20, { notification: to(slow.url) }, 'slow'))
  const dues = many(1, { notification: to(fast.url) }, 'fast')
  take(dues)
  await until(areDelivered(dues))
  t.equal(fast.received.length, 1)
})

t.test('a failed one for which there is no room is tried again when there is', async t => {
  const clock = new FakeClock()
  let code = 500
  const receiver = await httpReceiver(t, (_request, response) => response.writeHead(code).end())
  const { take } = start(t, { clock, limits: { laneRetriesMax: 1 } })
  const dues = many(6, { notification: to(receiver.url) })
  take(dues)
  await untilWith(clock, () => dues.every(one => kinds(one).includes('failed')), 'a failure of each')
  const held = dues.filter(({ outcomes: [first] }) => first?.kind === 'failed' && first.held)
  t.equal(held.length, 1, 'the others find no room')
  code = 204
  for (let second = 0; second < 20 && !areDelivered(dues)(); second++) {
    clock.advance(1000)
    const before = receiver.received.length
    await untilWith(clock, () => receiver.received.length > before || areDelivered(dues)(), 'another try')
    await untilWith(clock, () => dues.flatMap(kinds).length === receiver.received.length)
  }
  t.strictSame(
    dues.map(kinds),
    dues.map(() => ['failed', 'delivered']),
  )
})

t.test('notifications without room at an absent receiver come in order when it is back, before later ones', async t => {
  const clock = new FakeClock()
  const port = await freePort()
  const { take } = start(t, { clock, limits: { laneRetriesMax: 10, laneQueueMax: 30 } })
  const early = many(60, { notification: to(`http://127.0.0.1:${port}`), entity: 'R1' }, 'early ')
  take(early)
  // Until the lane has returned a failed delivery: then more waits in line than at the beginning.
  const isHeldBack = (): boolean => early.some(one => one.outcomes.some(end => end.kind === 'failed' && !end.held))
  await untilWith(clock, () => {
    clock.advance(100)
    return isHeldBack()
  })
  const late = many(20, { notification: to(`http://127.0.0.1:${port}`), entity: 'R1' }, 'late ')
  take(late)
  clock.tick()
  const receiver = await httpReceiver(t, undefined, undefined, port)
  await untilWith(clock, () => {
    clock.advance(100)
    return areDelivered([...early, ...late])()
  })
  t.strictSame(receiver.received.map(idOf), ids([...early, ...late]))
})

t.test('later tries that wait for room do not hold back first ones', async t => {
  const clock = new FakeClock()
  const receiver = await httpReceiver(t, (_request, response) => {
    response.writeHead(receiver.received.length <= 3 ? 500 : 204).end()
  })
  const { take } = start(t, { clock, limits: { laneRetriesMax: 1 } })
  const failing = many(3, { notification: to(receiver.url) }, 'failing')
  take(failing)
  await untilWith(clock, () => failing.every(one => kinds(one).length === 1))
  const fresh = many(5, { notification: to(receiver.url) }, 'fresh')
  take(fresh)
  await untilWith(clock, areDelivered(fresh), 'a first try, while no time passes')
  t.strictSame(failing.map(kinds), [['failed'], ['failed'], ['failed']])
})

t.test('first tries that wait for room do not hold back later ones', async t => {
  const clock = new FakeClock()
  const held: (() => void)[] = []
  const receiver = await httpReceiver(t, (request, response) => {
    if (idOf(request).startsWith('failing')) response.writeHead(receiver.received.length <= 2 ? 500 : 204).end()
    else held.push(() => response.writeHead(204).end())
  })
  const { take } = start(t, { clock, limits: { laneQueueMax: 1, laneSendsMax: 4, laneRetriesMax: 1 } })
  const failing = many(2, { notification: to(receiver.url) }, 'failing')
  for (const due of failing) {
    take([due])
    await untilWith(clock, () => kinds(due).length === 1)
  }
  take(many(20, { notification: to(receiver.url) }, 'fresh'))
  await untilWith(clock, () => held.length === 4)
  for (const due of failing) {
    clock.advance(2000)
    await untilWith(clock, areDelivered([due]), 'a later try')
  }
  t.equal(held.length, 4, 'and the first ones still wait')
})

t.test(
  'a notification whose subscription changes its receiver while it waits goes there, and delays no other',
  async t => {
    const held: (() => void)[] = []
    const old = await httpReceiver(t, (_request, response) => {
      held.push(() => response.writeHead(204).end())
    })
    const other = await httpReceiver(t, () => {})
    let url = old.url
    const { take } = start(t, { limits: { laneQueueMax: 1 } })
    const staying = many(5, { notification: to(old.url) }, 'staying')
    take(staying)
    take(many(20, { notification: to(other.url) }, 'elsewhere'))
    const moving = many(3, { notification: () => ({ http: { url } }) }, 'moving')
    take(moving)
    const behind = many(3, { notification: to(old.url) }, 'behind')
    take(behind)
    await until(() => held.length === 4 && behind.every(({ asked }) => asked > 0))
    url = other.url
    await until(() => {
      held.shift()?.()
      return areDelivered([...staying, ...behind])()
    }, 'those behind')
    t.strictSame(moving.map(kinds), [[], [], []], 'the other one has no room for them')
  },
)

t.test('an unsendable notification ends, and counts as a failure only where the rules require it', async t => {
  const { take, lines } = start(t)
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a macro looks like that
  const name = '${name}'
  const malformed = wished('malformed', { notification: () => ({ httpCustom: { url: `h${name}` } }) })
  const large = wished('large', {
    notification: () => ({ httpCustom: { url: 'http://h', payload: `${name}`.repeat(200_000) } }),
    input: { entity: room({ name: { type: 'Text', value: 'x'.repeat(100) } }) },
  })
  take([malformed, large])
  await until(() => [malformed, large].every(({ outcomes }) => outcomes.length === 1))
  t.match(malformed.outcomes, [{ kind: 'dropped', why: /malformed URL/ }])
  t.match(large.outcomes, [
    { kind: 'dead', reason: 'total outgoing message size is too big', sent: false, attempts: 1 },
  ])
  t.match(lines, [/^ERROR .*malformed URL/, /^ERROR .*too large/])
})

t.test('one that is pending no more is passed over, in line too', async t => {
  const held: (() => void)[] = []
  const receiver = await httpReceiver(t, (_request, response) => {
    held.push(() => response.writeHead(204).end())
  })
  const { take } = start(t, { limits: { laneQueueMax: 1 } })
  const dues = many(20, { notification: to(receiver.url) })
  const gone = new Set(['0', '6', '7', '19'])
  for (const due of dues) {
    const { input } = due
    due.input = () => (gone.has(due.id) ? undefined : input())
  }
  gone.delete('6')
  take(dues)
  await until(() => held.length === 4 && dues.every(({ id, asked }) => gone.has(id) || asked > 0))
  gone.add('6')
  const left = dues.filter(({ id }) => !gone.has(id))
  await until(() => {
    held.shift()?.()
    return areDelivered(left)()
  })
  t.strictSame(receiver.received.map(idOf), ids(left))
})

t.test('a queue counts all waiting notifications of its own tenants: in lanes, in line and not yet made', async t => {
  const receiver = await httpReceiver(t, () => {})
  const { take, dispatcher } = start(t, { mode: 'threadpool:2:1,acme:4:2' })
  const own = many(30, { notification: to(receiver.url) }, 'own')
  const others = many(10, { notification: to(receiver.url), tenant: 'other' }, 'others')
  take([...own, ...others])
  await until(() => [...own, ...others].every(({ asked }) => asked > 0))
  const { sending } = dispatcher.stats()
  const lengths = ['acme', 'other', 'third'].map(tenant => dispatcher.queueLength(tenant))
  t.equal(lengths[1], lengths[2], 'who has no queue of its own shares one')
  t.equal(lengths[0]! + lengths[1]! + sending, 40)
  t.ok(lengths[0]! >= 28 && lengths[1]! >= 9, lengths.join())
})

t.test('in bestEffort a notification without room ends at once', async t => {
  const receiver = await httpReceiver(t, () => {})
  const { take, lines } = start(t, { delivery: 'bestEffort', mode: 'threadpool:2:1' })
  const dues = many(5, { notification: to(receiver.url) })
  take(dues)
  await until(() => dues.every(({ asked }) => asked > 0))
  t.strictSame(dues.map(kinds), [[], [], [], ['dropped'], ['dropped']])
  t.equal(lines.filter(line => line.endsWith('(default notification queue is full)')).length, 2)
})

t.test('a stop waits for messages in flight and makes no more', async t => {
  const held: (() => void)[] = []
  const receiver = await httpReceiver(t, (_request, response) => {
    held.push(() => response.writeHead(204).end())
  })
  const { take, dispatcher } = start(t, { limits: { laneQueueMax: 2 } })
  const dues = many(40, { notification: to(receiver.url) })
  take(dues)
  await until(() => held.length === 4)
  const late = many(3, { notification: to(receiver.url) }, 'late')
  take(late)
  const stopped = dispatcher.stop(5000)
  for (const answer of held.splice(0)) answer()
  await stopped
  t.equal(dues.filter(one => kinds(one).length > 0).length, 4)
  t.equal(receiver.received.length, 4)
  t.ok(late.every(({ asked, outcomes }) => asked === 0 && outcomes.length === 0))
})

t.test('a broker of a subscription that may trigger is connected to beforehand', async t => {
  const broker = await aedesBroker(t)
  const { dispatcher } = start(t)
  const mqtt = (status: 'active' | 'inactive') => {
    const { subscription } = inputOf({ mqtt: { url: `mqtt://127.0.0.1:${broker.port}`, topic: 'a' } })
    return { ...subscription, status }
  }
  dispatcher.prepare(mqtt('inactive'))
  dispatcher.prepare(inputOf({ http: { url: `http://127.0.0.1:${broker.port}` } }).subscription)
  t.equal(dispatcher.stats().transports['mqtt']?.connections, 0)
  dispatcher.prepare(mqtt('active'))
  await until(() => broker.open === 1)
})
