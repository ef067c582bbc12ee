// Certificates change while the program serves: those of the HTTP port, with workers, by a signal and without one, and
// those of a cluster.

import { execFileSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { Certificates } from '../../cluster/index.js'
import { Authority } from '../cluster/certificates.js'
import { Wire } from '../http/wire.js'
import { startBroker, type Teardown, tempDir } from '../support/broker-process.js'
import { noEtcd } from '../support/etcd.js'
import { HttpClient } from '../support/http-client.js'
import { startThreeNodes } from '../support/three-nodes.js'

t.setTimeout(400_000)

const skip = noEtcd()

/** A machine that is busy with other tests may be late; docs/operations/certificates.md promises 3 s. */
const servedMsMax = 15_000

const names = ['first', 'second', 'third'] as const

/** Files of a key and a certificate, and a function that puts one of three pairs there. */
function pairs(t: Teardown) {
  const folder = tempDir(t)
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
  for (const name of names) {
    const files = ['-keyout', `${key}.${name}`, '-out', `${cert}.${name}`, '-days', '2', '-subj', `/CN=${name}`]
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    execFileSync('openssl', ['req', '-x509', ...curve, ...files], { stdio: 'ignore' })
  }
  const put = (name: string): void => {
    copyFileSync(`${key}.${name}`, key)
    copyFileSync(`${cert}.${name}`, cert)
  }
  put('first')
  return { key, cert, put }
}

t.test('a new certificate is served by all workers, and no connection is refused or cut meanwhile', async t => {
  const { key, cert, put } = pairs(t)
  const args = ['-https', '-key', key, '-cert', cert, '-workers', '2', '-logLevel', 'INFO']
  const broker = await startBroker(t, { args, readyWaitMs: 60_000 })
  const ask = async (wire: Wire, path: string): Promise<string> => {
    await wire.request(`GET ${path}`)
    const { status, body } = await wire.answer()
    t.equal(status, 200)
    return body
  }
  const kept = await Wire.overTls(broker.port)
  let metrics = ''
  /** Connects, one after the other, until several in a row get that certificate: some from each worker. */
  const untilServed = async (name: string): Promise<void> => {
    const beganMs = performance.now()
    for (let inRow = 0; inRow < 8; ) {
      if (performance.now() - beganMs > servedMsMax) throw new Error(`${name} is not served\n${broker.printed()}`)
      const wire = await Wire.overTls(broker.port)
      inRow = wire.subject === name ? inRow + 1 : 0
      metrics = await ask(wire, '/metrics')
      wire.leave()
      await ask(kept, '/v2')
    }
    t.comment(`${name} was served after ${Math.round(performance.now() - beganMs)} ms`)
  }
  await untilServed('first')
  put('second')
  process.kill(broker.child.pid as number, 'SIGHUP')
  await untilServed('second')

  copyFileSync(`${key}.third`, key)
  for (const untilMs = performance.now() + servedMsMax; !/the new content is not used/.test(broker.stdout); ) {
    if (performance.now() > untilMs) throw new Error(`nothing is told\n${broker.printed()}`)
    await untilServed('second')
    await pause(50)
  }
  put('third')
  await untilServed('third')
  t.match(broker.stdout, /lvl=WARN .*-key, -cert: the new content is not used, .*key values mismatch/)
  const renewals = broker.stdout.match(/-key, -cert read again: new connections get subject CN=(second|third), /g)
  t.strictSame([...new Set(renewals)].length, 2, 'both renewals are reported')
  t.match(metrics, /orrery_certificate_expiry_timestamp_seconds\{use="https"\} 1[0-9]{9}\n/)
  t.match(metrics, /orrery_certificate_reloads_total\{use="https",result="renewed"\} [2-4]\n/)
  t.equal((await broker.kill('SIGTERM')).code, 0)
})

const changes = 6

/** The same for all nodes of a cluster, which also answer some requests. */
const stepMsMax = 60_000

for (const server of ['uws', 'node'])
  t.test(`certificates change under a load of short connections, and none fails: ${server}`, async t => {
    const { key, cert, put } = pairs(t)
    const args = ['-https', '-key', key, '-cert', cert, '-httpServer', server, '-logLevel', 'INFO']
    const broker = await startBroker(t, { args, readyWaitMs: 60_000 })
    const failures: string[] = []
    const served = new Map<string, number>()
    let isOver = false
    const load = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        try {
          const wire = await Wire.overTls(broker.port)
          await wire.request('GET /v2')
          const { status } = await wire.answer()
          wire.leave()
          if (status !== 200) failures.push(`status ${status}`)
          served.set(wire.subject ?? '', (served.get(wire.subject ?? '') ?? 0) + 1)
        } catch (error) {
          failures.push((error as Error).message)
        }
      }
    })
    for (let change = 1; change <= changes; change++) {
      const name = names[change % names.length]!
      put(name)
      // Half of the changes are noticed without a signal.
      if (change % 2 === 0) process.kill(broker.child.pid as number, 'SIGHUP')
      const before = served.get(name) ?? 0
      for (const untilMs = performance.now() + servedMsMax; (served.get(name) ?? 0) < before + 20; await pause(20))
        if (performance.now() > untilMs) throw new Error(`${name} is not served\n${broker.printed()}`)
    }
    isOver = true
    await Promise.all(load)
    const count = [...served.values()].reduce((sum, one) => sum + one, 0)
    t.strictSame(failures, [], `${count} connections, one request each`)
    t.equal((broker.stdout.match(/-key, -cert read again/g) ?? []).length, changes)
    t.comment(`${count} connections over ${server}, ${changes} changes`)
    t.equal((await broker.kill('SIGTERM')).code, 0)
  })

