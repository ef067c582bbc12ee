// Messages of gossip and their bytes: as proto/gossip.proto says, whoever writes or reads them; and nothing that is no message is taken
// for one.

import { join } from 'node:path'
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader'
import fc from 'fast-check'
import t from 'tap'
import { decodeMessage, encodeMessage, type Message, rumourLength } from '../../../cluster/gossip/gossip-messages.js'
import { membersMax } from '../../../cluster/gossip/gossip-options.js'
import { type Member, statuses } from '../../../cluster/gossip/member.js'
import type { Rumour } from '../../../cluster/gossip/rumours.js'
import { root } from '../../support/project.js'
import { Random } from '../../support/random.js'

const proto = loadSync(join(root, 'proto/gossip.proto'), { longs: Number, enums: Number, defaults: true })
const { Tell } = proto['orrery.cluster.Gossip'] as ServiceDefinition
const { requestSerialize: encodeByProto, requestDeserialize: decodeByProto } = Tell!

const record = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(fields, { noNullPrototype: true })

const text = fc.string({ maxLength: 40, unit: 'grapheme' })
const name = text.filter(one => one !== '')
const incarnation = fc.oneof(
  fc.nat(300),
  fc.maxSafeNat().map(n => n % 2 ** 48),
)
const version = fc.nat(2 ** 32 - 1)
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
const head = { version, cluster: text, from }
const message: fc.Arbitrary<Message> = fc.oneof(
  record({ ...head, kind: fc.constant('ping' as const), to, rumours }),
  record({ ...head, kind: fc.constant('ping-request' as const), to, address: text, waitMs: fc.nat(9999), rumours }),
  record({
    ...head,
    kind: fc.constantFrom('exchange', 'acknowledgement', 'no-answer'),
    rumours,
  }) as fc.Arbitrary<Message>,
  record({ ...head, kind: fc.constant('refusal' as const), reason: text }),
)

/** A message in the words of proto/gossip.proto. */
const inProto = (one: Message) => ({
  version: one.version,
  cluster: one.cluster,
  from: one.from,
  kind: ['ping', 'ping-request', 'exchange', 'acknowledgement', 'no-answer', 'refusal'].indexOf(one.kind),
  toName: 'to' in one ? one.to.name : '',
  toLife: 'to' in one ? one.to.life : '',
  toAddress: 'address' in one ? one.address : '',
  waitMs: 'waitMs' in one ? one.waitMs : 0,
  rumours: ('rumours' in one ? one.rumours : []).map(({ member, suspectedBy }) => ({
    member: { ...member, status: statuses.indexOf(member.status) },
    suspectedBy,
  })),
  reason: 'reason' in one ? one.reason : '',
})

const told: Rumour = {
  member: { name: 'm', address: 'm:1', domain: 'd', incarnation: 300, life: 'l', status: 'suspect', isJoined: true },
  suspectedBy: ['b'],
}
const small: Message = {
  version: 1,
  cluster: 'c',
  from: { name: 'a', life: 'x', incarnation: 7 },
  kind: 'ping-request',
  to: { name: 'b', life: 'y' },
  address: 'b:1',
  waitMs: 120,
  rumours: [told],
}

t.test('a message comes out of its bytes as it went in', async t => {
  fc.assert(fc.property(message, one => t.strictSame(decodeMessage(encodeMessage(one)), one) || t.bailout()))
})

t.test('who follows proto/gossip.proto reads what is written here', async t => {
  fc.assert(fc.property(message, one => t.match(decodeByProto(encodeMessage(one)), inProto(one)) || t.bailout()))
})

t.test('what is written by proto/gossip.proto is read here', async t => {
  fc.assert(fc.property(message, one => t.strictSame(decodeMessage(encodeByProto(inProto(one))), one) || t.bailout()))
})

t.test('members are asked under the name that stands in proto/gossip.proto', async t => {
  t.equal(Tell!.path, '/orrery.cluster.Gossip/Tell')
})

t.test('a rumour takes the bytes that it is said to take', async t => {
  fc.assert(
    fc.property(rumour, one => {
      const without = encodeMessage({ ...small, rumours: [] }).length
      t.equal(encodeMessage({ ...small, rumours: [one] }).length, without + rumourLength(one)) || t.bailout()
    }),
  )
})

t.test('bytes that are cut off are no message, or one with less in it', async t => {
  const all = encodeMessage(small)
  for (let length = 0; length < all.length; length++) {
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

t.test('what breaks a limit is no message', async t => {
  const broken = (one: Partial<Member>): Message => ({
    ...small,
    rumours: [{ ...told, member: { ...told.member, ...one } }],
  })
  t.equal(decodeMessage(encodeMessage(broken({ name: 'n'.repeat(257) }))), undefined, 'a name that is too long')
  t.equal(decodeMessage(encodeMessage(broken({ name: '' }))), undefined, 'no name')
  t.equal(decodeMessage(encodeMessage(broken({ incarnation: 2 ** 48 + 1 }))), undefined, 'an incarnation near the end')
  t.equal(decodeMessage(encodeMessage({ ...small, from: { ...small.from, name: '' } })), undefined, 'no sender')
  const suspectedBy = Array.from({ length: 17 }, (_, n) => `${n}`)
  t.equal(decodeMessage(encodeMessage({ ...small, rumours: [{ ...told, suspectedBy }] })), undefined, 'too many names')
  const many = Array.from({ length: membersMax + 1 }, () => told)
  t.equal(decodeMessage(encodeMessage({ ...small, rumours: many })), undefined, 'too many members')
  t.ok(decodeMessage(encodeMessage({ ...small, rumours: many.slice(1) })), 'as many as there may be')
})
