// The checks before a start makes anything, and the further checks of `orrery config check`.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, Server } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config/config.js'
import { placementDefault } from '../../src/domain/scope.js'
import { runConfigCheck } from '../../src/process/config-check.js'
import { type Findings, preflight } from '../../src/process/preflight.js'
import { openDataDirectory } from '../../src/storage/data-directory.js'
import { openStore } from '../../src/storage/open-store.js'
import { Authority } from '../cluster/certificates.js'
import { freePort, tempDir } from '../support/broker-process.js'
import { type ArchiveChange, writeTileArchive } from '../support/tile-archive.js'

const folder = tempDir(t)
const port = String(await freePort())

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const ca = new Authority(t)
const member = ca.member()
const ended = ca.member(-1)
const caFile = file('ca.pem', ca.ca)
const certFile = file('cert.pem', member.cert)
const keyFile = file('key.pem', member.key)
const endedCert = file('ended.pem', ended.cert)
const endedKey = file('ended.key', ended.key)
const garbage = file('garbage.pem', '-----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n')
const backupKey = file('backup.key', 'a-key-that-nobody-guesses\n')
const nothing = file('nothing.pem', '')
const nowhere = join(folder, 'nowhere')

/** The findings about options. By default the port is free and the directory does not exist. */
async function found(...words: string[]): Promise<Findings> {
  const reading = readConfig(['-port', port, '-dataDir', nowhere, ...words], {})
  if (reading.kind !== 'run') throw new Error(JSON.stringify(reading))
  return preflight(reading.config)
}

t.test('nothing is wrong with a free port and a directory that can be made, and nothing is made', async t => {
  t.same(await found(), { faults: [], warnings: [] })
  t.notOk(existsSync(nowhere))
})

const node = ['-nodeName', 'a', '-clusterListen', '127.0.0.1:0']
const plainLog = ['-shardLog', 'etcd://127.0.0.1:1']
const tlsLog = ['-shardLog', 'etcds://127.0.0.1:1']
const certificates = ['-clusterCert', certFile, '-clusterKey', keyFile, '-clusterCa', caFile]
const good: readonly (readonly [what: string, words: readonly string[]])[] = [
  ['a certificate with its key', ['-https', '-cert', certFile, '-key', keyFile]],
  ['an authority of clients', ['-https', '-cert', certFile, '-key', keyFile, '-clientCa', caFile]],
  ['an authority of receivers', ['-notifCaFile', caFile]],
  ['a key of backups', ['-backupKeyFile', backupKey]],
  ['a node without certificates on this machine', [...node, ...plainLog]],
  ['a node with certificates', [...node, ...plainLog, ...certificates, '-clusterListen', '0.0.0.0:0']],
  [
    'certificates for the log engine',
    [...node, ...tlsLog, '-shardLogCa', caFile, '-shardLogCert', certFile, '-shardLogKey', keyFile],
  ],
]
for (const [what, words] of good)
  t.test(`accepted: ${what}`, async t => {
    t.same(await found(...words), { faults: [], warnings: [] })
  })

const bad: readonly (readonly [what: string, words: readonly string[], fault: RegExp])[] = [
  ['a missing key', ['-https', '-cert', certFile, '-key', '/none'], /cannot use the TLS files .*ENOENT/],
  ['the key of another certificate', ['-https', '-cert', certFile, '-key', endedKey], /cannot use .*mismatch/],
  ['a certificate that is none', ['-https', '-cert', nothing, '-key', keyFile], /cannot use the TLS files/],
  [
    'a missing authority of clients',
    ['-https', '-cert', certFile, '-key', keyFile, '-clientCa', '/none'],
    /cannot use the TLS files .*ENOENT.*\/none/,
  ],
  [
    'an authority of clients that is none',
    ['-https', '-cert', certFile, '-key', keyFile, '-clientCa', keyFile],
    /cannot use the TLS files .* holds no certificate$/,
  ],
  ['a missing key of backups', ['-backupKeyFile', '/none'], /^-backupKeyFile: \/none cannot be read: ENOENT/],
  ['a key of backups that could be guessed', ['-backupKeyFile', nothing], /^-backupKeyFile: .* has no key of 16/],
  ['a missing authority', ['-notifCaFile', '/none'], /^-notifCaFile: ENOENT/],
  ['an authority that is none', ['-notifCaFile', keyFile], /^-notifCaFile: .* holds no certificate$/],
  ['an authority that cannot be read', ['-notifCaFile', garbage], /^-notifCaFile: .* that cannot be read/],
  [
    'a node without certificates beyond this machine',
    [...node, ...plainLog, '-clusterListen', '0.0.0.0:0'],
    /^without TLS every process that can connect to 0\.0\.0\.0:0 could join the cluster/,
  ],
  [
    'a missing certificate of a node',
    [...node, ...plainLog, ...certificates, '-clusterCert', '/none'],
    /^-clusterCert:/,
  ],
  ['the key of another node', [...node, ...plainLog, ...certificates, '-clusterKey', endedKey], /cannot be used: /],
  [
    'an empty password file',
    [...node, ...plainLog, '-shardLogUser', 'u', '-shardLogPasswordFile', nothing],
    /^-shardLogPasswordFile: .* is empty$/,
  ],
  ['a missing authority of the log engine', [...node, ...tlsLog, '-shardLogCa', '/none'], /^-shardLogCa: ENOENT/],
  [
    'the key of another certificate for the log engine',
    [...node, ...tlsLog, '-shardLogCa', caFile, '-shardLogCert', certFile, '-shardLogKey', endedKey],
    /^-shardLogCert and -shardLogKey: .*mismatch/,
  ],
  ['an address of another machine', ['-localIp', '192.0.2.1'], /^cannot listen: 192\.0\.2\.1:/],
]
for (const [what, words, fault] of bad)
  t.test(`refused: ${what}`, async t => {
    const { faults } = await found(...words)
    t.equal(faults.length, 1, faults.join('\n'))
    t.match(faults[0], fault)
  })

