// The files that a running program writes beside its data: the log, and the number of its process.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { runToEnd, startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'

t.setTimeout(400_000)

async function runOnce(t: Parameters<typeof startBroker>[0], args: readonly string[], dataDir: string): Promise<void> {
  const broker = await startBroker(t, { args: ['-logLevel', 'INFO', ...args], dataDir })
  const client = new HttpClient(broker.baseUrl)
  await client.get('/v2')
  client.close()
  await broker.kill('SIGTERM')
}

const starts = (path: string): number => readFileSync(path, 'utf8').split('Startup completed').length - 1

t.test('the log file begins anew at each start, the one before is kept, and with -logAppend it goes on', async t => {
  const directory = tempDir(t)
  const data = tempDir(t)
  const file = join(directory, 'logs', 'contextBroker.log')
  const args = ['-logDir', join(directory, 'logs')]
  await runOnce(t, args, data)
  t.equal(starts(file), 1)
  t.match(readFileSync(file, 'utf8'), /msg=Request received: GET \/v2, response code: 200\n/)
  await runOnce(t, args, data)
  t.equal(starts(file), 1)
  t.equal(starts(`${file}.old`), 1)
  await runOnce(t, [...args, '-logAppend'], data)
  t.equal(starts(file), 2)
})

t.test('workers write into the file of their supervisor', async t => {
  const directory = tempDir(t)
  await runOnce(t, ['-logDir', directory, '-workers', '2'], tempDir(t))
  const log = readFileSync(join(directory, 'contextBroker.log'), 'utf8')
  t.match(log, 'Startup completed')
  t.match(log, 'Request received: GET /v2')
})

for (const workers of ['1', '2'])
  t.test(`after SIGHUP lines go to a new file, and the broker serves on, with -workers ${workers}`, async t => {
    const directory = tempDir(t)
    const file = join(directory, 'contextBroker.log')
    const args = ['-logLevel', 'INFO', '-logDir', directory, '-workers', workers]
    const broker = await startBroker(t, { args })
    renameSync(file, `${file}.1`)
    process.kill(broker.child.pid as number, 'SIGHUP')
    for (let asked = 0; asked < 500; asked++) {
      const client = new HttpClient(broker.baseUrl)
      t.equal((await client.get(`/v2?n=${asked}`)).status, 200)
      client.close()
      if (existsSync(file) && readFileSync(file, 'utf8').includes('Request received: GET /v2')) break
    }
    t.match(readFileSync(file, 'utf8'), 'Request received: GET /v2')
    t.equal((await broker.kill('SIGTERM')).code, 0)
    t.match(readFileSync(file, 'utf8'), 'exiting due to receiving a signal (SIGTERM)')
  })

t.test('a log file that was renamed is noticed without a signal', async t => {
  const directory = tempDir(t)
  const file = join(directory, 'contextBroker.log')
  await startBroker(t, { args: ['-logDir', directory] })
  renameSync(file, `${file}.1`)
  for (const untilMs = performance.now() + 10_000; !existsSync(file) && performance.now() < untilMs; ) await pause(20)
  t.ok(existsSync(file))
})

t.test('the pid file has the number of the process as long as it runs', async t => {
  const path = join(tempDir(t), 'pid')
  writeFileSync(path, '999999999\n')
  const broker = await startBroker(t, { args: ['-pidpath', path] })
  t.equal(readFileSync(path, 'utf8'), `${broker.child.pid}\n`)
  const second = await runToEnd(t, ['-pidpath', path, '-dataDir', tempDir(t), '-port', '1'])
  t.match(second, { code: 1, stderr: `the process of the pid file ${path} is running: ${broker.child.pid}` })
  await broker.kill('SIGTERM')
  t.equal(existsSync(path), false)
})

t.test('a log file that cannot be written stops the start with a sentence', async t => {
  const file = join(tempDir(t), 'file')
  writeFileSync(file, '')
  const { code, stderr } = await runToEnd(t, ['-logDir', file, '-dataDir', tempDir(t), '-port', '1'])
  t.equal(code, 1)
  t.match(stderr, `orrery: cannot write the log file ${join(file, 'contextBroker.log')}: `)
})
