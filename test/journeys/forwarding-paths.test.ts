// Providers that serve one of two paths, or none: the paths that the broker tries, how often, and the answer to the
// client.

import t, { type Test } from 'tap'
import { httpReceiver, type Received } from '../deliver/receivers.js'
import { type LocalNode, startLocalNode } from '../support/local-node.js'

t.setTimeout(600_000)

type Answer = readonly [status: number, body?: string, headers?: Record<string, string>]

const notFound = '{"error":"NotFound","description":"The requested entity has not been found. Check type and id"}'
const page: Answer = [404, '<pre>Cannot POST</pre>', { 'Content-Type': 'text/html' }]

/** A provider that answers for each path as in `served`, and elsewhere with its 404 page. */
async function provider(t: Test, served: Record<string, Answer>) {
  const { url, received } = await httpReceiver(t, (request, response) => {
    const [status, body, headers] = served[request.path.replace(/\?.*/, '')] ?? page
    response.writeHead(status, headers).end(body)
  })
  return { url, received, paths: () => received.splice(0).map(({ path }: Received) => path.replace(/\?.*/, '')) }
}

let devices = 0

/** Registers a lamp of the provider. Returns its id and registration, and functions that switch and read it. */
async function lampAt(node: LocalNode, url: string) {
  const id = `Lamp${devices++}`
  const dataProvided = { entities: [{ id, type: 'Lamp' }], attrs: ['switch', 'power'] }
  const { status, headers } = await node.json('POST /v2/registrations', { dataProvided, provider: { http: { url } } })
  if (status !== 201) throw new Error(String(status))
  const path = `/v2/entities/${id}/attrs`
  return {
    id,
    registration: headers.location!,
    switch: () => node.json(`PATCH ${path}?type=Lamp`, { switch: { value: 'on' } }),
    read: () => node.json(`GET /v2/entities/${id}?type=Lamp`),
  }
}

t.test('forwarding and the paths of providers', async t => {
  const node = await startLocalNode(t)

  await t.test('a provider that serves /v2 only is asked there, and the first path no more', async t => {
    const { url, paths, received } = await provider(t, {
      '/v2/op/update': [204],
      '/v2/op/query': [200, '[{"id":"Lamp0","type":"Lamp","power":{"type":"Number","value":17,"metadata":{}}}]'],
    })
    const lamp = await lampAt(node, url)
    t.equal((await lamp.switch()).status, 204)
    t.match(
      received.map(({ headers }) => headers.join()),
      [/Fiware-Correlator,[^,]*; cbfwd=1/, /Fiware-Correlator,[^,]*; cbfwd=2/],
    )
    t.strictSame(paths(), ['/op/update', '/v2/op/update'])
    t.equal((await lamp.switch()).status, 204)
    t.match(await lamp.read(), { status: 200, json: { power: { value: 17 } } })
    t.strictSame(paths(), ['/v2/op/update', '/v2/op/query'])
    const { status } = await node.json(`PATCH ${lamp.registration}`, { description: 'moved' })
    t.equal(status, 204)
    t.equal((await lamp.switch()).status, 204)
    t.strictSame(paths(), ['/op/update', '/v2/op/update'], 'a registration that has changed is tried anew')
  })

  await t.test('a provider that has read an update does not get it again, and the client gets its refusal', async t => {
    for (const answer of [
      [404, notFound],
      [404, '{"name":"DEVICE_NOT_FOUND","message":"no such device"}'],
      [422, ''],
    ] satisfies Answer[]) {
      const { url, paths } = await provider(t, { '/op/update': answer, '/v2/op/update': [204] })
      const lamp = await lampAt(node, url)
      const description = `The requested entity has not been found. Check type and id; providers answered: ${url}/op/update ${answer[0]}`
      const switched = await lamp.switch()
      t.match(switched, { status: 404, json: { error: 'NotFound' } })
      t.equal((switched.json as { description: string }).description.replaceAll('&#59;', ';'), description)
      t.strictSame(paths(), ['/op/update'])
    }
  })

  await t.test('a path that has served is not left for a 404 without a word', async t => {
    const served: Record<string, Answer> = { '/op/update': [204], '/v2/op/update': [204] }
    const { url, paths } = await provider(t, served)
    const lamp = await lampAt(node, url)
    t.equal((await lamp.switch()).status, 204)
    served['/op/update'] = [404]
    t.equal((await lamp.switch()).status, 404)
    t.strictSame(paths(), ['/op/update', '/op/update'])
  })

  await t.test('a provider that answers 404 everywhere is asked twice each time, and both paths are named', async t => {
    const { url, paths } = await provider(t, {})
    const lamp = await lampAt(node, url)
    for (const path of ['update', 'query']) {
      const answer = await (path === 'update' ? lamp.switch() : lamp.read())
      t.match(answer, { status: 404, json: { error: 'NotFound' } })
      t.match((answer.json as { description: string }).description, `${url}/op/${path} 404, ${url}/v2/op/${path} 404`)
      t.strictSame(paths(), [`/op/${path}`, `/v2/op/${path}`])
    }
  })

  await t.test('the local part and the refusals of the rest are reported together', async t => {
    const { url } = await provider(t, {})
    const { id } = await lampAt(node, url)
    await node.json('POST /v2/entities', { id, type: 'Lamp', level: { value: 1 } })
    const answer = await node.json(`PATCH /v2/entities/${id}/attrs`, { level: { value: 2 }, switch: { value: 'on' } })
    t.match(answer, { status: 404, json: { error: 'PartialUpdate' } })
    t.match((answer.json as { description: string }).description, `${url}/v2/op/update 404`)
  })

  await t.test('a redirect is neither followed nor taken for a wrong path', async t => {
    const { url, paths } = await provider(t, {
      '/op/update': [302, '', { Location: '/v2/op/update' }],
      '/v2/op/update': [204],
    })
    t.equal((await (await lampAt(node, url)).switch()).status, 404)
    t.strictSame(paths(), ['/op/update'])
  })

  await t.test('a provider with a path is never asked outside of it', async t => {
    const { url, paths } = await provider(t, { '/v2/op/update': [204], '/agent/v2/op/update': [204] })
    t.equal((await (await lampAt(node, `${url}/agent`)).switch()).status, 204)
    t.strictSame(paths(), ['/agent/op/update', '/agent/v2/op/update'])
    t.equal((await (await lampAt(node, `${url}/other/v2`)).switch()).status, 404)
    t.strictSame(paths(), ['/other/v2/op/update'])
  })
})

t.test('both tries count among the requests that one of a client may cause', async t => {
  const node = await startLocalNode(t, { forwarding: { requestsMax: 1 } })
  const { url, paths } = await provider(t, { '/v2/op/update': [204] })
  t.equal((await (await lampAt(node, url)).switch()).status, 404)
  t.strictSame(paths(), ['/op/update'])
})

t.test('both tries share one deadline', async t => {
  const node = await startLocalNode(t, { notifications: { httpTimeoutMs: 400 } })
  const tries: number[] = []
  const { url } = await httpReceiver(t, (_request, response) => {
    tries.push(performance.now())
    // The second request never gets an answer.
    if (tries.length === 1) setTimeout(() => response.writeHead(404).end(), 300)
  })
  const lamp = await lampAt(node, url)
  const { status } = await lamp.switch()
  t.equal(status, 404)
  t.equal(tries.length, 2)
  t.ok(performance.now() - tries[1]! < 350, 'the second try has what is left of the time')
})
