// A client library that was written for the original broker works with this one.
//
// The tests check the meaning of ngsijs' lists, queries and batches, over its own HTTP adapter for Node, all against
// one plain node. Each test has a tenant of its own, so ngsijs sends `FIWARE-Service` with every request and gets the
// headers that it reads.
//
// Not here: that the broker accepts each of its methods, and other vocabularies (ngsijs-surface.test).

import t from 'tap'
import { startBroker } from '../support/broker-process.js'
import { connect, type Entity, idsOf, type V2 } from './ngsijs.js'
import { lacking } from './workspace.js'

t.setTimeout(400_000)

const broker = lacking ? undefined : await startBroker(t, { args: ['-multiservice'] })
let tenants = 0
const connection = (): V2 => connect(broker!.baseUrl, `t${tenants++}`)

t.test('ngsijs creates, reads, updates and deletes an entity', { skip: lacking }, async t => {
  const v2 = connection()
  const entity = { id: 'Room1', type: 'Room', temperature: { type: 'Number', value: 21.5, metadata: {} } }
  const created = await v2.createEntity(entity)
  t.equal(created.location, '/v2/entities/Room1?type=Room')

  t.strictSame((await v2.getEntity('Room1')).entity, entity)
  await v2.updateEntityAttributes({ id: 'Room1', temperature: { type: 'Number', value: 22 } })
  await v2.appendEntityAttributes({ id: 'Room1', humidity: { type: 'Number', value: 40 } })
  t.match(await v2.getEntity({ id: 'Room1', keyValues: true }), { entity: { temperature: 22, humidity: 40 } })
  t.equal((await v2.getEntityAttributeValue({ id: 'Room1', attribute: 'humidity' })).value, 40)

  await v2.deleteEntity('Room1')
  await t.rejects(v2.getEntity('Room1'), { name: 'NotFound' })
})

t.test('a second creation is refused in a way ngsijs understands', { skip: lacking }, async t => {
  const v2 = connection()
  await v2.createEntity({ id: 'Room1', type: 'Room' })
  await t.rejects(v2.createEntity({ id: 'Room1', type: 'Room' }), { name: 'AlreadyExists' })
  await v2.createEntity({ id: 'Room1', type: 'Room', a: { type: 'Text', value: 'x' } }, { upsert: true })
  t.match(await v2.getEntity({ id: 'Room1', keyValues: true }), { entity: { a: 'x' } })
})

t.test('a list read through ngsijs is paged and counted', { skip: lacking }, async t => {
  const v2 = connection()
  for (const n of [1, 2, 3]) await v2.createEntity({ id: `Room${n}`, type: 'Room', n: { type: 'Number', value: n } })
  const page = await v2.listEntities({
    type: 'Room',
    count: true,
    offset: 1,
    limit: 1,
    keyValues: true,
  })
  t.strictSame(page.results, [{ id: 'Room2', type: 'Room', n: 2 }])
  t.equal(page.count, 3)
})

t.test('tenant and service path of ngsijs keep entities apart', { skip: lacking }, async t => {
  const v2 = connection()
  const here = { service: 'city', servicepath: '/park' }
  await v2.createEntity({ id: 'Bench1', type: 'Bench' }, here)
  t.match(await v2.getEntity({ id: 'Bench1', ...here }), { entity: { id: 'Bench1' } })
  await t.rejects(v2.getEntity('Bench1'), { name: 'NotFound' })
  await t.rejects(v2.getEntity({ id: 'Bench1', ...here, servicepath: '/street' }), { name: 'NotFound' })
})

const at = (latitude: number, longitude: number) => ({ type: 'geo:point', value: `${latitude}, ${longitude}` })
const number = (value: number, accuracy = 1) => ({
  type: 'Number',
  value,
  metadata: { accuracy: { type: 'Number', value: accuracy } },
})

/** Rooms of a house on the equator and a bus that is not far: 1 degree is 111 km. */
const town = [
  { id: 'Room1', type: 'Room', temperature: number(21), name: { type: 'Text', value: 'kitchen' }, place: at(0, 0.001) },
  {
    id: 'Room2',
    type: 'Room',
    temperature: number(25, 5),
    name: { type: 'Text', value: 'attic' },
    place: at(0, 0.002),
  },
  { id: 'Room3', type: 'Room', name: { type: 'Text', value: 'cellar' } },
  { id: 'bus7', type: 'Vehicle', temperature: number(30), place: at(0, 0.5) },
  { id: 'Hall1', type: 'Hall', temperature: { type: 'Text', value: 'warm' } },
]

