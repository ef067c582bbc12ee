// Tenants that come and go, over two workers: a tenant without data leaves the register, and a tenant with data never
// does.

import t from 'tap'
import { systemClock } from '../../src/clock.js'
import type { Clock } from '../../src/ports.js'
import type { PathRegister } from '../../src/shard/documents/path-register.js'
import { roundMs } from '../../src/shard/documents/unused-tenants.js'
import { LocalShards } from '../../src/shard/shards.js'
import { until } from '../deliver/receivers.js'
import type { LocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'
import { Random } from '../support/random.js'

/** The system's clock, but with another pause between two rounds. */
const quick = (pauseMs: number): Clock => ({
  ...systemClock,
  after: (delayMs, run) => systemClock.after(delayMs === roundMs ? pauseMs : delayMs, run),
})

/** Two workers, and the register of paths of each. */
async function twoWorkers(
  t: Parameters<typeof startLocalWorkers>[0],
  pauseMs: number,
): Promise<{ readonly nodes: readonly [LocalNode, LocalNode]; readonly registers: readonly PathRegister[] }> {
  const registers: PathRegister[] = []
  const nodes = await startLocalWorkers(t, 2, {
    surroundings: {
      clock: quick(pauseMs),
      wrapShards: shards => {
        if (shards instanceof LocalShards && shards.parts.role.kind !== 'alone') registers.push(shards.parts.role.paths)
        return shards
      },
    },
  })
  return { nodes: nodes as readonly [LocalNode, LocalNode], registers }
}

const create = async (node: LocalNode, tenant: string, path: string, id: string): Promise<number> =>
  (await node.json('POST /v2/entities', { id, type: 'T' }, [`Ctx-Service: ${tenant}`, `Ctx-ServicePath: ${path}`]))
    .status

const read = async (node: LocalNode, tenant: string, id: string): Promise<number> =>
  (await node.ask(`GET /v2/entities/${id}`, [`Ctx-Service: ${tenant}`])).status

const remove = async (node: LocalNode, tenant: string, path: string, id: string): Promise<number> =>
  (await node.ask(`DELETE /v2/entities/${id}`, [`Ctx-Service: ${tenant}`, `Ctx-ServicePath: ${path}`])).status

t.test('a tenant leaves with its last entity, and comes back with the next one', async t => {
  const { nodes, registers } = await twoWorkers(t, 20)
  const [first, second] = nodes
  for (let n = 0; n < 40; n++)
    for (const [id, path] of [
      ['E', `/a${n}`],
      ['F', '/b'],
    ] as const)
      t.equal(await create(first, `t${n}`, path, id), 201)
  // Of a tenant with many paths the register keeps only that fact, and not this path.
  for (let n = 0; n < 12; n++) t.equal(await create(second, 'many', `/p${n}`, `E${n}`), 201)
  for (let n = 0; n < 39; n++)
    for (const [id, path] of [
      ['E', `/a${n}`],
      ['F', '/b'],
    ] as const)
      t.equal(await remove(second, `t${n}`, path, id), 204)
  for (let n = 0; n < 12; n++) t.equal(await remove(first, 'many', `/p${n}`, `E${n}`), 204)
  await until(() => registers.every(({ size }) => size === 1), 'all but one tenant have left')
  for (const node of nodes) {
    t.equal(await read(node, 't39', 'E'), 200)
    t.equal(await read(node, 't38', 'E'), 404)
    t.equal(await read(node, 'many', 'E1'), 404)
  }
  for (const tenant of ['t38', 'many']) {
    t.equal(await create(first, tenant, '/c', 'G'), 201)
    for (const node of nodes) t.equal(await read(node, tenant, 'G'), 200)
  }
})

t.test('during creations and deletions while tenants leave, entities are found without their path', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const { nodes, registers } = await twoWorkers(t, 1)
  let left = 0
  for (const register of registers) {
    const leave = register.leave.bind(register)
    register.leave = key => {
      left++
      leave(key)
    }
  }
  const wrong: string[] = []
  const client = async (name: number): Promise<void> => {
    for (let n = 0; n < 60; n++) {
      const tenant = `t${name % 4}`
      const path = random.pick(['/a', '/b', '/c/d'])
      const id = `E${name}n${n}`
      const made = await create(random.pick(nodes), tenant, path, id)
      if (made !== 201) wrong.push(`${id}: ${made} for POST`)
      for (const node of nodes) {
        const status = await read(node, tenant, id)
        if (status !== 200) wrong.push(`${id} of ${tenant} in ${path}: ${status}`)
      }
      const gone = await remove(random.pick(nodes), tenant, path, id)
      if (gone !== 204) wrong.push(`${id}: ${gone} for DELETE`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, name) => client(name)))
  t.strictSame(wrong, [])
  t.ok(left > 0, `${left} rows have left meanwhile`)
})
