// A node that has to end: those who wait get their answers, and nobody else is taken in.

import t from 'tap'
import type { Shards } from '../../src/messages/messages.js'
import { startLocalNode } from '../support/local-node.js'

t.test('a node that has to end answers what is in flight first, and takes no more', async t => {
  let arrived = (): void => {}
  const hasArrived = new Promise<void>(resolve => {
    arrived = resolve
  })
  let goOn = (): void => {}
  /** Holds what creates an entity. */
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
  const node = await startLocalNode(t, { surroundings: { between } })
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
