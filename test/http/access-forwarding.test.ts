// Writes to context providers under access control, over HTTP: what goes to the provider, and what stays here
// (docs/interface/access.md#registrations).

import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/domain/json.js'
import { httpReceiver } from '../deliver/receivers.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { startLocalNode } from '../support/local-node.js'

const rule = (parts: JsonObject): readonly JsonObject[] => [
  { actions: ['update', 'delete'], tenants: ['city'], ...parts },
]
const rules = {
  root: everything,
  every: rule({}),
  lamps: rule({ types: ['Lamp'] }),
  one: rule({ ids: ['P1'] }),
  power: rule({ attributes: ['power'] }),
}
const inCity = ['Ctx-Service: city']
const power = { power: { type: 'Number', value: 2, metadata: {} } }

/** A node, and a provider of each entity `P…` that is registered with and without a type. */
async function scene(t: Test) {
  const access = new AccessScene(t, rules)
  const node = await startLocalNode(t, { accessFile: access.path })
  const provider = await httpReceiver(t)
  const ask = (line: string, name: string, body?: unknown) => node.json(line, body, [...access.as(name), ...inCity])
  for (const entity of [{ idPattern: '.*' }, { idPattern: '.*', type: 'Lamp' }]) {
    const registration = { dataProvided: { entities: [entity] }, provider: { http: { url: provider.url } } }
    t.equal((await ask('POST /v2/registrations', 'root', registration)).status, 201)
  }
  /** The status of a request, and the entities with their attributes that it sent to the provider. */
  const sent = async (line: string, name: string, body: unknown): Promise<readonly unknown[]> => {
    const { length } = provider.received
    const { status } = await ask(line, name, body)
    const bodies = provider.received.slice(length).map(one => JSON.parse(one.body) as { entities: JsonObject[] })
    return [status, ...bodies.flatMap(({ entities }) => entities)]
  }
  return { ask, sent }
}

t.test('a write without a type goes to a provider if the clauses cover every type of its id', async t => {
  const { sent } = await scene(t)
  const arrived = [204, { id: 'P1', ...power }]
  for (const [line, body] of [
    ['PATCH /v2/entities/P1/attrs', power],
    ['PUT /v2/entities/P1/attrs/power', power.power],
    ['PUT /v2/entities/P1/attrs/power/value', 2],
    ['POST /v2/op/update', { actionType: 'update', entities: [{ id: 'P1', ...power }] }],
  ] as const) {
    for (const name of ['every', 'one', 'power'])
      t.strictSame(await sent(line, name, body), arrived, `${name}: ${line}`)
    t.strictSame(await sent(line, 'lamps', body), [404], `lamps: ${line}`)
  }
  const ofLamp = [204, { id: 'P1', type: 'Lamp', ...power }]
  t.strictSame(await sent('PATCH /v2/entities/P1/attrs?type=Lamp', 'lamps', power), ofLamp, 'with a type')
  t.strictSame(await sent('PATCH /v2/entities/P2/attrs', 'one', power), [403])
  t.strictSame(await sent('PATCH /v2/entities/P1/attrs', 'power', { cost: { value: 1 } }), [403])
})

t.test('a replacement leaves to the provider what it has, or is about what is stored here only', async t => {
  const { ask, sent } = await scene(t)
  const replaced = { name: { type: 'Text', value: 'n', metadata: {} }, ...power }
  for (const name of ['every', 'one', 'lamps']) {
    t.equal((await ask('POST /v2/entities', 'root', { id: 'P1', type: 'Lamp', name: { value: 'x' } })).status, 201)
    const forwarded = name === 'lamps' ? [204] : [204, { id: 'P1', type: 'Lamp', ...power }]
    t.strictSame(await sent('PUT /v2/entities/P1/attrs', name, replaced), forwarded, name)
    const { json } = await ask('GET /v2/entities/P1?options=keyValues,skipForwarding', 'root')
    t.strictSame(json, { id: 'P1', type: 'Lamp', name: 'n', ...(name === 'lamps' && { power: 2 }) }, name)
    t.equal((await ask('DELETE /v2/entities/P1', 'root')).status, 204)
  }
  t.equal((await ask('PUT /v2/entities/P1/attrs', 'power', power)).status, 403)
})

t.test('the type of a stored entity that is not covered is not taken', async t => {
  const { ask, sent } = await scene(t)
  t.equal((await ask('POST /v2/entities', 'root', { id: 'P1', type: 'Museum' })).status, 201)
  t.strictSame(await sent('PATCH /v2/entities/P1/attrs', 'lamps', power), [404], 'it does not exist for the client')
  t.strictSame(await sent('PATCH /v2/entities/P1/attrs', 'every', power), [204, { id: 'P1', type: 'Museum', ...power }])
  t.equal((await ask('POST /v2/entities', 'root', { id: 'P1', type: 'Lamp' })).status, 201)
  t.strictSame(await sent('PATCH /v2/entities/P1/attrs', 'lamps', power), [422], 'the attribute is missing here')
  t.equal((await ask('PATCH /v2/entities/P1/attrs', 'every', power)).status, 409, 'both')
})

t.test('in a batch it is decided for each entity', async t => {
  const { ask, sent } = await scene(t)
  t.equal((await ask('POST /v2/entities', 'root', { id: 'S1', type: 'Lamp', power: { value: 1 } })).status, 201)
  const entities = [
    { id: 'P1', type: 'Lamp', ...power },
    { id: 'P2', ...power },
    { id: 'S1', ...power },
  ]
  const batch = { actionType: 'update', entities }
  t.strictSame(await sent('POST /v2/op/update', 'lamps', batch), [404, { id: 'P1', type: 'Lamp', ...power }])
  const { json } = await ask('POST /v2/op/update', 'lamps', batch)
  t.match(json, { error: 'PartialUpdate', description: /P2/ })
  t.notMatch(json, { description: /P1|S1/ }, 'the others were updated')
  t.match((await ask('GET /v2/entities/S1?options=keyValues,skipForwarding', 'root')).json, { power: 2 })
  t.strictSame(await sent('POST /v2/op/update', 'every', batch), [
    204,
    { id: 'P1', type: 'Lamp', ...power },
    { id: 'P2', ...power },
  ])
  const replacement = { actionType: 'replace', entities: [entities[0], { id: 'S1', ...power, name: { value: 'n' } }] }
  t.strictSame(await sent('POST /v2/op/update', 'lamps', replacement), [204, { id: 'P1', type: 'Lamp', ...power }])
  const stored = await ask('GET /v2/entities/S1?options=keyValues,skipForwarding', 'root')
  t.strictSame(stored.json, { id: 'S1', type: 'Lamp', power: 2, name: 'n' })
})
