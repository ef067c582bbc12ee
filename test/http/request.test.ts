// The Accept header, row by row of docs/interface/requests.md#accept.

import t from 'tap'
import { refusalText } from '../../src/domain/refusal.js'
import { type Accept, acceptAll, parseAccept } from '../../src/http/request.js'

const json: Accept = { json: true, text: false, prefersText: false }
const text: Accept = { json: false, text: true, prefersText: true }
const bothJsonFirst: Accept = { json: true, text: true, prefersText: false }
const bothTextFirst: Accept = { json: true, text: true, prefersText: true }

const taken: readonly (readonly [header: string, accept: Accept])[] = [
  ['*/*', acceptAll],
  ['application/*', json],
  ['application/json', json],
  ['text/*', text],
  ['text/plain', text],
  // A type that the broker does not know is skipped.
  ['text/html, application/json', json],
  ['image/png,text/plain,application/xml', text],
  ['constructor, __proto__, */*', acceptAll],
  // A tie goes to the first; the highest q wins.
  ['application/json, text/plain', bothJsonFirst],
  ['text/plain, application/json', bothTextFirst],
  ['text/plain, */*', bothTextFirst],
  ['*/*, text/plain', bothJsonFirst],
  ['application/json;q=0.3, text/plain;q=0.7', bothTextFirst],
  ['text/plain;q=0.3, application/json;q=0.7', bothJsonFirst],
  ['text/plain;q=0.9, application/json', bothJsonFirst],
  ['text/plain;q=1, application/json;q=1.0', bothTextFirst],
  ['text/html;q=1, text/plain;q=0.2, application/json;q=0.1', bothTextFirst],
  // Blanks, and parameters that have no meaning here.
  [' application/json ; q=0.5 , text/plain ; q=0.6 ', bothTextFirst],
  ['application/json;q=0.5;level=1, text/plain;q=0.4', bothJsonFirst],
  ['application/json;charset=utf-8', json],
  ['text/plain;x=1', text],
]

t.test('a header lists the accepted forms, and their order', async t => {
  for (const [header, accept] of taken) t.strictSame(parseAccept(header), { ok: true, value: accept }, header)
})

const refused: readonly (readonly [header: string, kind: string, text: string])[] = [
  ['text/html', 'NotAcceptable', 'no acceptable mime-type in accept header'],
  ['image/png, application/xml;q=0.3', 'NotAcceptable', 'no acceptable mime-type in accept header'],
  ['Application/JSON2', 'NotAcceptable', 'no acceptable mime-type in accept header'],
  ['', 'BadRequest', 'empty accept header'],
  ['  ', 'BadRequest', 'empty accept header'],
  ['text/plain;q', 'BadRequest', 'missing equal-sign after q in accept header'],
  ['text/plain;q=', 'BadRequest', 'qvalue in accept header is missing'],
  ['text/plain;q=high', 'BadRequest', 'qvalue in accept header is not a number'],
  ['application/json, text/plain;q=0.x', 'BadRequest', 'qvalue in accept header is not a number'],
  ['text/html;q=high', 'BadRequest', 'qvalue in accept header is not a number'],
]

t.test('a header that cannot be read or met is refused with the reason', async t => {
  for (const [header, kind, text] of refused) {
    const result = parseAccept(header)
    t.match(result, { ok: false, refusal: { kind } }, JSON.stringify(header))
    t.equal(result.ok ? '' : refusalText(result.refusal), text, JSON.stringify(header))
  }
})
