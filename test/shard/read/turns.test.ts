// However many long reads there are, one of them goes on in a turn of the event loop, and each as often as the others.

import t from 'tap'
import { Turns, turnBytesMax } from '../../../src/shard/read/turns.js'

/** A clock whose ticks end one at a time. */
class Ticks {
  private pending: (() => void)[] = []

  endOfTick(run: () => void): void {
    this.pending.push(run)
  }

  get waiting(): number {
    return this.pending.length
  }

  tick(): void {
    const now = this.pending
    this.pending = []
    for (const run of now) run()
  }
}

t.test('reads go on one in each turn, in the order in which they asked', async t => {
  const clock = new Ticks()
  const turns = new Turns(clock)
  const steps: string[] = []
  const read = async (name: string): Promise<void> => {
    for (let step = 1; step <= 2; step++) {
      await turns.next()
      steps.push(`${name}${step}`)
    }
  }
  const all = Promise.all(['a', 'b', 'c'].map(read))
  for (const expected of [1, 2, 3, 4, 5, 6]) {
    clock.tick()
    await new Promise(resolve => setImmediate(resolve))
    t.equal(steps.length, expected)
  }
  await all
  t.strictSame(steps, ['a1', 'b1', 'c1', 'a2', 'b2', 'c2'])
})

t.test('a turn is over when much was read in it, and the next one begins anew', async t => {
  const clock = new Ticks()
  const turns = new Turns(clock)
  turns.note(1000)
  t.equal(clock.waiting, 0, 'what is small costs nothing')
  turns.note(turnBytesMax)
  t.notOk(turns.isOver)
  turns.note(turnBytesMax)
  t.ok(turns.isOver)
  clock.tick()
  t.notOk(turns.isOver)
})
