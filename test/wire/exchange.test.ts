// Bytes between processes: unreadable ones are answered or lost, are reported, and never cause an exception.

import t from 'tap'
import type { ShardReply, ShardRequest } from '../../src/messages/messages.js'
import { answerBytes, replyFrom } from '../../src/wire/exchange.js'
import { decodeReply, encodeReply, encodeRequest } from '../../src/wire/wire.js'
import { create } from '../support/notifying.js'

const shards = 6
const find = { kind: 'find', tenant: 't', paths: ['/'], id: 'E', type: undefined } as const

/** The outcome of a request's bytes, with the asks and the reports. */
function answered(request: Buffer, shard = 0) {
  const asked: ShardRequest[] = []
  const reported: string[] = []
  let reply: ShardReply | undefined
  answerBytes(
    { shard, request, shards },
    (decoded, onReply) => {
      asked.push(decoded)
      onReply({ kind: 'done' })
    },
    bytes => {
      reply = decodeReply(Buffer.from(bytes))
    },
    what => reported.push(what),
  )
  return { reply, asked, reported }
}

t.test('bytes that are no request are refused, and it is certain that nothing has happened', async t => {
  for (const [bytes, shard] of [
    [Buffer.from('{'), 0],
    [Buffer.alloc(0), 0],
    [Buffer.of(0x99), 0],
    [Buffer.from('\x85{"kind":"paint"}', 'latin1'), 0],
    [Buffer.from('\x85{"kind":"toString"}', 'latin1'), 0],
    [Buffer.from('\x85{"kind":"find","tenant":"t"}', 'latin1'), 0],
    [encodeRequest(find), shards + 1],
    [encodeRequest(create('E')), shards],
  ] as const) {
    const { reply, asked, reported } = answered(bytes, shard)
    t.match(reply, { kind: 'unreachable', reason: /another release/ })
    t.strictSame(asked, [])
    t.equal(reported.length, 1)
  }
})

t.test('a number that JSON has and values have not is refused with its request', async t => {
  const bytes = encodeRequest({
    kind: 'updateValue',
    target: { tenant: 't', path: '/', id: 'E', type: undefined },
    origin: { correlatorRoot: '' },
    name: 'n',
    value: [{ a: 12345 }],
    forcedUpdate: false,
  })
  const text = bytes.toString('latin1')
  t.match(answered(bytes).asked, [{ kind: 'updateValue' }])
  t.match(answered(Buffer.from(text.replace('12345', '1e400'), 'latin1')).reply, { kind: 'unreachable' })
})

t.test('the register is asked, though it has no entities', async t => {
  t.match(answered(encodeRequest({ kind: 'announce', tenant: 't', path: '/a' }), shards), { reply: { kind: 'done' } })
})

t.test('a reply that cannot be read, or does not fit the request, is lost', async t => {
  for (const bytes of [
    Buffer.from('nonsense'),
    Buffer.alloc(0),
    Buffer.of(0x99),
    Buffer.from('\x86\0\0\0\x10{"kind":"paint"}', 'latin1'),
    encodeReply({ kind: 'retried', count: 1 }),
    encodeReply({ kind: 'batch', replies: [] }),
  ]) {
    const reported: string[] = []
    t.match(
      replyFrom({ kind: 'reply', reply: bytes }, find, what => reported.push(what)),
      { kind: 'lost' },
    )
    t.equal(reported.length, 1)
  }
})

t.test('a reply has as many parts as were requested', async t => {
  const fetch = {
    kind: 'fetch',
    tenant: 't',
    places: [{ created: 1, shard: 1, path: '/', type: 'T' }],
    bytesMax: undefined,
  } as const
  const kindOf = (request: ShardRequest, reply: ShardReply): string =>
    replyFrom({ kind: 'reply', reply: encodeReply(reply) }, request, () => {}).kind
  t.equal(kindOf(fetch, { kind: 'fetched', encodedEntities: [undefined] }), 'fetched')
  t.equal(kindOf(fetch, { kind: 'fetched', encodedEntities: [] }), 'lost', 'it would be fetched for ever')
  t.equal(kindOf({ kind: 'batch', items: [create('E')] }, { kind: 'batch', replies: [{ kind: 'done' }] }), 'batch')
  t.equal(kindOf({ kind: 'batch', items: [create('E')] }, { kind: 'batch', replies: [] }), 'lost')
  t.equal(kindOf(find, { kind: 'busy' }), 'busy')
})
