// Export and import with the program as an operator has it: processes, files, signals.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, watch, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { plainly, runToEnd, startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { exportWith } from '../support/moving.js'
import { main } from '../support/project.js'
import { Random } from '../support/random.js'

const random = Random.fromEnvironment()
/** Number of times that an import is killed; `npm run soak` sets more. */
const killsWanted = Number(process.env.MOVE_KILLS ?? 2)
t.comment(`SEED=${random.seed}`)
t.setTimeout(600_000)

const line = (n: number) => ({
  entity: {
    id: `E${(n * 7919) % 100_003}`,
    type: n % 2 === 0 ? 'Room' : 'Hall',
    temp: { type: 'Number', value: n, metadata: {} },
  },
  tenant: n % 3 === 0 ? 'city' : '',
  servicePath: `/p${n % 4}`,
  dateCreated: new Date(1_700_000_000_000 + Math.floor(n / 10)).toISOString(),
})

function fileOf(t: Test, count: number): string {
  const file = join(tempDir(t), 'in.ndjson')
  writeFileSync(
    file,
    exportWith(
      Array.from({ length: count }, (_, n) => line(n)),
      { entities: count },
    ),
  )
  return file
}

async function run(t: Test, args: readonly string[]): Promise<string> {
  const exit = await runToEnd(t, args, 60_000)
  t.equal(exit.code, 0, exit.stderr)
  return exit.stderr
}

/** The text of an export of a data directory. */
async function exported(t: Test, dataDir: string): Promise<string> {
  const file = join(tempDir(t), 'out.ndjson')
  await run(t, ['export', '-dataDir', dataDir, '-to', file])
  t.equal(statSync(file).mode & 0o777, 0o600, 'it is for its user alone')
  t.notOk(existsSync(`${file}.state`))
  return readFileSync(file, 'utf8')
}

t.test('out of one broker, into another one with other workers: the same answers, and the same file again', async t => {
  const first = await startBroker(t, { args: ['-multiservice'] })
  const client = new HttpClient(first.baseUrl)
  const headers = { 'Ctx-Service': 'city', 'Ctx-ServicePath': '/a' }
  for (let n = 0; n < 20; n++) {
    const loc = { type: 'geo:point', value: `${n},1` }
    await client.send('POST', '/v2/entities', { id: `E${(n * 7) % 20}`, type: 'T', a: { value: n }, loc }, headers)
  }
  const notification = { http: { url: 'http://127.0.0.1:9' } }
  await client.send(
    'POST',
    '/v2/subscriptions',
    { subject: { entities: [{ idPattern: '.*' }] }, notification },
    headers,
  )
  const asks = [
    '/v2/entities?options=count&attrs=*,dateCreated,dateModified&metadata=dateCreated,dateModified',
    '/v2/entities?q=a>3&orderBy=!a',
    '/v2/entities?georel=near;maxDistance:500000&geometry=point&coords=5,1',
    '/v2/types',
    '/v2/subscriptions',
  ]
  const answersOf = async (client: HttpClient) => {
    const answers: unknown[] = []
    for (const path of asks) answers.push((await client.get(path, { 'Ctx-Service': 'city' })).text)
    return answers
  }
  const before = await answersOf(client)
  const refused = await runToEnd(t, ['export', '-dataDir', first.dataDir])
  t.equal(refused.code, 1)
  t.match(refused.stderr, `orrery export: data directory ${first.dataDir} is in use by another process`)
  t.equal((await first.kill('SIGTERM')).code, 0)

  const text = await exported(t, first.dataDir)
  const file = join(tempDir(t), 'in.ndjson')
  writeFileSync(file, text)
  const dataDir = join(tempDir(t), 'data')
  t.match(
    await run(t, ['import', '-file', file, '-dataDir', dataDir, '-workers', '3']),
    'imported 20 entities, 0 registrations, 1 subscriptions',
  )
  t.equal(await exported(t, dataDir), text)
  const second = await startBroker(t, { dataDir, args: ['-multiservice', '-workers', '3'] })
  t.strictSame(await answersOf(new HttpClient(second.baseUrl)), before)
})

