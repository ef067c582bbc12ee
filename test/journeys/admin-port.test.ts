// The program with a port for operators: at its own address, with workers, over TLS whose certificate changes, and as a
// node of a cluster with the commands of an operator.
//
// Not here: what each port serves, and its limits (http/admin-port.test.ts).

import { execFileSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { runCommand } from '../../src/process/commands.js'
import { Wire } from '../http/wire.js'
import { freePort, spawnBroker, startBroker, tempDir } from '../support/broker-process.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { HttpClient } from '../support/http-client.js'
import { httpServers, readAnswer } from '../support/local-node.js'
import { foundSmallCluster } from '../support/small-cluster.js'

t.setTimeout(400_000)

const clientAt = (port: number, host = '127.0.0.1'): HttpClient => new HttpClient(`http://${host}:${port}`)

const refused = { code: 'ECONNREFUSED' }

t.test('the port is at the loopback address alone, or at the one that an option names', async t => {
  const [port, elsewhere] = [await freePort(), await freePort()]
  const broker = await startBroker(t, { args: ['-adminPort', String(port)] })
  t.match(
    broker.stdout,
    ` is ready at http://localhost:${broker.port}, for operators at http://127.0.0.1:${port} (data`,
  )
  t.equal((await clientAt(broker.port, '127.0.0.2').get('/version')).status, 200)
  t.equal((await clientAt(port).get('/admin/log')).status, 200)
  await t.rejects(clientAt(port, '127.0.0.2').get('/admin/log'), refused)

  const args = ['-httpServer', 'node', '-adminPort', String(elsewhere), '-adminLocalIp', '127.0.0.3']
  const other = await startBroker(t, { args })
  t.match(other.stdout, `, for operators at http://127.0.0.3:${elsewhere} (data`)
  t.equal((await clientAt(elsewhere, '127.0.0.3').get('/admin/log')).status, 200)
  await t.rejects(clientAt(elsewhere).get('/admin/log'), refused)
})

t.test('a port in use refuses the start, with a sentence', async t => {
  const port = await freePort()
  await startBroker(t, { args: ['-adminPort', String(port)] })
  for (const more of [[], ['-workers', '2']]) {
    const second = await spawnBroker(t, { args: ['-adminPort', String(port), ...more] })
    const { code, stderr } = await second.exitWithin(60_000)
    t.equal(code, 1)
    t.match(stderr, `-adminPort: address already in use: 127.0.0.1:${port}`)
  }
})

for (const server of httpServers)
  t.test(`${server}: with workers both ports are about all of them, and both end in order`, async t => {
    const port = await freePort()
    const args = ['-workers', '2', '-httpServer', server, '-adminPort', String(port), '-adminLocalIp', '127.0.0.3']
    const broker = await startBroker(t, { args, readyWaitMs: 120_000 })
    const operator = new HttpClient(`http://127.0.0.3:${port}`)
    for (let n = 0; n < 8; n++)
      await clientAt(broker.port).send('POST', '/v2/entities', { id: `E${n}`, type: 'T' }, { Connection: 'close' })
    t.equal((await operator.send('PUT', '/admin/log?level=ERROR')).status, 200)
    // Connections go to the workers in turn.
    for (let n = 0; n < 4; n++) {
      const client = new HttpClient(`http://127.0.0.3:${port}`)
      const { text } = await client.get('/metrics')
      t.match(text, /^orrery_workers 2$/m)
      t.match(text, /^orrery_entities 8$/m)
      t.match(await client.get('/admin/log'), { status: 200, json: { level: 'ERROR' } })
      t.match(await client.get('/health/ready'), { status: 200 })
      t.equal((await client.get('/v2/entities')).status, 404)
      client.close()
    }
    for (let n = 0; n < 4; n++) {
      const client = clientAt(broker.port)
      t.equal((await client.get('/admin/log')).status, 404)
      t.match((await client.get('/metrics')).text, /^orrery_workers 2$/m)
      client.close()
    }
    t.match(await broker.kill('SIGTERM'), { code: 0, stderr: '' })
    await t.rejects(new HttpClient(`http://127.0.0.3:${port}`).get('/version'), refused)
  })

for (const server of httpServers)
  t.test(`${server}: both ports have the same certificate, also when it changes`, async t => {
    const folder = tempDir(t)
    const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
    for (const name of ['first', 'second']) {
      const files = ['-keyout', `${key}.${name}`, '-out', `${cert}.${name}`, '-days', '2', '-subj', `/CN=${name}`]
      const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
      execFileSync('openssl', ['req', '-x509', ...curve, ...files], { stdio: 'ignore' })
    }
    const put = (name: string): void => {
      copyFileSync(`${key}.${name}`, key)
      copyFileSync(`${cert}.${name}`, cert)
    }
    put('first')
    const port = await freePort()
    const https = ['-https', '-key', key, '-cert', cert, '-httpServer', server]
    const broker = await startBroker(t, { args: [...https, '-adminPort', String(port)] })
    t.match(broker.stdout, `, for operators at https://127.0.0.1:${port} `)
    const subjectAt = async (at: number): Promise<string | undefined> => {
      const wire = await Wire.overTls(at)
      wire.leave()
      return wire.subject
    }
    const kept = await Wire.overTls(port)
    for (const at of [broker.port, port]) t.equal(await subjectAt(at), 'first')
    put('second')
    process.kill(broker.child.pid as number, 'SIGHUP')
    const untilMs = performance.now() + 30_000
    for (const at of [broker.port, port])
      while ((await subjectAt(at)) !== 'second') {
        if (performance.now() > untilMs) throw new Error(`the new certificate is not served\n${broker.printed()}`)
        await pause(50)
      }
    await kept.request('GET /admin/log')
    t.equal((await readAnswer(kept)).status, 200, 'open connections continue')
    kept.leave()
  })

t.test('a node of a cluster is seen, drained and backed up at that port', { skip: noEtcd() }, async t => {
  const etcd = await startEtcd(t, { dataDir: tempDir(t), args: ['--unsafe-no-fsync'] })
  await foundSmallCluster(etcd)
  const port = await freePort()
  const keyFile = join(tempDir(t), 'key')
  writeFileSync(keyFile, 'a-key-of-sixteen-and-more')
  const place = ['-backupKeyFile', keyFile, '-nodeName', 'a', '-clusterListen', `127.0.0.1:${await freePort()}`]
  const log = ['-shardLog', `etcd://${etcd.address().members.join(',')}`]
  const node = await startBroker(t, { args: [...place, ...log, '-adminPort', String(port)], readyWaitMs: 120_000 })
  t.equal((await clientAt(node.port).get('/cluster')).status, 404)
  t.match((await clientAt(port).get('/cluster')).json, { node: 'a' })

  const run = async (
    words: string,
    env = {},
  ): Promise<readonly [status: number | undefined, out: string, err: string]> => {
    const [out, err] = [t.capture(process.stdout, 'write'), t.capture(process.stderr, 'write')]
    const divide = (): never => {
      throw new Error('nothing is divided here')
    }
    const status = await runCommand(words.split(' '), { env, divide })
    const [printed, reported] = [out, err].map(calls =>
      calls()
        .map(({ args }) => String(args[0]))
        .join(''),
    )
    out.restore()
    err.restore()
    return [status, printed!, reported!]
  }
  const own = { CTX_ADMIN_PORT: String(port) }
  for (const [words, env] of [
    [`cluster status http://127.0.0.1:${port}`, {}],
    ['cluster status', own],
  ] as const)
    t.match(await run(words, env), [0, /seen by a/, ''])
  const wrong = await run(`cluster status http://127.0.0.1:${node.port}`)
  t.match(wrong, [1, '', /not a node of a cluster, or its operators have another port \(-adminPort\)/])
  t.match(await run('tenants list', own), [0, /^TENANT /, ''])
  t.match(await run('tenants list', { ...own, CTX_ADMIN_LOCALIP: '127.0.0.1' }), [0, /^TENANT /, ''])
  const to = join(tempDir(t), 'backup')
  const backup = (at: number): string => `backup --from http://127.0.0.1:${at} --to ${to} --backupKeyFile ${keyFile}`
  t.match(await run(backup(node.port)), [1, '', /answered 404: Service not found at this port/])
  t.match(await run(backup(port)), [0, '', /backup has [0-9]+ rows/])
  t.match(await run('cluster drain', own), [0, '', ''])
  t.match(await run('cluster resume', own), [0, '', ''])
})
