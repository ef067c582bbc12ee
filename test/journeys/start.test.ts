// How the program starts, refuses to start, and stops.
//
// The tests check the view of an operator: lines, exit codes, files. Real processes show that a data directory belongs
// to one process and one format, because a lock that a test fakes proves nothing.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { accepts, freePort, readyLine, runToEnd, spawnBroker, startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { withoutPackages } from '../support/installation.js'

const readyMsMax = 5_000
const nativePackages = ['uWebSockets.js', '@nxtedition/rocksdb']

t.test('from an empty directory it is ready soon, and prints one line then', async t => {
  const beginMs = performance.now()
  const broker = await startBroker(t)
  const took = performance.now() - beginMs
  t.ok(took < readyMsMax, `ready after ${Math.round(took)} ms`)
  const lines = broker.stdout.split('\n').filter(line => readyLine.test(line))
  t.equal(lines.length, 1, `one ready line: ${lines.join(' | ')}`)
})

for (const words of ['-h', '-u', 'help import']) {
  t.test(`${words} prints the usage and exits with 0`, async t => {
    const exit = await runToEnd(t, words.split(' '))
    t.equal(exit.code, 0, exit.stderr)
    t.match(exit.stdout, /usage/i)
  })
}

t.test('--version prints a version and exits with 0', async t => {
  const exit = await runToEnd(t, ['--version'])
  t.equal(exit.code, 0, exit.stderr)
  t.match(exit.stdout, /\d+\.\d+\.\d+/)
})

const refusedOptions: readonly (readonly [string, readonly string[]])[] = [
  ['an unknown option', ['-noSuchOption']],
  ['a missing value', ['-port']],
  ['a value out of range', ['-port', '70000']],
]
for (const [name, args] of refusedOptions) {
  t.test(`${name} ends the start with 1 and the usage`, async t => {
    const exit = await runToEnd(t, args)
    t.equal(exit.code, 1)
    t.match(exit.stderr, /^usage/i)
    t.match(exit.stderr.trimEnd().split('\n').at(-1), new RegExp(`^${args[0]}: `), 'the last line names the option')
  })
}

t.test('a port in use ends the start with a clear message', async t => {
  const first = await startBroker(t)
  const dataDir = join(tempDir(t), 'data')
  const second = await spawnBroker(t, { port: first.port, dataDir })
  const exit = await second.exitWithin(20_000)
  t.notMatch(exit, { code: 0 })
  t.match(exit.stderr + exit.stdout, /in use|EADDRINUSE/i)
  t.notMatch(exit.stdout, readyLine, 'and it never said it was ready')
  t.notOk(existsSync(dataDir), 'and made no data directory')
})

t.test('a configured server that cannot be loaded ends the start, and makes no data directory', async t => {
  const dataDir = join(tempDir(t), 'data')
  const program = withoutPackages(t, ['uWebSockets.js'])
  const exit = await (await spawnBroker(t, { dataDir, main: program, args: ['-httpServer', 'uws'] })).exitWithin(20_000)
  t.match(exit, { code: 1, stderr: /uWebSockets\.js/ })
  t.notOk(existsSync(dataDir))
})

t.test('with -logFormat json every line is JSON, from the first one to the last words', async t => {
  const json = ['-logFormat', 'json']
  const first = await startBroker(t, { args: [...json, '-logLevel', 'INFO'], env: { CTX_PROT: '1' } })
  const second = await spawnBroker(t, { port: first.port, args: json })
  const refused = await runToEnd(t, ['-prot', '80', ...json])
  const exits = [await second.exitWithin(20_000), refused, await first.kill('SIGTERM')]
  const lines = exits.flatMap(({ stdout, stderr }) => `${stdout}${stderr}`.split('\n').filter(Boolean))
  const messages = lines.map(line => (JSON.parse(line) as { msg: string }).msg)
  t.ok(messages.some(message => readyLine.test(message)))
  t.ok(messages.includes(`address already in use: [::]:${first.port}`))
  t.ok(messages.includes('-prot: unknown option; did you mean -port?'))
  t.ok(messages.includes('environment variable CTX_PROT is unknown; did you mean CTX_PORT?'))
})

t.test('a data directory in use by another process is refused', async t => {
  const first = await startBroker(t)
  const second = await spawnBroker(t, { dataDir: first.dataDir })
  const exit = await second.exitWithin(20_000)
  t.notMatch(exit, { code: 0 })
  t.match(exit.stderr + exit.stdout, /in use|lock/i)
  const client = new HttpClient(first.baseUrl)
  t.equal((await client.send('POST', '/v2/entities', { id: 'a', type: 'T' })).status, 201, 'the first is not disturbed')
  client.close()
})

t.test('a data directory of another format is refused and left as it is', async t => {
  const dataDir = tempDir(t)
  const foreign = JSON.stringify({ format: 99, shards: 256, spread: 16, id: '3f1c' })
  writeFileSync(join(dataDir, 'orrery.json'), foreign)
  const exit = await (await spawnBroker(t, { dataDir })).exitWithin(20_000)
  t.notMatch(exit, { code: 0 })
  t.match(exit.stderr + exit.stdout, /format 99/)
  t.equal(readFileSync(join(dataDir, 'orrery.json'), 'utf8'), foreign)
  t.strictSame(readdirSync(dataDir), ['orrery.json'])
})

