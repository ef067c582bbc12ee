// Requests by method, route, status and time.

import t from 'tap'
import { renderMetrics } from '../../src/observe/metric-family.js'
import { RequestTallies } from '../../src/observe/request-tallies.js'
import type { AnsweredRequest } from '../../src/ports.js'
import { parseExposition } from '../support/exposition-parser.js'

const answered = (method: string, route: string, status: number, durationMs = 1): AnsweredRequest => ({
  method,
  route,
  status,
  durationMs,
  url: '',
  refusal: undefined,
  requestBytes: 0,
  responseBytes: 0,
  correlator: '',
  tenant: '',
  paths: '',
  from: () => '',
  payload: undefined,
})

const read = async (tallies: RequestTallies) => parseExposition(await renderMetrics([tallies.families()]))

t.test('a request is counted by method, route and status, and its time by method and route', async t => {
  const tallies = new RequestTallies()
  for (const one of [answered('GET', '/v2', 200, 3), answered('GET', '/v2', 404, 700), answered('POST', '/v2', 200)])
    tallies.onAnswered(one)
  const { value } = await read(tallies)
  t.equal(value('orrery_http_requests_total', { method: 'GET', route: '/v2', status: '200' }), 1)
  t.equal(value('orrery_http_requests_total', { method: 'GET', route: '/v2', status: '404' }), 1)
  t.equal(value('orrery_http_request_duration_seconds_count', { method: 'GET', route: '/v2' }), 2)
  t.equal(value('orrery_http_request_duration_seconds_bucket', { method: 'GET', le: '0.005' }), 1)
  t.ok(Math.abs(value('orrery_http_request_duration_seconds_sum', { method: 'GET' }) - 0.703) < 1e-9)
})

t.test('a client cannot make new series: unknown methods and paths are counted as others', async t => {
  const tallies = new RequestTallies()
  for (let n = 0; n < 1000; n++) tallies.onAnswered(answered(`M${n}`, '', 400))
  const { samples, value } = await read(tallies)
  t.equal(value('orrery_http_requests_total', { method: 'other', route: 'other', status: '400' }), 1000)
  t.equal(samples.filter(({ name }) => name === 'orrery_http_requests_total').length, 1)
})
