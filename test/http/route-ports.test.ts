// The table of ports agrees with what rules have to allow: a path that is about the whole broker is for operators, and a
// path that is about a tenant is for clients.

import t from 'tap'
import { type NeedsOfPath, type RouteTemplate, routeNeeds } from '../../src/domain/access/route-needs.js'
import { isServedAt } from '../../src/http/route-ports.js'

const paths = Object.entries(routeNeeds) as [RouteTemplate, NeedsOfPath][]

t.test('paths that need admin are for operators alone, paths about a tenant for clients alone', async t => {
  for (const [template, needs] of paths)
    for (const need of Object.values(needs)) {
      if (typeof need === 'string') continue
      const wanted = need.about !== 'broker' ? 'main' : need.actions.includes('admin') ? 'admin' : 'both'
      t.equal(isServedAt('main', template), wanted !== 'admin', template)
      t.equal(isServedAt('admin', template), wanted !== 'main', template)
    }
})

t.test('where there is one port, it serves all paths', async t => {
  for (const [template] of paths) t.ok(isServedAt('only', template), template)
})
