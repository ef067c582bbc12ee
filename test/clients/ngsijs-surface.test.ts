// Every method of ngsijs' NGSIv2 interface does what its caller expects, on a plain node and with `-compat fiware`.
//
// Each row of a table has a title, the call and its result; for a change also a second call and its result. Each row
// begins in a tenant of its own that holds the same few entities and documents. The last test checks that no method was
// left out.
//
// Not here: the meaning of filters, selectors and batches (ngsijs.test).

import t, { type Test } from 'tap'
import { startBroker } from '../support/broker-process.js'
import { connect, type Entity, methods, open, type V2 } from './ngsijs.js'
import { lacking } from './workspace.js'

t.setTimeout(400_000)

/** The stored documents that a row may name. */
interface World {
  readonly subscription: string
  readonly registration: string
}
type Call = (v2: V2, world: World) => Promise<unknown>
type Row = readonly [about: string, call: Call, answer: unknown, then?: Call, shown?: unknown]

const number = (value: number) => ({ type: 'Number', value, metadata: {} })
const exact = { type: 'Number', value: 21.5, metadata: { accuracy: { type: 'Number', value: 0.5 } } }
const name = { type: 'Text', value: 'kitchen', metadata: {} }
const room: Entity = { id: 'Room1', type: 'Room', temperature: exact, name }
/** Two entities of one id and different types: a call that names no type means neither of them. */
const twins: readonly Entity[] = ['Lamp', 'Sensor'].map(type => ({ id: 'Twin', type, a: number(1) }))

const refused = (name: string, message: unknown) => ({ name, message })
const noEntity = refused('NotFound', 'The requested entity has not been found. Check type and id')
const noAttribute = refused('NotFound', 'The entity does not have such an attribute')
const ambiguous = refused('TooManyResults', /^More than one matching entity/)
const unprocessable = refused('InvalidResponse', 'Unexpected error code: 422')
const corr = { correlator: 'c-1' }

const flat: Call = v2 => v2.getEntity({ id: 'Room1', keyValues: true })
const shows = (entity: Entity) => ({ entity: { id: 'Room1', type: 'Room', ...entity } })

const entities: readonly Row[] = [
  ['an entity is read by its id', v2 => v2.getEntity('Room1'), { entity: room }],
  ['an entity is read by id and type', v2 => v2.getEntity({ id: 'Twin', type: 'Sensor' }), { entity: twins[1] }],
  ['an entity is read as plain values', flat, shows({ temperature: 21.5, name: 'kitchen' })],
  ['a read tells its correlator', v2 => v2.getEntity({ id: 'Room1', ...corr }), corr],
  ['an entity that is not there', v2 => v2.getEntity('Room9'), noEntity],
  ['an entity whose type is not clear', v2 => v2.getEntity('Twin'), ambiguous],
  [
    'an entity is created',
    v2 => v2.createEntity({ id: 'a%2F+b:c', type: 'T', x: number(1) }, corr),
    { location: '/v2/entities/a%2F+b:c?type=T', ...corr },
    v2 => v2.getEntity('a%2F+b:c'),
    { entity: { id: 'a%2F+b:c', type: 'T', x: number(1) } },
  ],
  [
    'an entity is created from plain values',
    v2 => v2.createEntity({ id: 'New', type: 'T', x: true, y: null }, { keyValues: true }),
    { location: '/v2/entities/New?type=T' },
    v2 => v2.getEntityAttribute({ id: 'New', attribute: 'y' }),
    { attribute: { type: 'None', value: null, metadata: {} } },
  ],
  [
    'an upsert adds to an entity',
    v2 => v2.createEntity({ id: 'Room1', type: 'Room', name: 'attic' }, { keyValues: true, upsert: true }),
    { location: '/v2/entities/Room1?type=Room' },
    flat,
    shows({ temperature: 21.5, name: 'attic' }),
  ],
  [
    'an entity that is there already',
    v2 => v2.createEntity({ id: 'Room1', type: 'Room' }),
    refused('AlreadyExists', ''),
  ],
  [
    'an entity with a wrong id',
    v2 => v2.createEntity({ id: '<x>', type: 'T' }),
    refused('BadRequest', 'Invalid characters in entity id'),
  ],
  [
    'an entity is deleted by its type',
    v2 => v2.deleteEntity({ id: 'Twin', type: 'Lamp', ...corr }),
    corr,
    v2 => v2.getEntity('Twin'),
    { entity: twins[1] },
  ],
  ['a deletion of what is not there', v2 => v2.deleteEntity('Room9'), noEntity],
  ['a deletion whose type is not clear', v2 => v2.deleteEntity('Twin'), ambiguous],
]

