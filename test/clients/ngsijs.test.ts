// A client library that was written for the original broker works with this one.
//
// ngsijs, over its own HTTP adapter for Node: create, read, list, count, update, delete. It sends its tenant, path and correlator in
// headers with the prefix `FIWARE-` and reads its counts from there, so the broker must speak that vocabulary too.
//
// The library is AGPL and lives in a workspace of its own (package.json beside this file); where it cannot be installed, the test
// is skipped.

import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBroker } from '../support/broker-process.js'
import { root } from '../support/project.js'

const workspace = join(root, 'test/clients')
const lacking = install()
t.setTimeout(120_000)

t.test('ngsijs creates, reads, updates and deletes an entity', { skip: lacking }, async t => {
  const { v2 } = await connection(t)
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
  const { v2 } = await connection(t)
  await v2.createEntity({ id: 'Room1', type: 'Room' })
  await t.rejects(v2.createEntity({ id: 'Room1', type: 'Room' }), { name: 'AlreadyExists' })
  await v2.createEntity({ id: 'Room1', type: 'Room', a: { type: 'Text', value: 'x' } }, { upsert: true })
  t.match(await v2.getEntity({ id: 'Room1', keyValues: true }), { entity: { a: 'x' } })
})

t.test('a list read through ngsijs is paged and counted', { skip: lacking }, async t => {
  const { v2 } = await connection(t)
  for (const n of [1, 2, 3]) await v2.createEntity({ id: `Room${n}`, type: 'Room', n: { type: 'Number', value: n } })
  const page = await v2.listEntities({
    type: 'Room',
    count: true,
    offset: 1,
    limit: 1,
    keyValues: true,
    servicepath: '/',
  })
  t.strictSame(page.results, [{ id: 'Room2', type: 'Room', n: 2 }])
  t.equal(page.count, 3)
})

t.test('tenant and service path of ngsijs keep entities apart', { skip: lacking }, async t => {
  const { v2 } = await connection(t, ['-multiservice'])
  const here = { service: 'city', servicepath: '/park' }
  await v2.createEntity({ id: 'Bench1', type: 'Bench' }, here)
  t.match(await v2.getEntity({ id: 'Bench1', ...here }), { entity: { id: 'Bench1' } })
  await t.rejects(v2.getEntity('Bench1'), { name: 'NotFound' })
  await t.rejects(v2.getEntity({ id: 'Bench1', ...here, servicepath: '/street' }), { name: 'NotFound' })
})

// --- the part of ngsijs that is used here

interface Context {
  readonly service?: string
  readonly servicepath?: string
}
type Entity = Readonly<Record<string, unknown>>
interface V2 {
  createEntity(entity: Entity, options?: Context & { upsert?: boolean }): Promise<{ location: string }>
  getEntity(wanted: string | (Context & { id: string; keyValues?: boolean })): Promise<{ entity: Entity }>
  getEntityAttributeValue(options: { id: string; attribute: string }): Promise<{ value: unknown }>
  updateEntityAttributes(changes: Entity): Promise<unknown>
  appendEntityAttributes(changes: Entity): Promise<unknown>
  deleteEntity(id: string): Promise<unknown>
  listEntities(options: Entity): Promise<{ results: Entity[]; count: number }>
}
interface Connection {
  readonly v2: V2
}

async function connection(t: Test, args: readonly string[] = []): Promise<Connection> {
  const broker = await startBroker(t, { args })
  const ngsi = createRequire(join(workspace, 'package.json'))('ngsijs')
  return new ngsi.Connection(broker.baseUrl)
}

function install(): string | false {
  try {
    execFileSync(join(workspace, 'install.sh'), { stdio: 'pipe' })
    return false
  } catch (error) {
    return `ngsijs cannot be installed: ${String((error as Error).message).trim()}`
  }
}