t.test(
  'certificates of a cluster change under load, up to another authority, and no request fails',
  { skip },
  async t => {
    const folder = tempDir(t)
    const [clusterCert, clusterKey, clusterCa] = ['cert', 'key', 'ca'].map(name => join(folder, name))
    const put = (member: Certificates, ...authorities: readonly Authority[]): void => {
      writeFileSync(clusterKey!, member.key)
      writeFileSync(clusterCert!, member.cert)
      writeFileSync(clusterCa!, authorities.map(({ ca }) => ca).join(''))
    }
    const [old, next] = [new Authority(t), new Authority(t)]
    const first = old.member()
    put(first, old)
    const files = ['-clusterCert', clusterCert!, '-clusterKey', clusterKey!, '-clusterCa', clusterCa!]
    const nodes = await startThreeNodes(t, { folder: tempDir(t), args: [...files, '-logLevel', 'INFO'] })
    const failures: string[] = []
    let answered = 0
    let isOver = false
    const load = nodes.map(async ({ baseUrl }, at) => {
      const client = new HttpClient(baseUrl)
      for (let nth = 0; !isOver; nth++) {
        const { status, text } = await client.send('POST', '/v2/entities', { id: `L${at}-${nth}`, type: 'Lamp' })
        if (status !== 201) failures.push(`${status} ${text}`)
        answered++
      }
      client.close()
    })
    const renewed = /-clusterKey, -clusterCert, -clusterCa read again/g
    const steps: readonly (readonly [Certificates, ...Authority[]])[] = [
      [old.member(), old],
      [first, old, next],
      [next.member(), old, next],
      [next.member(), next],
    ]
    for (const [at, step] of steps.entries()) {
      put(...step)
      const from = answered
      const isDone = (): boolean =>
        answered >= from + 50 && nodes.every(({ stdout }) => (stdout.match(renewed) ?? []).length > at)
      for (const untilMs = performance.now() + stepMsMax; !isDone(); await pause(20))
        if (performance.now() > untilMs) throw new Error(`step ${at}\n${nodes.map(node => node.printed())}`)
    }
    isOver = true
    await Promise.all(load)
    // On a machine that is too busy for their leases, nodes take shards from each other, which answer 503 meanwhile.
    const isTooBusy = nodes.some(({ stdout }) => /has taken over .* event loop of this node was late/.test(stdout))
    const refused = isTooBusy ? failures.filter(failure => failure.startsWith('503 ')) : []
    t.strictSame(failures, refused, `${answered} requests, ${steps.length} changes`)
    if (isTooBusy) t.comment(`the machine was too busy: ${failures.length} requests were refused with 503`)
    t.comment(`${answered} requests, ${steps.length} changes`)
  },
)
