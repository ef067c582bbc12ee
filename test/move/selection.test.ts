// The items that a selection takes, and the report about names that were not found.

import t from 'tap'
import { isWhole, type Tally } from '../../src/move/move.js'
import type { MovedItem } from '../../src/move/moved.js'
import { Selector } from '../../src/move/selection.js'

const entity = (tenant: string, path: string) => ({ kind: 'entity', tenant, path }) as MovedItem
const subscription = (tenant: string, servicePath: string) =>
  ({ kind: 'subscription', subscription: { tenant, servicePath } }) as MovedItem
const registration = (tenant: string, servicePath: string) =>
  ({ kind: 'registration', registration: { tenant, servicePath } }) as MovedItem

const tenants = ['city', '']
const paths = ['/a', '/b/c']
const cases: readonly (readonly [what: string, item: MovedItem, isTaken: boolean])[] = [
  ['an entity of a path', entity('city', '/a'), true],
  ['an entity of the default tenant', entity('', '/b/c'), true],
  ['an entity of another tenant', entity('park', '/a'), false],
  ['an entity below a path', entity('city', '/a/x'), false],
  ['an entity above a path', entity('city', '/b'), false],
  ['an entity of a path that begins alike', entity('city', '/ab'), false],
  ['a subscription of a path', subscription('city', '/a'), true],
  ['a subscription of a path and all below', subscription('city', '/a/#'), true],
  ['a subscription of all below a path above', subscription('city', '/b/#'), true],
  ['a subscription of everything', subscription('city', '/#'), true],
  ['a subscription of a path above', subscription('city', '/b'), false],
  ['a subscription of all below a path that begins alike', subscription('city', '/b/cd/#'), false],
  ['a registration of a path', registration('city', '/b/c'), true],
  ['a registration of the root', registration('city', '/'), false],
]
for (const [what, item, isTaken] of cases)
  t.test(`${what} is ${isTaken ? '' : 'not '}requested`, async t => {
    t.equal(new Selector({ tenants, paths }).takes(item), isTaken)
  })

t.test('without names everything is requested, and nothing is missing', async t => {
  const selector = new Selector({ tenants: undefined, paths: undefined })
  for (const [, item] of cases) t.ok(selector.takes(item))
  t.same(selector.unmet(), [])
})

t.test('names that were never found are reported, also by continued work', async t => {
  const selection = { tenants: ['city', 'ciyt', ''], paths: ['/a', '/b'] }
  const first = new Selector(selection)
  first.takes(entity('city', '/a'))
  first.takes(entity('park', '/b'))
  t.same(first.unmet(), ['tenant ciyt', 'the default tenant', 'path /b'])
  const second = new Selector(selection, first.found)
  second.takes(entity('', '/b'))
  t.same(second.unmet(), ['tenant ciyt'])
})

t.test('all is there only if nothing failed, differs or is missing', async t => {
  const none = { written: 0, replaced: 0, same: 0, kept: 0, bad: 0, unselected: 0 }
  const tally: Tally = { entity: none, registration: none, subscription: none }
  t.ok(isWhole({ tally: { ...tally, entity: { ...none, written: 5, same: 3, unselected: 2 } }, unmet: [] }))
  t.notOk(isWhole({ tally: { ...tally, entity: { ...none, kept: 1 } }, unmet: [] }))
  t.notOk(isWhole({ tally: { ...tally, subscription: { ...none, bad: 1 } }, unmet: [] }))
  t.notOk(isWhole({ tally, unmet: ['tenant city'] }))
})
