// GET /metrics over whole nodes: every documented name is there and parses, numbers change as they should, and workers
// appear as one.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ClusterNumbers } from '../../src/messages/cluster-status.js'
import {
  accessFamilies,
  auditFamilies,
  backupFamilies,
  certificateFamilies,
  clusterFamilies,
} from '../../src/observe/families.js'
import { quotaFamilies } from '../../src/observe/quota-metrics.js'
import { httpReceiver } from '../deliver/receivers.js'
import { type Exposition, parseExposition } from '../support/exposition-parser.js'
import { httpServers, type LocalNode, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'
import { root } from '../support/project.js'
import { Wire } from './wire.js'

async function read(node: LocalNode, headers: readonly string[] = []): Promise<Exposition> {
  const { status, headers: replyHeaders, text } = await node.ask('GET /metrics', headers)
  if (status !== 200 || replyHeaders['content-type'] !== 'text/plain; version=0.0.4; charset=utf-8')
    throw new Error(text)
  return parseExposition(text)
}

/** Reads again until `holds`; if it never holds, the time of the test ends the wait. */
async function eventually(node: LocalNode, holds: (metrics: Exposition) => boolean): Promise<Exposition> {
  for (;;) {
    const metrics = await read(node)
    if (holds(metrics)) return metrics
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

const room = (id: string) => ({ id, type: 'Room', temp: { value: 1 } })

for (const server of httpServers)
  t.test(`there are metrics of requests, entities, commits and notifications, over ${server}`, async t => {
    const node = await startLocalNode(t, { server })
    const receiver = await httpReceiver(t)
    await node.json('POST /v2/subscriptions', {
      subject: { entities: [{ idPattern: '.*' }] },
      notification: { http: { url: receiver.url } },
    })
    await node.json('POST /v2/entities', room('R1'))
    await node.ask('GET /v2/entities/nobody')
    await node.ask('GET /v2/entities/R1', ['Ctx-ServicePath: bad'])
    const { value } = await eventually(node, metrics => metrics.value('orrery_notifications_delivered_total') === 1)
    const requests = (labels: Record<string, string>) => value('orrery_http_requests_total', labels)
    t.equal(requests({ method: 'POST', route: '/v2/entities', status: '201' }), 1)
    t.equal(requests({ method: 'GET', route: '/v2/entities/{id}', status: '404' }), 1)
    t.equal(requests({ method: 'GET', route: '/v2/entities/{id}', status: '400' }), 1, 'a head that was refused')
    t.equal(value('orrery_notifications_sent_total', { transport: 'http' }), 1)
    t.equal(value('orrery_entities'), 1)
    t.equal(value('orrery_subscriptions'), 1)
    t.equal(value('orrery_shards'), 256)
    t.equal(value('orrery_workers'), 1)
    t.equal(value('orrery_outbox_rows'), 0)
    t.ok(value('orrery_commit_sync_seconds_count') >= 2)
    t.ok(value('process_resident_memory_bytes') > 1e6)
  })

for (const server of httpServers)
  t.test(`connections that the server closed are counted by reason, over ${server}`, async t => {
    const node = await startLocalNode(t, { server, connectionsMax: 5 })
    for (let nth = 0; nth < 9; nth++) {
      const idle = await Wire.to(node.port)
      t.teardown(() => idle.leave())
    }
    const closed = (reason: string) => (metrics: Exposition) =>
      metrics.value('orrery_http_connections_dropped_total', { reason })
    const metrics = await eventually(node, metrics => closed('room')(metrics) >= 4)
    t.equal(closed('address')(metrics), 0)
  })

/** The table of docs/operations/metrics.md: kind and labels by name. */
function documentedMetrics(): ReadonlyMap<string, { readonly type: string; readonly labels: readonly string[] }> {
  const text = readFileSync(join(root, 'docs/operations/metrics.md'), 'utf8')
  const rows = [...text.matchAll(/^\| `([a-z_]+)` \| (\w+) \|([^|]*)\| [^|]+ \|[^|]*\|$/gm)]
  return new Map(
    rows.map(([, name, type, labels]) => [
      name!,
      { type: type!, labels: [...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label!).sort() },
    ]),
  )
}

/** The labels of the samples of a metric, without the bounds of a histogram. */
function labelsIn({ samples }: Exposition, metric: string, type: string): readonly string[] {
  const names = type === 'histogram' ? [`${metric}_bucket`, `${metric}_sum`, `${metric}_count`] : [metric]
  const labels = samples.filter(({ name }) => names.includes(name)).flatMap(sample => Object.keys(sample.labels))
  return [...new Set(labels)].filter(label => label !== 'le').sort()
}

t.test('docs/operations/metrics.md has all metrics, with kinds and labels, and nothing else', async t => {
  const documented = documentedMetrics()
  const node = await startLocalNode(t)
  const provider = await httpReceiver(t)
  await node.json('POST /v2/registrations', {
    dataProvided: { entities: [{ id: 'elsewhere', type: 'Room' }], attrs: ['temp'] },
    provider: { http: { url: provider.url } },
  })
  await node.ask('GET /v2/entities/elsewhere?type=Room')
  // The count of entities appears a little later.
  const metrics = await eventually(node, found => found.families.has('orrery_entities'))
  t.ok(metrics.value('orrery_forwarding_requests_total', { provider: new URL(provider.url).host }) > 0)
  // This node has no families of a cluster, of certificates, of access control, of quotas or of an audit log, and none
  // of the last backup, since there was none. They are added here.
  const last = { succeeded: true, endedMs: 0, durationMs: 0, bytes: 0 }
  const others = [
    ...clusterFamilies(noCluster),
    ...backupFamilies({ isRunning: false, last }),
    ...certificateFamilies([]),
    ...accessFamilies(noAccess),
    ...auditFamilies({ written: 0, lost: 0, waitingBytes: 0, isFailing: false }),
    ...quotaFamilies(noQuotas),
  ]
  const types = new Map([...others.map(({ name, type }) => [name, type] as const), ...metrics.families])
  t.same([...documented].map(([name, { type }]) => [name, type]).sort(), [...types].sort())
  for (const [name, type] of metrics.families)
    t.same(documented.get(name)?.labels, labelsIn(metrics, name, type), `labels of ${name}`)
})

t.test('metrics that other pages name are in the table', async t => {
  const documented = documentedMetrics()
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.md'),
  )
  for (const page of ['README.md', ...docs.map(name => join('docs', name))]) {
    const sections = [...readFileSync(join(root, page), 'utf8').matchAll(/### Metrics\n([\s\S]*?)\n##/g)]
    for (const [, section] of sections)
      for (const [, name] of section!.matchAll(/`((?:orrery|process|nodejs)_[a-z_]+)`/g))
        t.ok(documented.has(name!), `${name} of ${page}`)
  }
})

t.test('there are metrics of open connections, views and the store', async t => {
  const node = await startLocalNode(t, { server: 'uws' })
  // With fewer entities the broker makes no view.
  const entities = Array.from({ length: 300 }, (_, n) => room(`R${n}`))
  await node.json('POST /v2/op/update', { actionType: 'append', entities }, ['Ctx-Service: Acme'])
  for (let n = 0; n < 2; n++) await node.ask('GET /v2/entities?q=temp%3E0', ['Ctx-Service: acme'])
  const { value } = await read(node)
  t.equal(value('orrery_http_connections', { server: 'uws', tls: 'no' }), 1, 'that of the scrape')
  t.match([value('orrery_view_misses_total'), value('orrery_view_hits_total'), value('orrery_views')], [1, 1, 1])
  t.ok(value('orrery_view_bytes') > 0)
  t.ok(value('orrery_store_memtable_bytes') > 0)
  t.equal(value('orrery_store_stalled'), 0)
  t.equal(value('orrery_tenant_requests_total', { tenant: 'acme' }), 3)
})

const noQuotas = { tenants: [], unreported: 0, taken: {}, refused: [] }
const noAccess = { denied: {}, forbidden: 0, tokens: { remembered: 0 }, source: { reloads: 0, reloadFailures: 0 } }

const noCluster: ClusterNumbers = {
  status: {
    node: '',
    cluster: '',
    isJoined: false,
    log: { state: 'whole', shards: [] },
    health: { state: 'ready', shards: [] },
    clock: { state: 'unknown', aheadMs: 0, skewMaxMs: 500 },
    balance: 'load',
    exchanges: 0,
    members: [],
    shards: [],
  },
  log: [],
  stalledMs: 0,
  rests: 0,
  gossip: { bytesSent: 0, bytesReceived: 0, messagesUnreadable: 0, suspicions: 0 },
}

t.test('Prometheus names the form that it accepts, and gets it', async t => {
  const node = await startLocalNode(t)
  const accept = 'Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2'
  t.ok((await read(node, [accept])).families.size > 0)
  t.ok((await read(node, ['Accept: text/plain'])).families.size > 0)
})

t.test('each worker returns the metrics of all', async t => {
  const nodes = await startLocalWorkers(t, 2)
  for (const [index, node] of nodes.entries())
    for (let n = 0; n < 5; n++) await node.json('POST /v2/entities', room(`W${index}-${n}`))
  for (const node of nodes) {
    const { value } = await eventually(node, metrics => metrics.families.has('orrery_entities'))
    t.equal(value('orrery_http_requests_total', { method: 'POST', route: '/v2/entities', status: '201' }), 10)
    t.equal(value('orrery_entities'), 10)
    t.equal(value('orrery_shards'), 256)
    t.equal(value('orrery_workers'), 2)
    t.ok(value('process_resident_memory_bytes', { worker: '1' }) > 1e6)
  }
})
