// Certificates of clients of the program: with workers, at both ports, while their authority and the server's own
// certificate change under load.

import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { certificate } from '../http/front-contract.js'
import { Wire } from '../http/wire.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { freePort, startBroker, tempDir } from '../support/broker-process.js'
import { ClientAuthority, type ClientPair } from '../support/client-authority.js'

t.setTimeout(400_000)

/** A change counts after 3 s; a machine that is busy with other tests may be late. */
const changedMsMax = 30_000

/** New connections, one after the other, that have to show the same: some to each worker. */
const inRowMin = 8

for (const workers of ['1', '2'])
  t.test(`the authority of clients changes in three steps under load: -workers ${workers}`, async t => {
    const [old, next] = [new ClientAuthority(t, 'old'), new ClientAuthority(t, 'next')]
    const [first, second] = [old.issue('/O=City/CN=gateway-9'), next.issue('/O=City/CN=gateway-9')]
    const folder = tempDir(t)
    const [clientCa, keyFile, certFile] = [join(folder, 'ca.pem'), join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const trust = (...authorities: readonly ClientAuthority[]): void =>
      writeFileSync(clientCa, Buffer.concat(authorities.map(({ ca }) => ca)))
    const present = (name: string): void => {
      const files = certificate(t, name)
      copyFileSync(files.keyFile, keyFile)
      copyFileSync(files.certFile, certFile)
    }
    trust(old)
    present('one')
    const rules = { root: everything, gateway: [{ actions: ['read'] }] }
    const scene = new AccessScene(t, rules, {
      certificates: [{ subject: 'CN=gateway-9,O=City', roles: ['gateway'] }],
    })
    const http1Port = await freePort()
    const args = ['-https', '-key', keyFile, '-cert', certFile, '-clientCa', clientCa, '-access', scene.path]
    const more = ['-workers', workers, '-http1Port', String(http1Port), '-logLevel', 'INFO']
    const broker = await startBroker(t, { args: [...args, ...more], readyWaitMs: 60_000 })

    /** The status of a request on a new connection, or `refused`. */
    const statusOf = async (shown: ClientPair | undefined, port = broker.port): Promise<number | 'refused'> => {
      try {
        const wire = await Wire.overTls(port, shown)
        await wire.request('GET /v2/entities')
        const { status } = await wire.answer()
        wire.leave()
        return status
      } catch {
        return 'refused'
      }
    }
    for (const port of [broker.port, http1Port]) {
      t.equal(await statusOf(first, port), 200)
      t.equal(await statusOf(second, port), 'refused')
      t.equal(await statusOf(undefined, port), 'refused')
    }
    t.equal(await statusOf(old.issue('/CN=stranger')), 401)

    let shown = first
    let answered = 0
    let isOver = false
    const failures: string[] = []
    const load = Array.from({ length: 3 }, async () => {
      while (!isOver) {
        const status = await statusOf(shown)
        if (status !== 200) failures.push(String(status))
        answered++
      }
    })
    const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
      const untilMs = performance.now() + changedMsMax
      for (let inRow = 0; inRow < inRowMin; ) {
        if (performance.now() > untilMs) throw new Error(`never ${what}\n${broker.printed()}`)
        inRow = (await isSo()) ? inRow + 1 : 0
        if (inRow === 0) await pause(50)
      }
    }
    const kept = await Wire.overTls(broker.port, first)
    await kept.request('GET /v2/entities')
    t.equal((await kept.answer()).status, 200)
    trust(old, next)
    await until('accepted', async () => (await statusOf(second)) === 200)
    present('two')
    await until('another certificate', async () => {
      const wire = await Wire.overTls(broker.port, second)
      wire.leave()
      return wire.subject === 'two'
    })
    await kept.request('GET /v2/entities')
    t.equal((await kept.answer()).status, 200, 'an open connection goes on')
    shown = second
    const from = answered
    for (const untilMs = performance.now() + changedMsMax; answered < from + 20; await pause(20))
      if (performance.now() > untilMs) throw new Error('the load has stopped')
    trust(next)
    process.kill(broker.child.pid as number, 'SIGHUP')
    await until('refused', async () => (await statusOf(first)) === 'refused')
    t.ok(await kept.closed, 'a connection with a certificate of the old authority has ended')
    isOver = true
    await Promise.all(load)
    t.strictSame(failures, [], `${answered} connections, one request each`)
    t.comment(`${answered} connections`)
    t.match(broker.stdout, /-key, -cert, -clientCa read again: new connections get subject CN=two/)
    t.equal((await broker.kill('SIGTERM')).code, 0)
  })
