// Event sources and callbacks of ngsi-proxy: who reads what, how long they live, and that floods do not grow without
// end.

import t from 'tap'
import {
  awayMsMax,
  type ChannelReader,
  callbacksMax,
  callbacksOfSourceMax,
  eventSourcesMax,
  type ProxiedNotification,
  ProxyChannels,
  unreadMsMax,
} from '../../../src/broker/streams/proxy-channels.js'
import type { Result } from '../../../src/domain/refusal.js'
import { FakeClock } from '../../support/fake-clock.js'

class Reader implements ChannelReader {
  readonly read: string[] = []
  ends = 0

  onNotification(callback: string, { payload }: ProxiedNotification): void {
    this.read.push(`${callback} ${payload}`)
  }

  onEnd(): void {
    this.ends++
  }
}

class Scene {
  readonly clock = new FakeClock()
  private ids = 0
  readonly channels = new ProxyChannels({ clock: this.clock, chance: { uuid: () => `id${++this.ids}` } })

  open(): string {
    return accepted(this.channels.open())
  }

  /** An event source with a reader. */
  read(): { readonly id: string; readonly reader: Reader } {
    const id = this.open()
    const reader = new Reader()
    this.channels.attach(id, reader)
    return { id, reader }
  }

  pass(callback: string, payload = 'x'): string {
    const passed = this.channels.pass(callback, { payload, headers: {} })
    return passed.ok ? passed.value : passed.refusal.code
  }
}

function accepted<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.refusal.code)
  return result.value
}

const codeOf = (result: Result<unknown>): string => (result.ok ? 'ok' : result.refusal.code)

t.test('a notification reaches the reader of its callback, and no other', async t => {
  const scene = new Scene()
  const [one, two] = [scene.read(), scene.read()]
  const first = accepted(scene.channels.register(one.id))
  const second = accepted(scene.channels.register(two.id))
  t.equal(scene.pass(first, 'a'), 'passed')
  t.equal(scene.pass(second, 'b'), 'passed')
  t.strictSame(one.reader.read, [`${first} a`])
  t.strictSame(two.reader.read, [`${second} b`])
})

t.test('an id of one kind is none of the other', async t => {
  const scene = new Scene()
  const { channels } = scene
  const id = scene.open()
  const callback = accepted(channels.register(id))
  t.equal(scene.pass(id), 'callbackNotFound')
  t.equal(codeOf(channels.register(callback)), 'eventSourceNotFound')
  t.notOk(channels.attach(callback, new Reader()))
  t.equal(codeOf(channels.removeSource(callback)), 'eventSourceNotFound')
  t.equal(codeOf(channels.removeCallback(id)), 'callbackNotFound')
})

t.test('a removed callback, and those of a removed event source, are unknown', async t => {
  const scene = new Scene()
  const { id, reader } = scene.read()
  const [one, two] = [accepted(scene.channels.register(id)), accepted(scene.channels.register(id))]
  t.equal(codeOf(scene.channels.removeCallback(one)), 'ok')
  t.equal(codeOf(scene.channels.removeCallback(one)), 'callbackNotFound')
  t.equal(scene.pass(one), 'callbackNotFound')
  t.equal(scene.pass(two), 'passed')
  t.equal(codeOf(scene.channels.removeSource(id)), 'ok')
  t.equal(scene.pass(two), 'callbackNotFound')
  t.equal(reader.ends, 1)
  t.same([scene.channels.size, scene.channels.callbackCount], [0, 0])
})

t.test('a second reader takes the place of the first, which ends and takes nothing away when it goes', async t => {
  const scene = new Scene()
  const { id, reader } = scene.read()
  const callback = accepted(scene.channels.register(id))
  const second = new Reader()
  t.ok(scene.channels.attach(id, second))
  t.equal(reader.ends, 1)
  scene.channels.detach(id, reader)
  t.equal(scene.pass(callback, 'a'), 'passed')
  t.strictSame([reader.read, second.read], [[], [`${callback} a`]])
})

t.test('an event source that no client reads ends after a minute', async t => {
  const scene = new Scene()
  const id = scene.open()
  scene.clock.advance(unreadMsMax - 1)
  t.equal(scene.channels.size, 1)
  scene.clock.advance(10_000)
  t.equal(scene.channels.size, 0)
  t.notOk(scene.channels.attach(id, new Reader()))
  t.equal(scene.clock.waiting, 0, 'nothing is looked at any more')
})

t.test('a reader may come back in time; messages from the time between are lost', async t => {
  const scene = new Scene()
  const { id, reader } = scene.read()
  const callback = accepted(scene.channels.register(id))
  scene.clock.advance(10 * awayMsMax)
  t.equal(scene.pass(callback, 'a'), 'passed', 'a reader that stays keeps its event source')
  scene.channels.detach(id, reader)
  t.equal(scene.pass(callback, 'b'), 'lost')
  scene.clock.advance(awayMsMax - 1)
  t.ok(scene.channels.attach(id, reader))
  t.equal(scene.pass(callback, 'c'), 'passed')
  t.strictSame(reader.read, [`${callback} a`, `${callback} c`])
  scene.channels.detach(id, reader)
  scene.clock.advance(awayMsMax + 10_000)
  t.equal(scene.pass(callback), 'callbackNotFound')
  t.same([scene.channels.size, scene.channels.callbackCount], [0, 0])
})

t.test('a flood of event sources pushes out those without a reader, never one with a reader', async t => {
  const scene = new Scene()
  const kept = scene.read()
  const gone = scene.read()
  scene.channels.detach(gone.id, gone.reader)
  const callback = accepted(scene.channels.register(kept.id))
  for (let n = 0; n < 3 * eventSourcesMax; n++) scene.open()
  t.equal(scene.channels.size, eventSourcesMax)
  t.equal(scene.pass(callback), 'passed')
  t.ok(scene.channels.attach(gone.id, gone.reader), 'one that was read before goes last')
  scene.clock.advance(unreadMsMax + 10_000)
  t.equal(scene.channels.size, 2)
})

t.test('when each has a reader, one more is refused', async t => {
  const scene = new Scene()
  const first = scene.read()
  while (scene.channels.size < eventSourcesMax) scene.read()
  t.equal(codeOf(scene.channels.open()), 'eventSourcesTooMany')
  scene.channels.detach(first.id, first.reader)
  t.equal(codeOf(scene.channels.open()), 'ok')
  t.notOk(scene.channels.attach(first.id, first.reader))
})

t.test('callbacks are limited, for an event source and together', async t => {
  const scene = new Scene()
  const fill = (id: string): void => {
    for (let n = 0; n < callbacksOfSourceMax; n++) accepted(scene.channels.register(id))
  }
  const first = scene.read()
  fill(first.id)
  t.equal(codeOf(scene.channels.register(first.id)), 'callbacksTooMany')
  while (scene.channels.callbackCount < callbacksMax) fill(scene.read().id)
  const last = scene.read()
  t.equal(codeOf(scene.channels.register(last.id)), 'callbacksTooMany')
  scene.channels.removeSource(first.id)
  t.equal(codeOf(scene.channels.register(last.id)), 'ok')
})
