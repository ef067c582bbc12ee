// When a tenant leaves the register of service paths, at its keeper.

import t from 'tap'
import type { ShardReply } from '../../../src/messages/messages.js'
import { PathRegister } from '../../../src/shard/documents/path-register.js'
import { pathKey, pathRange } from '../../../src/shard/replicate/replicated-layout.js'
import { ampleRoom } from '../../../src/shard/turn/room.js'
import { rowsOf } from '../../storage/store-contract.js'
import { MemoryStore } from '../../support/memory-store.js'

const number = 7
const everybody = async (tenants: readonly string[]) => tenants

/** A keeper whose commits become durable when the test calls `settle`. */
async function keeper() {
  const store = new MemoryStore()
  const batches: (() => void)[] = []
  let batch = store.batch()
  const state = { isKeeper: true, obstacle: undefined as ShardReply | undefined }
  const register = {
    obstacle: () => state.obstacle,
    write: (key: Buffer, row: Buffer | undefined) => {
      if (row) batch.put(key, row)
      else batch.del(key)
      return 1
    },
    afterAll: (carriedBy: number, onDone: () => void) => void (carriedBy > 0 ? batches.push(onDone) : onDone()),
    beforeRead: () => t.fail('nobody reads documents'),
  }
  const commit = {
    afterCommit: (_: number, run: () => void) => void batches.push(run),
    afterFlight: (run: () => void) => run(),
  }
  const inUse = new Set<string>()
  const paths = await PathRegister.read({
    number,
    store,
    commit,
    register,
    counts: { has: async tenant => inUse.has(tenant) },
    isKeeper: () => state.isKeeper,
    room: ampleRoom,
  })
  const settle = async (): Promise<void> => {
    const full = batch
    batch = store.batch()
    await new Promise<void>((resolve, reject) => store.commit(full, error => (error ? reject(error) : resolve())))
    for (const run of batches.splice(0)) run()
  }
  const announce = async (tenant: string, path: string): Promise<void> => {
    paths.onAnnounce({ kind: 'announce', tenant, path }, () => {})
    await settle()
  }
  const rows = async (): Promise<number> => (await rowsOf(store, pathRange(number))).length
  return { paths, inUse, state, settle, announce, rows }
}

t.test('a tenant leaves with all its rows when it is found unused a second time', async t => {
  const { paths, announce, settle, rows } = await keeper()
  for (const path of ['/a', '/b', '/c']) await announce('t', path)
  await announce('u', '/a')
  await paths.leaveIfUnused(['t', 'u'], async () => ['t'])
  await settle()
  t.equal(await rows(), 4, 'once is not enough')
  await paths.leaveIfUnused(['t', 'u'], async () => ['t'])
  await settle()
  t.equal(await rows(), 1)
  t.strictSame([...paths.tenantNames()], ['u'])
  t.strictSame([...paths.few('t')!], [])
  await announce('t', '/d')
  t.strictSame([...paths.few('t')!], ['/d'], 'it comes back')
})

t.test('a tenant that was in use in between has to be found unused twice again', async t => {
  const { paths, announce, settle, rows } = await keeper()
  await announce('t', '/a')
  for (const found of [['t'], [], ['t']]) await paths.leaveIfUnused(['t'], async () => found)
  await settle()
  t.equal(await rows(), 1)
})

t.test('a tenant that is announced while owners are asked stays', async t => {
  const { paths, announce, settle, rows } = await keeper()
  await announce('t', '/a')
  await paths.leaveIfUnused(['t'], () => everybody(['t']))
  await paths.leaveIfUnused(['t'], async () => {
    await announce('t', '/a')
    return ['t']
  })
  await settle()
  t.equal(await rows(), 1)
  await paths.leaveIfUnused(['t'], () => everybody(['t']))
  await settle()
  t.equal(await rows(), 1, 'and counts as in use before')
})

t.test('no tenant leaves at another owner, or while not all owners can be reached', async t => {
  const { paths, state, announce, settle, rows } = await keeper()
  await announce('t', '/a')
  await paths.leaveIfUnused(['t'], () => everybody(['t']))
  state.isKeeper = false
  t.notOk(paths.canLeave)
  await paths.leaveIfUnused(['t'], () => everybody(['t']))
  state.isKeeper = true
  state.obstacle = { kind: 'unreachable', reason: 'a worker does not answer' }
  t.notOk(paths.canLeave)
  await paths.leaveIfUnused(['t'], () => everybody(['t']))
  await settle()
  t.equal(await rows(), 1)
})

t.test('an owner names the tenants that it has nothing of', async t => {
  const { paths, inUse } = await keeper()
  inUse.add('t')
  const reply = await new Promise(resolve => paths.onUnused({ kind: 'unused', tenants: ['t', 'u'] }, resolve))
  t.strictSame(reply, { kind: 'unused', tenants: ['u'] })
})

t.test('a row that goes takes its tenant out of memory', async t => {
  const { paths } = await keeper()
  for (const path of ['/a', '/b']) paths.note(pathKey(number, 't', path))
  paths.leave(pathKey(number, 't', '/a'))
  t.equal(paths.size, 0)
})
