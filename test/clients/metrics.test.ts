// A parser of Prometheus' text format that others have written reads `/metrics` and finds the events that have
// happened.
//
// The program has two workers and has had some traffic. The parser merges the labels of a histogram, so the test checks
// only histograms without labels.
//
// Not here: the meaning of each number (http/metrics.test), and errors that this parser accepts
// (support/exposition-parser is stricter).

import t from 'tap'
import { httpReceiver, until } from '../deliver/receivers.js'
import { startBroker } from '../support/broker-process.js'
import { parseExposition } from '../support/exposition-parser.js'
import { HttpClient } from '../support/http-client.js'
import { lacking, load } from './workspace.js'

t.setTimeout(400_000)

interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value?: string
  readonly count?: string
  readonly buckets?: Readonly<Record<string, string>>
}
interface Family {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly metrics: readonly Sample[]
}

t.test('a parser of another project reads the metrics of two workers', { skip: lacking }, async t => {
  const parse = load('parse-prometheus-text-format') as (text: string) => readonly Family[]
  const broker = await startBroker(t, { args: ['-workers', '2', '-multiservice'] })
  const client = new HttpClient(broker.baseUrl)
  t.teardown(() => client.close())
  const receiver = await httpReceiver(t)
  const notification = { http: { url: receiver.url } }
  await client.send('POST', '/v2/subscriptions', { subject: { entities: [{ idPattern: '.*' }] }, notification })
  for (let n = 0; n < 12; n++) await client.send('POST', '/v2/entities', { id: `E${n}`, type: 'T', n: { value: n } })
  for (const path of ['/v2/entities?q=n>3', '/v2/entities/nobody', '/no/such/path']) await client.get(path)
  await until(() => receiver.received.length === 12, 'all notifications')

  const { text } = await client.get('/metrics')
  const families = parse(text)
  t.strictSame(
    families.map(({ name, type }) => [name, type.toLowerCase()]),
    [...parseExposition(text).families],
  )
  t.ok(families.every(({ help, metrics }) => help !== '' && metrics.length > 0))

  const of = (name: string): readonly Sample[] => families.find(family => family.name === name)?.metrics ?? []
  const plain = families.filter(({ type }) => type !== 'HISTOGRAM')
  t.ok(plain.every(({ metrics }) => metrics.every(({ value }) => Number.isFinite(Number(value)))))
  const created = { method: 'POST', route: '/v2/entities', status: '201' }
  t.match(
    of('orrery_http_requests_total').filter(({ labels }) => labels?.status === '201' && labels.route === created.route),
    [{ labels: created, value: '12' }],
  )
  t.strictSame(of('orrery_workers'), [{ value: '2' }])
  t.strictSame(
    of('process_resident_memory_bytes').map(({ labels }) => labels),
    [{ worker: '0' }, { worker: '1' }],
  )
  const [synced] = of('orrery_commit_sync_seconds')
  t.equal(synced?.buckets?.['+Inf'], synced?.count)
})
