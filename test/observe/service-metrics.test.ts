// Metrics by tenant and path: names, sums and the tree (operations.md §7.2).

import t from 'tap'
import type { ServiceTally } from '../../src/messages/admin.js'
import { emptyTally, renderServiceMetrics, serviceNames } from '../../src/observe/service-metrics.js'

const tally = (service: string, path: string, numbers: Partial<ServiceTally>): ServiceTally => ({
  ...emptyTally(service, path),
  ...numbers,
})

for (const [tenant, path, service, shown] of [
  ['', '', 'default-service', 'root-subserv'],
  ['', '/', 'default-service', 'root-subserv'],
  ['', '/#', 'default-service', 'root-subserv'],
  ['Acme', '/a/b', 'acme', 'a/b'],
  ['', '/a/#', 'default-service', 'a'],
  ['', '/a2, /b2', 'default-service', 'a2'],
] as const)
  t.test(`tenant '${tenant}' and path '${path}' are counted as ${service} ${shown}`, async t => {
    t.same(serviceNames(tenant, path), { service, path: shown })
  })

t.test('a header that is no tenant, or no path, is not counted', async t => {
  t.equal(serviceNames('a.b', '/a'), undefined)
  t.equal(serviceNames('', 'a'), undefined)
})

t.test('without anything counted the tree is empty', async t => {
  t.same(JSON.parse(renderServiceMetrics([])), { services: {}, sum: { subservs: {}, sum: {} } })
})

t.test('sums go over paths and tenants, and a mean is that of all requests', async t => {
  const tree = renderServiceMetrics([
    tally('b', 'x', { incomingTransactions: 3, serviceSeconds: 3, outgoingTransactions: 1 }),
    tally('a', 'x', { incomingTransactions: 1, serviceSeconds: 5, incomingTransactionErrors: 1 }),
    tally('a', 'w', { incomingTransactions: 1, serviceSeconds: 1 }),
  ])
  t.equal(
    tree,
    JSON.stringify({
      services: {
        a: {
          subservs: {
            w: { incomingTransactions: 1, serviceTime: 1 },
            x: { incomingTransactionErrors: 1, incomingTransactions: 1, serviceTime: 5 },
          },
          sum: { incomingTransactionErrors: 1, incomingTransactions: 2, serviceTime: 3 },
        },
        b: {
          subservs: { x: { incomingTransactions: 3, outgoingTransactions: 1, serviceTime: 1 } },
          sum: { incomingTransactions: 3, outgoingTransactions: 1, serviceTime: 1 },
        },
      },
      sum: {
        subservs: {
          w: { incomingTransactions: 1, serviceTime: 1 },
          x: { incomingTransactionErrors: 1, incomingTransactions: 4, outgoingTransactions: 1, serviceTime: 2 },
        },
        sum: { incomingTransactionErrors: 1, incomingTransactions: 5, outgoingTransactions: 1, serviceTime: 1.8 },
      },
    }),
  )
})

t.test('what two processes have counted for one path is one', async t => {
  const one = tally('a', 'x', { incomingTransactions: 1, serviceSeconds: 1 })
  const { services } = JSON.parse(renderServiceMetrics([one, { ...one, serviceSeconds: 3 }]))
  t.same(services.a.subservs.x, { incomingTransactions: 2, serviceTime: 2 })
})
