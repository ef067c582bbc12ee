// Refusals between processes, of one build and of several.

import t from 'tap'
import { type Refusal, refusals, refusalText } from '../../src/domain/refusal.js'
import type { ShardReply } from '../../src/messages/messages.js'
import { forms } from '../../src/wire/packed.js'
import { decodeReply, encodeReply } from '../../src/wire/wire.js'
import { allRefusals } from '../support/refusals.js'

const received = (refusal: Refusal): Refusal => refusalOf(decodeReply(encodeReply({ kind: 'refused', refusal })))

function refusalOf(reply: ShardReply): Refusal {
  if (reply.kind !== 'refused') throw new Error(`not refused: ${reply.kind}`)
  return reply.refusal
}

/** The refusal that this build reads from the bytes of another build. */
function readFrom(refusal: unknown): Refusal {
  const json = Buffer.from(JSON.stringify({ kind: 'refused', refusal }))
  const begin = Buffer.alloc(5)
  begin[0] = forms.reply
  begin.writeUInt32BE(json.length, 1)
  return refusalOf(decodeReply(Buffer.concat([begin, json])))
}

t.test('a refusal of every code comes out of its bytes as it went in', async t => {
  for (const refusal of allRefusals) t.strictSame(received(refusal), refusal, refusal.code)
  const replies = allRefusals.map(refusal => ({ kind: 'refused', refusal }) as const)
  const batch: ShardReply = { kind: 'batch', replies: [{ kind: 'done' }, ...replies] }
  t.strictSame(decodeReply(encodeReply(batch)), batch)
})

t.test('a code that this build does not know keeps the kind and the text of its sender', async t => {
  const sent = { kind: 'Forbidden', code: 'notGranted', scope: '/a', description: 'no right to write in /a' }
  const refusal = readFrom(sent)
  t.strictSame(refusal, refusals.unknownCode('Forbidden', 'notGranted', 'no right to write in /a'))
  t.equal(refusalText(refusal), sent.description)
})

t.test('a name of the language is no code', async t => {
  for (const code of ['constructor', '__proto__', 'toString', '', 7, null])
    t.match(
      readFrom({ kind: 'NotFound', code, description: 'why' }),
      { kind: 'NotFound', code: 'unknownCode' },
      `${code}`,
    )
})

t.test('a kind that this build does not know is an internal error', async t => {
  t.match(readFrom({ kind: 'Gone', code: 'entityGone', description: 'it was here' }), {
    kind: 'InternalServerError',
    text: 'it was here',
  })
})

t.test('facts that this build does not know are ignored, and a known code without its facts is unknown', async t => {
  const { attributesMissing, entityNotFound } = refusals
  const known = attributesMissing('PartialUpdate', 'E', ['a'])
  t.strictSame(readFrom({ ...known, since: 5, description: 'other words' }), known)
  t.strictSame(readFrom({ ...entityNotFound, since: 5 }), entityNotFound)
  const facts = [{ missing: undefined }, { missing: 7 }, { missing: { a: 1 } }, { entity: undefined }]
  for (const wrong of facts)
    t.strictSame(
      readFrom({ ...known, ...wrong, description: 'why' }),
      refusals.unknownCode('PartialUpdate', 'attributesMissing', 'why'),
      JSON.stringify(wrong),
    )
})

t.test('a refusal of which nothing can be read is an internal error without a text', async t => {
  t.strictSame(readFrom({}), refusals.unknownCode('InternalServerError', '', ''))
})