t.test('a directory that holds something else is refused and left as it is', async t => {
  const dataDir = tempDir(t)
  writeFileSync(join(dataDir, 'letter.txt'), 'Dear reader')
  const exit = await (await spawnBroker(t, { dataDir })).exitWithin(20_000)
  t.notMatch(exit, { code: 0 })
  t.ok((exit.stderr + exit.stdout).includes(dataDir), 'it names the directory')
  t.strictSame(readdirSync(dataDir), ['letter.txt'])
})

t.test('a data directory stays with the store that made it', async t => {
  const twins = withoutPackages(t, nativePackages)
  const ofTwin = tempDir(t)
  await (await startBroker(t, { dataDir: ofTwin, main: twins })).kill('SIGTERM')
  const broker = await startBroker(t, { dataDir: ofTwin })
  t.match(broker.stdout, /level/, 'what LevelDB made is opened with LevelDB, though RocksDB is there')

  const native = await startBroker(t)
  t.match(native.stdout, /rocksdb/)
  await native.kill('SIGTERM')
  const exit = await (await spawnBroker(t, { dataDir: native.dataDir, main: twins })).exitWithin(20_000)
  t.notMatch(exit, { code: 0 })
  t.match(exit.stderr + exit.stdout, /rocksdb/, 'what RocksDB made is refused where RocksDB is not there')
})

t.test('SIGTERM waits for a request in flight, then the program exits with 0', async t => {
  const broker = await startBroker(t)
  const body = JSON.stringify({ id: 'late', type: 'T', text: { type: 'Text', value: 'x'.repeat(1000) } })
  const socket = connect({ port: broker.port, host: '127.0.0.1' })
  const received = readAll(socket)
  socket.write(
    `POST /v2/entities HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  socket.write(body.slice(0, 10))
  // Wait for an answer on another connection: by then the broker has also read the bytes that came before.
  const client = new HttpClient(broker.baseUrl)
  t.equal((await client.get('/version')).status, 200)
  client.close()

  broker.signal('SIGTERM')
  for (const until = performance.now() + 5_000; performance.now() < until && (await accepts(broker.port)); )
    await pause(5)
  t.notOk(await accepts(broker.port), 'new connections are refused')
  socket.write(body.slice(10))
  t.match(await received, /^HTTP\/1\.1 201 /, 'the request in flight is answered')
  const exit = await broker.exitWithin(20_000)
  t.equal(exit.code, 0, exit.stderr)

  const again = new HttpClient((await startBroker(t, { dataDir: broker.dataDir })).baseUrl)
  t.equal((await again.get('/v2/entities/late')).status, 200, 'and what it wrote is kept')
  again.close()
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal} under load ends with 0, and every 201 that was given is kept`, async t => {
    const dataDir = tempDir(t)
    const broker = await startBroker(t, { dataDir })
    const created: string[] = []
    const writer = async (_: unknown, w: number): Promise<void> => {
      const client = new HttpClient(broker.baseUrl)
      for (let n = 0; ; n++) {
        const id = `urn:load:${w}:${n}`
        const answer = await client.send('POST', '/v2/entities', { id, type: 'T' }).catch(() => undefined)
        if (answer?.status !== 201) return client.close()
        created.push(id)
        if (created.length === 200) broker.signal(signal)
      }
    }
    await Promise.all(Array.from({ length: 8 }, writer))
    t.equal((await broker.exitWithin(20_000)).code, 0, broker.stderr)

    const client = new HttpClient((await startBroker(t, { dataDir })).baseUrl)
    const lost: string[] = []
    for (const id of created) if ((await client.get(`/v2/entities/${id}`)).status !== 200) lost.push(id)
    client.close()
    t.strictSame(lost, [], `all of ${created.length} are there`)
  })
}

t.test('a head of 15 KB is served, one of 17 KB is not', async t => {
  const broker = await startBroker(t)
  const client = new HttpClient(broker.baseUrl)
  t.equal((await client.get(`/v2/entities?attrs=${'a,'.repeat(7_500)}b`)).status, 200)
  t.equal((await client.get(`/v2/entities?attrs=${'a,'.repeat(8_500)}b`)).status, 431)
})

t.test('without the native packages it starts on the twins and keeps its data', async t => {
  const program = withoutPackages(t, nativePackages)
  const dataDir = tempDir(t)
  const broker = await startBroker(t, { dataDir, main: program })
  const client = new HttpClient(broker.baseUrl)
  const entity = { id: 'Room1', type: 'Room', temperature: { type: 'Number', value: 21, metadata: {} } }
  t.equal((await client.send('POST', '/v2/entities', entity)).status, 201)
  t.strictSame((await client.get('/v2/entities/Room1')).json, entity)
  client.close()
  t.equal((await broker.kill('SIGTERM')).code, 0)

  const again = new HttpClient((await startBroker(t, { dataDir, main: program })).baseUrl)
  t.strictSame((await again.get('/v2/entities/Room1')).json, entity, 'after a restart too')
  again.close()
})

t.test('the port is the only one: a second broker on another port and directory does not disturb', async t => {
  const [one, two] = await Promise.all([startBroker(t), startBroker(t, { port: await freePort() })])
  const clients = [new HttpClient(one.baseUrl), new HttpClient(two.baseUrl)]
  t.equal((await clients[0]?.send('POST', '/v2/entities', { id: 'a', type: 'T' }))?.status, 201)
  t.equal((await clients[1]?.get('/v2/entities/a'))?.status, 404)
  for (const client of clients) client.close()
})

function readAll(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part
      if (text.includes('\r\n\r\n')) resolve(text)
    })
    socket.once('close', () => resolve(text))
    socket.once('error', reject)
  })
}
