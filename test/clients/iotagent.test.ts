// IoT agents that were written for the original broker work with this one, unmodified, in both of their command modes.
//
// iotagent-node-lib, with its registry in memory, runs in a process of its own (agent-main), against the program with
// `-compat fiware`. Agents register a URL without a path and answer at `//op/...` and `/v2/op/...`: each test runs once
// with each. A program without that option finds the second path by itself. Each test has a tenant of its own, and
// provisions its group and its device at the north side.
//
// Not here: which registration matches and how answers are merged (journeys/forwarding.test, domain/forwarding.test).

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startBroker } from '../support/broker-process.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import { type Call, type Deed, type Group, type IotAgent, startIotAgent } from './iotagent.js'
import { lacking } from './workspace.js'

t.setTimeout(400_000)

const subservice = '/park/north'
const now = { type: 'DateTime', value: /^20\d\d-.*Z$/ }
const attributes = [{ object_id: 'l', name: 'level', type: 'Number' }]
const level = (value: number) => ({ name: 'l', type: 'Number', value })
const switchTo = (value: unknown) => ({ switch: { type: 'command', value } })
const switched = [{ name: 'switch', type: 'command', value: 'on' }]

/** The fields that all lamps of a group share. */
const lamps = {
  resource: '/iot',
  entity_type: 'Lamp',
  attributes,
  lazy: [{ object_id: 'p', name: 'power', type: 'Number' }],
  commands: [{ object_id: 's', name: 'switch', type: 'command' }],
  static_attributes: [{ name: 'maker', type: 'Text', value: 'acme' }],
}

/** A lamp behind an agent, and the clients that know it as an entity. */
class Lamp {
  readonly #client: HttpClient

