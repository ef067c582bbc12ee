// News on its way: told least first, not too often, and no more than fits.

import t from 'tap'
import type { Member } from '../../../cluster/gossip/member.js'
import { type Rumour, Rumours } from '../../../cluster/gossip/rumours.js'

const rumour = (name: string, incarnation = 1): Rumour => {
  const member: Member = {
    name,
    address: `${name}:1`,
    domain: '',
    incarnation,
    life: 'x',
    status: 'alive',
    isJoined: true,
  }
  return { member, suspectedBy: [] }
}
const names = (rumours: readonly Rumour[]) => rumours.map(({ member }) => member.name).join('')

t.test('what has been told least is told first', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 10)
  t.equal(names(rumours.take(10, 9)), 'a')
  rumours.put(rumour('b'), 10)
  t.equal(names(rumours.take(10, 9)), 'b')
  t.equal(names(rumours.take(20, 9)), 'ab')
})

t.test('a rumour is told so often and not once more', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 10)
  t.equal([1, 2, 3, 4, 5].map(() => names(rumours.take(100, 3))).join(''), 'aaa')
  t.equal(rumours.size, 0)
})

t.test('a newer rumour of a member takes the place of the older, and is told anew', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a', 1), 10)
  rumours.take(100, 2)
  rumours.put(rumour('a', 2), 10)
  t.equal(rumours.size, 1)
  t.strictSame([rumours.take(100, 2), rumours.take(100, 2)], [[rumour('a', 2)], [rumour('a', 2)]])
})

t.test('a message takes what it has room for, and smaller ones in place of one that is too large', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 30)
  rumours.put(rumour('b'), 60)
  rumours.put(rumour('c'), 20)
  t.equal(names(rumours.take(50, 9)), 'ac')
  t.equal(names(rumours.take(60, 9)), 'b')
})

t.test('what is told of one member may be left out, and waits', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 10)
  rumours.put(rumour('b'), 10)
  t.equal(names(rumours.take(100, 1, new Map([['a', rumour('a')]]))), 'b')
  t.equal(names(rumours.take(100, 1)), 'a')
})

t.test('nothing is told any more of who is forgotten', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 10)
  rumours.take(100, 9)
  rumours.drop('a')
  t.equal(rumours.size, 0)
  t.strictSame(rumours.take(100, 9), [])
})
