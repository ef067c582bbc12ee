// Bytes that are no proper request: wrong heads, halves, several at once, other protocols.
//
// The HTTP library below the broker answers most of them, or closes. The tests expect little: no 500, no secret, and
// that the next client is served.

import { one } from '../support/mutator.js'
import type { Random } from '../support/random.js'
import type { Shot } from './draft.js'

const host = 'Host: hostile.example\r\n'
const get = (line: string, headers = ''): string => `${line}\r\n${host}${headers}\r\n`
const post = (headers: string, body: string): string =>
  `POST /v2/entities HTTP/1.1\r\n${host}Content-Type: application/json\r\n${headers}\r\n${body}`
const smuggled = 'GET /v2/entities/smuggled HTTP/1.1\r\nHost: a\r\n\r\n'

const texts: readonly string[] = [
  '\r\n',
  '\0',
  ' ',
  'GET',
  'GET /\r\n\r\n',
  'GET / HTTP\r\n\r\n',
  get('GET / HTTP/0.9'),
  get('GET / HTTP/1.0'),
  get('GET / HTTP/1.2'),
  get('GET / HTTP/2.0'),
  get('GET / http/1.1'),
  get('GET / HTTP/1.1 '),
  get('GET  / HTTP/1.1'),
  get('GET\t/\tHTTP/1.1'),
  get(' GET / HTTP/1.1'),
  get('\r\n\r\nGET /version HTTP/1.1'),
  get('G\0T / HTTP/1.1'),
  get('GET /\0 HTTP/1.1'),
  get('GET /v2/entities/\x80\xff HTTP/1.1'),
  get('GET /v2/entities/a b HTTP/1.1'),
  get('GET /v2/entities#x HTTP/1.1'),
  get('GET v2/entities HTTP/1.1'),
  get('GET http://vault.example/v2/entities HTTP/1.1'),
  get('GET //vault.example/v2/entities HTTP/1.1'),
  get('OPTIONS * HTTP/1.1'),
  get('CONNECT 127.0.0.1:22 HTTP/1.1'),
  get('TRACE / HTTP/1.1'),
  get('PRI * HTTP/2.0', '\r\nSM\r\n\r\n'),
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  '\x05\x01\x00',
  'EHLO example.com\r\n',
  '*1\r\n$4\r\nPING\r\n',
  'GET /version HTTP/1.1\r\n\r\n',
  'GET /version HTTP/1.1\nHost: a\n\n',
  'GET /version HTTP/1.1\rHost: a\r\r',
  'GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  get('GET /version HTTP/1.1', 'Host: other\r\n'),
  get('GET /version HTTP/1.1', 'no colon\r\n'),
  get('GET /version HTTP/1.1', ': no name\r\n'),
  get('GET /version HTTP/1.1', 'Blank : before colon\r\n'),
  get('GET /version HTTP/1.1', 'Folded: a\r\n b\r\n'),
  get('GET /version HTTP/1.1', ' Ctx-Service: vault\r\n'),
  get('GET /version HTTP/1.1', 'Nul: a\0b\r\n'),
  get('GET /version HTTP/1.1', 'Bell: a\x07b\r\n'),
  get('GET /version HTTP/1.1', 'Cr: a\rb\r\n'),
  get('GET /version HTTP/1.1', 'N\0ul: a\r\n'),
  get('GET /version HTTP/1.1', 'N\xe9: a\r\n'),
  get('GET /v2/entities HTTP/1.1', 'Ctx-Service: alpha\r\nCtx-Service: vault\r\n'),
  get('GET /v2/entities HTTP/1.1', 'Ctx-Service: al\xffpha\r\n'),
  get('GET /v2/entities HTTP/1.1', 'Ctx-Service: alpha\0vault\r\n'),
  get('GET /version HTTP/1.1', `Long: ${'x'.repeat(17_000)}\r\n`),
  get('GET /version HTTP/1.1', `${'N'.repeat(17_000)}: x\r\n`),
  get(`GET /version?${'x'.repeat(17_000)} HTTP/1.1`),
  get(`GET /version?x${'%41'.repeat(4_000)} HTTP/1.1`),
  get('GET /version HTTP/1.1', 'H: x\r\n'.repeat(97)),
  get('GET /version HTTP/1.1', 'H: x\r\n'.repeat(99)),
  get('GET /version HTTP/1.1', 'H: x\r\n'.repeat(150)),
  get('GET /version HTTP/1.1', 'H:\r\n'.repeat(2_000)),
  get(
    'GET /version HTTP/1.1',
    'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n',
  ),
  get('GET /version HTTP/1.1', 'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n'),
  get('GET /version HTTP/1.1', 'Expect: the-best\r\n'),
  get('GET /version HTTP/1.1', 'Content-Length: 5\r\n'),
  `${get('GET /version HTTP/1.1', 'Content-Length: 5\r\n')}abcde`,
  post('Content-Length: 2\r\nContent-Length: 40\r\n', `{}${smuggled}`),
  post('Content-Length: 2\r\nContent-Length: 2\r\n', '{}'),
  post('Content-Length: 2, 2\r\n', '{}'),
  post('Content-Length: +2\r\n', '{}'),
  post('Content-Length: -2\r\n', '{}'),
  post('Content-Length: 0x2\r\n', '{}'),
  post('Content-Length: 2.0\r\n', '{}'),
  post('Content-Length: 2e0\r\n', '{}'),
  post('Content-Length: \r\n', smuggled),
  post('Content-Length: 99999999999999999999999999\r\n', '{}'),
  post('Content-Length: 18446744073709551618\r\n', '{}'),
  post('Content-Length: 9007199254740993\r\n', '{}'),
  post('Content-Length: 1048577\r\n', '{}'),
  post('Content-Length : 2\r\n', `{}${smuggled}`),
  post('Content-Length: 2\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${smuggled}`),
  post('Transfer-Encoding: chunked\r\nContent-Length: 2\r\n', `0\r\n\r\n${smuggled}`),
  post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', `0\r\n\r\n${smuggled}`),
  post('Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${smuggled}`),
  post('Transfer-Encoding : chunked\r\n', `0\r\n\r\n${smuggled}`),
  post('Transfer-Encoding:\tchunked\r\n', `0\r\n\r\n${smuggled}`),
  post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'),
  post('Transfer-Encoding: chunked\r\n', 'b\r\n{"id":"E1"}\r\n0\r\n\r\n'),
  post('Transfer-Encoding: chunked\r\n', 'b;ext="x\r\n{"id":"E1"}\r\n0\r\nTrailer: x\r\n\r\n'),
  post('Transfer-Encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n'),
  post('Transfer-Encoding: chunked\r\n', '-1\r\n{}\r\n0\r\n\r\n'),
  post('Transfer-Encoding: chunked\r\n', 'ffffffffffffffffff\r\n{}\r\n'),
  post('Transfer-Encoding: chunked\r\n', '2\r\n{}0\r\n\r\n'),
  post('Transfer-Encoding: chunked\r\n', '2\n{}\n0\n\n'),
  post('Transfer-Encoding: chunked\r\n', `${'1\r\nx\r\n'.repeat(500)}0\r\n\r\n`),
  post('', '{"id":"E1"}'),
  post('Content-Length: 0\r\n', '{"id":"E1"}'),
  post('Content-Length: 11\r\nExpect: 100-continue\r\n', '{"id":"E1"}'),
]

const whole: readonly string[] = [
  get('GET /version HTTP/1.1'),
  get('GET /v2/entities?limit=3&options=count HTTP/1.1', 'Ctx-Service: alpha\r\n'),
  get('DELETE /v2/entities/E1 HTTP/1.1', 'Ctx-Service: beta\r\n'),
  post('Content-Length: 11\r\n', '{"id":"E1"}'),
]

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1')

const mild = {
  kind: 'raw',
  expects: 'mild',
  isHead: false,
  correlator: undefined,
  tenant: undefined,
  servicePaths: [],
} as const

export function rawShot(random: Random): Shot {
  switch (random.between(0, 5)) {
    case 0: {
      // Half of a request; the other half never comes.
      const text = one(random, whole)
      const piece = bytes(text.slice(0, random.between(1, text.length - 1)))
      return { ...mild, kind: 'half', expects: 'none', pieces: [piece], answersMax: 0, path: 'half' }
    }
    case 1: {
      const count = random.between(2, 5)
      const all = Array.from({ length: count }, () => one(random, whole)).join('')
      return { ...mild, kind: 'pipelined', pieces: [bytes(all)], answersMax: count, path: 'pipelined' }
    }
    case 2: {
      // Noise behind a good beginning.
      const text = one(random, whole)
      const noise = Array.from({ length: random.between(1, 200) }, () => String.fromCharCode(random.between(0, 255)))
      const at = random.between(0, text.length)
      return {
        ...mild,
        kind: 'noise',
        pieces: [bytes(text.slice(0, at) + noise.join(''))],
        answersMax: 2,
        path: 'noise',
      }
    }
    case 3: {
      const text = one(random, texts)
      const at = random.between(0, text.length)
      return {
        ...mild,
        kind: 'raw in pieces',
        pieces: [text.slice(0, at), text.slice(at)].map(bytes),
        answersMax: 2,
        path: firstLine(text),
      }
    }
    default: {
      const text = one(random, texts)
      return { ...mild, pieces: [bytes(text)], answersMax: 2, path: firstLine(text) }
    }
  }
}

const firstLine = (text: string): string => JSON.stringify(text.slice(0, 120))
