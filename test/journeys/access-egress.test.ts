// `egress` of the access file, tested from outside: together with the options it decides where messages go, and a new
// file counts at once, also for connections that are open.

import t from 'tap'
import type { JsonObject } from '../../src/domain/json.js'
import type { Logger } from '../../src/ports.js'
import { aedesBroker } from '../deliver/brokers.js'
import { httpReceiver, until } from '../deliver/receivers.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { IdentityProvider, signed, signingKey } from '../support/identity-provider.js'
import { errorsOnly, type LocalNode, startLocalNode } from '../support/local-node.js'

const boss = { boss: everything }
const egress = (allow: readonly string[], deny: readonly string[] = []): JsonObject =>
  allow.length === 0 ? { egress: { deny } } : { egress: { allow, deny } }

const watching = (transport: object) => ({ subject: { entities: [{ idPattern: '.*' }] }, notification: transport })
const provided = (url: string) => ({
  dataProvided: { entities: [{ id: 'P1', type: 'Lamp' }] },
  provider: { http: { url } },
})

const denied = 'The target is denied here'

/** A node, as its boss asks it; `use` puts a file with these members into use. */
async function scene(t: Parameters<typeof startLocalNode>[0], members: JsonObject, options: object = {}) {
  const access = new AccessScene(t, boss, members)
  const node: LocalNode = await startLocalNode(t, { accessFile: access.path, ...options })
  const ask = (line: string, body?: unknown) => node.json(line, body, access.as('boss'))
  const create = async (path: string, body: object): Promise<string> => {
    const { status, text, headers } = await ask(`POST ${path}`, body)
    if (status !== 201) throw new Error(`${path}: ${status} ${text}`)
    return String(headers.location?.split('/').at(-1))
  }
  const use = (next: JsonObject): void => {
    access.write(boss, next)
    node.running?.lookAtFiles()
  }
  /** The outcomes of the last tries of a subscription, the latest first. */
  const outcomes = async (id: string): Promise<readonly string[]> => {
    const { json } = await ask(`GET /v2/subscriptions/${id}/deliveries`)
    const { deliveries } = json as { readonly deliveries: readonly { outcome: string; reason?: string }[] }
    return deliveries.map(({ outcome, reason }) => (reason === undefined ? outcome : `${outcome}: ${reason}`))
  }
  const untilOutcome = async (id: string, count: number): Promise<readonly string[]> => {
    for (const untilMs = performance.now() + 10_000; performance.now() < untilMs; ) {
      const found = await outcomes(id)
      if (found.length >= count) return found
    }
    throw new Error(`subscription ${id} has no ${count} outcomes`)
  }
  return { node, ask, create, use, untilOutcome }
}

t.test('URLs have to be allowed by the file and by the options, for subscriptions and registrations', async t => {
  const { ask, create, use } = await scene(t, egress(['*.city.example'], ['db.city.example']), {
    egress: { deny: ['old.city.example'] },
  })
  const good = await create('/v2/subscriptions', watching({ http: { url: 'http://a.city.example/' } }))
  const known = await create('/v2/registrations', provided('http://p.city.example/v2'))
  for (const url of ['http://10.0.0.1/x', 'http://db.city.example', 'http://old.city.example', 'http://169.254.1.1']) {
    const refusal = { error: 'BadRequest', description: `notification url is not allowed here: ${url}` }
    const answers = [
      await ask('POST /v2/subscriptions', watching({ http: { url } })),
      await ask(`PATCH /v2/subscriptions/${good}`, { notification: { http: { url } } }),
    ]
    for (const { status, json } of answers) t.strictSame([status, json], [400, refusal])
    for (const line of ['POST /v2/registrations', `PATCH /v2/registrations/${known}`]) {
      const { status, json } = await ask(line, provided(url))
      const description = `provider url is not allowed here: ${url}`
      t.strictSame([status, json], [400, { error: 'BadRequest', description }])
    }
  }
  const mqtt = { mqtt: { url: 'mqtt://10.0.0.1', topic: 't' } }
  t.equal((await ask('POST /v2/subscriptions', watching(mqtt))).status, 400)
  use(egress(['10.0.0.0/8']))
  t.equal((await ask('POST /v2/subscriptions', watching(mqtt))).status, 201)
  use({})
  const cloud = watching({ http: { url: 'http://[fe80::1]/' } })
  t.equal((await ask('POST /v2/subscriptions', cloud)).status, 400, 'without egress')
  use(egress(['*']))
  t.equal((await ask('POST /v2/subscriptions', cloud)).status, 201, 'all are allowed')
})