const attributes: readonly Row[] = [
  ['all attributes are read', v2 => v2.getEntityAttributes('Room1'), { attributes: { temperature: exact, name } }],
  [
    'all attributes are read as plain values, of the type that is asked for',
    v2 => v2.getEntityAttributes({ id: 'Twin', type: 'Lamp', keyValues: true }),
    { attributes: { a: 1 } },
  ],
  ['attributes of no entity', v2 => v2.getEntityAttributes('Room9'), noEntity],
  ['attributes whose entity is not clear', v2 => v2.getEntityAttributes('Twin'), ambiguous],
  [
    'an attribute is added and another changed',
    v2 =>
      v2.appendEntityAttributes({ id: 'Room1', type: 'Room', humidity: number(40), name: { value: 'attic' } }, corr),
    corr,
    flat,
    shows({ temperature: 21.5, name: 'attic', humidity: 40 }),
  ],
  [
    'attributes are added as plain values',
    v2 => v2.appendEntityAttributes({ id: 'Room1', humidity: 40 }, { keyValues: true, type: 'Room' }),
    {},
    flat,
    shows({ temperature: 21.5, name: 'kitchen', humidity: 40 }),
  ],
  [
    'a strict append refuses what is there',
    v2 => v2.appendEntityAttributes({ id: 'Room1', name }, { strict: true }),
    unprocessable,
  ],
  ['an append to no entity', v2 => v2.appendEntityAttributes({ id: 'Room9', name }), noEntity],
  ['an append whose entity is not clear', v2 => v2.appendEntityAttributes({ id: 'Twin', name }), ambiguous],
  [
    'an append of a wrong name',
    v2 => v2.appendEntityAttributes({ id: 'Room1', 'a<b': name }),
    refused('BadRequest', 'Invalid characters in attribute name'),
  ],
  [
    'attributes are updated',
    v2 => v2.updateEntityAttributes({ id: 'Room1', type: 'Room', temperature: { value: { $inc: 1 } } }, corr),
    corr,
    flat,
    shows({ temperature: 22.5, name: 'kitchen' }),
  ],
  [
    'attributes are updated as plain values',
    v2 => v2.updateEntityAttributes({ id: 'Room1', name: 'attic' }, { keyValues: true }),
    {},
    flat,
    shows({ temperature: 21.5, name: 'attic' }),
  ],
  ['an update of what is not there', v2 => v2.updateEntityAttributes({ id: 'Room1', x: number(1) }), unprocessable],
  ['an update of no entity', v2 => v2.updateEntityAttributes({ id: 'Room9', name }), noEntity],
  ['an update whose entity is not clear', v2 => v2.updateEntityAttributes({ id: 'Twin', a: number(2) }), ambiguous],
  [
    'all attributes are replaced',
    v2 => v2.replaceEntityAttributes({ id: 'Room1', type: 'Room', humidity: number(40) }, corr),
    corr,
    v2 => v2.getEntity('Room1'),
    { entity: { id: 'Room1', type: 'Room', humidity: number(40), temperature: undefined } },
  ],
  [
    'all attributes are replaced by plain values',
    v2 => v2.replaceEntityAttributes({ id: 'Room1', humidity: [4, 0] }, { keyValues: true }),
    {},
    flat,
    shows({ humidity: [4, 0], temperature: undefined }),
  ],
  ['a replacement in no entity', v2 => v2.replaceEntityAttributes({ id: 'Room9', name }), noEntity],
  ['a replacement whose entity is not clear', v2 => v2.replaceEntityAttributes({ id: 'Twin', name }), ambiguous],
  [
    'one attribute is read, with its metadata',
    v2 => v2.getEntityAttribute({ id: 'Room1', attribute: 'temperature', type: 'Room', ...corr }),
    { attribute: exact, ...corr },
  ],
  ['an attribute that is not there', v2 => v2.getEntityAttribute({ id: 'Room1', attribute: 'x' }), noAttribute],
  ['an attribute whose entity is not clear', v2 => v2.getEntityAttribute({ id: 'Twin', attribute: 'a' }), ambiguous],
  [
    'one attribute is replaced',
    v2 =>
      v2.replaceEntityAttribute({ value: 7, metadata: { at: { value: 'noon' } } }, { id: 'Room1', attribute: 'name' }),
    {},
    v2 => v2.getEntityAttribute({ id: 'Room1', attribute: 'name' }),
    { attribute: { value: 7, metadata: { at: { type: 'Text', value: 'noon' } } } },
  ],
  [
    'one attribute is replaced by what names itself',
    v2 => v2.replaceEntityAttribute({ id: 'Twin', type: 'Lamp', attribute: 'a', value: 'b', ...corr }),
    corr,
    v2 => v2.getEntityAttributes({ id: 'Twin', type: 'Lamp', keyValues: true }),
    { attributes: { a: 'b' } },
  ],
  [
    'a replacement of an attribute that is not there',
    v2 => v2.replaceEntityAttribute({ value: 1 }, { id: 'Room1', attribute: 'x' }),
    noAttribute,
  ],
  [
    'one attribute is deleted',
    v2 => v2.deleteEntityAttribute({ id: 'Room1', attribute: 'name', type: 'Room', ...corr }),
    corr,
    flat,
    shows({ temperature: 21.5, name: undefined }),
  ],
  ['a deletion of no attribute', v2 => v2.deleteEntityAttribute({ id: 'Room1', attribute: 'x' }), noAttribute],
  ['a deletion that is not clear', v2 => v2.deleteEntityAttribute({ id: 'Twin', attribute: 'a' }), ambiguous],
  [
    'a value is read',
    v2 => v2.getEntityAttributeValue({ id: 'Room1', attribute: 'temperature', type: 'Room', ...corr }),
    { value: 21.5, ...corr },
  ],
  ['a value that is not there', v2 => v2.getEntityAttributeValue({ id: 'Room1', attribute: 'x' }), noAttribute],
  [
    'a value of no attribute is replaced',
    v2 => v2.replaceEntityAttributeValue({ id: 'Room1', attribute: 'x', value: 1 }),
    noAttribute,
  ],
  ...['text', '', '{ a, [text] } è', 0, -1.5e-7, true, false, { a: [1, { b: null }] }, [], [null, 'x']].map(
    (value): Row => [
      `a value is replaced by ${JSON.stringify(value)}`,
      v2 => v2.replaceEntityAttributeValue({ id: 'Room1', attribute: 'name', value, ...corr }),
      corr,
      v2 => v2.getEntityAttributeValue({ id: 'Room1', attribute: 'name' }),
      { value },
    ],
  ),
]

