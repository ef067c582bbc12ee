// The rates of tenants, and the memory that they take.

import t from 'tap'
import { rateBucketsMax } from '../../src/access/limits.js'
import { TenantRates } from '../../src/access/tenant-rates.js'
import { FakeClock } from '../support/fake-clock.js'

function scene(rateOf: (tenant: string) => number | undefined, processes = 1) {
  const clock = new FakeClock()
  let count = processes
  const rates = new TenantRates({ clock, rateOf, processes: () => count })
  const taken = (tenant: string, tries: number): number =>
    Array.from({ length: tries }, () => rates.take(tenant)).filter(waitMs => waitMs === 0).length
  return { clock, rates, taken, divideAmong: (processes: number) => (count = processes) }
}

t.test('each tenant has its own bucket', async t => {
  const { clock, taken } = scene(() => 5)
  t.equal(taken('city', 20), 5)
  t.equal(taken('port', 20), 5)
  t.equal(taken('', 20), 5)
  clock.advance(200)
  t.equal(taken('city', 20), 1)
})

t.test('a tenant without a rate has no bucket', async t => {
  const { rates, taken } = scene(tenant => (tenant === 'city' ? 5 : undefined))
  t.equal(taken('port', 10_000), 10_000)
  t.equal(rates.size, 0)
})

t.test('a million names of strangers take the memory of some', async t => {
  const { clock, rates } = scene(() => 5)
  for (let at = 0; at < 1_000_000; at++) {
    rates.take(`tenant${at}`)
    if (at % 100 === 0) clock.advance(1)
  }
  t.ok(rates.size <= 2 * rateBucketsMax, `${rates.size} buckets`)
})

t.test('a bucket that is forgotten was full', async t => {
  const { clock, rates, taken } = scene(() => 5)
  t.equal(taken('city', 20), 5)
  for (let ms = 0; ms < 900; ms += 100) {
    clock.advance(100)
    rates.take('port')
  }
  t.equal(taken('city', 20), 4, '900 ms bring four')
  for (let seconds = 0; seconds < 5; seconds++) {
    clock.advance(1_100)
    rates.take('port')
  }
  t.ok(rates.size <= 2)
  t.equal(taken('city', 20), 5)
})

t.test('several processes divide a rate, and a part below one is kept for as long as it takes to fill', async t => {
  const { clock, rates, taken, divideAmong } = scene(() => 6, 2)
  t.equal(taken('city', 20), 3)
  divideAmong(12)
  clock.advance(1_000)
  t.equal(taken('city', 20), 0, 'half a token')
  rates.take('port')
  clock.advance(1_100)
  t.equal(taken('city', 20), 1)
  clock.advance(1_000)
  rates.take('port')
  t.equal(taken('city', 20), 0)
})