t.test('a new file closes a connection that it denies; what is denied is a dead letter', async t => {
  const { ask, create, use, untilOutcome } = await scene(t, {})
  const receiver = await httpReceiver(t)
  const id = await create('/v2/subscriptions', watching({ http: { url: `http://localhost:${receiver.port}/` } }))
  await create('/v2/entities', { id: 'E1', type: 'T', a: { value: 1 } })
  t.strictSame(await untilOutcome(id, 1), ['delivered'])
  use(egress([], ['127.0.0.0/8', '::1']))
  await create('/v2/entities', { id: 'E2', type: 'T', a: { value: 1 } })
  t.equal((await untilOutcome(id, 2))[0], `dead: ${denied}`)
  const { json } = await ask(`GET /v2/subscriptions/${id}`)
  t.match(json, { notification: { lastFailureReason: denied } })
  await until(() => receiver.open === 0, 'the end of the connection')
  t.equal(receiver.received.length, 1)
  use(egress(['localhost']))
  t.equal((await ask(`POST /v2/subscriptions/${id}/deliveries/retry`)).status, 200)
  await until(() => receiver.received.length === 2, 'the dead letter')
  t.equal(receiver.connections, 2)
})

t.test('redirects, MQTT brokers and providers are denied as well', async t => {
  const { ask, create, use, untilOutcome } = await scene(t, {})
  const target = await httpReceiver(t, (_request, response) => response.writeHead(200).end('[]'))
  const door = await httpReceiver(t, (_request, response) =>
    response.writeHead(307, { Location: `http://localhost:${target.port}/` }).end(),
  )
  const broker = await aedesBroker(t)
  const redirected = await create('/v2/subscriptions', watching({ http: { url: `${door.url}/` } }))
  const mqtt = { mqtt: { url: `mqtt://localhost:${broker.port}`, topic: 't' } }
  const published = await create('/v2/subscriptions', watching(mqtt))
  await create('/v2/registrations', provided(`http://localhost:${target.port}/v2`))
  const look = async (): Promise<void> => {
    await ask('GET /v2/entities/P1?type=Lamp')
  }
  await create('/v2/entities', { id: 'E1', type: 'T', a: { value: 1 } })
  await until(() => target.received.length === 1 && broker.published.length === 1, 'both notifications')
  await look()
  t.equal(target.received.length, 2)
  use(egress([], ['localhost']))
  await create('/v2/entities', { id: 'E2', type: 'T', a: { value: 1 } })
  for (const id of [redirected, published]) t.equal((await untilOutcome(id, 2))[0], `dead: ${denied}`)
  await look()
  t.equal(door.received.length, 2, 'what is allowed is asked')
  t.equal(target.received.length, 2)
  t.equal(broker.published.length, 1)
  await until(() => target.open === 0 && broker.open === 0, 'the end of the connections')
})

t.test('keys of an issuer at a denied target are not fetched, and a WARN has the reason', async t => {
  const key = await signingKey('ES256', 'k1')
  const provider = await IdentityProvider.start(t, [key])
  const warnings: string[] = []
  const logger: Logger = { ...errorsOnly().logger, warn: line => void warnings.push(line) }
  const issuers = [provider.entry({ roles: { default: ['boss'] } })]
  const { node, use } = await scene(t, { issuers, ...egress([], ['127.0.0.1']) }, { surroundings: { logger } })
  const token = await signed(key, provider.claims(Date.now()))
  const status = async (): Promise<number> =>
    (await node.ask('GET /v2/entities', [`Authorization: Bearer ${token}`])).status
  t.equal(await status(), 503)
  await until(() => warnings.length > 0, 'the WARN')
  t.strictSame(
    [...new Set(warnings)],
    [`access: keys of the issuer ${provider.issuer}: cannot be fetched from ${provider.url}: ${denied}`],
  )
  t.equal(provider.asked, 0)
  // Another URL is fetched at once.
  use({ issuers: [{ ...issuers[0], jwks: `${provider.url}?again` }], ...egress(['127.0.0.1']) })
  t.equal(await status(), 200)
})