const lists: readonly Row[] = [
  [
    'entities, a page and their count',
    v2 => v2.listEntities({ count: true, offset: 1, limit: 1, keyValues: true, ...corr }),
    { results: [{ id: 'Twin', type: 'Lamp', a: 1 }], count: 3, offset: 1, limit: 1, ...corr },
  ],
  ['entities without a count', v2 => v2.listEntities({ type: 'Room' }), { results: [room], count: undefined }],
  [
    'a batch query, a page and its count',
    v2 =>
      v2.batchQuery({ entities: [{ idPattern: '.*' }] }, { count: true, offset: 2, limit: 5, unique: true, ...corr }),
    { results: [[1]], count: 3, offset: 2, limit: 5, ...corr },
  ],
  [
    'types, a page and their count',
    v2 => v2.listTypes({ count: true, offset: 1, limit: 1, values: true, ...corr }),
    { results: ['Room'], count: 3, ...corr },
  ],
  [
    'subscriptions, a page and their count',
    v2 => v2.listSubscriptions({ count: true, limit: 1, offset: 1, ...corr }),
    { results: [], count: 1, limit: 1, offset: 1, ...corr },
  ],
  [
    'registrations, a page and their count',
    v2 => v2.listRegistrations({ count: true, limit: 1, offset: 1, ...corr }),
    { results: [], count: 1, limit: 1, offset: 1, ...corr },
  ],
  [
    'one type',
    v2 => v2.getType({ id: 'Lamp', ...corr }),
    { type: { attrs: { a: { types: ['Number'] } }, count: 1 }, ...corr },
  ],
  ['a type that is not there', v2 => v2.getType('Bus'), refused('NotFound', 'Entity type not found')],
  [
    'a batch update',
    v2 =>
      v2.batchUpdate(
        { actionType: 'append', entities: [{ id: 'Room1', type: 'Room', name: 1 }] },
        { keyValues: true, ...corr },
      ),
    corr,
    flat,
    shows({ temperature: 21.5, name: 1 }),
  ],
]

