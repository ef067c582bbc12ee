// iotagent-node-lib, unmodified, against a broker with access control. In the words of the library each group of
// devices has a `trust`:
//
//   permanentToken    the trust is sent as it is: a key of the access file
//   otherwise         the trust is a refresh token, for which an OpenID provider gives a new token for each request
//
// The library writes `Bearer` before what it sends, so `header` has to be `Authorization`.

import t, { type Test } from 'tap'
import { AccessScene, everything } from '../support/access-scene.js'
import { startBroker } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { type Deed, type Group, type IotAgent, startIotAgent } from './iotagent.js'
import { OpenIdProvider } from './openid-provider.js'
import { lacking } from './workspace.js'

t.setTimeout(400_000)

const agents = [
  { actions: ['create', 'update', 'read'], tenants: ['city'], paths: ['/park/#'], types: ['Lamp'] },
  { actions: ['register', 'subscribe'], tenants: ['city'], paths: ['/park/#'], types: ['Lamp'] },
]
const lamps = {
  resource: '/iot',
  entity_type: 'Lamp',
  attributes: [{ object_id: 'l', name: 'level', type: 'Number' }],
  lazy: [{ object_id: 'p', name: 'power', type: 'Number' }],
  commands: [{ object_id: 's', name: 'switch', type: 'command' }],
}
const measure: Deed = { kind: 'measure', attributes: [{ name: 'l', type: 'Number', value: 3 }] }

/** A broker with access control, and an operator who may do everything there. */
async function sceneOf(t: Test) {
  const people = { park: { secret: 'park-secret', roles: ['agents'], tenants: ['city'] } }
  const programs = { 'iot-agent': { secret: 'agent-secret', roles: [], tenants: [] } }
  const provider = await OpenIdProvider.start(t, people, programs)
  const roles = { claim: 'realm_access.roles', map: { agents: 'agents' } }
  const access = new AccessScene(t, { agents, root: everything }, { issuers: [provider.entry({ roles })] })
  const args = ['-multiservice', '-compat', 'fiware', '-access', access.path]
  const broker = await startBroker(t, { args })
  const client = new HttpClient(broker.baseUrl)
  t.teardown(() => client.close())
  const operate = (method: string, path: string, { service, subservice }: Group, body?: unknown) =>
    client.send(method, path, body, {
      'Fiware-Service': service,
      'Fiware-ServicePath': subservice,
      'X-Auth-Token': access.keyOf('root'),
    })
  return { broker, provider, access, operate }
}

type Scene = Awaited<ReturnType<typeof sceneOf>>

const asKey = (provider: OpenIdProvider, isPermanent: boolean): object => ({
  authentication: {
    enabled: true,
    type: 'oauth2',
    header: 'Authorization',
    url: provider.address,
    tokenPath: new URL(provider.tokenUrl).pathname,
    clientId: 'iot-agent',
    clientSecret: 'agent-secret',
    permanentToken: isPermanent,
  },
})

/** Provisions a group with a trust. */
async function groupOf(t: Test, agent: IotAgent, trust: string, group: Group): Promise<void> {
  const services = [{ ...lamps, apikey: group.apikey, trust }]
  t.match(await agent.north('POST', '/iot/services', group, { services }), { status: 201 })
}

const deviceOf = (agent: IotAgent, group: Group) =>
  agent.north('POST', '/iot/devices', group, {
    devices: [{ device_id: 'd1', apikey: group.apikey, entity_name: 'Lamp1', entity_type: 'Lamp' }],
  })

/** Everything that an agent does for its lamps. */
async function serves(t: Test, agent: IotAgent, group: Group, { operate }: Scene): Promise<void> {
  t.match(await deviceOf(agent, group), { status: 201 })
  t.match((await operate('GET', '/v2/registrations', group)).json, [
    { dataProvided: { entities: [{ id: 'Lamp1', type: 'Lamp' }], attrs: ['power', 'switch'] } },
  ])
  await agent.order(group, 'd1', measure)
  t.match(await operate('GET', '/v2/entities/Lamp1?options=keyValues', group), { json: { level: 3, power: 17 } })
  t.match(await agent.order(group, 'd1', { kind: 'read', names: ['level'] }), { level: { value: 3 } })
  const on = { type: 'command', value: 'on' }
  t.match(await operate('PUT', '/v2/entities/Lamp1/attrs/switch', group, on), { status: 204 })
  const calls = await agent.callsOf(group)
  t.match(
    calls.filter(({ kind }) => kind === 'command'),
    [{ attributes: [{ name: 'switch', value: 'on' }] }],
  )
  const stored = '/v2/entities/Lamp1?options=keyValues,skipForwarding'
  t.match(await operate('GET', stored, group), { json: { switch_status: 'PENDING' } })
  await agent.order(group, 'd1', { kind: 'report', command: 'switch', result: 'is on' })
  t.match(await operate('GET', stored, group), { json: { switch_status: 'OK', switch_info: 'is on' } })
}

/** A group whose trust the rules do not allow what its lamps need. */
async function isDenied(t: Test, agent: IotAgent, group: Group, { operate }: Scene): Promise<void> {
  t.not((await deviceOf(agent, group)).status, 201, 'the broker refuses the registration of its device')
  t.match(await operate('GET', '/v2/registrations', group), { text: '[]' })
}

const park: Group = { apikey: 'k1', service: 'city', subservice: '/park' }

t.test('an agent with a key of its own', { skip: lacking }, async t => {
  const scene = await sceneOf(t)
  const agent = await startIotAgent(t, scene.broker.baseUrl, asKey(scene.provider, true))
  await groupOf(t, agent, scene.access.keyOf('agents'), park)
  await serves(t, agent, park, scene)
})

t.test('an agent with tokens of an OpenID provider', { skip: lacking }, async t => {
  const scene = await sceneOf(t)
  const agent = await startIotAgent(t, scene.broker.baseUrl, asKey(scene.provider, false))
  const { refresh_token } = await scene.provider.tokensOf('park', 'iot-agent')
  await groupOf(t, agent, refresh_token, park)
  await serves(t, agent, park, scene)
})

t.test('an agent whose key does not allow a place, or is not known', { skip: lacking }, async t => {
  const scene = await sceneOf(t)
  const agent = await startIotAgent(t, scene.broker.baseUrl, asKey(scene.provider, true))
  const street: Group = { apikey: 'k2', service: 'city', subservice: '/street' }
  await groupOf(t, agent, scene.access.keyOf('agents'), street)
  await isDenied(t, agent, street, scene)
})

t.test('a measure that is not allowed is an error of the library', { skip: lacking }, async t => {
  const scene = await sceneOf(t)
  const agent = await startIotAgent(t, scene.broker.baseUrl, asKey(scene.provider, true))
  await groupOf(t, agent, scene.access.keyOf('agents'), park)
  t.match(await deviceOf(agent, park), { status: 201 })
  await agent.order(park, 'd1', measure)
  scene.access.write({ root: everything, agents: [] })
  process.kill(scene.broker.child.pid as number, 'SIGHUP')
  await t.rejects(
    async () => {
      // The file counts when the signal has been handled.
      for (const untilMs = performance.now() + 30_000; performance.now() < untilMs; )
        await agent.order(park, 'd1', measure)
    },
    { message: /ACCESS_FORBIDDEN/ },
  )
  scene.access.write({ root: everything })
  process.kill(scene.broker.child.pid as number, 'SIGHUP')
  await t.rejects(agent.order(park, 'd1', measure), { message: /ACCESS_FORBIDDEN/ })
})
