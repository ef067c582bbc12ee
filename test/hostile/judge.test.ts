// The judge of the campaign finds a breach of each rule.

import t from 'tap'
import type { Shot } from './draft.js'
import type { ObservedAnswer } from './hostile-client.js'
import { judge } from './judge.js'

const shot: Shot = {
  kind: 'test',
  pieces: [],
  expects: 'strict',
  isHead: false,
  answersMax: 1,
  correlator: 'c1',
  tenant: '',
  servicePaths: [],
  path: '/v2/entities',
}

const answer = (status: number, text: string, headers: Readonly<Record<string, string>> = {}): ObservedAnswer => ({
  status,
  text,
  headers: new Map(
    Object.entries({
      'ctx-correlator': 'c1',
      ...(text === '' ? {} : { 'content-type': 'application/json' }),
      ...headers,
    }),
  ),
})

const judged = (given: ObservedAnswer, about: Partial<Shot> = {}): string | undefined =>
  judge({ ...shot, ...about }, { answers: [given], raw: given.text }, ['secret'])

const error = (description: string): string => JSON.stringify({ error: 'BadRequest', description })

t.test('answers by the rules pass', async t => {
  for (const [status, text] of [
    [200, '[]'],
    [204, ''],
    [400, error('empty payload')],
    [503, error('busy')],
    [500, '{"error":"InternalServerError","description":"Database Error &#40;$inc needs a number&#41;"}'],
  ] as const)
    t.equal(judged(answer(status, text)), undefined, `${status} ${text}`)
})

for (const [what, given, wrong] of [
  ['a 500', answer(500, error('x')), 'status 500'],
  ['a 502', answer(502, error('x')), 'status 502'],
  ['a 503 that is no JSON', answer(503, 'busy'), 'an error that is no JSON: busy'],
  ['an error of text', answer(400, 'no', { 'content-type': 'text/plain' }), 'an error of type text/plain'],
  ['an error with a member more', answer(400, '{"error":"a","description":"b","stack":"c"}'), /an error with members/],
  ['an error that a page would run', answer(400, error('<b>')), /must be escaped: <b>/],
  ['half a body', answer(200, '[{'), 'a body that is no JSON'],
  ['a body of another kind', answer(200, '<a>', { 'content-type': 'text/html' }), 'a body of type text/html'],
  ['an answer to another request', answer(200, '[]', { 'ctx-correlator': 'c2' }), 'another correlator'],
  ['a stack', answer(400, error('x at f file:///dist/src/a.js')), 'the answer tells of the machine'],
  ['a secret', answer(200, '["secret"]'), 'the answer tells secret'],
  ['405 without methods', answer(405, error('x')), '405 without Allow'],
] as const)
  t.test(`${what} does not`, async t => t.match(judged(given), wrong))

t.test('a library may refuse an invalid request, but not with a 500', async t => {
  t.equal(judged(answer(505, '<h1>'), { expects: 'mild' }), undefined)
  t.equal(judged(answer(500, ''), { expects: 'mild' }), 'status 500')
})
