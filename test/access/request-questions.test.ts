// The needs of a request, as questions that can be explained. The types make sure that every route has a row.

import t from 'tap'
import { needsOf, type RequestNeeds } from '../../src/access/request-questions.js'

const ask = (line: string, others: object = {}): RequestNeeds => {
  const [method = '', path = ''] = line.split(' ')
  return needsOf({ method, path, tenant: 'city', servicePaths: [], type: undefined, id: undefined, ...others })
}

const questions = (line: string, others: object = {}): unknown => {
  const needs = ask(line, others)
  return needs.kind === 'rules' ? needs.questions : needs.kind
}

const all = { tenant: 'city', paths: ['/#'] }
const root = { tenant: 'city', paths: ['/'] }
const cases: readonly (readonly [line: string, questions: unknown])[] = [
  ['GET /v2/entities', [{ action: 'read', place: all, type: undefined, id: undefined, attributes: [] }]],
  ['GET /v2/entities?type=Lamp&id=L1', [{ action: 'read', place: all, type: 'Lamp', id: 'L1', attributes: [] }]],
  [
    'GET /v2/entities?type=Lamp,Meter',
    [{ action: 'read', place: all, type: undefined, id: undefined, attributes: [] }],
  ],
  [
    'GET /v2/entities/urn%3AL%2F1?type=Lamp',
    [{ action: 'read', place: all, type: 'Lamp', id: 'urn:L/1', attributes: [] }],
  ],
  [
    'PUT /v2/entities/L1/attrs/power/value',
    [{ action: 'update', place: root, type: undefined, id: 'L1', attributes: ['power'] }],
  ],
  ['GET /v2/types/Lamp/', [{ action: 'read', place: all, type: 'Lamp', id: undefined, attributes: [] }]],
  ['DELETE /v2/subscriptions/1', [{ action: 'subscribe', place: all, type: undefined, id: undefined, attributes: [] }]],
  ['POST /v2/registrations', [{ action: 'register', place: root, type: undefined, id: undefined, attributes: [] }]],
  ['GET /metrics', [{ action: 'metrics', place: 'broker' }]],
  ['PUT /admin/log?level=DEBUG', [{ action: 'admin', place: 'broker' }]],
  [
    'POST /admin/backup',
    [
      { action: 'admin', place: 'broker' },
      { action: 'read', place: 'broker' },
    ],
  ],
  ['GET /health/ready', 'nothing'],
  ['GET /version', 'principal'],
  ['GET /v2', 'principal'],
  ['PATCH /v2/entities', 'unknown'],
  ['GET /v3', 'unknown'],
  ['GET /v2/entities/a/b', 'unknown'],
]
for (const [line, wanted] of cases)
  t.test(line, async t => {
    t.strictSame(questions(line), wanted)
  })

t.test('a request may need several actions', async t => {
  const actions = (line: string): unknown => {
    const needs = ask(line)
    return needs.kind === 'rules' && needs.questions.map(({ action }) => action)
  }
  t.strictSame(actions('POST /v2/entities'), ['create'])
  t.strictSame(actions('POST /v2/entities?options=keyValues,upsert'), ['create', 'update'])
  t.strictSame(actions('PUT /v2/entities/L1/attrs'), ['update', 'delete'])
  t.strictSame(actions('POST /v2/op/update'), ['create', 'update', 'delete'])
})

t.test('a name on the command line has precedence', async t => {
  t.match(questions('GET /v2/entities?type=Lamp', { type: 'Meter', id: 'M1', servicePaths: ['/a', '/b/#'] }), [
    { type: 'Meter', id: 'M1', place: { tenant: 'city', paths: ['/a', '/b/#'] } },
  ])
})
