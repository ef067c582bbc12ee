// The reply to a write whose shard another node has taken over.

import t from 'tap'
import { type Deposed, replyOfFailure } from '../../../src/shard/commit/deposed.js'

const deposed = (node: string | undefined): Deposed =>
  Object.assign(new Error('deposed'), {
    code: 'deposed' as const,
    losses: [{ shard: 7, node, epoch: 3, certainMs: undefined }],
    reached: new Map(),
  })

t.test('it names the new owner, and no node where there is none', async t => {
  const reasonFor = (node: string | undefined) => replyOfFailure(deposed(node), 7).reason
  t.equal(reasonFor('b'), 'shard 7 was taken over by b')
  t.equal(reasonFor('nobody'), 'shard 7 was taken over by nobody', 'a node may have any name')
  t.equal(reasonFor(undefined), 'shard 7 has no owner now')
})

t.test('any other failure concerns every shard', async t => {
  t.strictSame(replyOfFailure(new Error('disk'), 7), { kind: 'failed', reason: 'disk' })
})
