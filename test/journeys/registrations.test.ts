// Registrations over HTTP: created, read, listed, changed and deleted, at one node and at two workers.
//
// Not here: the requests that they forward (forwarding.test.ts), every mistake of a body
// (domain/registration-parser.test).

import t from 'tap'
import { type LocalNode, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'

const path = '/v2/registrations'
const url = 'http://provider.example:1026/v2'
const body = (description: string) => ({
  description,
  dataProvided: { entities: [{ id: 'Room1', type: 'Room' }], attrs: ['temperature'] },
  provider: { http: { url } },
})
const shown = (id: string, description: string) => ({
  id,
  description,
  dataProvided: { entities: [{ id: 'Room1', type: 'Room' }], attrs: ['temperature'] },
  provider: { http: { url }, supportedForwardingMode: 'all', legacyForwarding: false },
  status: 'active',
})

async function create(node: LocalNode, description: string, headers: readonly string[] = []): Promise<string> {
  const { status, headers: replyHeaders, text } = await node.json(`POST ${path}`, body(description), headers)
  if (status !== 201) throw new Error(`${status} ${text}`)
  return replyHeaders.location!.slice(path.length + 1)
}

async function listed(node: LocalNode, query = '', headers: readonly string[] = []): Promise<string[]> {
  const { status, json, text } = await node.json(`GET ${path}${query}`, undefined, headers)
  if (status !== 200) throw new Error(`${status} ${text}`)
  return (json as { description: string }[]).map(({ description }) => description)
}

const notFound = {
  status: 404,
  json: { error: 'NotFound', description: 'The requested registration has not been found. Check id' },
}

for (const server of ['node', 'uws'] as const) {
  t.test(`a registration from its creation to its end (${server})`, async t => {
    const node = await startLocalNode(t, { server })
    const created = await node.json(`POST ${path}`, body('first'), ['Ctx-Correlator: c1'])
    t.match(created, { status: 201, text: '', headers: { 'ctx-correlator': 'c1', 'content-length': '0' } })
    const id = created.headers.location!.slice(path.length + 1)
    t.match(id, /^[0-9a-f]{24}$/)
    t.strictSame((await node.json(`GET ${path}/${id}`)).json, shown(id, 'first'))
    const patched = await node.json(`PATCH ${path}/${id}`, { description: 'second', status: 'inactive' })
    t.match(patched, { status: 204, text: '' })
    t.strictSame((await node.json(`GET ${path}/${id}`)).json, { ...shown(id, 'second'), status: 'inactive' })
    t.match(await node.json(`DELETE ${path}/${id}`), { status: 204, text: '' })
    for (const line of [`GET ${path}/${id}`, `DELETE ${path}/${id}`, `GET ${path}/short`])
      t.match(await node.json(line), notFound)
    t.match(await node.json(`PATCH ${path}/${id}`, { status: 'active' }), notFound)
    t.strictSame(await listed(node), [])
  })
}

t.test('a list is in the order of creation, in pages, and counted', async t => {
  const node = await startLocalNode(t)
  const all = Array.from({ length: 25 }, (_, n) => `number ${n}`)
  for (const description of all) await create(node, description)
  t.strictSame(await listed(node), all.slice(0, 20))
  t.strictSame(await listed(node, '?limit=3&offset=4'), all.slice(4, 7))
  t.strictSame(await listed(node, '?offset=30'), [])
  const counted = await node.json(`GET ${path}?options=count&limit=0`)
  t.match(counted, { status: 200, text: '[]', headers: { 'ctx-total-count': '25' } })
})

t.test('the service path finds a registration in lists, and nowhere else', async t => {
  const node = await startLocalNode(t)
  const at = (path: string) => [`Ctx-ServicePath: ${path}`]
  const id = await create(node, '/a', at('/a'))
  await create(node, 'none')
  t.strictSame(await listed(node), ['/a', 'none'])
  t.strictSame(await listed(node, '', at('/a')), ['/a'])
  t.strictSame(await listed(node, '', at('/')), ['none'])
  t.strictSame(await listed(node, '', at('/#')), [])
  t.equal((await node.json(`GET ${path}/${id}`, undefined, at('/b'))).status, 200)
  await node.json(`PATCH ${path}/${id}`, { description: 'moved?' }, at('/b'))
  t.strictSame(await listed(node, '', at('/a')), ['moved?'])
  for (const paths of ['/a/#', '/a,/b'])
    t.match(await node.json(`POST ${path}`, body('x'), at(paths)), { status: 400, json: { error: 'BadRequest' } })
})

t.test('tenants do not see each other', async t => {
  const node = await startLocalNode(t)
  const id = await create(node, 'mine', ['Ctx-Service: a'])
  t.match(await node.json(`GET ${path}/${id}`), notFound)
  t.match(await node.json(`DELETE ${path}/${id}`, undefined, ['Ctx-Service: b']), notFound)
  t.strictSame(await listed(node, '', ['Ctx-Service: A']), ['mine'])
})

t.test('a bad body is refused before anything else, a missing one and other verbs as everywhere', async t => {
  const node = await startLocalNode(t)
  const headers = ['Ctx-Service: not-a-tenant']
  t.match(await node.json(`POST ${path}`, {}, headers), { status: 400, json: { description: 'empty payload' } })
  t.match(await node.json(`POST ${path}`, body('x'), headers), { status: 400, json: { description: /^bad character/ } })
  t.match(await node.json(`PATCH ${path}/short`, {}), { status: 400, json: { description: 'empty payload' } })
  const provider = { http: { url } }
  const unsupported = { dataProvided: { entities: [{ idPattern: 'E.*' }] }, provider }
  t.match(await node.json(`POST ${path}`, unsupported), {
    status: 501,
    json: { error: 'NotImplemented', description: 'Unsupported idPattern' },
  })
  t.match(await node.ask(`POST ${path}`), { status: 411, json: { error: 'ContentLengthRequired' } })
  t.match(await node.json(`DELETE ${path}`), { status: 405, headers: { allow: 'POST, GET' } })
  t.match(await node.json(`POST ${path}/x`, body('x')), { status: 405, headers: { allow: 'GET, DELETE, PATCH' } })
})

t.test('both of two workers show a registration as soon as it is there, and after a change', async t => {
  const nodes = await startLocalWorkers(t, 2)
  for (const tenant of ['a', 'b', 'c']) {
    const headers = [`Ctx-Service: ${tenant}`]
    const id = await create(nodes[0]!, 'first', headers)
    await create(nodes[1]!, 'other', headers)
    for (const node of nodes) t.strictSame(await listed(node, '', headers), ['first', 'other'])
    await nodes[1]!.json(`PATCH ${path}/${id}`, { description: 'second' }, headers)
    for (const node of nodes) t.strictSame(await listed(node, '', headers), ['second', 'other'])
    await nodes[0]!.json(`DELETE ${path}/${id}`, undefined, headers)
    for (const node of nodes) t.strictSame(await listed(node, '', headers), ['other'])
  }
})
