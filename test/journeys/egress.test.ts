// The servers to which a broker sends, tested from outside: a forbidden URL is refused at creation or leads to a dead
// letter, and etcd cannot be reached.

import t from 'tap'
import { httpReceiver } from '../deliver/receivers.js'
import { freePort, startBroker, tempDir } from '../support/broker-process.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { HttpClient } from '../support/http-client.js'
import { type LocalNode, startLocalNode } from '../support/local-node.js'

const watching = (transport: object) => ({ subject: { entities: [{ idPattern: '.*' }] }, notification: transport })

const descriptionIn = (text: string): string => JSON.parse(text).description

/** The last try of a subscription, once there is one. */
async function lastTry(ask: (path: string) => Promise<{ json: unknown }>, id: string) {
  for (;;) {
    const { json } = await ask(`/v2/subscriptions/${id}/deliveries`)
    const { deliveries, deadLettersCount } = json as {
      deliveries: { outcome: string; reason: string }[]
      deadLettersCount: number
    }
    if (deliveries[0]) return { ...deliveries[0], deadLettersCount }
  }
}

const idOf = ({ headers }: { headers: { readonly location?: string | undefined } }): string =>
  headers.location!.split('/').at(-1)!

t.test('a URL that is denied is refused when it is given, for subscriptions and registrations', async t => {
  const node = await startLocalNode(t, { egress: { allow: ['*.city.example'] } })
  const bad = 'http://10.0.0.1:8080/x'
  for (const [transport, url] of [
    [{ http: { url: bad } }, bad],
    [{ httpCustom: { url: `${bad}/\${id}` } }, `${bad}/\${id}`],
    [{ mqtt: { url: 'mqtt://10.0.0.1', topic: 't' } }, 'mqtt://10.0.0.1'],
  ] as const) {
    const { status, text } = await node.json('POST /v2/subscriptions', watching(transport))
    t.equal(status, 400)
    t.equal(descriptionIn(text), `notification url is not allowed here: ${url}`)
  }
  const good = await node.json('POST /v2/subscriptions', watching({ http: { url: 'http://a.city.example/' } }))
  t.equal(good.status, 201)
  const patch = await node.json(`PATCH /v2/subscriptions/${idOf(good)}`, { notification: { http: { url: bad } } })
  t.equal(patch.status, 400)
  const registration = (url: string) => ({ dataProvided: { entities: [{ id: 'a' }] }, provider: { http: { url } } })
  const provider = await node.json('POST /v2/registrations', registration(bad))
  t.same([provider.status, descriptionIn(provider.text)], [400, `provider url is not allowed here: ${bad}`])
  const known = await node.json('POST /v2/registrations', registration('http://p.city.example/v2'))
  t.equal(known.status, 201)
  const moved = await node.json(`PATCH /v2/registrations/${idOf(known)}`, { provider: { http: { url: bad } } })
  t.equal(moved.status, 400)
})

t.test('clouds keep their credentials to themselves', async t => {
  const node = await startLocalNode(t)
  const url = 'http://169.254.169.254/latest/meta-data'
  t.equal((await node.json('POST /v2/subscriptions', watching({ http: { url } }))).status, 400)
})

t.test('a name with a denied address makes a dead letter without details of the target', async t => {
  const node: LocalNode = await startLocalNode(t, { egress: { deny: ['127.0.0.0/8', '::1'] } })
  const receiver = await httpReceiver(t, (_request, response) => response.writeHead(418).end())
  const reasons = new Set<string>()
  for (const port of [receiver.port, await freePort()]) {
    const url = `http://localhost:${port}/`
    const created = await node.json('POST /v2/subscriptions', watching({ http: { url } }))
    await node.json('POST /v2/entities', { id: `E${port}`, type: 'T', a: { value: 1 } })
    const last = await lastTry(path => node.ask(`GET ${path}`), idOf(created))
    t.match(last, { outcome: 'dead', deadLettersCount: 1 })
    const { json } = await node.ask(`GET /v2/subscriptions/${idOf(created)}`)
    const { notification } = json as { notification: { lastFailureReason: string } }
    reasons.add(`${last.reason}|${notification.lastFailureReason}`)
    await node.json(`DELETE /v2/subscriptions/${idOf(created)}`)
  }
  t.same([...reasons], ['The target is denied here|The target is denied here'])
  t.equal(receiver.received.length, 0)
})

t.test(
  'a subscription reaches neither the etcd of its cluster nor the ports of the nodes',
  { skip: noEtcd() },
  async t => {
    const etcd = await startEtcd(t, { dataDir: tempDir(t), args: ['--unsafe-no-fsync'] })
    const [member = ''] = etcd.address().members
    const [listen, port] = [`127.0.0.1:${await freePort()}`, await freePort()]
    const place = [
      '-nodeName',
      'a',
      '-clusterListen',
      listen,
      '-shardLog',
      `etcd://${etcd.address().members.join(',')}`,
    ]
    const node = await startBroker(t, { port, args: [...place, '-egressAllow', '*'] })
    const client = new HttpClient(node.baseUrl)
    const deleteAll = {
      method: 'POST',
      payload: '%7B%22key%22%3A%22AA%3D%3D%22%2C%22range_end%22%3A%22AA%3D%3D%22%7D',
    }
    const custom = (url: string) => watching({ httpCustom: { url, ...deleteAll } })
    const etcdPort = member.split(':').at(-1)
    for (const host of ['127.0.0.1', '127.0.0.9', '0.0.0.0', '[::ffff:127.0.0.1]'])
      for (const at of [etcdPort, listen.split(':')[1]]) {
        const { status } = await client.send(
          'POST',
          '/v2/subscriptions',
          custom(`http://${host}:${at}/v3/kv/deleterange`),
        )
        t.equal(status, 400, `${host}:${at}`)
      }
    const created = await client.send(
      'POST',
      '/v2/subscriptions',
      custom(`http://localhost:${etcdPort}/v3/kv/deleterange`),
    )
    t.equal(created.status, 201, 'what localhost is shows when it is resolved')
    // On a busy machine a lease may be over for a moment, so a request that gets 503 is sent again.
    const create = async (id: string): Promise<number> => {
      const { status } = await client.send('POST', '/v2/entities', { id, type: 'T', a: { value: 1 } })
      return status === 503 ? create(id) : status
    }
    t.match(String(await create('E')), /^(201|422)$/)
    const last = await lastTry(path => client.get(path), idOf(created))
    t.match(last, { outcome: 'dead', reason: 'The target is denied here' })
    t.match(String(await create('F')), /^(201|422)$/, 'the log is there')
  },
)
