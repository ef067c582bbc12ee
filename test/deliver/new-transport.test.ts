// A transport that only this test has: a sender that appends to memory, and its entry in the table. Queues, order,
// retries, breaker and numbers need nothing else of it. deliver/sender.ts lists these parts for a new transport.

import t, { type Test } from 'tap'
import { addressOf } from '../../src/deliver/address.js'
import { Dispatcher } from '../../src/deliver/dispatcher.js'
import { Notifier, type NotifierOptions } from '../../src/deliver/notifier.js'
import type { OnSent, Sendable, Sender, SendResult, TransportEntry } from '../../src/deliver/sender.js'
import { transportsOf } from '../../src/deliver/transports.js'
import type { NotificationMessage } from '../../src/domain/subscriptions/message.js'
import type { EndedTry, Logger } from '../../src/ports.js'
import { FakeClock } from '../support/fake-clock.js'
import { inputOf, options, subscriptionId } from '../support/notification-inputs.js'
import { pendingOf, timeouts } from './messages.js'
import { until } from './receivers.js'

interface MemoryMessage extends NotificationMessage {
  readonly transport: 'memory'
  readonly drawer: string
}

/** Appends each message to its drawer, except to the drawer that `locked` names. */
class MemorySender implements Sender<MemoryMessage> {
  readonly drawers = new Map<string, string[]>()
  readonly prepared: string[] = []
  locked = ''
  isClosed = false

  send({ message: { drawer, body = '' } }: Sendable<MemoryMessage>, onSent: OnSent): void {
    const result: SendResult =
      drawer === this.locked ? { kind: 'failed', reason: 'locked' } : { kind: 'answered', code: undefined }
    if (result.kind === 'answered') this.drawers.set(drawer, [...(this.drawers.get(drawer) ?? []), body])
    queueMicrotask(() => onSent(result))
  }

  prepare({ drawer }: MemoryMessage): void {
    this.prepared.push(drawer)
  }

  stats() {
    return { connections: this.drawers.size }
  }

  close(): void {
    this.isClosed = true
  }
}

const entryOf = (sender: MemorySender): TransportEntry<MemoryMessage> => ({
  what: 'notification',
  isInQueueStatistics: false,
  addressOf: ({ url }) => addressOf(url, { 'memory:': 1 }),
  headBytes: ({ drawer }) => drawer.length,
  lineOf: (subscription, { message: { drawer } }, payload, { kind }) => `${subscription} ${drawer} ${payload} ${kind}`,
  load: async () => sender,
})

const to = (drawer: string, body: string): MemoryMessage => ({
  transport: 'memory',
  url: `memory://${drawer}`,
  body,
  drawer,
})

const sending: NotifierOptions = {
  delivery: 'atLeastOnce',
  mode: 'transient',
  messageBytesMax: 1_000,
  simulated: false,
  loggedBytesMax: 100,
}

function startedWith(t: Test, entries: readonly (readonly [string, TransportEntry])[]) {
  const clock = new FakeClock()
  const lines: string[] = []
  const tries: EndedTry[] = []
  const line = (text: string): void => void lines.push(text)
  const logger: Logger = { level: 'INFO', fatal: line, error: line, warn: line, info: line, debug: line, summary: line }
  const watch = { onEnded: (ended: EndedTry) => void tries.push(ended), onDeprecated: () => {} }
  const transports = new Map([...transportsOf(timeouts), ...entries])
  const ports = { clock, fraction: () => 0.5, logger, watch, transports }
  const notifier = new Notifier(
    { ...ports, onOutcome: ({ subject }, outcome) => subject.onOutcome(outcome), onRoom: () => {} },
    sending,
  )
  const dispatcher = new Dispatcher(ports, options, sending)
  t.teardown(() => Promise.all([notifier.stop(0), dispatcher.stop(0)]))
  const all = (isSo: () => boolean): Promise<void> =>
    until(() => {
      clock.tick()
      return isSo()
    })
  return { clock, notifier, dispatcher, lines, tries, all }
}

