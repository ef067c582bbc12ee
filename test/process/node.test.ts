// A node that must end: waiting requests get their answers, and no further ones are accepted. A node that cannot start
// leaves nothing open.

import t from 'tap'
import { systemChance, systemClock } from '../../src/clock.js'
import { readConfig } from '../../src/config/config.js'
import type { Shards } from '../../src/messages/messages.js'
import { startNode } from '../../src/process/node.js'
import { freePort, tempDir } from '../support/broker-process.js'
import { errorsOnly, startLocalNode } from '../support/local-node.js'

t.test('a node that has to end answers requests in flight first, and accepts no more', async t => {
  let arrived = (): void => {}
  const hasArrived = new Promise<void>(resolve => {
    arrived = resolve
  })
  let goOn = (): void => {}
  /** Holds requests that create an entity. */
  const between = (shards: Shards): Shards => ({
    ask: (shard, request, onReply) => {
      if (request.kind !== 'create') return shards.ask(shard, request, onReply)
      goOn = () => shards.ask(shard, request, onReply)
      arrived()
    },
    owners: () => shards.owners(),
    pathsOf: tenant => shards.pathsOf(tenant),
    ownerOf: shard => shards.ownerOf(shard),
  })
  const node = await startLocalNode(t, { surroundings: { wrapShards: between } })
  const created = node.json('POST /v2/entities', { id: 'E', type: 'T' })
  await hasArrived
  let isOver = false
  const dismissed = node.running!.dismiss().then(() => {
    isOver = true
  })
  await node.running!.unlisten()
  await t.rejects(node.json('GET /v2/entities'), 'nobody is taken in')
  t.equal(isOver, false)
  goOn()
  t.match(await created, { status: 201 })
  await dismissed
})

t.test('a start that fails behind the opening of the store closes it', async t => {
  const directory = tempDir(t)
  const other = await startLocalNode(t)
  const broken = (): never => {
    throw new Error('nothing can stand between')
  }
  const cases: readonly (readonly [what: string, words: readonly string[], fault: RegExp, wrapShards?: () => never])[] =
    [
      ['shards', ['-port', String(await freePort())], /nothing can stand/, broken],
      ['receivers', ['-port', String(await freePort()), '-notifCaFile', '/none'], /none/],
      ['the front', ['-port', String(await freePort()), '-https', '-key', '/none', '-cert', '/none'], /TLS files/],
      ['the port', ['-port', String(other.port), '-localIp', '127.0.0.1'], /in use/],
    ]
  const { logger, errors } = errorsOnly()
  const onFailure = (error: Error): never => t.fail(error.message) as never
  for (const [what, words, fault, wrapShards] of cases) {
    const reading = readConfig(['-dataDir', directory, '-diskReserve', '1', ...words], {})
    if (reading.kind !== 'run') throw new Error(JSON.stringify(reading))
    const surroundings = {
      clock: systemClock,
      chance: systemChance,
      logger,
      onFailure,
      ...(wrapShards && { wrapShards }),
    }
    await t.rejects(startNode(reading.config, surroundings), { message: fault }, what)
  }
  t.strictSame(errors, [])
  const node = await startLocalNode(t, { directory })
  t.equal((await node.json('POST /v2/entities', { id: 'E', type: 'T' })).status, 201, 'the next start has the store')
})
