// The quota of entities at one owner of shards: when requests wait, what is divided among owners, and reservations.

import t from 'tap'
import { type CountQuota, type QuotaName, quotasOf, type TenantLimits } from '../../../src/domain/access/quotas.js'
import { refusals } from '../../../src/domain/refusal.js'
import { EntityQuotas } from '../../../src/shard/tenants/entity-quotas.js'
import { TenantUses } from '../../../src/shard/tenants/tenant-uses.js'
import { FakeClock } from '../../support/fake-clock.js'

type OnCount = (count: number | undefined) => void

/** An owner with `stored` entities of the tenant `city`, which may have `max`. */
function scene(max: number, stored = 0, owners = 1) {
  const clock = new FakeClock()
  const none = quotasOf(new Map(), '')
  let quota = max
  const limits: TenantLimits = {
    of: tenant => (tenant === 'city' ? { ...none, entities: quota } : none),
    refusalFor: () => undefined,
    refuse: (tenant: string, what: CountQuota, max: number) => refusals.quotaUsedUp(tenant, max, what),
    onRefused: (_tenant: string, _quota: QuotaName) => {},
  }
  // Nothing is stored: the entities are those that are staged.
  const counts = { rowsNow: async function* () {}, stagedOf: () => stored }
  const quotas = new EntityQuotas(new TenantUses(counts), limits, clock)
  const asks: { readonly needsRoom: boolean; readonly onCount: OnCount }[] = []
  if (owners > 1) quotas.begin({ owners, count: (_, needsRoom, onCount) => asks.push({ needsRoom, onCount }) })
  let created = 0
  let refused = 0
  /** A creation: its turn, once it is admitted. */
  const create = (creations = 1, isReserved = false): boolean =>
    quotas.admit('city', creations, isReserved, () => {
      for (let nth = 0; nth < creations; nth++)
        if (quotas.refusalFor('city')) refused++
        else {
          quotas.uses.count('city', 1)
          created++
        }
    })
  const counted = (): Promise<void> => new Promise(resolve => quotas.uses.load('city', resolve))
  const outcome = () => ({ created, refused })
  const answer = (count: number | undefined): void => asks.shift()?.onCount(count)
  return { clock, quotas, asks, create, counted, outcome, answer, change: (max: number) => (quota = max) }
}

t.test('creations wait until the entities have been counted, changes meanwhile included', async t => {
  const { quotas, create, counted, outcome } = scene(5, 3)
  create()
  create()
  create()
  t.strictSame(outcome(), { created: 0, refused: 0 })
  const done = counted()
  quotas.uses.count('city', -1)
  await done
  t.strictSame(outcome(), { created: 3, refused: 0 }, 'three, one less, and three more')
  create()
  t.strictSame(outcome(), { created: 3, refused: 1 })
  quotas.uses.count('city', -1)
  create()
  t.strictSame(outcome(), { created: 4, refused: 1 })
})

t.test('a tenant without a quota is not counted', async t => {
  const { quotas } = scene(5)
  let isTaken = false
  quotas.admit('port', 1, false, () => {
    isTaken = true
  })
  t.ok(isTaken)
  t.equal(quotas.refusalFor('port'), undefined)
  t.strictSame([...quotas.tenants()], [])
})

t.test('what is not counted when its turn comes is refused for now', async t => {
  const { quotas } = scene(5)
  t.equal(quotas.refusalFor('city')?.kind, 'Unavailable')
})

t.test('too many that wait are refused', async t => {
  const { create, counted, outcome } = scene(1)
  const taken = Array.from({ length: 10_001 }, () => create())
  t.strictSame([taken.filter(isTaken => isTaken).length, taken.at(-1)], [10_000, false])
  await counted()
  t.equal(outcome().created, 1)
})

t.test('single creations wait for a batch whose reservation leaves them no room', async t => {
  const { quotas, create, counted, outcome } = scene(10, 4)
  await counted()
  const release = quotas.reserve('city', 5)
  t.type(release, 'function')
  t.equal(quotas.reserve('city', 2), 'blocked')
  t.equal(quotas.reserve('city', 7), 'full')
  create()
  create()
  t.strictSame(outcome(), { created: 1, refused: 0 }, 'the second one waits')
  create(5, true)
  t.strictSame(outcome(), { created: 6, refused: 0 }, 'the batch does not')
  let isOver = false
  quotas.afterReservation('city', () => {
    isOver = true
  })
  if (typeof release === 'function') release()
  t.ok(isOver)
  t.strictSame(outcome(), { created: 6, refused: 1 })
})

t.test('an owner of three has a part of what is left, and asks for more', async t => {
  const { asks, create, counted, outcome, answer } = scene(30, 0, 3)
  await counted()
  create()
  t.equal(outcome().created, 0, 'the others are asked first')
  answer(0)
  for (let nth = 1; nth < 10; nth++) create()
  t.strictSame([outcome(), asks.length], [{ created: 10, refused: 0 }, 0])
  create()
  t.strictSame([outcome().created, asks[0]?.needsRoom], [10, true])
  answer(8)
  t.equal(outcome().created, 11)
  for (let nth = 0; nth < 40; nth++) create()
  while (asks.length > 0) answer(8)
  t.strictSame(outcome(), { created: 22, refused: 29 }, '30 in all')
})

t.test('asked by an owner that needs room, it gives back what it has not used', async t => {
  const { quotas, asks, create, counted, outcome, answer } = scene(30, 0, 3)
  await counted()
  create()
  answer(0)
  let count: number | undefined
  quotas.count('city', true, own => {
    count = own
  })
  t.equal(count, 1)
  create()
  t.strictSame([outcome().created, asks.length], [1, 1], 'it has to ask again')
  answer(29)
  t.strictSame(outcome(), { created: 1, refused: 1 })
})

t.test('counts of others grow old: it asks while it goes on, and then waits', async t => {
  const { clock, asks, create, counted, outcome, answer } = scene(300, 0, 3)
  await counted()
  create()
  answer(0)
  clock.advance(1_100)
  create()
  t.strictSame([outcome().created, asks.length], [2, 1])
  answer(undefined)
  clock.advance(5_000)
  create()
  t.strictSame([outcome().created, asks.length], [2, 1])
  answer(298)
  t.strictSame(outcome(), { created: 2, refused: 1 })
  create()
  t.strictSame([outcome().refused, asks.length], [2, 0], 'nothing was left: it does not ask for each')
})

t.test('a changed quota is divided anew', async t => {
  const { asks, create, counted, outcome, answer, change } = scene(3, 0, 3)
  await counted()
  create()
  answer(2)
  create()
  while (asks.length > 0) answer(2)
  t.strictSame(outcome(), { created: 1, refused: 1 })
  change(5)
  create()
  while (asks.length > 0) answer(2)
  t.strictSame(outcome(), { created: 2, refused: 1 })
})
