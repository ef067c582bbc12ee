// Notifications beyond the rate of their tenant: they wait, in order, and delay no other tenant.

import t from 'tap'
import { TenantRates } from '../../src/access/tenant-rates.js'
import { PacedNotifications } from '../../src/deliver/paced.js'
import { FakeClock } from '../support/fake-clock.js'
import { pendingOf } from './messages.js'

function scene(rates: Readonly<Record<string, number>>) {
  const clock = new FakeClock()
  const buckets = new TenantRates({ clock, rateOf: tenant => rates[tenant], processes: () => 1 })
  const counts = new Map<string, number>()
  const pace = {
    take: (tenant: string) => buckets.take(tenant),
    onPaced: (tenant: string) => void counts.set(tenant, (counts.get(tenant) ?? 0) + 1),
  }
  const sent: string[] = []
  const sendDue = (): void => {
    for (let next = paced.take(); next; next = paced.take()) sent.push(next.id)
  }
  const paced = new PacedNotifications(pace, clock, sendDue)
  const arrive = (id: string, tenant: string, attempts = 0): void => {
    const pending = { ...pendingOf({ id, tenant, subscription: 's' }), attempts }
    if (paced.mayLeave(pending)) sent.push(id)
    else paced.add(pending)
  }
  const arriveMany = (name: string, tenant: string, count: number): void => {
    for (let at = 0; at < count; at++) arrive(`${name}${at}`, tenant)
  }
  return { clock, paced, counts, sent, arrive, arriveMany }
}

const names = (name: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${name}${at}`)

t.test('as many as the rate allows leave at once, and the others one by one, in order', async t => {
  const { clock, paced, counts, sent, arriveMany } = scene({ city: 10 })
  arriveMany('c', 'city', 35)
  t.strictSame(sent, names('c', 10))
  t.equal(paced.lengthOf('city'), 25)
  t.equal(counts.get('city'), 25)
  clock.advance(1_000)
  t.equal(sent.length, 20)
  clock.advance(1_500)
  t.strictSame(sent, names('c', 35))
  t.equal(paced.length, 0)
})

t.test('another tenant is not delayed', async t => {
  const { clock, sent, arriveMany } = scene({ city: 1, port: 5 })
  arriveMany('c', 'city', 10_000)
  arriveMany('p', 'port', 8)
  arriveMany('f', 'free', 100)
  t.strictSame(sent, ['c0', ...names('p', 5), ...names('f', 100)])
  clock.advance(1_000)
  t.strictSame(sent.slice(106).sort(), ['c1', 'p5', 'p6', 'p7'])
})

t.test('one that arrives behind others waits behind them', async t => {
  const { clock, sent, arrive } = scene({ city: 1 })
  arrive('first', 'city')
  arrive('second', 'city')
  clock.advance(990)
  arrive('third', 'city')
  clock.advance(2_100)
  t.strictSame(sent, ['first', 'second', 'third'])
  clock.advance(5_000)
  arrive('fourth', 'city')
  t.equal(sent.at(-1), 'fourth', 'when all have left, the next one leaves at once')
})

t.test('further tries are not counted', async t => {
  const { paced, sent, arrive } = scene({ city: 1 })
  for (let at = 0; at < 5; at++) arrive(`again${at}`, 'city', 1)
  t.strictSame(sent, names('again', 5))
  t.equal(paced.length, 0)
})