t.test('faults of a node and of its log are reported at once', async t => {
  const { faults } = await found(...node, ...tlsLog, '-clusterListen', '0.0.0.0:0', '-shardLogCa', '/none')
  t.match(faults, [/^without TLS/, /^-shardLogCa: ENOENT/])
})

t.test('a certificate that has ended is warned of', async t => {
  const shown = ['-shardLogCa', caFile, '-shardLogCert', endedCert, '-shardLogKey', endedKey]
  const ofNode = [...node, ...tlsLog, ...shown, ...certificates, '-clusterCert', endedCert, '-clusterKey', endedKey]
  t.match((await found(...ofNode)).warnings, [/^-clusterCert: .* has ended/, /^-shardLogCert: .* has ended/])
  const { faults, warnings } = await found('-https', '-cert', endedCert, '-key', endedKey)
  t.same(faults, [])
  t.match(warnings, [/^-cert: the certificate in .* has ended on /])
})

t.test('ports in use are reported, all of them at once', async t => {
  const server = createServer().listen(0)
  t.teardown(() => server.close())
  await new Promise(resolve => server.once('listening', resolve))
  const taken = String((server.address() as { port: number }).port)
  const own = { port: await freePort(), cluster: await freePort() }
  for (const option of ['-port', '-http1Port', '-livePort'])
    t.same((await found(...(option === '-port' ? [] : ['-port', String(own.port)]), option, taken)).faults, [
      `${option === '-port' ? '' : `${option}: `}address already in use: [::]:${taken}`,
    ])
  const free = ['-port', String(own.port)]
  const inUse = `-adminPort: address already in use: 127.0.0.1:${taken}`
  t.same((await found(...free, '-adminPort', taken)).faults, [inUse])
  const foreign = await found(...free, '-adminPort', taken, '-adminLocalIp', '192.0.2.1')
  t.match(foreign.faults, [/^-adminPort: cannot listen: 192\.0\.2\.1:/])
  const listen = ['-clusterListen', `127.0.0.1:${taken}`, '-nodeName', 'a', ...plainLog]
  t.same((await found(...listen)).faults, [`-clusterListen: address already in use: 127.0.0.1:${taken}`])
  const { faults } = await found('-port', taken, '-notifCaFile', '/none')
  t.equal(faults.length, 2)
})

t.test('a port of the other family does not matter', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise(resolve => server.once('listening', resolve))
  const taken = String((server.address() as { port: number }).port)
  t.same((await found('-port', taken, '-ipv6')).faults, [])
  t.same((await found('-port', taken, '-localIp', '::1')).faults, [])
  t.equal((await found('-port', taken)).faults.length, 1)
})

t.test('nothing listens while ports are looked at: clients that wait for the broker would be reset', async t => {
  const second = String(await freePort())
  const listening = t.capture(Server.prototype, 'listen')
  await found('-http1Port', second, ...node, ...plainLog)
  listening.restore()
  t.same(listening(), [])
})

// The data directory

const made = (t: Test, cluster?: { readonly id: string }): string => {
  const path = tempDir(t)
  openDataDirectory(path, { ...placementDefault, ...(cluster && { cluster }) }, () => 'an-id')
  return path
}

t.test('a data directory that a start would refuse is refused, and left as it is', async t => {
  const stranger = tempDir(t)
  writeFileSync(join(stranger, 'letter.txt'), 'Dear reader')
  const other = tempDir(t)
  writeFileSync(join(other, 'orrery.json'), JSON.stringify({ format: 99 }))
  const refused: readonly (readonly [path: string, fault: RegExp, ...more: string[]])[] = [
    [stranger, /holds "letter\.txt" but no orrery\.json/],
    [other, /has format 99 and this version reads format/],
    [certFile, /cannot be used: .* is no directory/],
    [join(certFile, 'below'), /cannot be used: .* is no directory/],
    [made(t, { id: 'c' }), /is that of a node of cluster c/],
    [made(t), /is that of a single node/, ...node, ...plainLog],
  ]
  for (const [path, fault, ...words] of refused) {
    const { faults } = await found(...words, '-dataDir', path)
    t.equal(faults.length, 1, faults.join('\n'))
    t.match(faults[0], fault)
  }
  t.same(readdirSync(stranger), ['letter.txt'])
  t.same(readdirSync(other), ['orrery.json'])
})

