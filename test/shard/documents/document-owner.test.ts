// Readers of documents that wait for other owners have a limit, which they share with changes.

import t from 'tap'
import type { ShardReply } from '../../../src/messages/messages.js'
import { DocumentOwner } from '../../../src/shard/documents/document-owner.js'
import type { OnTold } from '../../../src/shard/documents/register.js'
import { ampleRoom } from '../../../src/shard/turn/room.js'

t.test('a reader beyond the limit is refused, and the next one is not', t => {
  const waiting: OnTold[] = []
  const register = {
    obstacle: () => undefined,
    write: () => 1,
    afterAll: () => {},
    beforeRead: (_: number, onDone: OnTold) => void waiting.push(onDone),
  }
  const owner = new DocumentOwner(register, 2, ampleRoom)
  const replies: ShardReply['kind'][] = []
  const read = (): void => owner.afterTold(1, { kind: 'done' }, ({ kind }) => replies.push(kind))
  for (let n = 0; n < 3; n++) read()
  t.strictSame(replies, ['busy'])
  waiting.shift()!()
  read()
  t.strictSame(replies, ['busy', 'done'])
  t.equal(waiting.length, 2)
  t.end()
})
