// Tenants of the program as operators have it: deleted from the command line, while the program is killed and its data
// directory is divided among two workers.
//
// Not here: hosts of a cluster (shard/tenants/tenant-deletions.test.ts).

import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { type BrokerProcess, runToEnd, startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'

t.setTimeout(400_000)

interface Shown {
  readonly name: string
  readonly entities: number
  readonly state: string
}

class Operator {
  readonly client: HttpClient

  constructor(readonly broker: BrokerProcess) {
    this.client = new HttpClient(broker.baseUrl)
  }

  async fill(tenant: string, count: number): Promise<void> {
    for (let from = 0; from < count; from += 1000) {
      const ids = Array.from({ length: Math.min(1000, count - from) }, (_, n) => `E${from + n}`)
      const entities = ids.map(id => ({ id, type: 'T', n: { value: 1 } }))
      const { status, text } = await this.post('/v2/op/update', tenant, { actionType: 'append', entities })
      if (status !== 204) throw new Error(`${status}: ${text}`)
    }
  }

  post(path: string, tenant: string, body: unknown) {
    return this.client.send('POST', path, body, { 'Fiware-Service': tenant })
  }

  /** undefined: the tenant does not exist. */
  async shown(tenant: string): Promise<Shown | undefined> {
    const { status, text } = await this.client.get(`/admin/tenants/${tenant}`)
    return status === 404 ? undefined : (JSON.parse(text) as Shown)
  }

  /** Reads again until the condition holds; if it never does, the time of the test ends the wait. */
  async until(tenant: string, holds: (shown: Shown | undefined) => boolean): Promise<Shown | undefined> {
    for (;;) {
      const shown = await this.shown(tenant)
      if (holds(shown)) return shown
      await pause(5)
    }
  }

  tenants(...words: readonly string[]) {
    return runToEnd(t, ['tenants', ...words, '--from', this.broker.baseUrl])
  }

  async kill(): Promise<void> {
    await this.client.close()
    await this.broker.kill('SIGKILL')
  }
}

t.test('a deletion goes on after kill -9, and in another division of the data directory', async t => {
  const dataDir = tempDir(t)
  const start = async (workers: string): Promise<Operator> =>
    new Operator(
      await startBroker(t, {
        ...{ dataDir, readyWaitMs: 60_000 },
        args: ['-multiservice', '-workers', workers, '-durability', 'os'],
      }),
    )
  const notification = { http: { url: 'http://localhost:1/none' } }
  const watching = { subject: { entities: [{ idPattern: '.*' }] }, notification }

  const one = await start('1')
  await one.post('/v2/subscriptions', 'gone', { ...watching, status: 'inactive' })
  await one.fill('gone', 1500)
  await one.fill('stays', 10)
  t.match(await one.client.send('DELETE', '/admin/tenants/gone?confirm=gone'), { status: 202 })
  t.match(await one.until('gone', shown => (shown?.entities ?? 0) < 1500), { state: 'deleting' })
  t.match(await one.post('/v2/entities', 'gone', { id: 'new', type: 'T' }), { status: 503 })
  await one.kill()

  const two = await start('2')
  t.match(await two.shown('gone'), { state: 'deleting' })
  await two.until('gone', shown => shown === undefined)
  t.match(await two.post('/v2/entities', 'gone', { id: 'new', type: 'T' }), { status: 201 })
  t.match(await two.shown('stays'), { entities: 10, state: 'active' })
  await two.fill('again', 1500)
  t.match(await two.tenants('delete', 'again', '--confirm', 'again'), {
    ...{ code: 0, stdout: /^tenant again is being deleted, with 1500 entities$/m },
  })
  await two.kill()

  const last = await start('2')
  await last.until('again', shown => shown === undefined)
  const listed = await last.tenants('list', '--json')
  const shown = (JSON.parse(listed.stdout) as readonly Shown[]).map(({ name, entities }) => [name, entities])
  t.same(shown, [
    ['gone', 1],
    ['stays', 10],
  ])
  await last.kill()
})
