// A backup under load, the loss of all data, and its restoration: as an operator does it, with the commands and a kill.
// Data that clients had seen before the backup began is restored exactly; data that they wrote meanwhile is as it was
// at some moment of the backup.

import { rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runToEnd, startBroker, tempDir } from '../support/broker-process.js'
import { indexesEqualRebuild } from '../support/inspection.js'
import { Random } from '../support/random.js'
import { Client, deadLetters, differenceIn, fill, Load, of, receivers, sum, until } from './operated.js'

t.setTimeout(400_000)

t.test('a backup that was made under load is restored after everything is lost', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const folder = tempDir(t)
  const keyFile = join(folder, 'key')
  writeFileSync(keyFile, 'a-key-of-some-length\n')
  const file = join(folder, 'backup')
  const args = ['-multiservice', '-outReqMsgMaxSize', '10000', '-backupKeyFile', keyFile]
  const broker = await startBroker(t, { dataDir: join(folder, 'first'), args: [...args, '-workers', '2'] })
  const receiving = await receivers(t, random)
  const first = new Client(broker)
  await fill(first, receiving)
  const [visible, letters] = [await first.visible(), await deadLetters(first)]
  t.match(letters, [{}], 'there is a dead letter')
  const load = new Load(first, random)
  await until('load', () => (sum(load.answered) > 100 ? true : undefined))

  const before = new Map(load.answered)
  const { code, stderr } = await runToEnd(t, [
    'backup',
    '--from',
    broker.baseUrl,
    '--to',
    file,
    '--backupKeyFile',
    keyFile,
  ])
  const after = new Map(load.asked)
  t.equal(code, 0, stderr)
  t.equal(statSync(file).mode & 0o777, 0o600)
  await until('more load', () => (sum(load.answered) > sum(after) + 50 ? true : undefined))
  await load.end()
  first.close()
  await broker.kill('SIGKILL')
  rmSync(broker.dataDir, { recursive: true })

  for (const workers of [1, 3])
    t.test(`into ${workers} worker(s)`, async t => {
      const dataDir = join(folder, `restored-${workers}`)
      const restored = await runToEnd(t, ['restore', '--from', file, '-dataDir', dataDir])
      t.equal(restored.code, 0, restored.stderr)
      const { received, away } = receiving
      received.length = 0
      await away.open()
      const again = await startBroker(t, { dataDir, args: [...args, '-workers', String(workers)] })
      const client = new Client(again)
      for (const [what, text] of await client.visible()) t.equal(differenceIn(text, visible.get(what)!), '', what)
      t.strictSame(await deadLetters(client), letters)
      const loaded = await client.loaded()
      for (const [name, value] of before) t.ok(loaded.get(name)! >= value, `${name}: ${loaded.get(name)} >= ${value}`)
      for (const [name, value] of loaded)
        t.ok(value <= (after.get(name) ?? 0), `${name}: ${value} <= ${after.get(name)}`)

      await client.send('POST', '/v2/entities/Watched/attrs', { n: { type: 'Number', value: 9 } }, of('city', '/'))
      const pending = await until('what is owed', () => {
        const deferred = received.filter(({ path }) => path === '/away')
        const live = received.find(({ path }) => path === '/live')
        return deferred.length >= 4 && live ? { deferred, live } : undefined
      })
      t.match(pending.live.headers, { 'x-api-key': 'a-secret', 'x-plain': 'open' })
      const values = new Set(pending.deferred.map(({ body }) => JSON.parse(body).data[0].n.value as number))
      t.strictSame([...values].sort(), [0, 1, 2, 3])
      client.close()
      await again.kill('SIGTERM')
      t.strictSame(await indexesEqualRebuild(dataDir), [])
    })
})
