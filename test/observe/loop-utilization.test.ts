// The utilization of the event loop, from numbers that the test gives.

import t from 'tap'
import { LoopUtilization } from '../../src/observe/loop-utilization.js'
import { FakeClock } from '../support/fake-clock.js'

class Scene {
  readonly clock = new FakeClock()
  readings = 0
  private active = 0
  private idle = 0
  readonly use = new LoopUtilization(this.clock, () => {
    this.readings++
    return { active: this.active, idle: this.idle }
  })

  pass(ms: number, busy: number): void {
    this.active += ms * busy
    this.idle += ms * (1 - busy)
    this.clock.advance(ms)
  }
}

t.test('it follows the share of time that is busy, and one peak does not decide', async t => {
  const scene = new Scene()
  t.equal(scene.use.share, 0, 'nothing has been measured')
  scene.pass(500, 0.8)
  t.equal(scene.use.share, 0.4)
  for (let n = 0; n < 10; n++) {
    scene.pass(500, 0.8)
    scene.use.share
  }
  t.ok(Math.abs(scene.use.share - 0.8) < 0.001, `${scene.use.share}`)
  scene.pass(500, 0)
  t.ok(Math.abs(scene.use.share - 0.4) < 0.001, `${scene.use.share}`)
})

t.test('it is measured once each half second, however often it is asked for', async t => {
  const scene = new Scene()
  const { readings } = scene
  for (let n = 0; n < 1000; n++) {
    scene.pass(1, 1)
    scene.use.share
  }
  t.equal(scene.readings - readings, 2)
})

t.test('after a long time without a question the answer is about all of that time', async t => {
  const scene = new Scene()
  scene.pass(10_000, 1)
  t.equal(scene.use.share, 0.5)
  scene.pass(99_000, 0)
  scene.pass(1000, 1)
  t.equal(scene.use.share, 0.5 + (0.01 - 0.5) / 2)
})

t.test('the runtime counts the time of this event loop', async t => {
  const { clock } = new Scene()
  const use = new LoopUtilization(clock)
  const untilMs = performance.now() + 20
  while (performance.now() < untilMs);
  clock.advance(500)
  await new Promise(setImmediate)
  const { share } = use
  t.ok(share > 0 && share <= 1, `${share}`)
})
