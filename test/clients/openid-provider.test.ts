// Tokens of a real OpenID provider: what Keycloak issues, from oidc-provider (openid-provider.ts).
//
// The broker gets nothing of it but the URL of its keys, over plain HTTP on this machine.

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { AccessScene, everything } from '../support/access-scene.js'
import { type BrokerProcess, startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { OpenIdProvider } from './openid-provider.js'
import { lacking } from './workspace.js'

t.setTimeout(400_000)

const people = {
  ada: { secret: 'ada-secret', roles: ['city-operator'], tenants: ['city', 'village'] },
  bob: { secret: 'bob-secret', roles: ['city-viewer', 'offline_access'] },
}
const programs = {
  gateway: { secret: 'gateway-secret', roles: ['city-operator'], tenants: ['city'] },
  'gateway-es': { secret: 'gateway-es-secret', roles: ['city-operator'], tenants: ['city'] },
  stranger: { secret: 'stranger-secret', roles: ['default-roles-city'], tenants: ['city'] },
}
const roles = {
  operator: [{ actions: ['create', 'read', 'update'], tenants: ['*'] }],
  viewer: [{ actions: ['read'], tenants: ['city'], attributes: ['*', '!owner'] }],
}
const meter = (id: string) => ({ id, type: 'Meter', power: { value: 1 }, owner: { value: 'ada' } })

class Scene {
  constructor(
    readonly provider: OpenIdProvider,
    readonly broker: BrokerProcess,
    private readonly client: HttpClient,
  ) {}

  async ask(line: string, token: string, tenant = 'city', body?: unknown) {
    const [method = '', path = ''] = line.split(' ')
    return this.client.send(method, path, body, { 'Fiware-Service': tenant, Authorization: `Bearer ${token}` })
  }

  async statusOf(line: string, token: string, tenant?: string, body?: unknown): Promise<number> {
    return (await this.ask(line, token, tenant, body)).status
  }
}

async function sceneOf(t: Test, provider: OpenIdProvider, dataDir = tempDir(t)): Promise<Scene> {
  const mapping = { claim: 'realm_access.roles', map: { 'city-operator': 'operator', 'city-viewer': 'viewer' } }
  const issuers = [provider.entry({ roles: mapping, tenants: { claim: 'tenants' } })]
  const access = new AccessScene(t, { root: everything, ...roles }, { issuers })
  const args = ['-multiservice', '-access', access.path]
  const broker = await startBroker(t, { args, dataDir, readyWaitMs: 60_000 })
  const client = new HttpClient(broker.baseUrl)
  t.teardown(() => client.close())
  return new Scene(provider, broker, client)
}

const started = (t: Test): Promise<OpenIdProvider> => OpenIdProvider.start(t, people, programs)

t.test('tokens of programs and people are accepted with their roles and tenants', { skip: lacking }, async t => {
  const scene = await sceneOf(t, await started(t))
  const { provider } = scene
  for (const program of ['gateway', 'gateway-es']) {
    const token = await provider.tokenOf(program)
    t.equal(await scene.statusOf('POST /v2/entities', token, 'city', meter(program)), 201, program)
    t.match(await scene.ask('POST /v2/entities', token, 'village', meter(program)), {
      status: 403,
      json: { error: 'Forbidden', description: 'not allowed: create in / of tenant village' },
    })
  }
  const { access_token: ada } = await provider.tokensOf('ada')
  t.equal(await scene.statusOf('POST /v2/entities', ada, 'village', meter('M1')), 201)
  t.equal(await scene.statusOf('POST /v2/entities', ada, 'harbour', meter('M1')), 403)

  // His token has no tenants, so he has none.
  const { access_token: bob } = await provider.tokensOf('bob')
  t.equal(await scene.statusOf('GET /v2/entities', bob), 403)
  // A role that the file does not map.
  t.equal(await scene.statusOf('GET /v2/entities', await provider.tokenOf('stranger')), 403)
  t.equal(await scene.statusOf('GET /v2', await provider.tokenOf('stranger')), 200)
})

t.test('a refreshed token is another one of the same person', { skip: lacking }, async t => {
  const scene = await sceneOf(t, await started(t))
  const { provider } = scene
  const { access_token: first, refresh_token } = await provider.tokensOf('ada')
  const form = { grant_type: 'refresh_token', client_id: 'city-app', refresh_token }
  const answer = await fetch(provider.tokenUrl, { method: 'POST', body: new URLSearchParams(form) })
  const { access_token: second } = (await answer.json()) as { access_token: string }
  t.not(second, first)
  for (const token of [first, second]) t.equal(await scene.statusOf('GET /v2/entities', token), 200)
})

t.test(
  'an expired token, one for another audience and one of another issuer are refused',
  { skip: lacking },
  async t => {
    const scene = await sceneOf(t, await started(t))
    const { provider } = scene
    provider.issueExpired(true)
    t.match(await scene.ask('GET /v2/entities', await provider.tokenOf('gateway')), {
      status: 401,
      json: { description: 'the key, token or certificate has expired' },
      headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    })
    provider.issueExpired(false)
    const unknown = { status: 401, json: { description: 'the key, token or certificate is not known here' } }
    t.match(await scene.ask('GET /v2/entities', await provider.tokenOf('gateway', { resource: 'urn:other' })), unknown)
    t.match(await scene.ask('GET /v2/entities', await (await started(t)).tokenOf('gateway')), unknown)
    t.equal(await scene.statusOf('GET /v2/entities', await provider.tokenOf('gateway')), 200)
  },
)

t.test('keys change under requests, and no request fails', { skip: lacking }, async t => {
  const scene = await sceneOf(t, await started(t))
  const { provider } = scene
  let token = await provider.tokenOf('gateway')
  const statuses = new Map<number, number>()
  let isOver = false
  const asking = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const status = await scene.statusOf('GET /v2/entities', token)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  })
  const old = token
  // The keys were fetched at the start, so the first unknown key is fetched at once.
  await provider.replaceKeys('beside')
  token = await provider.tokenOf('gateway')
  t.equal(await scene.statusOf('GET /v2/entities', token), 200)
  t.equal(await scene.statusOf('GET /v2/entities', old), 200)
  isOver = true
  await Promise.all(asking)
  t.strictSame([...statuses.keys()], [200])
})