const subject = { entities: [{ idPattern: '.*', type: 'Room' }], condition: { attrs: ['temperature'] } }
const notification = { attrs: ['name'], http: { url: 'http://127.0.0.1:9/never' } }
const noSubscription = refused('NotFound', 'The requested subscription has not been found. Check id')
const subscribed: Call = (v2, { subscription }) => v2.getSubscription(subscription)

const subscriptions: readonly Row[] = [
  [
    'a subscription is created, and its id found in the location',
    v2 =>
      v2.createSubscription({ description: 'new', subject, notification }, { skipInitialNotification: true, ...corr }),
    { subscription: { id: /^[0-9a-f]{24}$/ }, location: /^\/v2\/subscriptions\/[0-9a-f]{24}$/, ...corr },
    v2 => v2.listSubscriptions(),
    { results: [{ description: 'first' }, { description: 'new', status: 'active' }] },
  ],
  [
    'a subscription that lacks a subject',
    v2 => v2.createSubscription({ notification }),
    refused('BadRequest', /subject/),
  ],
  [
    'a subscription is read',
    (v2, { subscription }) => v2.getSubscription({ id: subscription, ...corr }),
    { subscription: { description: 'first', subject, notification, status: 'active' }, ...corr },
  ],
  ['a subscription that is not there', v2 => v2.getSubscription('5'.repeat(24)), noSubscription],
  [
    'a subscription is changed',
    (v2, { subscription: id }) => v2.updateSubscription({ id, status: 'inactive', throttling: 5 }, corr),
    corr,
    subscribed,
    { subscription: { description: 'first', status: 'inactive', throttling: 5, subject } },
  ],
  ['a change of none', v2 => v2.updateSubscription({ id: '5'.repeat(24), throttling: 5 }), noSubscription],
  [
    'a subscription is deleted',
    (v2, { subscription: id }) => v2.deleteSubscription({ id, ...corr }),
    corr,
    subscribed,
    noSubscription,
  ],
  ['a deletion of none', v2 => v2.deleteSubscription('5'.repeat(24)), noSubscription],
]

const dataProvided = { entities: [{ id: 'Far1', type: 'Far' }], attrs: ['pressure'] }
const provider = { http: { url: 'http://127.0.0.1:9/never' } }
const stored = { dataProvided, provider: { ...provider, supportedForwardingMode: 'all', legacyForwarding: false } }
const noRegistration = refused('NotFound', 'The requested registration has not been found. Check id')
const registered: Call = (v2, { registration }) => v2.getRegistration(registration)

const registrations: readonly Row[] = [
  [
    'a registration is created, and its id found in the location',
    v2 => v2.createRegistration({ description: 'new', dataProvided, provider }, corr),
    { registration: { id: /^[0-9a-f]{24}$/ }, location: /^\/v2\/registrations\/[0-9a-f]{24}$/, ...corr },
    v2 => v2.listRegistrations(),
    { results: [{ description: 'first' }, { description: 'new', ...stored, status: 'active' }] },
  ],
  [
    'a registration that lacks a provider',
    v2 => v2.createRegistration({ dataProvided }),
    refused('BadRequest', 'the field /provider/ is missing in payload'),
  ],
  [
    'a registration is read',
    (v2, { registration }) => v2.getRegistration({ id: registration, ...corr }),
    { registration: { description: 'first', ...stored, status: 'active' }, ...corr },
  ],
  ['a registration that is not there', v2 => v2.getRegistration('5'.repeat(24)), noRegistration],
  [
    'a registration is changed',
    (v2, { registration: id }) =>
      v2.updateRegistration({ id, status: 'inactive', expires: '2099-12-31T00:00:00Z' }, corr),
    corr,
    registered,
    { registration: { description: 'first', ...stored, status: 'inactive', expires: '2099-12-31T00:00:00.000Z' } },
  ],
  ['a change of none', v2 => v2.updateRegistration({ id: '5'.repeat(24), status: 'active' }), noRegistration],
  [
    'a registration is deleted',
    (v2, { registration: id }) => v2.deleteRegistration({ id, ...corr }),
    corr,
    registered,
    noRegistration,
  ],
  ['a deletion of none', v2 => v2.deleteRegistration('5'.repeat(24)), noRegistration],
]

