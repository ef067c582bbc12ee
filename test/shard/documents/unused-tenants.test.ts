// The owners that the keeper asks about tenants, the times, and the end of a round. The use of their answers:
// path-register.test.ts.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import { tenantsOfPathsMax } from '../../../src/domain/few-paths.js'
import type { Shards, UnusedRequest } from '../../../src/messages/messages.js'
import type { PathRegister } from '../../../src/shard/documents/path-register.js'
import { askPauseMs, roundMs, tenantsPerAsk, UnusedTenants } from '../../../src/shard/documents/unused-tenants.js'
import { FakeClock } from '../../support/fake-clock.js'

/**
 * A register with this number of tenants, and two owners: one has the tenants with an even number, the other those
 * whose number is divisible by three.
 */
function scene(size: number) {
  const clock = new FakeClock()
  const troubles: string[] = []
  const asked: string[] = []
  const left: string[] = []
  const state = { owners: [0, 1] as readonly number[], canLeave: true, onAsk: (_shard: number): void => {} }
  const divisor = [2, 3]
  const shards: Shards = {
    ask: (shard, request, onReply) => {
      const { tenants } = request as UnusedRequest
      asked.push(`${shard}: ${tenants.length}`)
      state.onAsk(shard)
      onReply({ kind: 'unused', tenants: tenants.filter(tenant => Number(tenant) % divisor[shard]! !== 0) })
    },
    owners: () => state.owners,
    ownerOf: shard => shard,
    pathsOf: () => undefined,
  }
  const paths = {
    size,
    get canLeave() {
      return state.canLeave
    },
    tenantNames: () => Array.from({ length: Math.min(size, 2_500) }, (_, n) => String(n)),
    leaveIfUnused: async (_: readonly string[], ask: () => Promise<readonly string[]>) =>
      void left.push(...(await ask())),
  }
  const onTrouble = (reason: string): void => void troubles.push(reason)
  const keeper = new UnusedTenants({ paths: paths as unknown as PathRegister, shards, clock, onTrouble })
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await turnOfTheLoop()
  }
  return { keeper, asked, left, state, troubles, pass }
}

t.test('each owner is asked only about tenants that the one before does not have, and asks have pauses', async t => {
  const { asked, left, pass } = scene(2_500)
  await pass(roundMs - 1)
  t.strictSame(asked, [])
  await pass(1)
  t.strictSame(asked, [`0: ${tenantsPerAsk}`, '1: 500'])
  await pass(askPauseMs - 1)
  t.equal(asked.length, 2)
  await pass(1)
  await pass(askPauseMs)
  t.strictSame(asked.slice(4), ['0: 500', '1: 250'])
  t.ok(left.every(tenant => Number(tenant) % 2 !== 0 && Number(tenant) % 3 !== 0))
  t.equal(left.length, 833)
  await pass(roundMs)
  t.equal(asked.length, 8, 'a next round')
})

t.test('no tenant is found unused when the owners change meanwhile', async t => {
  const { left, state, pass } = scene(100)
  state.onAsk = shard => {
    if (shard === 1) state.owners = [0, 1]
  }
  await pass(roundMs)
  t.strictSame(left, [])
})

t.test('an owner that is no keeper asks no other, and none is asked after the end', async t => {
  const { keeper, asked, state, pass } = scene(2_500)
  state.canLeave = false
  await pass(roundMs)
  t.strictSame(asked, [])
  state.canLeave = true
  await pass(roundMs)
  t.equal(asked.length, 2)
  keeper.end()
  await pass(10 * roundMs)
  t.equal(asked.length, 2)
})

t.test('an operator gets one report that the register is full', async t => {
  const { state, troubles, pass } = scene(tenantsOfPathsMax)
  state.canLeave = false
  await pass(roundMs)
  await pass(roundMs)
  t.equal(troubles.length, 1)
  t.match(troubles[0], /it is full, with 100000 tenants/)
})
