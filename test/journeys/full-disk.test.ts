// A disk that fills up: requests that need room get 507, all others work, and no acknowledged write is lost.
//
// The disk is a small tmpfs (needs root on Linux). The broker is killed and started again on it when not a byte is
// free, and another program takes all the room at once while clients write. docs/operations/full-disk.md documents the
// tested behaviour.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startBroker } from '../support/broker-process.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import { bytesPerMb, noMount, SmallDisk } from '../support/small-disk.js'

const reserveBytes = 64 * bytesPerMb
/** Room that opening a store may need, because it writes the content of its log (docs/operations/full-disk.md). */
const storeOpenBytes = 48 * bytesPerMb
const diskMb = 384
const entityBytes = 64 * 1024
const waitMs = 20_000

const id = (n: number) => `urn:disk:${n}`
/** Text that compression does not shorten, the same for the same number. */
const textOf = (n: number): string =>
  createHash('shake256', { outputLength: (entityBytes * 3) / 4 })
    .update(String(n))
    .digest('base64url')

for (const workers of [1, 2])
  t.test(`a disk that fills up, with ${workers} workers`, { skip: noMount }, async t => {
    const disk = new SmallDisk(t, diskMb)
    const dataDir = join(disk.path, 'data')
    const args = ['-workers', String(workers), '-logDir', join(disk.path, 'logs')]
    let broker = await startBroker(t, { dataDir, args })
    let client = new HttpClient(broker.baseUrl)
    const received = await receiverOf(t)
    const deleted = { idPattern: '.*', type: 'Block' }
    const subscription = {
      subject: { entities: [deleted], condition: { alterationTypes: ['entityDelete'] } },
      notification: { http: { url: received.url } },
    }
    t.equal((await client.send('POST', '/v2/subscriptions', subscription)).status, 201)
    // The broker allocates the reserve once it serves.
    await until(() => disk.freeBytes < (diskMb - 60) * bytesPerMb)

    // With the first write each store allocates room for its log.
    const acknowledged = Array.from({ length: 20 }, (_, n) => n)
    for (const n of acknowledged) t.equal((await create(client, n)).status, 201)
    disk.fill('others', reserveBytes + 8 * bytesPerMb)
    const last = await fillUp(client, acknowledged)
    t.ok(acknowledged.length > 40, `${acknowledged.length} entities were taken`)
    t.same((last.json as { error: string }).error, 'InsufficientStorage')
    t.match(
      (last.json as { description: string }).description,
      /^no room on the disk of this node: \d+ MB free, 64 MB reserved$/,
    )
    t.notMatch(last.text, disk.path)
    // The broker stopped in time. A flush may be in progress, which for a moment needs the room of its data twice.
    await until(() => disk.freeBytes > reserveBytes / 2)
    await refusesWhatNeedsRoom(t, client, acknowledged)
    t.match((await client.get('/health/ready')).json, { status: 'ready', disk: 'full' })
    t.match((await client.get('/metrics')).text, /^orrery_disk_state 1$/m)

    const gone = acknowledged.splice(0, 3)
    for (const n of gone) t.equal((await client.send('DELETE', `/v2/entities/${id(n)}`)).status, 204)
    await until(() => gone.every(n => received.text.includes(`"${id(n)}"`)))
    const entities = [{ id: id(acknowledged.shift()!), type: 'Block' }]
    t.equal((await client.send('POST', '/v2/op/update', { actionType: 'delete', entities })).status, 204)

    disk.fill('still others')
    await until(async () => /^orrery_disk_state [23]$/m.test((await client.get('/metrics')).text))
    await broker.kill('SIGKILL')
    client.close()
    disk.fill('the last ones', workers * storeOpenBytes)
    broker = await startBroker(t, { dataDir, args })
    client = new HttpClient(broker.baseUrl)
    await holds(t, client, acknowledged)
    await refusesWhatNeedsRoom(t, client, acknowledged)
    t.equal((await client.send('DELETE', `/v2/entities/${id(acknowledged.shift()!)}`)).status, 204)

    for (const name of ['others', 'still others', 'the last ones']) disk.remove(name)
    await until(async () => (await create(client, 1_000_000)).status === 201)
    t.match((await client.get('/health/ready')).json, { status: 'ready' })
    await holds(t, client, acknowledged)
    client.close()
    t.equal((await broker.kill('SIGTERM')).code, 0)
    t.match(broker.stdout, /Raising alarm DatabaseError disk/)
    t.match(broker.stdout, /Releasing alarm DatabaseError disk/)
  })

t.test('a broker that was killed with a full disk starts on its reserve', { skip: noMount }, async t => {
  const disk = new SmallDisk(t, diskMb)
  const dataDir = join(disk.path, 'data')
  let broker = await startBroker(t, { dataDir })
  let client = new HttpClient(broker.baseUrl)
  await until(() => disk.freeBytes < (diskMb - 60) * bytesPerMb)
  const acknowledged = Array.from({ length: 400 }, (_, n) => n)
  for (const n of acknowledged) t.equal((await create(client, n)).status, 201)
  client.close()
  await broker.kill('SIGKILL')
  disk.fill('others')
  t.equal(disk.freeBytes, 0)
  broker = await startBroker(t, { dataDir })
  client = new HttpClient(broker.baseUrl)
  await holds(t, client, acknowledged)
  t.equal((await create(client, 1_000_000)).status, 507)
  t.equal((await client.send('DELETE', `/v2/entities/${id(0)}`)).status, 204)
  client.close()
})

