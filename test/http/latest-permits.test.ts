// The remembered permit of an asker is used for a request that is alike in everything that the rules look at, and for no
// other.

import t from 'tap'
import { routeNeeds } from '../../src/domain/access/route-needs.js'
import type { Asker } from '../../src/http/access-guard.js'
import { type DecidedPermit, LatestPermits } from '../../src/http/latest-permits.js'
import type { Request } from '../../src/http/request.js'

const asker = {} as Asker
const permit: DecidedPermit = {
  permit: { asker, grants: {}, isWhole: true, onForbidden: () => {} },
  tenant: 'city',
}
const need = routeNeeds['/v2/entities'].POST

interface Facts {
  readonly tenant?: string
  readonly paths?: readonly string[]
  readonly options?: readonly string[]
  readonly isStream?: boolean
}

const request = ({ tenant = 'city', paths = ['/a'], options = [], isStream = false }: Facts = {}) =>
  ({
    tenantHeader: tenant,
    paths,
    parameters: { options: new Set(options) },
    streamHead: isStream ? {} : undefined,
  }) as unknown as Request

t.test('a request that is alike gets the remembered permit', async t => {
  const latest = new LatestPermits()
  t.equal(latest.of(asker, request(), need), undefined)
  latest.set(request(), need, permit)
  t.equal(latest.of(asker, request(), need)?.value, permit)
  t.equal(latest.of(asker, request({ options: ['keyValues'] }), need)?.value, permit)
})

const others: readonly (readonly [what: string, facts: Facts])[] = [
  ['another tenant', { tenant: 'other' }],
  ['another path', { paths: ['/b'] }],
  ['one more path', { paths: ['/a', '/b'] }],
  ['no path', { paths: [] }],
  ['an upsert', { options: ['upsert'] }],
  ['a stream', { isStream: true }],
]

for (const [what, facts] of others)
  t.test(`${what} is decided anew`, async t => {
    const latest = new LatestPermits()
    latest.set(request(), need, permit)
    t.equal(latest.of(asker, request(facts), need), undefined)
  })

t.test('another asker, and another route, are decided anew', async t => {
  const latest = new LatestPermits()
  latest.set(request(), need, permit)
  t.equal(latest.of({} as Asker, request(), need), undefined)
  t.equal(latest.of(asker, request(), routeNeeds['/v2/entities'].GET), undefined)
})

for (const [what, facts] of [
  ['a stream', { isStream: true }],
  ['a request about several paths', { paths: ['/a', '/b'] }],
] as const)
  t.test(`the permit of ${what} is not remembered`, async t => {
    const latest = new LatestPermits()
    latest.set(request(facts), need, permit)
    t.equal(latest.of(asker, request(), need), undefined)
    t.equal(latest.of(asker, request(facts), need), undefined)
  })
