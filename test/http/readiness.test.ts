// Readiness on a full disk: a node that reads and deletes is ready and reports the full disk; a node whose copies wait
// is not ready.

import t from 'tap'
import type { Exchange } from '../../src/http/front.js'
import { Reply } from '../../src/http/reply.js'
import type { Request } from '../../src/http/request.js'
import { ServiceHandlers } from '../../src/http/service.js'
import { FakeClock } from '../support/fake-clock.js'

function readiness(
  isReady: boolean,
  isShort: boolean,
  copiesWait: boolean,
  lost?: string,
): { status: number; json: unknown } {
  const facts = { version: '1', libraries: {}, machine: '', runtime: '' }
  const disk = { isShort: () => isShort, copiesWait: () => copiesWait }
  const handlers = new ServiceHandlers(
    facts,
    new FakeClock(),
    () => isReady,
    disk,
    () => lost,
  )
  let answer = { status: 0, json: undefined as unknown }
  const exchange = {
    reply: (status: number, _: readonly string[], body: string) => {
      answer = { status, json: JSON.parse(body) }
    },
  }
  handlers.ready({} as Request, new Reply(exchange as unknown as Exchange, 'Ctx', 'corr-1'))
  return answer
}

t.test('a node with room is ready', async t => {
  t.same(readiness(true, false, false), { status: 200, json: { status: 'ready' } })
})

t.test('a node on a full disk is ready, and reports the disk', async t => {
  t.same(readiness(true, true, false), { status: 200, json: { status: 'ready', disk: 'full' } })
})

t.test('a node whose copies wait for room is not ready, with the reason', async t => {
  t.match(readiness(true, true, true), { status: 503, json: { description: /disk of this node is full/ } })
})

t.test('a node whose log has lost something is not ready, and names the loss', async t => {
  t.match(readiness(true, false, false, 'the log engine has lost data'), {
    status: 503,
    json: { error: 'Unavailable', description: 'the log engine has lost data' },
  })
})

t.test('a node whose store has failed is not ready, however its disk is', async t => {
  t.match(readiness(false, true, false), { status: 503 })
})
