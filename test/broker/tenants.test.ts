// Tenants over several owners: their parts become one answer, and there is no answer if an owner is missing.

import t from 'tap'
import { ShardClient } from '../../src/broker/shard-client.js'
import { TenantOperations, type TenantPage } from '../../src/broker/tenants.js'
import { type Result, refusalText } from '../../src/domain/refusal.js'
import { ShardMap } from '../../src/domain/scope.js'
import { stampOf } from '../../src/domain/stamp.js'
import type { ShardReply, Shards, TenantSize, TenantsRequest } from '../../src/messages/messages.js'

const size = (tenant: string, entities: number, more: Partial<TenantSize> = {}): TenantSize => ({
  ...{ tenant, entities, bytes: entities * 10, subscriptions: 2, registrations: 1 },
  ...more,
})

/** Owners that have these tenants; undefined: an owner that cannot be reached. */
function operationsOver(owners: readonly (readonly TenantSize[] | undefined)[]): TenantOperations {
  const ask = (shard: number, { step }: TenantsRequest): ShardReply => {
    const sizes = owners[shard]
    if (!sizes) return { kind: 'unreachable', reason: 'it is away' }
    if (step.what === 'names')
      return { kind: 'tenants', content: { what: 'names', tenants: sizes.map(one => one.tenant) } }
    const asked = step.what === 'sizes' ? step.tenants : []
    return { kind: 'tenants', content: { what: 'sizes', sizes: sizes.filter(({ tenant }) => asked.includes(tenant)) } }
  }
  const shards: Shards = {
    ask: (shard, request, onReply) => onReply(ask(shard, request as TenantsRequest)),
    owners: () => owners.map((_, shard) => shard),
    ownerOf: shard => shard,
    pathsOf: () => undefined,
  }
  return new TenantOperations(new ShardClient(shards, new ShardMap({ shards: 8, spread: 8 })))
}

const list = (operations: TenantOperations): Promise<Result<TenantPage>> =>
  new Promise(resolve => operations.list(0, 10, resolve))

t.test('entities add up, and facts that all owners know count once', async t => {
  const since = stampOf(5_000)
  const operations = operationsOver([
    [size('b', 3, { changedMs: 7 }), size('', 1)],
    [size('b', 4, { changedMs: 9, deletion: since }), size('a', 5)],
  ])
  const { value } = (await list(operations)) as { readonly value: TenantPage }
  t.equal(value.total, 3)
  t.match(value.tenants, [
    { tenant: 'a', entities: 5, deletingSinceMs: undefined },
    { tenant: 'b', entities: 7, bytes: 70, subscriptions: 2, registrations: 1, changedMs: 9, deletingSinceMs: 5_000 },
    { tenant: '', entities: 1, changedMs: undefined },
  ])
})

t.test('without one of the owners there is no answer', async t => {
  const result = await list(operationsOver([[size('a', 1)], undefined]))
  t.match(result, { ok: false, refusal: { kind: 'Unavailable' } })
  t.match(result.ok ? '' : refusalText(result.refusal), /it is away$/)
})