const filters: readonly (readonly [options: Entity, ids: string])[] = [
  [{}, 'Room1 Room2 Room3 bus7 Hall1'],
  [{ type: 'Room' }, 'Room1 Room2 Room3'],
  [{ type: ['Vehicle', 'Hall'] }, 'bus7 Hall1'],
  [{ id: 'Room2,bus7' }, 'Room2 bus7'],
  [{ id: ['Room3', 'Room1', 'none'] }, 'Room1 Room3'],
  [{ idPattern: '^Room[12]$' }, 'Room1 Room2'],
  [{ idPattern: '.*1', type: 'Hall' }, 'Hall1'],
  [{ typePattern: '^(Hall|Vehicle)$' }, 'bus7 Hall1'],
  [{ q: 'temperature' }, 'Room1 Room2 bus7 Hall1'],
  [{ q: '!temperature' }, 'Room3'],
  [{ q: 'temperature>21' }, 'Room2 bus7'],
  [{ q: 'temperature==20..25;name~=^k' }, 'Room1'],
  [{ q: "name=='attic',cellar" }, 'Room2 Room3'],
  [{ mq: 'temperature.accuracy>3' }, 'Room2'],
  [{ type: 'Room', q: 'temperature>20', mq: 'temperature.accuracy==1' }, 'Room1'],
  [{ georel: 'near;maxDistance:200', geometry: 'point', coords: '0,0' }, 'Room1'],
  [{ georel: 'near;minDistance:200', geometry: 'point', coords: '0,0' }, 'Room2 bus7'],
  [{ georel: 'coveredBy', geometry: 'box', coords: '-1,0;1,0.01' }, 'Room1 Room2'],
  [{ georel: 'disjoint', geometry: 'polygon', coords: '-1,0;1,0;1,0.01;-1,0.01;-1,0', type: 'Vehicle' }, 'bus7'],
  [{ georel: 'near;maxDistance:1e6', geometry: 'point', coords: '0,1', orderBy: 'geo:distance' }, 'bus7 Room2 Room1'],
  [{ orderBy: '!temperature,id' }, 'Hall1 bus7 Room2 Room1 Room3'],
  [{ orderBy: 'type,!id' }, 'Hall1 Room3 Room2 Room1 bus7'],
  [{ orderBy: '!dateCreated', limit: 2 }, 'Hall1 bus7'],
  [{ q: 'temperature', offset: 1, limit: 2 }, 'Room2 bus7'],
  [{ offset: 9 }, ''],
]

t.test('lists are filtered and ordered as ngsijs asks for it', { skip: lacking }, async t => {
  const v2 = connection()
  for (const entity of town) await v2.createEntity(entity)
  for (const [options, ids] of filters) {
    const { results } = await v2.listEntities({ ...options })
    t.equal(idsOf(results), ids, JSON.stringify(options))
  }
})

t.test('lists show the requested parts of entities, and count those on other pages', { skip: lacking }, async t => {
  const v2 = connection()
  for (const entity of town) await v2.createEntity(entity)
  const some = { type: 'Room', q: 'temperature', attrs: ['temperature', 'name'], correlator: 'x-17' }
  const full = await v2.listEntities({ ...some, metadata: 'accuracy', limit: 1, count: true })
  t.strictSame(full.results, [
    {
      id: 'Room1',
      type: 'Room',
      temperature: number(21),
      name: { type: 'Text', value: 'kitchen', metadata: {} },
    },
  ])
  t.match(full, { count: 2, limit: 1, offset: 0, correlator: 'x-17' })
  const flat = await v2.listEntities({ ...some, keyValues: true, offset: 1 })
  t.strictSame(flat.results, [{ id: 'Room2', type: 'Room', temperature: 25, name: 'attic' }])
  t.strictSame((await v2.listEntities({ ...some, values: true })).results, [
    [21, 'kitchen'],
    [25, 'attic'],
  ])
  t.strictSame((await v2.listEntities({ attrs: 'temperature', unique: true, id: 'Room1' })).results, [[21]])
  await t.rejects(v2.listEntities({ q: 'temperature>true' }), { name: 'InvalidResponse', message: /400/ })
  await t.rejects(v2.listEntities({ idPattern: '(' }), { name: 'InvalidResponse', message: /400/ })
})

t.test('a batch query finds the entities of its selectors and its expression', { skip: lacking }, async t => {
  const v2 = connection()
  for (const entity of town) await v2.createEntity(entity)
  const ids = async (query: Entity, options: Entity = {}) => idsOf((await v2.batchQuery(query, options)).results)

  t.equal(idsOf((await v2.batchQuery()).results), 'Room1 Room2 Room3 bus7 Hall1')
  const entities = [
    { idPattern: '^Room', type: 'Room' },
    { id: 'bus7', typePattern: 'V' },
  ]
  t.equal(await ids({ entities }), 'Room1 Room2 Room3 bus7')
  t.equal(await ids({ entities, expression: { q: 'temperature>21' } }), 'Room2 bus7')
  t.equal(await ids({ expression: { mq: 'temperature.accuracy==5' } }), 'Room2')
  const near = { georel: 'near;maxDistance:300', geometry: 'point', coords: '0,0' }
  t.equal(await ids({ expression: near }, { orderBy: '!id' }), 'Room2 Room1')
  t.equal(await ids({ attributes: ['place'] }), 'Room1 Room2 bus7')

  const options = { count: true, offset: 1, limit: 2, keyValues: true }
  const page = await v2.batchQuery({ entities, attrs: ['name'] }, options)
  t.strictSame(page.results, [
    { id: 'Room2', type: 'Room', name: 'attic' },
    { id: 'Room3', type: 'Room', name: 'cellar' },
  ])
  t.match(page, { count: 4, offset: 1, limit: 2 })
  await t.rejects(v2.batchQuery({ entities: [{ type: 'Room' }] }), {
    name: 'BadRequest',
    message: 'nor /id/ nor /idPattern/ present',
  })
})