t.test('a data directory that is there, and an empty folder, are accepted', async t => {
  for (const path of [made(t), tempDir(t)]) t.same((await found('-dataDir', path)).faults, [], path)
  t.same((await found(...node, ...plainLog, '-dataDir', made(t, { id: 'c' }))).faults, [])
})

// Root may write everywhere.
if (process.getuid?.() !== 0)
  t.test('a folder that may not be written to is refused', async t => {
    const path = join(tempDir(t), 'locked')
    mkdirSync(path, { mode: 0o500 })
    t.match((await found('-dataDir', path)).faults, [/cannot be used: EACCES/])
    t.match((await found('-dataDir', join(path, 'below'))).faults, [/cannot be used: EACCES/])
  })

// config check

interface Checked {
  readonly status: number
  readonly out: string
  readonly lines: readonly string[]
}

async function checked(t: Test, ...words: string[]): Promise<Checked> {
  const out = t.capture(process.stdout, 'write')
  const err = t.capture(process.stderr, 'write')
  const status = await runConfigCheck(['-port', port, '-dataDir', nowhere, ...words], {})
  const textOf = (calls: readonly { readonly args: readonly unknown[] }[]): string =>
    calls.map(({ args }) => String(args[0])).join('')
  const answer = { status, out: textOf(out()), lines: textOf(err()).split('\n').filter(Boolean) }
  out.restore()
  err.restore()
  return answer
}

t.test('config check prints the effective settings and ends with 0', async t => {
  const { status, out, lines } = await checked(t, '-https', '-cert', endedCert, '-key', endedKey, '-fg')
  t.same({ status, lines }, { status: 0, lines: [] })
  t.match(out, /^-cert: the certificate in .* has ended on /)
  t.match(out, /^-dataDir \S+ {3}\(-dataDir\)$/m)
  t.notOk(existsSync(nowhere))
})

t.test('config check reports everything that a start would refuse, and ends with 1', async t => {
  t.match(await checked(t, '-port', '0', '-prot', '7'), {
    status: 1,
    lines: ['-prot: unknown option; did you mean -port?', /^-port: "0" is not a whole number/],
  })
  const pid = file('running.pid', `${process.ppid}\n`)
  const { status, lines } = await checked(t, '-notifCaFile', nothing, '-logDir', certFile, '-pidpath', pid)
  t.equal(status, 1)
  t.match(lines, [/^-notifCaFile: /, /^cannot write the log file .* is no directory/, /pid file .* is running: \d+$/])
  t.match((await checked(t, '-pidpath', '/none/pid')).lines, [/^cannot write the pid file \/none\/pid: ENOENT/])
  t.same((await checked(t, '-logDir', join(folder, 'new', 'logs'))).lines, [], 'a folder for the log is made')
  t.equal(readFileSync(pid, 'utf8'), `${process.ppid}\n`)
})

t.test(
  'config check names the process that uses the data directory',
  { skip: !existsSync('/proc/locks') && 'Linux only' },
  async t => {
    const path = made(t)
    t.same((await checked(t, '-dataDir', path)).lines, [])
    const directory = openDataDirectory(path, placementDefault, () => 'an-id')
    const store = await openStore(directory, { durability: 'os', logger: { warn: () => {} } })
    t.same((await checked(t, '-dataDir', path)).lines, [
      `data directory ${path} is in use by process ${process.pid}: a start is refused until that has ended`,
    ])
    await store.close()
    t.same((await checked(t, '-dataDir', path)).lines, [])
  },
)

t.test('an archive of tiles has to be one that the console can draw', async t => {
  const archive = (change?: ArchiveChange): Promise<Findings> =>
    found('-consoleTiles', writeTileArchive(folder, change))
  t.same(await archive(), { faults: [], warnings: [] })
  const path = join(folder, 'map.pmtiles')
  const faults = [
    [{ kind: 1 }, `-consoleTiles: ${path} has vector tiles, and only raster tiles are drawn`],
    [{ kind: 0 }, `-consoleTiles: ${path} has tiles of an unknown kind`],
    [{ version: 2 }, `-consoleTiles: ${path} has version 2 of PMTiles, and only 3 is read`],
    [{ magic: 'PK' }, `-consoleTiles: ${path} is not an archive of PMTiles`],
  ] as const
  for (const [change, fault] of faults) t.same((await archive(change)).faults, [fault])
  const missing = join(folder, 'missing.pmtiles')
  t.match((await found('-consoleTiles', missing)).faults, [/^-consoleTiles: ENOENT: .*missing\.pmtiles/])
})
