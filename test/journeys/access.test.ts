// Access control of the program as operators have it: with both servers, with workers, while the file changes.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { AccessScene, everything } from '../support/access-scene.js'
import { type BrokerProcess, runToEnd, startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { IdentityProvider, signed, signingKey } from '../support/identity-provider.js'

t.setTimeout(400_000)

const lamp = (id: string) => ({ id, type: 'Lamp', power: { value: 1 } })

/** A change counts after 2 s; a machine that is busy with other tests may be late. */
const changedMsMax = 30_000

const ways = [
  ['-httpServer', 'uws'],
  ['-httpServer', 'node'],
  ['-workers', '2'],
  ['-workers', '2', '-httpServer', 'node'],
]

for (const way of ways)
  t.test(`principals are identified, and a change of the file takes effect: ${way.join(' ')}`, async t => {
    const key = await signingKey('ES256', 'k1')
    const provider = await IdentityProvider.start(t, [key])
    const issuers = [provider.entry({ roles: { claim: 'roles', map: { writer: 'gateway' } } })]
    const gateway = [{ actions: ['create', 'read'], tenants: ['city'] }]
    const scene = new AccessScene(t, { root: everything, gateway }, { issuers })
    const broker = await startBroker(t, { args: ['-multiservice', '-access', scene.path, ...way], readyWaitMs: 60_000 })
    const statusOf = asking(t, broker)
    const shown = (name: string) => ({ Authorization: `Bearer ${scene.keyOf(name)}` })
    const token = await signed(key, { ...provider.claims(Date.now()), roles: ['writer'] })

    // Some requests to each worker.
    for (let nth = 0; nth < 8; nth++) {
      t.equal(await statusOf('POST /v2/entities', shown('gateway'), lamp(`K${nth}`)), 201)
      t.equal(await statusOf('POST /v2/entities', { 'X-Auth-Token': token }, lamp(`T${nth}`)), 201)
      t.equal(await statusOf(`GET /v2/entities/K${nth}`, { 'X-Api-Key': scene.keyOf('gateway') }), 200)
      t.equal(await statusOf(`DELETE /v2/entities/K${nth}`, shown('gateway')), 403)
      t.equal(await statusOf('POST /v2/entities', {}, lamp(`N${nth}`)), 401)
      t.equal(await statusOf('GET /metrics', shown('gateway')), 403)
    }
    t.equal(await statusOf('GET /v2/entities/N0', shown('root')), 404)

    /** Until several in a row, some from each worker, have that status. */
    const until = async (status: number): Promise<void> => {
      const untilMs = performance.now() + changedMsMax
      for (let inRow = 0; inRow < 8; ) {
        if (performance.now() > untilMs) throw new Error(`never ${status}\n${broker.printed()}`)
        inRow = (await statusOf('GET /v2/entities/K0', shown('gateway'))) === status ? inRow + 1 : 0
        if (inRow === 0) await pause(50)
      }
    }
    scene.write({ root: everything, gateway: [{ actions: ['create'], tenants: ['city'] }] })
    await until(403)
    scene.write({ root: everything, gateway })
    process.kill(broker.child.pid as number, 'SIGHUP')
    await until(200)
    writeFileSync(scene.path, '{"roles":{"gateway":[{"actions":["raed"]}]}}')
    process.kill(broker.child.pid as number, 'SIGHUP')
    for (const untilMs = performance.now() + changedMsMax; !/"raed"/.test(broker.stdout); await pause(50))
      if (performance.now() > untilMs) throw new Error(`the fault is not told\n${broker.printed()}`)
    await until(200)
    t.match(broker.stdout, /lvl=ERROR .*the old one stays in use: line 1: roles\.gateway\[0\]\.actions\[0\]/)
    t.equal((await broker.kill('SIGTERM')).code, 0)
  })

function asking(t: { teardown(run: () => unknown): void }, { baseUrl }: BrokerProcess) {
  return async (line: string, headers: Readonly<Record<string, string>>, body?: unknown): Promise<number> => {
    // A connection each, so that every worker is asked.
    const client = new HttpClient(baseUrl)
    t.teardown(() => client.close())
    const [method = '', path = ''] = line.split(' ')
    const { status } = await client.send(method, path, body, { 'Fiware-Service': 'city', ...headers })
    client.close()
    return status
  }
}

t.test('there is no start with a faulty file, and config check finds the fault', async t => {
  const file = join(tempDir(t), 'access.yaml')
  writeFileSync(file, 'anonymous: [gest]\nroles: {guest: []}\n')
  const dataDir = join(tempDir(t), 'data')
  const text = /-access: .*access\.yaml: line 1: anonymous: names the role "gest", which is not in roles/
  const started = await runToEnd(t, ['-access', file, '-dataDir', dataDir])
  t.equal(started.code, 1)
  t.match(started.stderr, text)
  const checked = await runToEnd(t, ['config', 'check', '-access', file, '-dataDir', dataDir])
  t.equal(checked.code, 1)
  t.match(checked.stderr, text)
})
