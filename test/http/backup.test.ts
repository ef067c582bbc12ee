// POST /admin/backup over whole nodes: the clients that get a backup, one backup at a time, and the reports for
// operators. On both servers, and on two workers.

import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type BackupHeader, blocksOf } from '../../src/backup/backup-file.js'
import type { Row } from '../../src/ports.js'
import { prefix } from '../../src/shard/keys.js'
import { parseEntityKey } from '../../src/shard/layout.js'
import { tempDir } from '../support/broker-process.js'
import { parseExposition } from '../support/exposition-parser.js'
import { httpServers, type LocalNode, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'

const key = 'sixteen-or-more-characters'
const withKey = [`X-Auth-Token: ${key}`]
/** Entities of 20 KB: more bytes than the system buffers for a client that does not read. */
const largeCount = 600

function keyFile(t: Test): string {
  const file = join(tempDir(t), 'key')
  writeFileSync(file, `${key}\n`)
  return file
}

async function fill(node: LocalNode, count: number, bytes: number): Promise<void> {
  const text = { type: 'Text', value: 'x'.repeat(bytes) }
  for (let at = 0; at < count; at += 30) {
    const entities = Array.from({ length: 30 }, (_, n) => ({ id: `E${at + n}`, type: 'T', text }))
    const { status } = await node.json('POST /v2/op/update', { actionType: 'append', entities }, ['Ctx-Service: city'])
    if (status !== 204) throw new Error(`${status}`)
  }
}

async function begin(node: LocalNode): Promise<IncomingMessage> {
  const headers = { 'X-Auth-Token': key, 'Content-Length': 0 }
  const at = { port: node.port, host: '127.0.0.1', path: '/admin/backup', method: 'POST', agent: false }
  const sent = request({ ...at, headers })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return response
}

interface Read {
  readonly header: BackupHeader
  readonly rows: readonly Row[]
}

async function read(response: IncomingMessage): Promise<Read> {
  let header: BackupHeader | undefined
  const rows: Row[] = []
  for await (const block of blocksOf(response))
    if (block.kind === 'header') header = block.header
    else if (block.kind === 'rows') rows.push(...block.rows)
  return { header: header!, rows }
}

const idsIn = ({ rows }: Read): string[] =>
  rows
    .filter(row => row.key[0] === prefix.entity)
    .map(row => parseEntityKey(row.key).id)
    .sort()

const idsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `E${n}`).sort()

async function metrics(node: LocalNode): Promise<Record<string, number>> {
  const { text } = await node.ask('GET /metrics')
  const { samples } = parseExposition(text)
  return Object.fromEntries(
    samples
      .filter(({ name }) => name.startsWith('orrery_backup_'))
      .map(({ name, value }) => [name.replace('orrery_backup_', ''), value]),
  )
}

for (const server of httpServers)
  t.test(`over ${server}`, async t => {
    const node = await startLocalNode(t, { server, backupKeyFile: keyFile(t) })
    await fill(node, largeCount, 20_000)

    t.test('no client gets a backup without the key', async t => {
      for (const headers of [[], ['X-Auth-Token: another key of some length'], [`X-Auth-Token: ${key.slice(0, -1)}`]])
        t.match(await node.ask('POST /admin/backup', headers), {
          status: 403,
          json: { error: 'Forbidden', description: 'the key of -backupKeyFile is missing, or it is another one' },
        })
      t.match(await node.ask('GET /admin/backup', withKey), { status: 405, headers: { allow: 'POST' } })
    })

    t.test('it has all tenants, may not be cached on the way, and counts as one request', async t => {
      const response = await begin(node)
      t.match(response, { statusCode: 200 })
      t.match(response.headers, { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' })
      t.strictSame(idsIn(await read(response)), idsOf(largeCount))
    })

    t.test('a second one is refused while the first is in flight, and a client that goes makes room', async t => {
      const first = await begin(node)
      first.on('error', () => {}).pause()
      t.match(await node.ask('POST /admin/backup', withKey), {
        status: 409,
        json: { error: 'Conflict', description: 'a backup is under way: wait until it has ended' },
      })
      t.equal((await metrics(node)).running, 1)
      first.destroy()
      while ((await metrics(node)).running === 1) await new Promise(resolve => setTimeout(resolve, 10))
      t.equal((await metrics(node)).last_succeeded, 0)
      await read(await begin(node))
    })

    t.test('its end, size, duration and result are metrics', async t => {
      const { last_bytes, last_duration_seconds, last_timestamp_seconds, ...others } = await metrics(node)
      t.ok(last_bytes! > largeCount * 20_000, `${last_bytes} bytes`)
      t.ok(last_duration_seconds! > 0)
      t.ok(last_timestamp_seconds! > Date.now() / 1000 - 60)
      t.strictSame(others, { running: 0, last_succeeded: 1 })
    })
  })

t.test('without a key in its configuration a broker gives no backup', async t => {
  const node = await startLocalNode(t)
  t.match(await node.ask('POST /admin/backup', withKey), {
    status: 403,
    json: { error: 'Forbidden', description: 'backups are off: start with -backupKeyFile' },
  })
})

t.test('a broker does not start with a key that is missing, short or of other characters', async t => {
  const folder = tempDir(t)
  for (const [name, text, fault] of [
    ['none', undefined, /^-backupKeyFile: .*none cannot be read/],
    ['short', 'fifteen-letters', /^-backupKeyFile: .*short has no key of 16 to 1000 visible ASCII characters$/],
    ['lines', 'one-line-of-it-is\nnot-enough', /has no key/],
    ['blank', 'with blanks in it, as here', /has no key/],
  ] as const) {
    const file = join(folder, name)
    if (text !== undefined) writeFileSync(file, text)
    await t.rejects(startLocalNode(t, { backupKeyFile: file }), { message: fault })
  }
})

t.test('any of two workers gives the rows of both, and both know of it', async t => {
  const workers = await startLocalWorkers(t, 2, { backupKeyFile: keyFile(t) })
  const [first, second] = workers as [LocalNode, LocalNode]
  await fill(first, 60, 10)
  for (const worker of workers) {
    const found = await read(await begin(worker))
    t.strictSame(idsIn(found), idsOf(60))
    t.strictSame(
      found.header.owners.map(({ shards, isKeeper }) => [shards.length, shards[0], isKeeper]),
      [
        [128, 0, true],
        [128, 1, false],
      ],
    )
  }
  t.match(await metrics(second), { running: 0, last_succeeded: 1 })
})
