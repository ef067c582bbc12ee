// Readers of a register that other owners follow: none sees a change that another owner lacks, and the others are asked
// only where they may lack one.

import t from 'tap'
import { FollowedRegister, type OnAllHave, type OnTold } from '../../../src/shard/documents/register.js'

class Scene {
  term = 1
  readonly events: string[] = []
  readonly tellings: OnAllHave[] = []
  readonly register = new FollowedRegister({ write: () => 0, afterCommit: (_, onDurable) => onDurable() }, 7, {
    tell: onDone => void this.tellings.push(onDone),
    terms: () => this.term,
  })

  change(carriedBy: number): void {
    this.register.afterAll(carriedBy, this.noting(`change ${carriedBy}`))
  }

  read(carriedBy: number): void {
    this.register.beforeRead(carriedBy, this.noting(`read ${carriedBy}`))
  }

  /** The others have answered. */
  end(lacking?: string): void {
    this.tellings.shift()!(lacking)
  }

  private noting(what: string): OnTold {
    return failure => void this.events.push(failure ? `${what} ${failure.kind}` : what)
  }
}

t.test('a reader waits for the change that it reads, and not for later ones', async t => {
  const scene = new Scene()
  scene.change(1)
  scene.end()
  scene.change(2)
  scene.read(1)
  scene.read(2)
  t.strictSame(scene.events, ['change 1', 'read 1'])
  t.equal(scene.tellings.length, 1, 'the others are told once')
  scene.end()
  t.strictSame(scene.events.slice(2), ['change 2', 'read 2'])
  scene.read(2)
  t.strictSame(scene.events.slice(4), ['read 2'])
})

t.test('the first reader of a term waits: the owner before may have told nobody of its last change', async t => {
  const scene = new Scene()
  scene.read(0)
  scene.read(0)
  t.equal(scene.tellings.length, 1, 'readers wait together')
  scene.end()
  t.strictSame(scene.events, ['read 0', 'read 0'])
  scene.change(3)
  scene.term = 2
  scene.end()
  scene.read(0)
  t.strictSame(scene.events.slice(2), ['change 3'])
  scene.end()
  t.strictSame(scene.events.slice(3), ['read 0'])
})

t.test('a reader gets the reason why others may lack a change, and the next one asks again', async t => {
  const scene = new Scene()
  scene.change(1)
  scene.read(1)
  scene.end('it is away')
  t.strictSame(scene.events, ['change 1 lost', 'read 1 unreachable'])
  scene.read(1)
  scene.end()
  t.strictSame(scene.events.slice(2), ['read 1'])
})
