// The generator of the campaign: it repeats itself by its seed, reaches every route, and never claims to be the tenant
// that others must not see.

import t from 'tap'
import { Random } from '../support/random.js'
import type { Shot } from './draft.js'
import { HostileRequests } from './hostile-requests.js'
import { vaultTenant } from './mutations.js'

const count = 5_000

const drawn = (seed: number): Shot[] => {
  const targets = { receiver: 1, nobody: 2, broker: 3 }
  const generator = new HostileRequests(new Random(seed), targets, '51c0ac9ed714fb3b37d7d5a9')
  return Array.from({ length: count }, () => generator.next())
}

const textOf = ({ pieces }: Shot): string => Buffer.concat(pieces).toString('latin1')

t.test('a seed gives the same requests again, after any earlier draws', async t => {
  const [first, , again] = [drawn(1), drawn(2), drawn(1)]
  t.ok(first.every((shot, index) => textOf(shot) === textOf(again[index]!)))
})

t.test('every route is asked, most requests are to be answered by the rules, and some are none', async t => {
  const shots = drawn(3)
  t.ok(new Set(shots.map(({ kind }) => kind)).size >= 35)
  const share = (expects: Shot['expects']): number => shots.filter(shot => shot.expects === expects).length / count
  t.ok(share('strict') > 0.8, `${share('strict')}`)
  t.ok(share('mild') > 0.03, `${share('mild')}`)
  t.ok(share('none') > 0.005, `${share('none')}`)
})

t.test('none names the private tenant alone', async t => {
  for (const shot of [...drawn(4), ...drawn(5), ...drawn(6)]) {
    const [head = ''] = textOf(shot).split('\r\n\r\n')
    const named = [...head.matchAll(/^(?:ctx|fiware)-service:(.*)$/gim)].map(([, value]) => value!.trim().toLowerCase())
    if (named.length > 0 && named.every(value => value === vaultTenant)) t.fail(head)
  }
})
