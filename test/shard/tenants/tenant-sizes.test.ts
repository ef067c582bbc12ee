// The tenants of an owner and the sizes that it reports; and the keys and rows of marks.

import t from 'tap'
import { pathKey } from '../../../src/shard/replicate/replicated-layout.js'
import { checkRow } from '../../../src/shard/replicate/row-check.js'
import { decodeMark, encodeMark, isMarkKey, markKey } from '../../../src/shard/tenants/deletion-layout.js'
import { LastChanges } from '../../../src/shard/tenants/last-changes.js'
import type { ShardRecord } from '../../../src/shard/turn/apply.js'
import { FakeClock } from '../../support/fake-clock.js'
import { startLocalNode } from '../../support/local-node.js'

t.test('a mark is distinct from service paths, for any names of tenants and paths', async t => {
  for (const tenant of ['', 'a', 'deleting', 'acme_1']) {
    t.ok(isMarkKey(markKey(256, tenant)))
    t.same(decodeMark(markKey(256, tenant), encodeMark(17)), { tenant, stamp: 17 })
    for (const path of ['/', '/deleting', '/a/deleting']) t.notOk(isMarkKey(pathKey(256, tenant, path)))
  }
})

t.test('a mark of another version is not taken over', async t => {
  const row = { key: markKey(256, 'a'), value: Buffer.from('{"version":2,"stamp":1}') }
  t.throws(() => checkRow(row), { code: 'unreadable', message: /the mark of a tenant .* has version 2/ })
})

t.test('the last change of a tenant is that of any of its entities', async t => {
  const clock = new FakeClock()
  const changes = new LastChanges(clock)
  const change = (tenant: string): void => void changes.wants({ tenant } as ShardRecord)
  t.equal(changes.of(''), undefined)
  change('a')
  const first = clock.wallMs()
  clock.advance(10)
  change('b')
  change('b')
  t.match([changes.of('a'), changes.of('b'), changes.of('')], [first, first + 10, undefined])
  changes.forget('b')
  t.equal(changes.of('b'), undefined)
})

t.test('sizes are those of the stored rows', async t => {
  const node = await startLocalNode(t)
  const entities = Array.from({ length: 50 }, (_, n) => ({ id: `E${n}`, type: n % 2 ? 'A' : 'B', n: { value: n } }))
  const [small] = entities
  await node.json('POST /v2/op/update', { actionType: 'append', entities }, ['Ctx-Service: large'])
  await node.json('POST /v2/entities', small, ['Ctx-Service: small', 'Ctx-ServicePath: /a'])
  await node.json('POST /v2/entities', small)
  const { json } = await node.ask('GET /admin/tenants')
  const found = json as readonly { readonly name: string; readonly bytes: number; readonly entities: number }[]
  t.same(
    found.map(({ name, entities }) => [name, entities]),
    [
      ['default-service', 1],
      ['large', 50],
      ['small', 1],
    ],
  )
  const [, large, one] = found
  t.ok(Math.abs(large!.bytes / 50 / one!.bytes - 1) < 0.1, `${large!.bytes} and ${one!.bytes} bytes`)
})
