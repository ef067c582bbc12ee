// Counts under names that clients invent: as many series as the bound allows, and one for the rest.

import t from 'tap'
import type { MetricFamily } from '../../src/messages/admin.js'
import {
  ForwardingTallies,
  providersCountedMax,
  TenantTallies,
  tenantsCountedMax,
} from '../../src/observe/label-tallies.js'
import { renderMetrics } from '../../src/observe/metric-family.js'
import { parseExposition } from '../support/exposition-parser.js'

const read = async (families: readonly MetricFamily[]) => parseExposition(await renderMetrics([families]))

t.test('requests are counted by tenant, and tenants beyond the bound together', async t => {
  const tallies = new TenantTallies()
  for (const tenant of ['', 'Acme', 'acme', 'not-a-tenant']) tallies.onAnswered({ tenant })
  for (let n = 0; n < tenantsCountedMax + 50; n++) tallies.onAnswered({ tenant: `t${n}` })
  const { value, samples } = await read(tallies.families())
  const of = (tenant: string): number => value('orrery_tenant_requests_total', { tenant })
  t.same([of('default-service'), of('acme'), of('t0')], [1, 2, 1])
  t.equal(samples.filter(({ name }) => name === 'orrery_tenant_requests_total').length, tenantsCountedMax + 1)
  t.equal(of('other'), 1 + 50 + 2)
})

t.test('requests to providers are counted by host and port, with failures and time', async t => {
  const tallies = new ForwardingTallies()
  const ended = { what: 'forward', tenant: '', path: '/', requestBytes: 1, responseBytes: 1 } as const
  tallies.onEnded({ ...ended, receiver: 'p:1/v2/op/query', failure: undefined, durationMs: 500 })
  tallies.onEnded({ ...ended, receiver: 'p:1/v2/op/update', failure: 'no answer', durationMs: 1_500 })
  tallies.onEnded({ ...ended, what: 'notification', receiver: 'r:1', failure: undefined })
  for (let n = 0; n < providersCountedMax; n++)
    tallies.onEnded({ ...ended, receiver: `q${n}:1/`, failure: undefined, durationMs: 1 })
  const { value, samples } = await read(tallies.families())
  const of = (what: string, provider: string): number => value(`orrery_forwarding_${what}_total`, { provider })
  t.same([of('requests', 'p:1'), of('failures', 'p:1'), of('seconds', 'p:1')], [2, 1, 2])
  t.equal(of('requests', 'other'), 1)
  t.equal(samples.filter(({ name }) => name === 'orrery_forwarding_requests_total').length, providersCountedMax + 1)
})
