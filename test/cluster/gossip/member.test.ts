// What is believed of a member does not depend on who hears what first, or how often.

import fc from 'fast-check'
import t from 'tap'
import { believe, type Member, statuses } from '../../../cluster/gossip/member.js'

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

t.test('which of two tellings comes first does not matter', async t => {
  fc.assert(
    fc.property(member, member, (one, other) => t.strictSame(believe(one, other), believe(other, one)) || t.bailout()),
  )
})

t.test('nor does what has been put together before', async t => {
  fc.assert(
    fc.property(
      member,
      member,
      member,
      (a, b, c) => t.strictSame(believe(a, believe(b, c)), believe(believe(a, b), c)) || t.bailout(),
    ),
  )
})

t.test('the same again changes nothing, and is told by being the same object', async t => {
  fc.assert(fc.property(member, one => t.equal(believe(one, { ...one }), one) || t.bailout()))
})

t.test('a higher incarnation is believed, whatever it says', async t => {
  fc.assert(
    fc.property(member, member, (one, other) => {
      const higher = { ...other, incarnation: one.incarnation + 1 }
      t.strictSame([believe(one, higher), believe(higher, one)], [higher, higher]) || t.bailout()
    }),
  )
})

t.test('at a tie the worse news is believed: alive, suspect, dead, left', async t => {
  for (const [at, status] of statuses.entries())
    for (const worse of statuses.slice(at + 1))
      t.equal(believe({ ...alive, status }, { ...alive, status: worse }).status, worse)
})

t.test('two members are never mixed up', async t => {
  t.throws(() => believe(alive, { ...alive, name: 'b' }))
})
