// A forwarded update: the parts that each provider gets, and the outcome. The cases of the specification are in
// test/cases/forwarding.ts.

import t from 'tap'
import type { WantedAttribute } from '../../../src/domain/entities/entity.js'
import {
  forwardedOutcome,
  type Undone,
  updateAnswerOf,
  updateBody,
  updateRequests,
} from '../../../src/domain/providers/forwarded-update.js'
import { ProviderIndex } from '../../../src/domain/providers/provider-index.js'
import type { Registration } from '../../../src/domain/providers/registration.js'
import { refusals } from '../../../src/domain/refusal.js'
import * as cases from '../../cases/forwarding.js'
import { provided } from '../../support/registrations.js'

const split = (text: string): string[] => text.split(',').filter(word => word !== '' && word !== '-')

const undoneOf = (id: string, type: string | undefined, names: string): Undone => ({
  id,
  type,
  attributes: new Map(split(names).map(name => [name, { type: 'Number', value: 1, metadata: undefined }])),
})

function indexOf(...registrations: readonly Registration[]): ProviderIndex {
  const index = new ProviderIndex()
  for (const one of registrations) index.add(one)
  return index
}

for (const [what, undone, registrations, sent] of cases.sent)
  t.test(`an update goes to ${what}`, async t => {
    const all = registrations.map((attrs, at) =>
      provided(at + 1, [{ id: 'E', type: 'T' }], split(attrs), `http://h${at}`),
    )
    const requests = updateRequests(indexOf(...all), '/', [undoneOf('E', 'T', undone)], 0)
    t.strictSame(
      requests.map(({ registration, parts }) => `${Number.parseInt(registration.id, 16)} ${parts.get(0)}`),
      sent,
    )
  })

t.test('one URL is asked once, for all its entities, also with several registrations', async t => {
  const index = indexOf(
    provided(1, [{ id: 'E', type: 'T' }], ['a'], 'http://x'),
    provided(2, [{ id: 'F', type: 'T' }], ['a'], 'http://y'),
    provided(3, [{ idPattern: '.*', type: 'T' }], ['b'], 'http://x'),
  )
  const undone = [undoneOf('F', 'T', 'a,b'), undoneOf('E', 'T', 'a,b,c'), undoneOf('G', 'U', 'a')]
  const requests = updateRequests(index, '/', undone, 0)
  t.strictSame(
    requests.map(({ registration, parts }) => [registration.provider.url, registration.id.at(-1), [...parts]]),
    [
      [
        'http://x',
        '1',
        [
          [0, ['b']],
          [1, ['a', 'b']],
        ],
      ],
      ['http://y', '2', [[0, ['a']]]],
    ],
  )
})

t.test('the body is that of an update, in the order of the interface, with all that was given', async t => {
  const attributes = new Map<string, WantedAttribute>([
    ['A1', { type: 'Number', value: 12, metadata: undefined }],
    [
      '__proto__',
      {
        type: 'T"x',
        value: { a: [1e-12, null], __proto__x: 'é' },
        metadata: new Map([['m', { type: 'Text', value: 'x' }]]),
      },
    ],
    ['other', { type: 'Text', value: 'not asked for', metadata: undefined }],
  ])
  const undone = [
    { id: 'E1', type: 'T1', attributes },
    { id: 'E2', type: undefined, attributes },
  ]
  const registration = provided(1, [{ id: 'E1' }], [], 'http://h')
  const parts = new Map([
    [0, ['A1', '__proto__']],
    [1, ['A1']],
  ])
  t.equal(
    updateBody(undone, { registration, parts }),
    '{"entities":[{"id":"E1","type":"T1","A1":{"type":"Number","value":12,"metadata":{}},' +
      '"__proto__":{"type":"T\\"x","value":{"a":[1e-12,null],"__proto__x":"é"},"metadata":{"m":{"type":"Text","value":"x"}}}},' +
      '{"id":"E2","A1":{"type":"Number","value":12,"metadata":{}}}],"actionType":"update"}',
  )
})

t.test('only 204 means that something was updated', async t => {
  const answers = [200, 204, 404, 422, 400, 500, 0].map(status => [status, updateAnswerOf(status)])
  t.strictSame(answers, [
    [200, 'failed'],
    [204, 'updated'],
    [404, 'refused'],
    [422, 'refused'],
    [400, 'failed'],
    [500, 'failed'],
    [0, 'failed'],
  ])
})

t.test('the outcome names attributes that no provider has updated, and reports if there was no update', async t => {
  const left = (id: string, type: string | undefined, ...names: string[]) => ({ id, type, names })
  t.equal(forwardedOutcome(true, [left('E', 'T')], []), undefined)
  t.equal(forwardedOutcome(false, [left('E', 'T', 'a')], []), refusals.entityNotFound)
  t.match(forwardedOutcome(true, [left('E1', 'T1', 'A8', 'A1')], []), {
    kind: 'PartlyForwarded',
    left: [{ entity: 'E1-T1', names: ['A8', 'A1'] }],
  })
  t.match(forwardedOutcome(true, [left('E1', 'T1', 'a'), left('E2', 'T'), left('E3', undefined, 'b', 'c')], []), {
    code: 'partlyForwarded',
    left: [
      { entity: 'E1-T1', names: ['a'] },
      { entity: 'E3', names: ['b', 'c'] },
    ],
  })
})

t.test('the outcome names the providers that have refused', async t => {
  const providers = [{ url: 'http://h/op/update', status: 404 }]
  const left = [{ id: 'E', type: 'T', names: ['a'] }]
  t.match(forwardedOutcome(false, left, providers), { code: 'entityRefusedByProviders', providers })
  t.match(forwardedOutcome(true, left, providers), { code: 'partlyForwardedAndRefused', providers })
  t.equal(forwardedOutcome(true, [{ id: 'E', type: 'T', names: [] }], providers), undefined)
})
