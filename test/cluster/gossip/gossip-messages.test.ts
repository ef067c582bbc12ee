// Messages of gossip and their bytes: they are read as they were written, by older builds as well; and bytes that are
// no message are not taken for one.

import t from 'tap'
import {
  decodeMessage,
  encodeMessage,
  type GossipMessage,
  rumourLength,
} from '../../../cluster/gossip/gossip-messages.js'
import { membersMax } from '../../../cluster/gossip/gossip-options.js'
import { type Member, type Rumour, statuses } from '../../../cluster/gossip/member.js'
import fc from '../../support/properties.js'
import { Random } from '../../support/random.js'

const record = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(fields, { noNullPrototype: true })

const text = fc.string({ maxLength: 40, unit: 'grapheme' })
const name = text.filter(one => one !== '')
const incarnation = fc.oneof(
  fc.nat(300),
  fc.maxSafeNat().map(n => n % 2 ** 48),
)
const version = fc.integer({ min: 1, max: 2 ** 32 - 1 })
const from = record({ name, life: text, incarnation })
const to = record({ name: text, life: text })
const member: fc.Arbitrary<Member> = record({
  name,
  address: text,
  domain: text,
  incarnation,
  life: text,
  status: fc.constantFrom(...statuses),
  isJoined: fc.boolean(),
})
const rumour: fc.Arbitrary<Rumour> = record({ member, suspectedBy: fc.array(name, { maxLength: 4 }) })
const rumours = fc.array(rumour, { maxLength: 5 })
const head = { version, lowestVersion: version, cluster: text, from }
const message: fc.Arbitrary<GossipMessage> = fc.oneof(
  record({ ...head, kind: fc.constant('ping' as const), to, rumours }),
  record({ ...head, kind: fc.constant('ping-request' as const), to, address: text, waitMs: fc.nat(9999), rumours }),
  record({
    ...head,
    kind: fc.constantFrom('exchange', 'acknowledgement', 'no-answer'),
    rumours,
  }) as fc.Arbitrary<GossipMessage>,
  record({ ...head, kind: fc.constant('refusal' as const), reason: text }),
)

const sent: Rumour = {
  member: { name: 'm', address: 'm:1', domain: 'd', incarnation: 300, life: 'l', status: 'suspect', isJoined: true },
  suspectedBy: ['b'],
}
const small: GossipMessage = {
  version: 1,
  lowestVersion: 1,
  cluster: 'c',
  from: { name: 'a', life: 'x', incarnation: 7 },
  kind: 'ping-request',
  to: { name: 'b', life: 'y' },
  address: 'b:1',
  waitMs: 120,
  rumours: [sent],
}

t.test('a message comes out of its bytes as it went in', async t => {
  fc.assert(fc.property(message, one => t.strictSame(decodeMessage(encodeMessage(one)), one) || t.bailout()))
})

/** `small`, as builds before `lowest_version` wrote it. */
const smallBefore =
  '08011201631a080a0161120178180720012a01623201793a03623a3140784a1a0a150a016d12036d3a311a016420ac022a016c30013801120162'

t.test('a message of a build without a lowest version is for readers of its own version', async t => {
  t.strictSame(decodeMessage(Buffer.from(smallBefore, 'hex')), small)
})

t.test('a build without a lowest version reads the messages written here, except that field', async t => {
  t.equal(encodeMessage(small).toString('hex'), `${smallBefore}5801`)
})

t.test('the bytes of a rumour equal its stated size', async t => {
  fc.assert(
    fc.property(rumour, one => {
      const without = encodeMessage({ ...small, rumours: [] }).length
      t.equal(encodeMessage({ ...small, rumours: [one] }).length, without + rumourLength(one)) || t.bailout()
    }),
  )
})

t.test('bytes that are cut off are no message, or one with less in it', async t => {
  const all = encodeMessage(small)
  const lowestVersionLength = 2
  for (let length = 0; length < all.length - lowestVersionLength; length++) {
    const read = decodeMessage(all.subarray(0, length))
    t.ok(!read || !('rumours' in read) || read.rumours.length === 0, `${length} bytes`)
  }
})

t.test('mutilated bytes never throw', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const all = encodeMessage(small)
  let messages = 0
  for (let left = 20_000; left > 0; left--) {
    const bytes = Buffer.from(all)
    for (let changes = random.between(1, 4); changes > 0; changes--)
      bytes[random.between(0, bytes.length - 1)] = random.pick([0, 1, 0x7f, 0x80, 0xff, random.between(0, 255)])
    if (decodeMessage(bytes)) messages++
  }
  t.ok(messages > 0 && messages < 20_000, `${messages} of them were messages`)
})

t.test('fields that are not known are skipped', async t => {
  const unknown = Buffer.from([0x78, 0x05, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7a, 0x02, 1, 2, 0x7d, 1, 2, 3, 4])
  t.strictSame(decodeMessage(Buffer.concat([unknown, encodeMessage(small), unknown])), small)
})

t.test('a message that breaks a limit is refused', async t => {
  const broken = (one: Partial<Member>): GossipMessage => ({
    ...small,
    rumours: [{ ...sent, member: { ...sent.member, ...one } }],
  })
  t.equal(decodeMessage(encodeMessage(broken({ name: 'n'.repeat(257) }))), undefined, 'a name that is too long')
  t.equal(decodeMessage(encodeMessage(broken({ name: '' }))), undefined, 'no name')
  t.equal(decodeMessage(encodeMessage(broken({ incarnation: 2 ** 48 + 1 }))), undefined, 'an incarnation near the end')
  t.equal(decodeMessage(encodeMessage({ ...small, from: { ...small.from, name: '' } })), undefined, 'no sender')
  const suspectedBy = Array.from({ length: 17 }, (_, n) => `${n}`)
  t.equal(decodeMessage(encodeMessage({ ...small, rumours: [{ ...sent, suspectedBy }] })), undefined, 'too many names')
  const many = Array.from({ length: membersMax + 1 }, () => sent)
  t.equal(decodeMessage(encodeMessage({ ...small, rumours: many })), undefined, 'too many members')
  t.ok(decodeMessage(encodeMessage({ ...small, rumours: many.slice(1) })), 'as many as there may be')
})
