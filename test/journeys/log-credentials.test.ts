// An etcd that requires authentication: nodes use a password from a file or a certificate, and a refused node logs the
// settings to check. A secret is in no place but its file.

import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Etcd3, Range } from 'etcd3'
import t from 'tap'
import {
  type BrokerProcess,
  freePort,
  readyLine,
  spawnBroker,
  startBroker,
  tempDir,
} from '../support/broker-process.js'
import { type Etcd, noEtcd, startEtcd } from '../support/etcd.js'
import { root } from '../support/project.js'

const skip = noEtcd()
const password = 'p@ss:w%rd/1'
/** Longest time until a node has started, or has found out that it cannot. */
const waitMsMax = 60_000

/** Arguments of a cluster's only node. */
async function nodeOf(shardLog: string, ...more: readonly string[]): Promise<readonly string[]> {
  const listen = `127.0.0.1:${await freePort()}`
  return ['-nodeName', 'a', '-clusterListen', listen, '-clusterJoin', listen, '-shardLog', shardLog, ...more]
}

/** Resolves when a write is acknowledged, and so is in the log. */
async function takes(node: BrokerProcess): Promise<void> {
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ id: 'lamp', type: 'Lamp' })
  for (const untilMs = performance.now() + waitMsMax; ; ) {
    const { status } = await fetch(`${node.baseUrl}/v2/entities`, { method: 'POST', headers, body })
    if (status === 201) break
    if (performance.now() > untilMs) throw new Error(`status ${status}`)
  }
}

/**
 * Enables authentication, with root and a user that may use only the keys of the cluster; `stranger` may use no keys.
 */
async function protect(etcd: Etcd): Promise<void> {
  const client = new Etcd3({ hosts: `http://${etcd.members[0]!.address}` })
  await client.user('root').create('root-word')
  await client.user('root').addRole(await client.role('root').create())
  const role = await client.role('orrery').create()
  await role.grant({ permission: 'Readwrite', range: Range.prefix('/orrery/') })
  await client.user('orrery').create(password)
  await client.user('orrery').addRole('orrery')
  await client.user('stranger').create(password)
  await client.auth.authEnable()
  client.close()
}

t.test('a password comes from a file, and is in no output', { skip }, async t => {
  t.setTimeout(300_000)
  const etcd = await startEtcd(t)
  await protect(etcd)
  const folder = tempDir(t)
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  const shardLog = `etcd://${etcd.members[0]!.address}`
  const shown = (user: string, file: string) => nodeOf(shardLog, '-shardLogUser', user, '-shardLogPasswordFile', file)
  const refused = async (args: readonly string[]) => (await spawnBroker(t, { args })).exitWithin(waitMsMax)

  const file = write('password', `${password}\n`)
  const node = await startBroker(t, { args: await shown('orrery', file), readyWaitMs: waitMsMax })
  await takes(node)
  for (const pid of node.processes) t.notMatch(readFileSync(`/proc/${pid}/cmdline`, 'latin1'), password)
  t.notMatch(node.printed(), password)
  await node.kill('SIGTERM')

  const wrong = await refused(await shown('orrery', write('wrong', 'guessed-word')))
  t.equal(wrong.code, 1)
  t.match(
    wrong.stderr,
    /the log engine refuses this node \(.*authentication failed.*\): check -shardLogUser and -shardLogPass/,
  )
  t.notMatch(wrong.stderr + wrong.stdout, /guessed-word/)

  const nameless = await refused(await nodeOf(shardLog))
  t.match(nameless, { code: 1, stderr: /refuses this node \(.*user name is empty\)/ })
  const powerless = await refused(await shown('stranger', file))
  t.match(powerless, { code: 1, stderr: /refuses this node \(.*permission denied\).* the rights of that user in etcd/ })
  const missing = await refused(await shown('orrery', join(folder, 'nothing')))
  t.match(missing, { code: 1, stderr: /-shardLogPasswordFile: ENOENT/ })
  const empty = await refused(await shown('orrery', write('empty', '\n')))
  t.match(empty, { code: 1, stderr: /-shardLogPasswordFile: \S+ is empty/ })
})

t.test('an etcd that wants certificates is shown one, as deploy/certificates.sh makes them', { skip }, async t => {
  t.setTimeout(300_000)
  const folder = tempDir(t)
  execFileSync(join(root, 'deploy/certificates.sh'), [folder, '127.0.0.1', '::1', 'etcd-0.etcd'], { stdio: 'pipe' })
  const [ca, server] = ['ca', 'etcd'].map(name => join(folder, `${name}.pem`)) as [string, string]
  const etcd = await startEtcd(t, {
    tls: { certFile: server, keyFile: join(folder, 'etcd.key') },
    args: ['--client-cert-auth', `--trusted-ca-file=${ca}`],
  })
  const shardLog = `etcds://${etcd.members[0]!.address}`
  const pair = ['-shardLogCert', join(folder, 'node.pem'), '-shardLogKey', join(folder, 'node.key')]
  const args = await nodeOf(shardLog, '-shardLogCa', ca, ...pair)
  const known = await startBroker(t, { args, readyWaitMs: waitMsMax })
  await takes(known)
  await known.kill()

  const [cert, key] = [join(folder, 'shown.pem'), join(folder, 'shown.key')]
  const foreign = ['-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=foreign']
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...foreign], { stdio: 'ignore' })
  const shown = ['-shardLogCa', ca, '-shardLogCert', cert, '-shardLogKey', key]
  const waiting = await spawnBroker(t, { args: await nodeOf(shardLog, ...shown) })
  for (const untilMs = performance.now() + waitMsMax; !/waiting for the log engine/.test(waiting.printed()); ) {
    if (performance.now() > untilMs) return t.fail(`nothing is told: ${waiting.printed()}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  t.match(waiting.printed(), /waiting for the log engine \(.*(certificate|handshake|TLS|connection)/i)
  t.comment(/waiting for the log engine .*/.exec(waiting.printed())?.[0])
  // The waiting node reads its files again.
  copyFileSync(join(folder, 'node.key'), key)
  copyFileSync(join(folder, 'node.pem'), cert)
  for (const untilMs = performance.now() + waitMsMax; !readyLine.test(waiting.stdout); ) {
    if (performance.now() > untilMs) return t.fail(`it waits on: ${waiting.printed()}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
})