const tables = { entities, attributes, lists, subscriptions, registrations }
type Tables = Readonly<Record<string, readonly Row[]>>
/**
 * The vocabulary is in headers only. So with `-compat fiware` only the lists, which have a count, are checked again.
 */
const vocabularies: readonly (readonly [said: string, args: readonly string[], tables: Tables])[] = [
  ['on a plain node', ['-multiservice'], tables],
  ['with -compat fiware', ['-multiservice', '-compat', 'fiware'], { lists }],
]
const called = new Set<string>()
let tenants = 0

for (const [said, args, tables] of vocabularies)
  t.test(`ngsijs ${said}`, { skip: lacking }, async t => {
    const broker = await startBroker(t, { args })
    for (const [noun, rows] of Object.entries(tables))
      await t.test(noun, async t => {
        for (const row of rows)
          await t.test(row[0], t => check(t, recorded(connect(broker.baseUrl, `t${tenants++}`)), row))
      })

    await t.test('the tenant and the path of a single request count', async t => {
      const v2 = recorded(connect(broker.baseUrl))
      const here = { service: 'city', servicepath: '/park' }
      for (const [create, list] of [
        [() => v2.createEntity({ id: 'Bench1', type: 'Bench' }, here), v2.listEntities],
        [() => v2.createSubscription({ subject, notification }, here), v2.listSubscriptions],
        [() => v2.createRegistration({ dataProvided, provider }, here), v2.listRegistrations],
      ] as const) {
        await create()
        t.match(await list({ count: true, ...here }), { count: 1 })
        t.match(await list({ count: true, ...here, servicepath: '/street' }), { count: 0, results: [] })
        t.match(await list({ count: true, ...here, service: 'village' }), { count: 0, results: [] })
      }
    })

    const compat = args.includes('-compat')
    await t.test(`${compat ? 'counts and' : 'neither counts nor'} correlators reach the default tenant`, async t => {
      const connection = open(broker.baseUrl)
      const v2 = recorded(connection.v2)
      const expected = compat ? { count: 0, correlator: /./ } : { count: Number.NaN, correlator: null }
      for (const list of [v2.listEntities, v2.listTypes, v2.listSubscriptions, v2.listRegistrations])
        t.match(await list({ count: true }), expected)
      t.match(await v2.batchQuery({ entities: [{ idPattern: '.*' }] }, { count: true }), expected)
      const { details, correlator } = await connection.getServerDetails()
      t.match(details, { orion: { version: '3.12.0' } })
      t.equal(correlator !== null, compat)
    })
  })

t.test('no method is left out', { skip: lacking }, async t => {
  t.strictSame([...called].sort(), [...methods()].sort())
})

async function check(t: Test, v2: V2, [, call, answer, then, shown]: Row): Promise<void> {
  const world = await populate(v2)
  t.match(await outcome(call(v2, world)), answer)
  if (then) t.match(await outcome(then(v2, world)), shown)
}

function outcome(answer: Promise<unknown>): Promise<unknown> {
  return answer.catch((error: unknown) => error)
}

async function populate(v2: V2): Promise<World> {
  await v2.batchUpdate({ actionType: 'append', entities: [room, ...twins] })
  const first = { description: 'first' }
  const { subscription } = await v2.createSubscription({ ...first, subject, notification })
  const { registration } = await v2.createRegistration({ ...first, dataProvided, provider })
  return { subscription: subscription.id, registration: registration.id }
}

/** The same interface, which records the methods that were used. */
function recorded(v2: V2): V2 {
  return new Proxy(v2, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      called.add(String(key))
      // The methods look for the connection in the object that they belong to.
      return value.bind(target)
    },
  })
}
