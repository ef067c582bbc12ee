// What is counted by tenant and path, and that it is bounded.

import t from 'tap'
import { ServiceTallies, talliesMax } from '../../src/observe/service-tallies.js'
import type { AnsweredRequest } from '../../src/ports.js'

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

t.test('what is sent is counted, but over MQTT', async t => {
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

t.test('a reset gives what was counted and begins anew', async t => {
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

t.test('however many names are made up, no more than so many are told apart', async t => {
  const tallies = new ServiceTallies()
  for (let n = 0; n < talliesMax + 100; n++) tallies.onAnswered(answered({ paths: `/p${n}` }))
  const read = tallies.read(false)
  t.equal(read.length, talliesMax + 1)
  t.match(read.at(-1), { service: 'other-services', incomingTransactions: 100 })
})
