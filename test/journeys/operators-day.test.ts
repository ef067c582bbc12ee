// A day of an operator: the program comes out of its archive, takes over the data of an older build, works under load
// while logs and certificates are rotated, loses a receiver, is backed up, loses everything, and is restored. After
// each step clients must see the same data as before. Small and quick by default; the soak (test/soak.sh) makes it
// long:
//
// - ORRERY_DAY_NODE: the binary of Node.js that runs the program; without it, the one that runs the test
// - ORRERY_DAY_INSTALL=npm: npm installs the archive with its packages; else the archive uses those of this project
// - ORRERY_DAY_ENTITIES: how many entities each tenant has besides those with values of every kind
// - ORRERY_DAY_AWAY_SECONDS: how long the receiver is away
//
// Not here: backups of several workers (backup.test.ts), upgrades of a cluster (upgrade.test.ts), each way to install
// (docs/operations).

import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { Authority } from '../cluster/certificates.js'
import { type BrokerProcess, plainly, startBroker, tempDir } from '../support/broker-process.js'
import { MoodyReceiver, type ReceivedRequest } from '../support/moody-receiver.js'
import { unpackOlderBuild } from '../support/older-build.js'
import { root } from '../support/project.js'
import { Random } from '../support/random.js'
import { Client, deadLetters, differenceIn, fill, Load, of, receivers, sum, tenants, until } from './operated.js'

const node = process.env.ORRERY_DAY_NODE ?? process.execPath
const byNpm = process.env.ORRERY_DAY_INSTALL === 'npm'
const entityCount = Number(process.env.ORRERY_DAY_ENTITIES ?? 200)
const awayMs = 1000 * Number(process.env.ORRERY_DAY_AWAY_SECONDS ?? 3)

/** Between two requests of a writer: so slow that the outbox has room for a receiver that is away for six minutes. */
const restMs = 10
const batchSize = 200
/** Changes of the load that a step waits for. */
const changesMin = 40

t.setTimeout(300_000 + 4 * awayMs)

// The program of the day

interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function run(cwd: string, words: readonly string[]): Promise<Ran> {
  try {
    const done = await promisify(execFile)(...plainly(words), { cwd, maxBuffer: 64 * 1024 * 1024 })
    return { code: 0, ...done }
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code?: unknown; stdout?: string; stderr?: string }
    if (typeof code !== 'number') throw error
    return { code, stdout, stderr }
  }
}

