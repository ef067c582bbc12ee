// Certificates of the HTTP port change while the program serves: with workers, by a signal and without one.

import { execFileSync } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { Wire } from '../http/wire.js'
import { startBroker, type Teardown, tempDir } from '../support/broker-process.js'

t.setTimeout(400_000)

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
