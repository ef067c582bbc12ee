// GET and DELETE /admin/tenants over a whole node: refusals, pages, and the deletion of a tenant.

import t from 'tap'
import { startLocalNode } from '../support/local-node.js'

t.test('tenants are listed in pages, and one is deleted', async t => {
  const node = await startLocalNode(t)
  for (const tenant of ['b', 'a', 'c'])
    await node.json('POST /v2/entities', { id: 'E', type: 'T' }, [`Ctx-Service: ${tenant}`])
  const names = async (query: string): Promise<readonly string[]> => {
    const { json } = await node.ask(`GET /admin/tenants${query}`)
    return (json as readonly { readonly name: string }[]).map(({ name }) => name)
  }
  t.same(await names(''), ['a', 'b', 'c'])
  t.same(await names('?limit=1&offset=1'), ['b'])
  t.same(await names('?offset=3'), [])
  t.equal((await node.ask('GET /admin/tenants?options=count&limit=1')).headers['ctx-total-count'], '3')
  t.equal((await node.ask('GET /admin/tenants')).headers['ctx-total-count'], undefined)
  t.equal((await node.ask('GET /admin/tenants?limit=1001')).status, 400)

  for (const [line, status, description] of [
    ['DELETE /admin/tenants/a', 400, /name the tenant twice/],
    ['DELETE /admin/tenants/a?confirm=b', 400, /with the value a$/],
    ['DELETE /admin/tenants/A?confirm=A', 404, /there is no tenant A$/],
    ['DELETE /admin/tenants/d?confirm=d', 404, /there is no tenant d$/],
    ['DELETE /admin/tenants/default-service?confirm=default-service', 404, /no tenant default-service$/],
    ['GET /admin/tenants/d', 404, /there is no tenant d$/],
    ['GET /admin/tenants/%3Cb%3E', 400, /invalid character/],
    ['PUT /admin/tenants/a', 405, /not allowed/],
  ] as const) {
    const body = line.startsWith('PUT') ? {} : undefined
    const answer = await node.json(line, body)
    t.match(answer, { status, json: { description } }, line)
  }

  const before = await node.ask('GET /admin/tenants/a')
  t.match(before.json, { name: 'a', entities: 1, subscriptions: 0, registrations: 0, state: 'active' })
  t.match(await node.ask('DELETE /admin/tenants/a?confirm=a'), { status: 202, json: { name: 'a', state: 'deleting' } })
  const meanwhile = await node.ask('GET /v2/entities', ['Ctx-Service: a'])
  t.match(meanwhile, { status: 503, headers: { 'retry-after': '1' }, json: { description: /^the tenant a is being/ } })
  t.equal((await node.ask('DELETE /admin/tenants/a?confirm=a')).status, 202)
  t.equal((await node.ask('GET /v2/entities', ['Ctx-Service: b'])).status, 200)
  while ((await node.ask('GET /admin/tenants/a')).status !== 404) await new Promise(resolve => setTimeout(resolve, 5))
  t.match(await node.ask('GET /v2/entities', ['Ctx-Service: a']), { status: 200, json: [] })
  t.same(await names(''), ['b', 'c'])
})
