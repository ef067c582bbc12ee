// Metrics by tenant and path: counts and their bound, names, sums and the tree
// (docs/interface/administration.md#metrics-by-tenant).

import t from 'tap'
import type { ServiceTally } from '../../src/messages/admin.js'
import {
  emptyTally,
  renderServiceMetrics,
  ServiceTallies,
  serviceNames,
  talliesMax,
} from '../../src/observe/service-metrics.js'
import type { AnsweredRequest } from '../../src/ports.js'

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

t.test('counts of two processes for one path are one', async t => {
  const one = tally('a', 'x', { incomingTransactions: 1, serviceSeconds: 1 })
  const { services } = JSON.parse(renderServiceMetrics([one, { ...one, serviceSeconds: 3 }]))
  t.same(services.a.subservs.x, { incomingTransactions: 2, serviceTime: 2 })
})

const answered = (some: Partial<AnsweredRequest>): AnsweredRequest => ({
  method: 'GET',
  route: '/v2',
  url: '/v2',
  status: 200,
  refusal: undefined,
  requestBytes: 10,
  responseBytes: 20,
  durationMs: 500,
  correlator: 'c',
  tenant: '',
  paths: '',
  from: () => '',
  payload: undefined,
  ...some,
})

t.test('a request is counted with its bytes, its time, and whether it failed', async t => {
  const tallies = new ServiceTallies()
  tallies.onAnswered(answered({}))
  tallies.onAnswered(answered({ status: 404 }))
  t.match(tallies.read(false), [
    {
      incomingTransactions: 2,
      incomingTransactionErrors: 1,
      incomingTransactionRequestSize: 20,
      incomingTransactionResponseSize: 40,
      serviceSeconds: 1,
    },
  ])
})

t.test('sent requests are counted, except over MQTT', async t => {
  const tallies = new ServiceTallies()
  const sent = { tenant: 'a', path: '/p', receiver: 'h:1/', requestBytes: 5, responseBytes: 2 }
  tallies.onEnded({ ...sent, what: 'notification', failure: undefined })
  tallies.onEnded({ ...sent, what: 'forward', failure: 'no answer' })
  tallies.onEnded({ ...sent, what: 'mqttNotification', failure: 'no answer' })
  t.match(tallies.read(false), [
    {
      service: 'a',
      path: 'p',
      outgoingTransactions: 2,
      outgoingTransactionErrors: 1,
      outgoingTransactionRequestSize: 10,
      outgoingTransactionResponseSize: 4,
    },
  ])
})

t.test('a reset returns the counts and begins anew', async t => {
  const tallies = new ServiceTallies()
  tallies.onAnswered(answered({}))
  t.equal(tallies.read(true).length, 1)
  t.same(tallies.read(false), [])
  tallies.onAnswered(answered({}))
  t.equal(tallies.read(false)[0]?.incomingTransactions, 1)
})

t.test('other spellings of one name are one', async t => {
  const tallies = new ServiceTallies()
  for (const [tenant, paths] of [
    ['A', '/x'],
    ['a', '/x/#'],
    ['a', '/x,/y'],
  ] as const)
    tallies.onAnswered(answered({ tenant, paths }))
  t.match(tallies.read(false), [{ service: 'a', path: 'x', incomingTransactions: 3 }])
})

t.test('for any number of invented names, only a bounded number is distinguished', async t => {
  const tallies = new ServiceTallies()
  for (let n = 0; n < talliesMax + 100; n++) tallies.onAnswered(answered({ paths: `/p${n}` }))
  const read = tallies.read(false)
  t.equal(read.length, talliesMax + 1)
  t.match(read.at(-1), { service: 'other-services', incomingTransactions: 100 })
})