  constructor(
    t: Test,
    readonly agent: IotAgent,
    brokerUrl: string,
    readonly group: Group,
  ) {
    this.#client = new HttpClient(brokerUrl)
    t.teardown(() => this.#client.close())
  }

  /** A request of a client, in the scope of the lamp unless another is named. */
  ask(method: string, path: string, body?: unknown, scope: Partial<Group> = {}): Promise<Answer> {
    const { service, subservice } = { ...this.group, ...scope }
    return this.#client.send(method, path, body, { 'Fiware-Service': service, 'Fiware-ServicePath': subservice })
  }

  async get(path: string): Promise<unknown> {
    return (await this.ask('GET', path)).json
  }

  does(deed: Deed): Promise<unknown> {
    return this.agent.order(this.group, 'd1', deed)
  }

  /** The calls of the library to the agent about this lamp. */
  async calls<K extends Call['kind']>(kind: K): Promise<readonly (Call & { readonly kind: K })[]> {
    const fits = (call: Call): call is Call & { readonly kind: K } => call.kind === kind
    return (await this.agent.callsOf(this.group)).filter(fits)
  }

  /** Waits until the lamp receives a value in a notification; if it never does, the time of the test ends the wait. */
  async receives(value: unknown): Promise<Call> {
    for (;;) {
      const calls = await this.calls('notification')
      const call = calls.find(call => call.attributes.some(one => one.value === value))
      if (call) return call
      await pause(2)
    }
  }
}

let tenants = 0

/**
 * Provisions a group and its lamp. `more` holds further fields of the group and of the lamp, in the format of the north
 * side.
 */
async function provision(t: Test, agent: IotAgent, brokerUrl: string, more: More = {}): Promise<Lamp> {
  const group = { apikey: `k${tenants}`, service: `t${tenants++}`, subservice }
  const lamp = new Lamp(t, agent, brokerUrl, group)
  const services = [{ ...lamps, apikey: group.apikey, ...more.group }]
  t.match(await agent.north('POST', '/iot/services', group, { services }), { status: 201 })
  const devices = [{ device_id: 'd1', apikey: group.apikey, entity_name: 'Lamp1', entity_type: 'Lamp', ...more.device }]
  t.match(await agent.north('POST', '/iot/devices', group, { devices }), { status: 201 })
  return lamp
}

interface More {
  readonly group?: object
  readonly device?: object
}

const batch = { actionType: 'update', entities: [{ id: 'Lamp1', type: 'Lamp', ...switchTo('on') }] }

/**
 * The ways in which a client gives a command. If the broker does not have the entity yet, the request has to name its
 * type.
 */
const commands: readonly (readonly [
  known: 'has measured' | 'is unknown',
  method: string,
  path: string,
  body: unknown,
])[] = [
  ['has measured', 'PUT', '/v2/entities/Lamp1/attrs/switch', switchTo('on').switch],
  ['has measured', 'PUT', '/v2/entities/Lamp1/attrs/switch/value', 'on'],
  ['has measured', 'PATCH', '/v2/entities/Lamp1/attrs', switchTo('on')],
  ['has measured', 'POST', '/v2/op/update', batch],
  ['is unknown', 'PATCH', '/v2/entities/Lamp1/attrs?type=Lamp', switchTo('on')],
  ['is unknown', 'POST', '/v2/op/update', batch],
]

t.test('agents and their broker', { skip: lacking }, async t => {
  const args = ['-multiservice', '-compat', 'fiware']
  const broker = await startBroker(t, { args })
  const agent = await startIotAgent(t, broker.baseUrl)
  const lampOf = (t: Test, more?: More) => provision(t, agent, broker.baseUrl, more)

  await t.test('a device is registered for its lazy attributes and commands', async t => {
    const lamp = await lampOf(t)
    t.match(await lamp.get('/v2/registrations'), [
      {
        dataProvided: { entities: [{ id: 'Lamp1', type: 'Lamp' }], attrs: ['power', 'switch'] },
        provider: { http: { url: agent.url }, supportedForwardingMode: 'all' },
      },
    ])
    t.match(await lamp.ask('GET', '/v2/registrations', undefined, { subservice: '/' }), { text: '[]' })
  })

  await t.test('a measure becomes an attribute, with the time and the static attributes', async t => {
    const lamp = await lampOf(t, { device: { timestamp: true } })
    await lamp.does({ kind: 'measure', attributes: [level(3)] })
    const TimeInstant = { TimeInstant: now }
    t.match(await lamp.get('/v2/entities/Lamp1?options=skipForwarding'), {
      level: { type: 'Number', value: 3, metadata: TimeInstant },
      maker: { type: 'Text', value: 'acme', metadata: TimeInstant },
      TimeInstant: now,
    })
  })

  await t.test('several measures arrive in order, those of other entities too', async t => {
    const far = { object_id: 'h', name: 'humidity', type: 'Number', entity_name: 'Park1', entity_type: 'Park' }
    const lamp = await lampOf(t, { group: { attributes: [...attributes, far] } })
    const humid = { name: 'h', type: 'Number', value: 40 }
    await lamp.does({ kind: 'measure', attributes: [[level(3), humid], [level(4)]] })
    t.match(await lamp.get('/v2/entities?options=keyValues,skipForwarding'), [
      { id: 'Lamp1', level: 4 },
      { id: 'Park1', type: 'Park', humidity: 40 },
    ])
  })

  await t.test('the agent reads stored attributes', async t => {
    const lamp = await lampOf(t)
    await lamp.does({ kind: 'measure', attributes: [level(3)] })
    t.match(await lamp.does({ kind: 'read', names: ['level'] }), { level: { type: 'Number', value: 3 } })
    t.strictSame(await lamp.does({ kind: 'read', names: ['nothing'] }), {})
  })

  await t.test('a command for another tenant or path reaches no device', async t => {
    const lamp = await lampOf(t)
    for (const scope of [{ service: 'village' }, { subservice: '/park' }])
      t.match(await lamp.ask('POST', '/v2/op/update', batch, scope), { status: 404, json: { error: 'NotFound' } })
    t.equal((await lamp.calls('command')).length, 0)
  })

  await t.test('a device that learns another command is registered anew', async t => {
    const lamp = await lampOf(t)
    await lamp.does({ kind: 'measure', attributes: [level(3)] })
    const dim = { object_id: 'd', name: 'dim', type: 'command' }
    const path = `/iot/devices/d1?apikey=${lamp.group.apikey}`
    t.match(await agent.north('PUT', path, lamp.group, { commands: [...lamps.commands, dim] }), { status: 204 })
    const registrations = (await lamp.get('/v2/registrations')) as readonly object[]
    t.match(registrations, [{ dataProvided: { attrs: /dim/ } }])
    t.equal(registrations.length, 1)
    t.match(await lamp.ask('PUT', '/v2/entities/Lamp1/attrs/dim', { type: 'command', value: 5 }), { status: 204 })
    t.match(await lamp.calls('command'), [{ attributes: [{ name: 'dim', value: 5 }] }])
  })

  for (const [said, more] of [
    ['its group', { group: { cmdMode: 'notification' } }],
    ['the device', { device: { cmdMode: 'notification' } }],
  ] as const)
    await t.test(`a command by notification, as ${said} wants it`, async t => {
      const lamp = await lampOf(t, more)
      t.match(await lamp.ask('GET', '/v2/registrations'), { text: '[]' })
      t.match(await lamp.get('/v2/subscriptions'), [
        {
          status: 'active',
          subject: { entities: [{ id: 'Lamp1', type: 'Lamp' }], condition: { attrs: ['switch'] } },
          notification: { http: { url: `${agent.url}/notify` }, attrs: ['switch'], onlyChangedAttrs: true },
        },
      ])
      t.match(await lamp.get('/v2/entities/Lamp1'), switchTo(null))

      t.match(await lamp.ask('PATCH', '/v2/entities/Lamp1/attrs', switchTo('on')), { status: 204 })
      const { service } = lamp.group
      t.match(await lamp.receives('on'), { id: 'Lamp1', type: 'Lamp', service, subservice, attributes: switched })
      const stored = '/v2/entities/Lamp1?options=keyValues'
      t.match(await lamp.get(stored), { switch: 'on', switch_status: 'PENDING', switch_info: undefined })
      await lamp.does({ kind: 'report', command: 'switch', result: 'is on' })
      t.match(await lamp.get(stored), { switch: 'on', switch_status: 'OK', switch_info: 'is on' })

      // The agent receives no notification of the status or the result: its next one is the next command. Before the
      // first command it may have received the creation of the entity, if it knew the device by then.
      await lamp.ask('PATCH', '/v2/entities/Lamp1/attrs', switchTo('off'))
      await lamp.receives('off')
      const values = (await lamp.calls('notification')).map(({ attributes }) => attributes.map(({ value }) => value))
      t.strictSame(values.slice(-2), [['on'], ['off']])
      t.ok(values.slice(0, -2).every(([value]) => value === null))
    })

  for (const cmdMode of ['legacy', 'notification'])
    await t.test(`a device that is removed leaves nothing behind, in ${cmdMode} mode`, async t => {
      const lamp = await lampOf(t, { group: { cmdMode } })
      const path = `/iot/devices/d1?apikey=${lamp.group.apikey}`
      t.match(await agent.north('DELETE', path, lamp.group), { status: 204 })
      t.match(await lamp.ask('GET', '/v2/registrations'), { text: '[]' })
      t.match(await lamp.ask('GET', '/v2/subscriptions'), { text: '[]' })
      await t.rejects(lamp.does({ kind: 'measure', attributes: [level(3)] }), { message: /DEVICE_NOT_FOUND/ })
      t.match(await agent.north('GET', path, lamp.group), { status: 404 })
    })

  await t.test('an agent that is asked at //op', t => forwards(t, lampOf))

  await t.test('an agent that knows neither the path nor the vocabulary of its broker', async t => {
    const other = await startBroker(t, { args: ['-multiservice'] })
    // A group may belong to another broker than the one of its agent.
    await forwards(t, t => provision(t, agent, other.baseUrl, { group: { cbHost: other.baseUrl } }))
  })
})

/** Tests the requests that the broker forwards to the agent. */
async function forwards(t: Test, lampOf: (t: Test) => Promise<Lamp>): Promise<void> {
  await t.test('a lazy attribute is read from the agent, alone, with the entity and in lists', async t => {
    const lamp = await lampOf(t)
    await lamp.does({ kind: 'measure', attributes: [level(3)] })
    const whole = { id: 'Lamp1', type: 'Lamp', level: 3, power: 17 }
    t.match(await lamp.ask('GET', '/v2/entities/Lamp1/attrs/power/value'), { text: '17' })
    const { service } = lamp.group
    const asked = { kind: 'query', id: 'Lamp1', type: 'Lamp', service, subservice, names: ['power'] }
    t.strictSame(await lamp.calls('query'), [asked])
    t.match(await lamp.get('/v2/entities/Lamp1?options=keyValues'), whole)
    t.match(await lamp.get('/v2/entities?type=Lamp&options=keyValues'), [whole])
    const query = { entities: [{ id: 'Lamp1', type: 'Lamp' }], attrs: ['power'] }
    t.match((await lamp.ask('POST', '/v2/op/query', query)).json, [{ power: { type: 'Number', value: 17 } }])
    t.equal((await lamp.calls('query')).length, 4)
    await lamp.get('/v2/entities/Lamp1?options=skipForwarding')
    t.equal((await lamp.calls('query')).length, 4)
  })

  await t.test('a lazy attribute is written to the agent', async t => {
    const lamp = await lampOf(t)
    const power = { type: 'Number', value: 20 }
    t.match(await lamp.ask('PATCH', '/v2/entities/Lamp1/attrs?type=Lamp', { power }), { status: 204 })
    const { service } = lamp.group
    t.match(await lamp.calls('update'), [
      { id: 'Lamp1', service, subservice, attributes: [{ name: 'power', ...power }] },
    ])
    t.equal((await lamp.calls('command')).length, 0)
    t.equal((await lamp.ask('GET', '/v2/entities/Lamp1?options=skipForwarding')).status, 404)
  })

  for (const [known, method, path, body] of commands)
    await t.test(`a command by ${method} ${path} to a lamp that ${known}`, async t => {
      const lamp = await lampOf(t)
      if (known === 'has measured') await lamp.does({ kind: 'measure', attributes: [level(3)] })
      t.match(await lamp.ask(method, path, body), { status: 204 })
      const { service } = lamp.group
      const called = await lamp.calls('command')
      t.match(called, [
        { id: 'Lamp1', type: 'Lamp', service, subservice, attributes: [{ name: 'switch', value: 'on' }] },
      ])
      t.equal(called.length, 1)
      // The agent has reported this status while the client was waiting.
      const stored = '/v2/entities/Lamp1?options=skipForwarding,keyValues'
      t.match(await lamp.get(stored), { switch: undefined, switch_status: 'PENDING', switch_info: undefined })
      await lamp.does({ kind: 'report', command: 'switch', result: 'is on' })
      t.match(await lamp.get(stored), { switch_status: 'OK', switch_info: 'is on' })
    })
}
