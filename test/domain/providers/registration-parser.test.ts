// Reading the bodies of POST and PATCH on registrations. The refusals, their texts and their order are in
// test/cases/registration-refusals.ts.

import t, { type Test } from 'tap'
import { type Result, refusalText } from '../../../src/domain/refusal.js'
import * as cases from '../../cases/registration-refusals.js'
import { entities, lists, type Refused } from '../../cases/subscription-refusals.js'
import { registered, registration, repatched } from '../../support/registrations.js'

const D = '{"entities":[{"id":"E"}]}'
const P = '{"http":{"url":"http://h"}}'
const plain = `{"dataProvided":${D},"provider":${P}}`
const existing = registration(plain)

/** The text of the refusal, with its kind when that is not BadRequest; `accepted` when there is no refusal. */
function answer(result: Result<unknown>): string {
  if (result.ok) return 'accepted'
  const { kind } = result.refusal
  const text = refusalText(result.refusal)
  return kind === 'BadRequest' ? text : `${kind} ${text}`
}

/** Checks each row of a table against POST and PATCH; `place` puts the JSON of the row into a body. */
function refuses(t: Test, table: readonly Refused[], place: (json: string) => string): void {
  for (const [what, json, description] of table) {
    const body = place(json)
    t.equal(answer(registered(body)), description, `POST: ${what}`)
    t.equal(answer(repatched(existing, body)), description, `PATCH: ${what}`)
  }
}

t.test('a POST needs dataProvided and a provider, a PATCH neither', async t => {
  for (const [what, body, description] of cases.incomplete) {
    t.equal(answer(registered(body)), description, what)
    t.equal(answer(repatched(existing, body)), 'accepted', what)
  }
})

t.test('registrations are refused in the words of the interface', async t => {
  refuses(t, cases.bodies, body => body)
  refuses(t, cases.simpleFields, json => `{"dataProvided":${D},"provider":${P},${json}}`)
  refuses(t, cases.provided, json => `{"dataProvided":${json},"provider":${P}}`)
  refuses(t, cases.providers, json => `{"dataProvided":${D},"provider":${json}}`)
})

t.test('provided entities and attributes are refused in the words of subscriptions', async t => {
  refuses(t, entities, json => `{"dataProvided":{"entities":[{"idPattern":".*"},${json}]},"provider":${P}}`)
  const attrs = lists.map(([what, json, text]) => [what, json, text.replace('F', 'attrs')] as const)
  refuses(t, attrs, json => `{"dataProvided":{"entities":[{"id":"E"}],"attrs":${json}},"provider":${P}}`)
})

t.test('of several mistakes the refusal names the first one, in the order of the interface', async t => {
  for (let first = 0; first < cases.inOrder.length; first++) {
    const members = new Map([
      ['dataProvided', D],
      ['provider', P],
    ])
    // Written in the opposite order, because the order of the body does not count.
    for (const [member, bad] of cases.inOrder.slice(first).reverse()) members.set(member, bad)
    const body = `{${[...members].map(([name, json]) => `"${name}":${json}`).join()}}`
    t.equal(answer(registered(body)), cases.inOrder[first]![2])
  }
})

t.test('a missing member has its default', async t => {
  t.strictSame(registration(plain, '/a'), {
    id: existing.id,
    tenant: '',
    servicePath: '/a',
    description: '',
    expiresMs: undefined,
    dataProvided: { entities: [{ id: 'E' }], attrs: [] },
    provider: { url: 'http://h', supportedForwardingMode: 'all', legacyForwarding: false },
    status: 'active',
  })
})

t.test('all members of the interface are accepted, unknown and read-only fields are passed over', async t => {
  const body = {
    id: 'mine',
    description: 'd',
    dataProvided: {
      entities: [{ idPattern: '.*', type: 'T' }, { id: 'E' }, { id: 'E' }],
      attrs: ['a', 'b'],
      expression: { q: 'x>1' },
    },
    provider: { http: { url: 'https://h:1/v2', foo: 1 }, supportedForwardingMode: 'query', legacyForwarding: true },
    expires: '2040-01-01T00:00:00Z',
    status: 'inactive',
    forwardingInformation: { timesSent: 3 },
  }
  t.strictSame(registration(JSON.stringify(body)), {
    id: existing.id,
    tenant: '',
    servicePath: '/',
    description: 'd',
    expiresMs: Date.parse(body.expires),
    dataProvided: { entities: [{ idPattern: '.*', type: 'T' }, { id: 'E' }], attrs: ['a', 'b'] },
    provider: { url: 'https://h:1/v2', supportedForwardingMode: 'query', legacyForwarding: true },
    status: 'inactive',
  })
})

t.test('a registration may name no entities: it provides nothing', async t => {
  for (const provided of ['{"attrs":["a"]}', '{"entities":[]}'])
    t.strictSame(registration(`{"dataProvided":${provided},"provider":${P}}`).dataProvided.entities, [])
})

t.test('a PATCH replaces the members it names as a whole, and leaves the others', async t => {
  const before = registration(
    `{"description":"d","dataProvided":{"entities":[{"id":"E"}],"attrs":["a"]},"expires":"2040-01-01T00:00:00Z","status":"inactive",
      "provider":{"http":{"url":"http://h"},"supportedForwardingMode":"query","legacyForwarding":true}}`,
    '/a',
  )
  const patches: readonly (readonly [body: string, after: object])[] = [
    ['{"foo":1}', {}],
    ['{"description":""}', { description: '' }],
    ['{"dataProvided":{"entities":[{"id":"F"}]}}', { dataProvided: { entities: [{ id: 'F' }], attrs: [] } }],
    [
      '{"provider":{"http":{"url":"http://i"}}}',
      { provider: { url: 'http://i', supportedForwardingMode: 'all', legacyForwarding: false } },
    ],
    ['{"expires":""}', { expiresMs: undefined }],
    ['{"status":"active"}', { status: 'active' }],
  ]
  for (const [body, after] of patches)
    t.strictSame(repatched(before, body), { ok: true, value: { ...before, ...after } }, body)
})
