// Messages between replicators: decoding is the inverse of encoding, and messages of another version are recognised.

import t from 'tap'
import {
  decodePeerReply,
  decodePeerRequest,
  encodePeerMessage,
  type PeerReply,
  type PeerRequest,
  positionFrom,
  textOf,
} from '../../../cluster/replication/peer-messages.js'

const position = { sequence: 3, epoch: 2, hash: Buffer.alloc(16, 7) }

const requests: readonly PeerRequest[] = [
  { kind: 'handOver', shard: 1, to: 'b life' },
  { kind: 'reached', shard: 2, sequence: 9 },
  { kind: 'snapshot', shard: 3, after: '' },
  { kind: 'standing', owner: 'b life', flushed: [[1, 2]] },
  { kind: 'standing', owner: 'b life', flushed: [], load: { balance: 'load', shards: [[1, 2.5]] } },
  { kind: 'exchange', from: 'b life', gives: 1, takes: 2 },
]
const replies: readonly PeerReply[] = [
  { kind: 'handedOver', epoch: 4 },
  { kind: 'done' },
  { kind: 'refused', reason: 'no' },
  { kind: 'page', position: textOf(position), next: 'eA==' },
]

t.test('a message comes out of its bytes as it went in, and so do the bytes behind it', async t => {
  const rows = Buffer.from('rows')
  for (const message of requests)
    t.strictSame(decodePeerRequest(encodePeerMessage(message, rows)), { message, bytes: rows })
  for (const message of replies)
    t.strictSame(decodePeerReply(encodePeerMessage(message, rows)), { message, bytes: rows })
  t.strictSame(positionFrom(textOf(position)), position)
})

t.test('a request is no reply, and a reply no request', async t => {
  for (const message of requests) t.equal(decodePeerReply(encodePeerMessage(message)), undefined)
  for (const message of replies) t.equal(decodePeerRequest(encodePeerMessage(message)), undefined)
})

t.test('another version, an unknown kind, and invalid members are no message', async t => {
  const other = encodePeerMessage(requests[0]!)
  other[0] = 2
  t.equal(decodePeerRequest(other), undefined)
  t.equal(decodePeerRequest(Buffer.of(1, 0, 0, 0, 9)), undefined, 'it is cut off')
  for (const wrong of [
    { kind: 'paint', shard: 1 },
    { kind: 'toString' },
    { kind: 'handOver', shard: -1, to: 'b' },
    { kind: 'handOver', shard: 1 },
    { kind: 'standing', owner: 'b', flushed: [[1]] },
    { kind: 'standing', owner: 'b', flushed: [], load: 5 },
    { kind: 'standing', owner: 'b', flushed: [], load: { balance: 'load', shards: [[1, -2]] } },
    { kind: 'standing', owner: 'b', flushed: [], load: { balance: 'load', shards: [[0.5, 2]] } },
    { kind: 'exchange', from: 'b', gives: 1 },
  ])
    t.equal(decodePeerRequest(encodePeerMessage(wrong as unknown as PeerRequest)), undefined, JSON.stringify(wrong))
  const page = { kind: 'page', position: { ...textOf(position), hash: 'eA==' } } as const
  t.equal(decodePeerReply(encodePeerMessage(page)), undefined, 'a hash that is too short')
})

t.test('a member that is not known is ignored: a later build may send some', async t => {
  const later = { kind: 'handOver', shard: 1, to: 'b life', haste: true } as const
  t.match(decodePeerRequest(encodePeerMessage(later)), { message: { kind: 'handOver' } })
})