t.test('the exit code shows whether everything requested is there', async t => {
  const file = fileOf(t, 60)
  const dataDir = join(tempDir(t), 'data')
  const into = (...more: string[]) => runToEnd(t, ['import', '-file', file, '-dataDir', dataDir, ...more], 60_000)
  const first = await into('-tenant', 'city', '-path', '/p1')
  t.match(first, { code: 0, stderr: /imported 5 entities \(55 were not selected\), 0 registrations/ })
  const typo = await into('-tenant', 'ciyt')
  t.match(typo, { code: 1, stderr: /nothing of tenant ciyt was found\nimported 0 entities \(60 were not selected\)/ })
  t.match(await into(), { code: 0, stderr: /imported 55 entities \(5 were there already and are equal\)/ })
  const changed = join(tempDir(t), 'changed.ndjson')
  writeFileSync(changed, readFileSync(file, 'utf8').replace('"value":7,', '"value":8,'))
  const differs = await runToEnd(t, ['import', '-file', changed, '-dataDir', dataDir], 60_000)
  t.match(differs, {
    code: 1,
    stderr: /imported 0 entities \(59 were there already and are equal, 1 are there already and differ/,
  })
})

t.test('from one running broker to another one', async t => {
  const first = await startBroker(t, { args: ['-multiservice'] })
  const second = await startBroker(t, { args: ['-multiservice'] })
  await run(t, ['import', '-file', fileOf(t, 50), '-to', first.baseUrl])
  const result = await run(t, [
    'import',
    '--from',
    first.baseUrl,
    '--tenant',
    '',
    '--tenant',
    'city',
    '--to',
    second.baseUrl,
    '-state',
    join(tempDir(t), 's'),
  ])
  t.match(result, 'imported 50 entities')
  t.match(result, 'are not carried over HTTP')
  const file = join(tempDir(t), 'out.ndjson')
  await run(t, ['export', '--from', second.baseUrl, '--tenant', '', '--tenant', 'city', '-to', file])
  t.equal(readFileSync(file, 'utf8').split('\n').length, 53)
})

t.test('an export goes through a pipe', async t => {
  const dataDir = join(tempDir(t), 'data')
  await run(t, ['import', '-file', fileOf(t, 3000), '-dataDir', dataDir])
  const copy = join(tempDir(t), 'data')
  const program = `env -u NODE_OPTIONS '${process.execPath}' '${main}'`
  const child = spawn('sh', ['-c', `${program} export -dataDir '${dataDir}' | ${program} import -dataDir '${copy}'`], {
    stdio: 'ignore',
  })
  t.strictSame(await once(child, 'exit'), [0, null])
  t.equal(await exported(t, copy), await exported(t, dataDir))
})

/** Starts an import and sends it a signal after so many changes of its state. */
async function interrupted(
  args: readonly string[],
  state: string,
  changes: number,
  signal: NodeJS.Signals,
): Promise<{ code: number | null; signal: string | null; stderr: string }> {
  const child: ChildProcess = spawn(...plainly([process.execPath, main, ...args]), {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  let left = changes
  const watcher = watch(dirname(state), () => --left === 0 && child.kill(signal))
  const [code, by] = (await once(child, 'close')) as [number | null, string | null]
  watcher.close()
  return { code, signal: by, stderr }
}

t.test('kill -9 again and again costs nothing but time', async t => {
  const file = fileOf(t, 8000)
  const whole = join(tempDir(t), 'data')
  await run(t, ['import', '-file', file, '-dataDir', whole])
  const text = await exported(t, whole)
  for (const workers of ['1', '3']) {
    const dataDir = join(tempDir(t), 'data')
    const args = ['import', '-file', file, '-dataDir', dataDir, '-workers', workers]
    let kills = 0
    for (let tries = 0; tries < killsWanted; tries++) {
      const end = await interrupted(args, `${dataDir}.import`, random.between(1, 12), 'SIGKILL')
      if (end.signal === 'SIGKILL') kills++
      if (end.code === 0) break
    }
    const exit = await runToEnd(t, args, 60_000)
    t.equal(exit.code, 0, exit.stderr)
    t.ok(kills > 0, `${kills} kills`)
    t.notOk(existsSync(`${dataDir}.import`))
    t.equal(await exported(t, dataDir), text)
  }
})

t.test('after a kill nothing counts twice', async t => {
  const count = 12_000
  const file = fileOf(t, count)
  const dataDir = join(tempDir(t), 'data')
  const args = ['import', '-file', file, '-dataDir', dataDir]
  const end = await interrupted(args, `${dataDir}.import`, 6, 'SIGKILL')
  t.equal(end.signal, 'SIGKILL')
  const result = await run(t, args)
  t.match(result, 'goes on where it was interrupted')
  t.match(result, `imported ${count} entities, 0 registrations, 0 subscriptions`)
})

t.test('SIGINT ends it after the batch, with a word and 1, and the same command goes on', async t => {
  const file = fileOf(t, 12_000)
  const dataDir = join(tempDir(t), 'data')
  const args = ['import', '-file', file, '-dataDir', dataDir]
  const end = await interrupted(args, `${dataDir}.import`, 6, 'SIGINT')
  t.match(end, { code: 1, signal: null, stderr: /stopped: the same command goes on from here/ })
  t.match(await run(t, args), 'imported 12000 entities')
})

t.test('no data directory is made where one is to be exported', async t => {
  const path = join(tempDir(t), 'none')
  const exit = await runToEnd(t, ['export', '-dataDir', path])
  t.match(exit, { code: 1, stderr: `orrery export: ${path} is no data directory\n` })
  t.notOk(existsSync(path))
})
