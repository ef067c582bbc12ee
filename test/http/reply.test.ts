// Results as HTTP answers: status, headers and body, as a front receives them.

import t from 'tap'
import { type RefusalKind, refusals } from '../../src/domain/refusal.js'
import type { Exchange } from '../../src/http/front.js'
import { Reply, type Vocabulary } from '../../src/http/reply.js'

interface Written {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly closes: boolean
}

/** The status, headers and body that the front receives when `act` answers. */
function written(act: (reply: Reply) => void, vocabulary: Vocabulary = 'Ctx'): Written {
  const answers: Written[] = []
  const take =
    (closes: boolean): Exchange['reply'] =>
    (status, list, body) => {
      const headers: Record<string, string> = {}
      for (let i = 0; i < list.length; i += 2) headers[list[i] as string] = list[i + 1] as string
      answers.push({
        status,
        headers,
        body: body === undefined ? undefined : Buffer.from(body as string).toString(),
        closes,
      })
    }
  const exchange = { reply: take(false), replyAndClose: take(true) } as unknown as Exchange
  act(new Reply(exchange, vocabulary, 'corr-1'))
  if (answers.length !== 1) throw new Error(`${answers.length} answers`)
  return answers[0] as Written
}

const statuses: Readonly<Record<RefusalKind, number>> = {
  ParseError: 400,
  BadRequest: 400,
  Unauthorized: 401,
  NotFound: 404,
  MethodNotAlowed: 405,
  NotAcceptable: 406,
  TooManyResults: 409,
  ContentLengthRequired: 411,
  NoResourceAvailable: 413,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Unprocessable: 422,
  PartialUpdate: 422,
  PartlyForwarded: 404,
  InternalServerError: 500,
  NotImplemented: 501,
  Unavailable: 503,
  InsufficientStorage: 507,
  Forbidden: 403,
  Conflict: 409,
  QuotaExceeded: 403,
  TooManyRequests: 429,
}

t.test('each kind of refusal has its status, its name and the text', async t => {
  for (const [kind, status] of Object.entries(statuses)) {
    const refusal = refusals.unknownCode(kind as RefusalKind, 'new', 'why')
    const answer = written(reply => reply.refuse(refusal))
    t.match(answer, { status, headers: { 'Content-Type': 'application/json', 'Ctx-Correlator': 'corr-1' } }, kind)
    const name = kind === 'PartlyForwarded' ? 'PartialUpdate' : kind
    t.equal(answer.body, `{"error":"${name}","description":"why"}`)
  }
})

t.test('the eight forbidden characters leave as HTML entities', async t => {
  const refusal = refusals.badLine(`<>()=;'"`)
  t.equal(
    written(reply => reply.refuse(refusal)).body,
    '{"error":"BadRequest","description":"&lt;&gt;&#40;&#41;&#61;&#59;&#39;&quot;"}',
  )
})

t.test('an ampersand, letters of any script and control characters are not touched', async t => {
  const description = 'a & b &lt ü€😀 \n\u0001\\'
  const { body } = written(reply => reply.refuse(refusals.badLine(description)))
  t.strictSame(JSON.parse(body ?? ''), { error: 'BadRequest', description: description.replace(';', '&#59;') })
})

t.test('a text that repeats input of the client is escaped', async t => {
  t.equal(
    written(reply => reply.refuse(refusals.parameterEmpty('foo"'))).body,
    '{"error":"BadRequest","description":"Empty right-hand-side for URI param /foo&quot;/"}',
  )
})

t.test('the answer to a wrong method names the right ones', async t => {
  t.equal(written(reply => reply.refuseMethod('GET, PUT', false)).headers.Allow, 'GET, PUT')
})

t.test('only a refusal that allows a repetition has Retry-After', async t => {
  t.equal(written(reply => reply.refuse(refusals.requestsTooMany)).headers['Retry-After'], '1')
  t.notOk('Retry-After' in written(reply => reply.refuse(refusals.failure('no'))).headers)
})

t.test('a body that is too large is not waited for', async t => {
  t.equal(written(reply => reply.refuse(refusals.payloadTooLarge(2, 1))).closes, true)
  t.equal(written(reply => reply.refuse(refusals.locationSecond)).closes, false, 'another 413')
})

t.test('JSON is answered with 200 and its type, without a charset', async t => {
  t.strictSame(
    written(reply => reply.json('[]')),
    {
      status: 200,
      headers: { 'Ctx-Correlator': 'corr-1', 'Content-Type': 'application/json' },
      body: '[]',
      closes: false,
    },
  )
})

t.test('text is answered with 200 and its type, without a charset', async t => {
  t.match(
    written(reply => reply.text('3.14')),
    {
      status: 200,
      headers: { 'Content-Type': 'text/plain' },
      body: '3.14',
    },
  )
})

t.test('a total is a header, zero included', async t => {
  t.equal(written(reply => reply.json('[]', 0)).headers['Ctx-Total-Count'], '0')
  t.equal(written(reply => reply.json('[]', 1234)).headers['Ctx-Total-Count'], '1234')
})

t.test('a client that uses the other vocabulary is answered in it', async t => {
  const { headers } = written(reply => reply.json('[]', 3), 'Fiware')
  t.strictSame(headers, {
    'Fiware-Correlator': 'corr-1',
    'Content-Type': 'application/json',
    'Fiware-Total-Count': '3',
  })
})

t.test('a creation is 201, an upsert 204, both with the location and without a body', async t => {
  for (const [upsert, status] of [
    [false, 201],
    [true, 204],
  ] as const)
    t.strictSame(
      written(reply => reply.created('/v2/entities/R1?type=Room', upsert)),
      {
        status,
        headers: { 'Ctx-Correlator': 'corr-1', Location: '/v2/entities/R1?type=Room' },
        body: undefined,
        closes: false,
      },
    )
})

t.test('a success without contents is 204', async t => {
  t.strictSame(
    written(reply => reply.done()),
    { status: 204, headers: { 'Ctx-Correlator': 'corr-1' }, body: undefined, closes: false },
  )
})
