// The belief about a member does not depend on the order or number of the rumours. Rumours that were sent least often
// go first; each goes a limited number of times, and only as many as fit.

import t from 'tap'
import { believe, type Member, type Rumour, Rumours, statuses } from '../../../cluster/gossip/member.js'
import fc from '../../support/properties.js'

const member: fc.Arbitrary<Member> = fc.record(
  {
    name: fc.constant('a'),
    address: fc.constantFrom('a:1', 'a:2'),
    domain: fc.constantFrom('', 'rack'),
    incarnation: fc.nat(3),
    life: fc.constantFrom('x', 'y'),
    status: fc.constantFrom(...statuses),
    isJoined: fc.boolean(),
  },
  { noNullPrototype: true },
)
const alive: Member = {
  name: 'a',
  address: 'a:1',
  domain: '',
  incarnation: 3,
  life: 'x',
  status: 'alive',
  isJoined: true,
}

t.test('the order of two rumours does not matter', async t => {
  fc.assert(
    fc.property(member, member, (one, other) => t.strictSame(believe(one, other), believe(other, one)) || t.bailout()),
  )
})

t.test('nor does the grouping of several', async t => {
  fc.assert(
    fc.property(
      member,
      member,
      member,
      (a, b, c) => t.strictSame(believe(a, believe(b, c)), believe(believe(a, b), c)) || t.bailout(),
    ),
  )
})

t.test('a repeated rumour changes nothing, and returns the same object', async t => {
  fc.assert(fc.property(member, one => t.equal(believe(one, { ...one }), one) || t.bailout()))
})

t.test('a higher incarnation is believed, with any contents', async t => {
  fc.assert(
    fc.property(member, member, (one, other) => {
      const higher = { ...other, incarnation: one.incarnation + 1 }
      t.strictSame([believe(one, higher), believe(higher, one)], [higher, higher]) || t.bailout()
    }),
  )
})

t.test('at a tie the worse state is believed: alive, suspect, dead, left', async t => {
  for (const [at, status] of statuses.entries())
    for (const worse of statuses.slice(at + 1))
      t.equal(believe({ ...alive, status }, { ...alive, status: worse }).status, worse)
})

t.test('two members are never mixed up', async t => {
  t.throws(() => believe(alive, { ...alive, name: 'b' }))
})

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

t.test('the rumour that was sent least is sent first', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 10)
  t.equal(names(rumours.take(10, 9)), 'a')
  rumours.put(rumour('b'), 10)
  t.equal(names(rumours.take(10, 9)), 'b')
  t.equal(names(rumours.take(20, 9)), 'ab')
})

t.test('a rumour is sent a fixed number of times', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 10)
  t.equal([1, 2, 3, 4, 5].map(() => names(rumours.take(100, 3))).join(''), 'aaa')
  t.equal(rumours.size, 0)
})

t.test('a newer rumour of a member replaces the older, and is sent anew', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a', 1), 10)
  rumours.take(100, 2)
  rumours.put(rumour('a', 2), 10)
  t.equal(rumours.size, 1)
  t.strictSame([rumours.take(100, 2), rumours.take(100, 2)], [[rumour('a', 2)], [rumour('a', 2)]])
})

t.test('a message takes the rumours that fit, and smaller ones in place of one that is too large', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 30)
  rumours.put(rumour('b'), 60)
  rumours.put(rumour('c'), 20)
  t.equal(names(rumours.take(50, 9)), 'ac')
  t.equal(names(rumours.take(60, 9)), 'b')
})

t.test('the rumour of one member may be left out, and waits', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 10)
  rumours.put(rumour('b'), 10)
  t.equal(names(rumours.take(100, 1, new Map([['a', rumour('a')]]))), 'b')
  t.equal(names(rumours.take(100, 1)), 'a')
})

t.test('no rumour of a forgotten member is sent any more', async t => {
  const rumours = new Rumours()
  rumours.put(rumour('a'), 10)
  rumours.take(100, 9)
  rumours.drop('a')
  t.equal(rumours.size, 0)
  t.strictSame(rumours.take(100, 9), [])
})
