// ngsijs, unmodified, against a broker with access control: with a key and with a token, in the headers of its
// connection. What the rules allow works as ever, and what they do not comes as an error of the library.

import t, { type Test } from 'tap'
import { AccessScene } from '../support/access-scene.js'
import { startBroker } from '../support/broker-process.js'
import { idsOf, open } from './ngsijs.js'
import { OpenIdProvider } from './openid-provider.js'
import { lacking } from './workspace.js'

t.setTimeout(400_000)

const editing = ['create', 'read', 'update', 'subscribe']
const editor = [{ actions: editing, tenants: ['city'], paths: ['/#'], types: ['Room'], attributes: ['*', '!cost'] }]
const number = (value: number) => ({ type: 'Number', value, metadata: {} })

async function sceneOf(t: Test) {
  const programs = { page: { secret: 'page-secret', roles: ['city-editor'], tenants: ['city'] } }
  const provider = await OpenIdProvider.start(t, {}, programs)
  const roles = { claim: 'realm_access.roles', map: { 'city-editor': 'editor' } }
  const access = new AccessScene(t, { editor }, { issuers: [provider.entry({ roles })] })
  const { baseUrl } = await startBroker(t, { args: ['-multiservice', '-access', access.path] })
  return { baseUrl, key: access.keyOf('editor'), token: await provider.tokenOf('page') }
}

const ways: readonly (readonly [said: string, headers: (key: string, token: string) => Record<string, string>])[] = [
  ['a key in X-Auth-Token', key => ({ 'X-Auth-Token': key })],
  ['a key in Authorization', key => ({ Authorization: `Bearer ${key}` })],
  ['a token in X-Auth-Token', (_, token) => ({ 'X-Auth-Token': token })],
  ['a token in Authorization', (_, token) => ({ Authorization: `Bearer ${token}` })],
]

t.test('ngsijs with a proof in its headers', { skip: lacking }, async t => {
  const { baseUrl, key, token } = await sceneOf(t)
  for (const [nth, [said, headers]] of ways.entries())
    await t.test(said, async t => {
      const { v2 } = open(baseUrl, 'city', headers(key, token))
      const room = { id: `Room${nth}`, type: 'Room', temperature: number(21) }
      await v2.createEntity(room)
      await v2.updateEntityAttributes({ id: room.id, type: 'Room', temperature: number(22) })
      t.match(await v2.getEntity({ id: room.id, keyValues: true }), { entity: { temperature: 22 } })
      t.equal(idsOf((await v2.listEntities({ id: room.id })).results), room.id)
      t.match((await v2.listTypes()).results, [{ type: 'Room' }])
      const { subscription } = await v2.createSubscription({
        subject: { entities: [{ idPattern: '.*', type: 'Room' }] },
        notification: { http: { url: 'http://localhost:9' } },
      })
      t.match(await v2.getSubscription(subscription.id), { subscription: { id: subscription.id } })
      await v2.deleteSubscription(subscription.id)

      const denied = { name: 'InvalidResponse', message: /403/ }
      await t.rejects(v2.deleteEntity(room.id), denied)
      await t.rejects(v2.createEntity({ id: 'Lamp1', type: 'Lamp' }), denied)
      await t.rejects(v2.createEntity({ id: 'Room9', type: 'Room', cost: number(1) }), denied)
      await t.rejects(v2.listEntities({ q: 'cost>1' }), denied)
      await t.rejects(v2.listEntities({ service: 'village' }), denied)
      const batch = {
        actionType: 'append',
        entities: [
          { id: 'Room9', type: 'Room' },
          { id: 'Lamp1', type: 'Lamp' },
        ],
      }
      await t.rejects(v2.batchUpdate(batch), denied)
      await t.rejects(v2.getEntity('Room9'), { name: 'NotFound' })
    })

  await t.test('no proof, and a wrong one', async t => {
    const unidentified = { name: 'InvalidResponse', message: /401/ }
    for (const headers of [{}, { 'X-Auth-Token': `${key}A` }, { Authorization: `Bearer ${token}A` }]) {
      const connection = open(baseUrl, 'city', headers as Record<string, string>)
      await t.rejects(connection.v2.listEntities(), unidentified)
      await t.rejects(connection.getServerDetails(), unidentified)
    }
    await t.resolves(open(baseUrl, 'city', { 'X-Auth-Token': key }).getServerDetails())
  })
})