t.test('batches append, update, replace and delete', { skip: lacking }, async t => {
  const v2 = connection()
  const stored = async () => (await v2.listEntities({ keyValues: true })).results
  const entities = (...all: Entity[]) => ({ entities: all.map(each => ({ type: 'Room', ...each })) })
  const flat = { keyValues: true }

  const first = { actionType: 'APPEND', ...entities({ id: 'R1', a: number(1) }, { id: 'R2' }) }
  t.strictSame(await v2.batchUpdate(first, { correlator: 'x-18' }), { correlator: 'x-18' })
  await v2.batchUpdate(
    { actionType: 'append', ...entities({ id: 'R1', b: 'x' }, { id: 'R3', a: [1, { k: null }] }) },
    flat,
  )
  const [r1, r2, r3] = [
    { id: 'R1', type: 'Room', a: 1, b: 'x' },
    { id: 'R2', type: 'Room' },
    { id: 'R3', type: 'Room', a: [1, { k: null }] },
  ]
  t.strictSame(await stored(), [r1, r2, r3])

  await v2.batchUpdate({ actionType: 'update', ...entities({ id: 'R1', a: 7 }, { id: 'R3', a: true }) }, flat)
  t.strictSame(await stored(), [{ ...r1, a: 7 }, r2, { ...r3, a: true }])
  await v2.batchUpdate({ actionType: 'replace', ...entities({ id: 'R1', c: 3 }) }, flat)
  t.strictSame(await stored(), [{ id: 'R1', type: 'Room', c: 3 }, r2, { ...r3, a: true }])
  await v2.batchUpdate({ actionType: 'delete', ...entities({ id: 'R2' }, { id: 'R3', a: null }) }, flat)
  t.strictSame(await stored(), [
    { id: 'R1', type: 'Room', c: 3 },
    { id: 'R3', type: 'Room' },
  ])
})

t.test('ngsijs gets the error of a batch that fails in part or as a whole', { skip: lacking }, async t => {
  const v2 = connection()
  await v2.createEntity({ id: 'R1', type: 'Room', a: number(1) })
  const flat = { keyValues: true }
  const update = (actionType: string, ...entities: Entity[]) => v2.batchUpdate({ actionType, entities }, flat)
  await t.rejects(update('update', { id: 'R9', a: 1 }), { name: 'InvalidResponse', message: /404/ })
  await t.rejects(update('appendStrict', { id: 'R1', a: 2, b: 2 }), { name: 'InvalidResponse', message: /422/ })
  t.match((await v2.getEntity({ id: 'R1', keyValues: true })).entity, { a: 1, b: 2 })
  await t.rejects(update('upsert', { id: 'R1' }), { name: 'BadRequest', message: /^invalid update action type/ })
  await t.rejects(update('append', { type: 'Room' }), {
    name: 'BadRequest',
    message: 'nor /id/ nor /idPattern/ present',
  })
  await t.rejects(update('append'), { name: 'BadRequest', message: 'empty entities vector' })
})

t.test('types are listed, counted and described', { skip: lacking }, async t => {
  const v2 = connection()
  for (const entity of town) await v2.createEntity(entity)
  const hall = { type: 'Hall', attrs: { temperature: { types: ['Text'] } }, count: 1 }
  const room = { name: { types: ['Text'] }, place: { types: ['geo:point'] }, temperature: { types: ['Number'] } }
  const { results } = await v2.listTypes()
  t.equal(results.map(({ type }) => type).join(' '), 'Hall Room Vehicle')
  t.strictSame(results.slice(0, 2), [hall, { type: 'Room', attrs: room, count: 3 }])

  t.match(await v2.listTypes({ limit: 1, offset: 1, count: true }), {
    results: [{ type: 'Room' }],
    count: 3,
  })
  t.strictSame((await v2.listTypes({ values: true })).results, ['Hall', 'Room', 'Vehicle'])
  t.strictSame((await v2.getType('Room')).type, { attrs: room, count: 3 })
  await v2.updateEntityAttributes({ id: 'Hall1', temperature: number(19) })
  await v2.createEntity({ id: 'Hall2', type: 'Hall', temperature: { type: 'Text', value: 'cold' } })
  t.strictSame((await v2.getType('Hall')).type, { attrs: { temperature: { types: ['Number', 'Text'] } }, count: 2 })
  await v2.deleteEntity('bus7')
  await t.rejects(v2.getType('Vehicle'), { name: 'NotFound', message: 'Entity type not found' })
})
