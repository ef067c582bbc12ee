// Quotas where several processes serve a tenant: two workers, and three nodes (docs/interface/access.md#quotas).

import t, { type Test } from 'tap'
import { AccessScene, everything } from '../support/access-scene.js'
import { tempDir } from '../support/broker-process.js'
import { noEtcd } from '../support/etcd.js'
import { LocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'
import { startThreeNodes } from '../support/three-nodes.js'

const quotas = {
  one: { entities: 20 },
  batches: { entities: 40 },
  parallel: { entities: 60 },
  documents: { subscriptions: 4, registrations: 4 },
  slow: { requestsPerSecond: 12 },
}

const scenes = [
  ['two workers', (t: Test, accessFile: string) => startLocalWorkers(t, 2, { accessFile })],
  ['three nodes', startCluster],
] as const

async function startCluster(t: Test, accessFile: string): Promise<readonly LocalNode[]> {
  const nodes = await startThreeNodes(t, { folder: tempDir(t), args: ['-multiservice', '-access', accessFile] })
  return nodes.map(({ port }) => new LocalNode(port))
}

for (const [name, start] of scenes)
  t.test(`quotas hold over ${name}`, { skip: name === 'three nodes' && noEtcd() }, async t => {
    // Nodes are asked without a proof whether they have settled.
    const rules = { root: everything, anonymous: [{ actions: ['admin'], tenants: ['*'] }] }
    const files = new AccessScene(t, rules, { quotas })
    const nodes = await start(t, files.path)
    const at = (index: number): LocalNode => nodes[index % nodes.length]!
    const ask = (index: number, tenant: string, line: string, body?: unknown) =>
      at(index).json(line, body, [...files.as('root'), `Ctx-Service: ${tenant}`])
    const create = async (index: number, tenant: string, id: string): Promise<number> =>
      (await ask(index, tenant, 'POST /v2/entities', { id, type: 'Lamp' })).status
    const append = async (index: number, tenant: string, ids: readonly string[]): Promise<number> => {
      const batch = { actionType: 'append', entities: ids.map(id => ({ id, type: 'Lamp' })) }
      return (await ask(index, tenant, 'POST /v2/op/update', batch)).status
    }
    const count = async (tenant: string): Promise<number> => {
      const { headers } = await ask(0, tenant, 'GET /v2/entities?limit=1&options=count')
      return Number(headers['ctx-total-count'])
    }
    const ids = (name: string, count: number): string[] => Array.from({ length: count }, (_, nth) => `${name}${nth}`)

    t.test('one creation after the other makes exactly as many as the quota allows, at any process', async t => {
      const statuses: number[] = []
      for (const [nth, id] of ids('L', 30).entries()) statuses.push(await create(nth, 'one', id))
      t.equal(statuses.filter(status => status === 201).length, 20)
      t.equal(statuses.filter(status => status === 403).length, 10)
      t.equal(await count('one'), 20)
      t.equal((await ask(1, 'one', 'DELETE /v2/entities/L3')).status, 204)
      const room = async (): Promise<boolean> => (await create(0, 'one', 'M')) === 201
      for (const untilMs = performance.now() + 20_000; !(await room()); )
        if (performance.now() > untilMs) throw new Error('the deletion has made no room')
      t.equal(await count('one'), 20)
    })

    t.test('a batch for several owners is done or refused as a whole', async t => {
      t.equal(await append(0, 'batches', ids('L', 30)), 204)
      t.equal(await append(1, 'batches', [...ids('L', 30), ...ids('M', 11)]), 403)
      t.equal(await count('batches'), 30)
      t.equal(await append(1, 'batches', [...ids('L', 30), ...ids('M', 10)]), 204)
      t.equal(await append(0, 'batches', ids('L', 30)), 204, 'what exists costs nothing')
      t.equal(await append(0, 'batches', ['N']), 403)
      t.equal(await count('batches'), 40)
    })

    t.test('parallel creations at all processes stay near the quota', async t => {
      const statuses = await Promise.all(ids('P', 150).map((id, nth) => create(nth, 'parallel', id)))
      const created = statuses.filter(status => status === 201).length
      // A node of a busy machine may not know the outcome of some.
      const unknown = statuses.filter(status => status >= 500).length
      const stored = await count('parallel')
      t.ok(stored >= created && stored <= created + unknown, `${stored} are stored, ${created} and ${unknown}`)
      t.ok(stored >= 60 && stored <= 120, `${stored} of 60`)
      t.comment(`${stored} of 60`)
      t.ok(statuses.every(status => status === 201 || status === 403 || status >= 500))
    })

    t.test('subscriptions and registrations are exact', async t => {
      const subscription = {
        subject: { entities: [{ idPattern: '.*' }] },
        notification: { http: { url: 'http://127.0.0.1:9/notify' } },
      }
      const registration = {
        dataProvided: { entities: [{ id: 'R1', type: 'Room' }], attrs: ['temperature'] },
        provider: { http: { url: 'http://127.0.0.1:9/v2' } },
      }
      const all = Array.from({ length: 12 }, (_, nth) => nth)
      const made = await Promise.all(all.map(nth => ask(nth, 'documents', 'POST /v2/subscriptions', subscription)))
      t.equal(made.filter(({ status }) => status === 201).length, 4)
      const known = await Promise.all(all.map(nth => ask(nth, 'documents', 'POST /v2/registrations', registration)))
      t.equal(known.filter(({ status }) => status === 201).length, 4)
    })

    t.test('a rate is divided among the processes', async t => {
      const all = Array.from({ length: 60 }, () => 0)
      const beganMs = performance.now()
      const answers = await Promise.all(all.map(nth => ask(nth, 'slow', 'GET /v2/types')))
      const allowed = answers.filter(({ status }) => status === 200).length
      const part = 12 / nodes.length
      const seconds = (performance.now() - beganMs) / 1_000
      t.ok(allowed >= part && allowed <= part * (1 + seconds) + 1, `${allowed} at one of ${nodes.length}`)
      t.ok(answers.every(({ status }) => status === 200 || status === 429))
      t.equal((await ask(1, 'slow', 'GET /v2/types')).status, 200, 'another process has its own part')
    })
  })
