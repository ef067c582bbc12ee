// `orrery backup`: a whole file that only its user can read, or none.

import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { BackupWriter } from '../../src/backup/backup-file.js'
import { runBackup } from '../../src/move/backup-command.js'
import { tempDir } from '../support/broker-process.js'

const key = 'sixteen-or-more-characters'
const header = { rowFormat: 4, by: 'o', beganMs: 1, shards: 1, spread: 1, owners: [] }

/** A backup without rows. */
function whole(): Buffer {
  const writer = new BackupWriter()
  return Buffer.concat([Buffer.from(writer.begin(header)), writer.end(2)])
}

/** A server that answers like a broker; returns its URL. */
async function brokerOf(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function folderWithKey(t: Test): { readonly to: string; readonly folder: string; readonly keyFile: string } {
  const folder = tempDir(t)
  const keyFile = join(folder, 'key')
  writeFileSync(keyFile, `${key}\n`)
  return { folder, keyFile, to: join(folder, 'file') }
}

/** Runs the command; returns its status and its output. */
async function run(t: Test, argv: readonly string[], env = {}): Promise<{ status: number; said: string }> {
  const lines = t.capture(process.stderr, 'write', () => true)
  const status = await runBackup(argv, env)
  const said = lines().map(({ args: [text] }) => String(text))
  lines.restore()
  return { status, said: said.join('') }
}

t.test('the key is sent, and the backup is in a file that no other user can read', async t => {
  const { to, keyFile, folder } = folderWithKey(t)
  const asked: unknown[] = []
  const from = await brokerOf(t, ({ method, url, headers }, response) => {
    asked.push([method, url, headers['x-auth-token'], headers['content-length']])
    response.end(whole())
  })
  const { status, said } = await run(t, ['--from', `${from}/`, '-to', to], { CTX_BACKUP_KEY_FILE: keyFile })
  t.equal(status, 0, said)
  t.strictSame(asked, [['POST', '/admin/backup', key, '0']])
  t.ok(readFileSync(to).equals(whole()))
  t.equal(statSync(to).mode & 0o777, 0o600)
  t.strictSame(readdirSync(folder).sort(), ['file', 'key'])
})

for (const [what, answer, said] of [
  ['is cut', (response => response.end(whole().subarray(0, -1))) satisfies Answer, /it ends too early/],
  [
    'failed at the broker',
    (response => {
      const writer = new BackupWriter()
      response.end(Buffer.concat([Buffer.from(writer.begin(header)), writer.fail('worker 1 has gone')]))
    }) satisfies Answer,
    /the backup is not complete: worker 1 has gone/,
  ],
  [
    'breaks off',
    (response => {
      response.write(whole().subarray(0, 20))
      setImmediate(() => response.destroy())
    }) satisfies Answer,
    /^(?:Backing.*\n)*orrery backup: http/,
  ],
  [
    'is refused',
    (response => {
      response.statusCode = 409
      response.end('{"error":"Conflict","description":"a backup is under way"}')
    }) satisfies Answer,
    /answered 409: a backup is under way/,
  ],
  ['is something else', (response => response.end('hello')) satisfies Answer, /it ends too early|no backup of Orrery/],
] as const)
  t.test(`a backup that ${what} leaves no file, and the reason is printed`, async t => {
    const { to, keyFile, folder } = folderWithKey(t)
    const from = await brokerOf(t, (_, response) => answer(response))
    const result = await run(t, ['--from', from, '--to', to, '--backupKeyFile', keyFile])
    t.equal(result.status, 1)
    t.match(result.said, said)
    t.strictSame(readdirSync(folder), ['key'])
  })

type Answer = (response: Parameters<RequestListener>[1]) => void

t.test('a file that is there stays as it is', async t => {
  const { to, keyFile } = folderWithKey(t)
  writeFileSync(to, 'of last week')
  const result = await run(t, ['--from', 'http://127.0.0.1:9', '--to', to, '--backupKeyFile', keyFile])
  t.match(result, { status: 1, said: /file exists already/ })
  t.equal(readFileSync(to, 'utf8'), 'of last week')
})

t.test('a missing or wrong argument is reported with the usage', async t => {
  const { to, keyFile } = folderWithKey(t)
  for (const [argv, fault] of [
    [[], /Usage[\s\S]*--from, --to and --backupKeyFile are needed/],
    [['--from', 'ftp://h', '--to', to, '--backupKeyFile', keyFile], /"ftp:\/\/h" is not a URL/],
    [['--from', 'http://h', '--to', to, '--backupKeyFile', join(to, 'none')], /cannot be read/],
    [['--frm', 'http://h'], /Unknown option '--frm'/],
  ] as const)
    t.match(await run(t, argv), { status: 1, said: fault })
  t.notOk(existsSync(to))
})