for (const workers of [1, 2])
  t.test(`another program takes all the room while clients write to ${workers} workers`, { skip: noMount }, async t => {
    const disk = new SmallDisk(t, diskMb)
    const dataDir = join(disk.path, 'data')
    const args = ['-workers', String(workers)]
    let broker = await startBroker(t, { dataDir, args })
    await until(() => disk.freeBytes < (diskMb - 60) * bytesPerMb)
    const acknowledged: number[] = []
    const statuses = new Set<number>()
    let next = 0
    let isFull = false
    const writers = Array.from({ length: 8 }, async () => {
      const client = new HttpClient(broker.baseUrl, waitMs, 1)
      for (let afterwards = 0; afterwards < 20; ) {
        const n = next++
        const { status } = await create(client, n, 4096).catch(() => ({ status: 0 }))
        if (status === 201) acknowledged.push(n)
        else statuses.add(status)
        if (isFull) afterwards++
        if (status === 0) await pause(50)
      }
      client.close()
    })
    await until(() => acknowledged.length > 500)
    disk.fill('others')
    isFull = true
    await Promise.all(writers)
    t.comment(`${acknowledged.length} acknowledged, then ${[...statuses]}; it ${broker.gone ? 'ended' : 'runs'}`)
    t.ok(
      [...statuses].every(status => [0, 500, 503, 507].includes(status)),
      `${[...statuses]}`,
    )
    if (!broker.gone) await broker.kill('SIGKILL')
    broker = await startBroker(t, { dataDir, args })
    const client = new HttpClient(broker.baseUrl)
    await holds(t, client, acknowledged, 4096)
    t.equal((await create(client, 1_000_000)).status, 507)
    disk.remove('others')
    await until(async () => (await create(client, 1_000_000)).status === 201)
    client.close()
  })

/**
 * The disk counts as full after so many refusals in a row: then all workers refuse, since each checks the disk for
 * itself.
 */
const refusedInARow = 32

/** Creates entities until all are refused with 507. */
async function fillUp(client: HttpClient, acknowledged: number[]): Promise<Answer> {
  let refused = 0
  for (let n = acknowledged.length; ; n++) {
    const last = await create(client, n)
    if (last.status === 201) {
      acknowledged.push(n)
      refused = 0
    } else if (last.status !== 507) throw new Error(`${last.status}: ${last.text}`)
    else if (++refused === refusedInARow) return last
  }
}

function create(client: HttpClient, n: number, length = entityBytes): Promise<Answer> {
  const text = { type: 'Text', value: textOf(n).slice(0, length) }
  return client.send('POST', '/v2/entities', { id: id(n), type: 'Block', text })
}

async function refusesWhatNeedsRoom(t: Test, client: HttpClient, [n = 0]: readonly number[]): Promise<void> {
  const entity = { id: id(n), type: 'Block', more: { type: 'Number', value: 1 } }
  const more = { more: { type: 'Number', value: 1 } }
  const subscription = { subject: { entities: [{ id: 'a' }] }, notification: { http: { url: 'http://127.0.0.1:1' } } }
  const registration = {
    dataProvided: { entities: [{ id: 'a' }], attrs: ['b'] },
    provider: { http: { url: 'http://127.0.0.1:1' } },
  }
  const path = `/v2/entities/${id(n)}/attrs`
  const requests: readonly (readonly [string, string, unknown])[] = [
    ['POST', '/v2/entities', { id: 'another', type: 'Block' }],
    ['POST', '/v2/entities?options=upsert', entity],
    ['POST', path, more],
    ['PATCH', path, { text: { type: 'Text', value: 'short' } }],
    ['PUT', path, more],
    ['PUT', `${path}/text`, { type: 'Text', value: 'short' }],
    ['PUT', `${path}/text/value`, { a: 1 }],
    ['POST', '/v2/op/update', { actionType: 'append', entities: [entity] }],
    ['POST', '/v2/op/update', { actionType: 'replace', entities: [entity] }],
    ['POST', '/v2/op/notify', { subscriptionId: '65f0c2a1b4d3e2f1a0c9b8d7', data: [entity] }],
    ['POST', '/v2/subscriptions', subscription],
    ['POST', '/v2/registrations', registration],
  ]
  for (const [method, url, body] of requests) {
    const { status, json } = await client.send(method, url, body)
    t.match({ status, json }, { status: 507, json: { error: 'InsufficientStorage' } }, `${method} ${url}`)
  }
  t.equal((await client.get(`/v2/entities/${id(n)}`)).status, 200)
  t.equal(
    (await client.send('POST', '/v2/entities', entity)).status,
    422,
    'what would be refused anyway has that reason',
  )
  t.equal((await client.send('PATCH', '/v2/entities/nobody/attrs', more)).status, 404)
}

async function holds(
  t: Test,
  client: HttpClient,
  acknowledged: readonly number[],
  length = entityBytes,
): Promise<void> {
  const lost: string[] = []
  for (const n of acknowledged) {
    const { status, json } = await client.get(`/v2/entities/${id(n)}?options=keyValues&attrs=text`)
    const isThere = status === 200 && (json as { text: string }).text === textOf(n).slice(0, length)
    if (!isThere) lost.push(`${id(n)}: ${status}`)
  }
  t.same(lost, [], `all ${acknowledged.length} acknowledged entities are there`)
}

/** Resolves when the condition holds; throws when that takes too long. */
async function until(holdsNow: () => boolean | Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + waitMs
  while (!(await holdsNow())) {
    if (performance.now() > untilMs) throw new Error(`waited ${waitMs} ms for ${holdsNow}`)
    await pause(20)
  }
}

async function receiverOf(t: Test): Promise<{ readonly url: string; readonly text: string }> {
  let text = ''
  const server = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    request.on('end', () => response.end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    get text() {
      return text
    },
  }
}