async function succeeds(cwd: string, words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(cwd, words)
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${stderr}`)
  return stdout
}

/** Packs the program, and installs the archive into an empty folder; returns the folder of the program. */
async function installed(folder: string): Promise<string> {
  const scripts = byNpm ? [] : ['--ignore-scripts']
  await succeeds(root, ['npm', 'pack', '--silent', ...scripts, '--pack-destination', folder])
  const archive = join(folder, readdirSync(folder).find(name => name.endsWith('.tgz'))!)
  if (byNpm) {
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
    const options = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
    await succeeds(folder, ['npm', 'install', ...options, archive])
    return join(folder, 'node_modules/@orrery-broker/orrery')
  }
  await succeeds(folder, ['tar', '-xzf', archive, '-C', folder])
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction')
  return join(folder, 'package')
}

// Data as clients see it

/** Creates entities besides those with values of every kind. */
async function createMany(client: Client): Promise<void> {
  for (const tenant of tenants)
    for (let from = 0; from < entityCount; from += batchSize) {
      const entities = Array.from({ length: Math.min(batchSize, entityCount - from) }, (_, n) => ({
        id: `urn:room:${from + n}`,
        type: 'Room',
        temperature: { type: 'Number', value: (from + n) / 7, metadata: { by: { type: 'Text', value: `m${n}` } } },
        place: { type: 'geo:point', value: `${((from + n) % 90) / 2}, ${(from + n) % 180}` },
      }))
      await client.send('POST', '/v2/op/update', { actionType: 'append', entities }, of(tenant, `/floor${from % 3}`))
    }
}

type Seen = ReadonlyMap<string, string>

/** Compares all that a broker shows with an earlier state. */
async function sameAsBefore(t: Test, client: Client, before: Seen): Promise<void> {
  const now = await client.visible()
  let bytes = 0
  for (const [what, text] of now) {
    bytes += text.length
    t.equal(differenceIn(text, before.get(what) ?? ''), '', what)
  }
  t.strictSame([...now.keys()], [...before.keys()])
  t.comment(`compared: ${now.size} answers of two tenants, ${bytes} characters, each to the last one`)
}

/** Receives the notifications of each change of the entities under load. */
class Watcher {
  readonly receiver: MoodyReceiver
  /** Values by tenant and entity, in the order of arrival; a value that came twice in a row is in the list once. */
  readonly values = new Map<string, number[]>()
  repeated = 0

  constructor(t: Test, random: Random) {
    this.receiver = new MoodyReceiver(t, random, received => this.receive(received))
  }

  private receive({ path, body }: ReceivedRequest): void {
    const { data } = JSON.parse(body) as { readonly data: readonly { readonly id: string; readonly load: number }[] }
    for (const { id, load } of data) {
      const name = `${path.slice('/load/'.length)} ${id}`
      const values = this.values.get(name) ?? []
      // A repetition: the answer to the first one was lost with the connection.
      if (values.at(-1) === load) this.repeated++
      else values.push(load)
      this.values.set(name, values)
    }
  }

  async subscribe(client: Client): Promise<void> {
    for (const tenant of tenants) {
      const url = `${this.receiver.url}/load/${tenant}`
      const notification = { http: { url }, attrs: ['load'], attrsFormat: 'keyValues' }
      const subject = { entities: [{ idPattern: '.*', type: 'Load' }] }
      await client.send('POST', '/v2/subscriptions', { description: 'load', subject, notification }, of(tenant))
    }
  }

  get count(): number {
    return [...this.values.values()].reduce((count, values) => count + values.length, 0)
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)

/** Resolves when the load has made more changes. */
async function more(load: Load): Promise<void> {
  const from = sum(load.answered)
  await until('more load', () => sum(load.answered) >= from + changesMin || undefined)
}

/** The number of answered changes of the load in log files. */
const loggedIn = (files: readonly string[]): number =>
  files
    .map(file => (existsSync(file) ? readFileSync(file, 'utf8') : ''))
    .join('')
    .match(/Request received: (POST \/v2\/entities|PATCH \/v2\/entities\/L[0-9.]+\/attrs), .*response code: 20/g)
    ?.length ?? 0

t.test('a day of an operator', async day => {
  const random = Random.fromEnvironment()
  day.comment(`SEED=${random.seed}`)
  const folder = tempDir(day)
  const place = (name: string): string => join(folder, name)
  for (const name of ['program', 'logs']) mkdirSync(place(name))
  const dataDir = place('data')
  const keyFile = place('backup.key')
  writeFileSync(keyFile, 'a-key-of-some-length\n')
  const logFile = join(place('logs'), 'contextBroker.log')
  const ofBoth = ['-multiservice', '-outReqMsgMaxSize', '10000']
  const args = [...ofBoth, '-backupKeyFile', keyFile, '-logDir', place('logs'), '-logLevel', 'INFO']
  const receiving = await receivers(day, random)
  const watcher = new Watcher(day, random)
  await watcher.receiver.open()

  let main = ''
  const orrery = (...words: string[]): Promise<Ran> => run(folder, [node, main, ...words])
  const start = async (): Promise<{ broker: BrokerProcess; client: Client }> => {
    const broker = await startBroker(day, { node, main, dataDir, args, readyWaitMs: 60_000 })
    return { broker, client: new Client(broker) }
  }

  await day.test('the archive is installed into an empty folder, and the program prints its version', async t => {
    const program = await installed(place('program'))
    main = join(program, 'dist/program/main.js')
    const { version } = JSON.parse(readFileSync(join(program, 'package.json'), 'utf8')) as { version: string }
    t.match(await orrery('version'), { code: 0, stdout: `orrery ${version}\n` })
    for (const file of ['README.md', 'docs/operations/backup.md', 'deploy/orrery.service'])
      t.ok(existsSync(join(program, file)), `it has ${file}`)
    t.comment(`on ${(await succeeds(folder, [node, '--version'])).trim()}, installed ${byNpm ? 'by npm' : 'by tar'}`)
  })
  if (!day.passing()) return

  let before: Seen = new Map()
  await day.test('an older build is filled, and ends well', async t => {
    const older = unpackOlderBuild(day)
    const broker = await startBroker(day, { node, main: older.main, dataDir, args: ofBoth, readyWaitMs: 60_000 })
    const client = new Client(broker)
    await createMany(client)
    await fill(client, receiving)
    before = await client.visible()
    client.close()
    t.equal((await broker.kill('SIGTERM')).code, 0, `commit ${older.commit} ends with 0`)
  })
  if (!day.passing()) return

  const { broker, client } = await (async () => {
    await day.test('`config check` accepts the options of the start that follows', async t => {
      const { code, stderr } = await orrery('config', 'check', '-dataDir', dataDir, ...args)
      t.equal(code, 0, stderr)
    })
    return start()
  })()
  await day.test('this build shows all that the older one has shown', async t => {
    await sameAsBefore(t, client, before)
  })

  await watcher.subscribe(client)
  before = await client.visible()
  const letters = await deadLetters(client)
  const load = new Load(client, random, restMs)
  await more(load)

  await day.test('the log is rotated under load, and has a line for each change', async t => {
    renameSync(logFile, `${logFile}.1`)
    process.kill(broker.child.pid as number, 'SIGHUP')
    await until('the new log file', () => loggedIn([logFile]) > 0 || undefined)
    t.ok(loggedIn([`${logFile}.1`]) > 0, `${loggedIn([`${logFile}.1`])} changes are in the old file`)
  })

  await day.test('a receiver is lost under load, and gets everything in order when it is back', async t => {
    await watcher.receiver.close()
    const countBefore = watcher.count
    await more(load)
    await pause(awayMs)
    const missed = sum(load.answered) - countBefore
    await watcher.receiver.open()
    const backMs = performance.now()
    await until(
      'what the receiver has missed',
      () => watcher.count >= countBefore + missed || undefined,
      30_000 + awayMs,
    )
    t.ok(missed >= changesMin, `${missed} changes in ${awayMs} ms`)
    t.comment(`all were there after ${(performance.now() - backMs).toFixed()} ms; ${watcher.repeated} came twice`)
  })

  const file = place('backup')
  const answered = new Map(load.answered)
  const backup = await orrery('backup', '--from', broker.baseUrl, '--to', file, '--backupKeyFile', keyFile)
  const asked = new Map(load.asked)
  await day.test('a backup is made under load', async t => {
    t.equal(backup.code, 0, backup.stderr)
    await more(load)
    await load.end()
  })

  await day.test('no change is lost: the receiver has each in order, and the log has a line for each', async t => {
    const all = sum(load.answered)
    await until('all notifications', () => watcher.count >= all || undefined, 60_000).catch(() => {})
    const lacking: string[] = []
    for (const [name, count] of load.answered) {
      const values = watcher.values.get(name) ?? []
      if (JSON.stringify(values) !== JSON.stringify(upTo(count))) lacking.push(`${name}: ${values}, not 1 to ${count}`)
    }
    t.strictSame(lacking, [], `${all} changes of ${load.answered.size} entities`)
    const files = [`${logFile}.1`, logFile]
    await until('all lines', () => loggedIn(files) >= all || undefined).catch(() => {})
    t.equal(loggedIn(files), all, 'lines of changes in both log files')
  })

  client.close()
  await broker.kill('SIGKILL')
  rmSync(dataDir, { recursive: true })

  await day.test('all is lost, and the restored broker shows the contents of the backup', async t => {
    const restored = await orrery('restore', '--from', file, '-dataDir', dataDir)
    t.equal(restored.code, 0, restored.stderr)
    const { client, broker } = await start()
    await sameAsBefore(t, client, before)
    t.strictSame(await deadLetters(client), letters, 'dead letters')
    const loaded = await client.loaded()
    const wrong: string[] = []
    for (const [name, value] of answered) if (!(loaded.get(name)! >= value)) wrong.push(`${name} was ${value}`)
    for (const [name, value] of loaded) if (!(value <= (asked.get(name) ?? 0))) wrong.push(`${name} is ${value}`)
    t.strictSame(wrong, [], `${loaded.size} entities under load are as they were at a moment of the backup`)
    receiving.received.length = 0
    await receiving.away.open()
    const sentAway = () =>
      new Set(receiving.received.filter(({ path }) => path === '/away').map(({ body }) => body)).size
    await until('what was owed', () => sentAway() >= 4 || undefined)
    t.equal(sentAway(), 4, 'notifications that were owed are sent')
    client.close()
    t.equal((await broker.kill('SIGTERM')).code, 0)
  })

  await day.test('certificates are replaced under load, and no request fails', t => replacesCertificates(t, main))
})

/**
 * Sends requests over TLS continuously, replaces the certificate, and continues until new connections get the new one.
 */
async function replacesCertificates(t: Test, main: string): Promise<void> {
  const authority = new Authority(t)
  const folder = tempDir(t)
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const write = ({ cert, key }: { readonly cert: string; readonly key: string }): void => {
    writeFileSync(keyFile, key)
    writeFileSync(certFile, cert)
  }
  write(authority.member())
  const broker = await startBroker(t, { node, main, args: ['-https', '-cert', certFile, '-key', keyFile] })
  const before = await fingerprintAt(broker.port)
  const agent = new Agent({ keepAlive: true, maxSockets: 2, ca: authority.ca, checkServerIdentity: () => undefined })
  const failures: string[] = []
  let asked = 0
  let isOver = false
  const asking = (async () => {
    for (; !isOver; asked++) {
      const status = await statusOf(broker.port, agent).catch((error: Error) => error.message)
      if (status !== 200) failures.push(String(status))
    }
  })()
  const askedMore = async (): Promise<void> => {
    const from = asked
    await until('more requests', () => asked >= from + changesMin || undefined)
  }
  await askedMore()
  write(authority.member())
  process.kill(broker.child.pid as number, 'SIGHUP')
  await until('the new certificate', async () => (await fingerprintAt(broker.port)) !== before || undefined)
  await askedMore()
  isOver = true
  await asking
  agent.destroy()
  t.strictSame(failures, [], `${asked} requests over connections that stay open`)
}

function fingerprintAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

function statusOf(port: number, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path: '/v2/entities', agent }, response => {
      response.resume().on('end', () => resolve(response.statusCode))
    })
    sent.on('error', reject)
    sent.end()
  })
}