t.test('messages of a new transport arrive in order, and are counted, logged and reported under its name', async t => {
  const sender = new MemorySender()
  const { notifier, lines, tries, all } = startedWith(t, [['memory', entryOf(sender)]])
  notifier.prepare(to('a', ''))
  const pending = ['1', '2', '3'].map(() => pendingOf({ subscription: 'abc' }))
  for (const [at, one] of pending.entries()) notifier.offer(one, to('a', `${at}`), 'one entity', {})
  await all(() => pending.every(({ outcomes }) => outcomes.length === 1))
  t.same(sender.drawers.get('a'), ['0', '1', '2'])
  t.same(sender.prepared, ['a'])
  t.same(pending[0]?.outcomes, [{ kind: 'delivered', code: undefined }])
  t.match(notifier.stats(), {
    transports: { memory: { sent: 3, connections: 1 }, http: { sent: 0 }, mqtt: { sent: 0 } },
    queue: { in: 3, sentOk: 0 },
    delivered: 3,
    lanes: 1,
  })
  t.equal(lines[0], 'abc a payload (1 bytes): 0 answered')
  t.match(tries[0], { what: 'notification', receiver: 'a:1/', requestBytes: 1, failure: undefined })
})

t.test('a message that a new transport could not send is tried again, and its receiver gets a breaker', async t => {
  const sender = new MemorySender()
  sender.locked = 'a'
  const { clock, notifier, lines, all } = startedWith(t, [['memory', entryOf(sender)]])
  const pending = Array.from({ length: 5 }, () => pendingOf())
  for (const [at, one] of pending.entries()) notifier.offer(one, to('a', `${at}`), `${at}`, {})
  await all(() => pending.every(({ outcomes }) => outcomes.length === 1))
  t.match(pending[0]?.outcomes, [{ kind: 'failed', reason: 'locked', attempts: 1, held: true }])
  t.ok(lines.includes('Receiver memory://a:1 does not answer, notifications to it are held back: locked'))
  sender.locked = ''
  clock.advance(1_000)
  await all(() => pending.every(({ outcomes }) => outcomes.at(-1)?.kind === 'delivered'))
  t.equal(sender.drawers.get('a')?.length, 5)
})

t.test('an invalid URL of a new transport, or a too large message, ends as with any other', async t => {
  const { notifier, all } = startedWith(t, [['memory', entryOf(new MemorySender())]])
  const [other, large] = [pendingOf(), pendingOf()]
  notifier.offer(other, { ...to('a', ''), url: 'http://a' }, '', {})
  notifier.offer(large, to('a', 'x'.repeat(1_000)), '', {})
  await all(() => other.outcomes.length + large.outcomes.length === 2)
  t.match([...other.outcomes, ...large.outcomes], [{ kind: 'dropped' }, { kind: 'dead', sent: false }])
})

t.test('a sender is closed with the notifier', async t => {
  const sender = new MemorySender()
  const { notifier, all } = startedWith(t, [['memory', entryOf(sender)]])
  notifier.prepare(to('a', ''))
  await all(() => sender.prepared.length === 1)
  await notifier.stop(0)
  t.ok(sender.isClosed)
})

t.test('notifications of subscriptions arrive at a sender in the place of HTTP', async t => {
  const bodies: string[] = []
  const sender: Sender = {
    send({ message }, onSent) {
      bodies.push(message.body ?? '')
      queueMicrotask(() => onSent({ kind: 'answered', code: 204 }))
    },
    prepare() {},
    stats: () => ({ connections: 0 }),
    close() {},
  }
  const http = transportsOf(timeouts).get('http')!
  const { dispatcher, all } = startedWith(t, [['http', { ...http, load: async () => sender }]])
  const pending = pendingOf({ subscription: subscriptionId })
  pending.input = () => inputOf({ http: { url: 'http://h' }, attrs: ['temperature'], attrsFormat: 'keyValues' })
  dispatcher.deliver(pending)
  await all(() => pending.outcomes.length === 1)
  t.match(pending.outcomes, [{ kind: 'delivered', code: 204 }])
  t.match(JSON.parse(bodies[0]!), { subscriptionId, data: [{ id: 'R1', temperature: 21.5 }] })
})