t.test('while the provider is away its tokens are accepted, also after a start', { skip: lacking }, async t => {
  const provider = await started(t)
  const dataDir = tempDir(t)
  const before = await sceneOf(t, provider, dataDir)
  const tokens = [await provider.tokenOf('gateway'), await provider.tokenOf('gateway-es')]
  t.equal(await before.statusOf('GET /v2/entities', tokens[0]!), 200)
  await provider.goAway()
  for (const token of tokens) t.equal(await before.statusOf('GET /v2/entities', token), 200)
  t.equal((await before.broker.kill('SIGTERM')).code, 0)

  const after = await sceneOf(t, provider, dataDir)
  for (const token of tokens) t.equal(await after.statusOf('GET /v2/entities', token), 200)
  await provider.comeBack()
  t.equal(await after.statusOf('GET /v2/entities', await provider.tokenOf('gateway')), 200)
})

t.test(
  'a broker whose provider was never there refuses tokens with 503, until it comes',
  { skip: lacking },
  async t => {
    const provider = await started(t)
    const token = await provider.tokenOf('gateway')
    await provider.goAway()
    const scene = await sceneOf(t, provider)
    t.match(await scene.ask('GET /v2/entities', token), {
      status: 503,
      json: { description: 'the keys of the issuer of the token are missing, try again later' },
    })
    await provider.comeBack()
    // The next fetch comes after keysAgainMs.
    const untilMs = performance.now() + 90_000
    while ((await scene.statusOf('GET /v2/entities', token)) !== 200) {
      if (performance.now() > untilMs) throw new Error(`never accepted\n${scene.broker.printed()}`)
      await pause(250)
    }
  },
)
