// The reference of access control against the examples of docs/interface/access.md.

import t from 'tap'
import type { Selector } from '../support/reference-query.js'
import type { AccessFile, AccessRule } from './random-access-file.js'
import {
  allows,
  allowsAll,
  allowsAllUntyped,
  allowsFilter,
  allowsProviding,
  allowsUntyped,
  covers,
  inPaths,
  isWhole,
  rulesFor,
} from './reference-grant.js'

const rule = (members: Partial<AccessRule>): AccessRule => ({ actions: ['read'], ...members })
const at = (path: string, type = 'Lamp', id = 'E1') => ({ path, type, id })

t.test('rules count if action and tenant fit', async t => {
  const file: AccessFile = {
    keys: [],
    roles: {
      one: [rule({}), rule({ tenants: ['city'] }), rule({ actions: ['*'], tenants: ['*'] })],
      two: [rule({ actions: ['update'] })],
    },
  }
  t.equal(rulesFor(file, ['one', 'two'], 'read', '').length, 2)
  t.equal(rulesFor(file, ['one', 'two'], 'read', 'city').length, 2)
  t.equal(rulesFor(file, ['one', 'two'], 'update', '').length, 2)
  t.equal(rulesFor(file, ['two', 'undefined'], 'read', '').length, 0)
})

t.test('paths', async t => {
  for (const [path, inside, outside] of [
    ['/a', ['/a'], ['/', '/a/b', '/ab']],
    ['/a/#', ['/a', '/a/b', '/a/b/c'], ['/', '/ab']],
    ['/#', ['/', '/a', '/a/b'], []],
  ] as const) {
    for (const one of inside) t.ok(covers(rule({ paths: [path] }), at(one)), `${path} has ${one}`)
    for (const one of outside) t.notOk(covers(rule({ paths: [path] }), at(one)), `${path} does not have ${one}`)
  }
  const parts = (path: string, asked: readonly string[]) => inPaths([rule({ paths: [path] })], asked).length === 1
  t.ok(parts('/a/#', ['/#']))
  t.ok(parts('/a/b', ['/a/#']))
  t.ok(parts('/#', ['/a']))
  t.ok(parts('/c', ['/a', '/c']))
  t.notOk(parts('/a', ['/a/b/#']))
  t.notOk(parts('/a/#', ['/', '/ab/#']))
})

t.test('rules are added up by entity', async t => {
  const costly = rule({ attributes: ['*', '!cost'] })
  const lamps = rule({ types: ['Lamp'], attributes: ['cost'] })
  const all = ['cost', 'owner', 'name']
  const allowed = (rules: readonly AccessRule[], type: string, path = '/') =>
    all.filter(name => allows(rules, at(path, type), name))
  t.strictSame(allowed([costly], 'Lamp'), ['owner', 'name'])
  t.strictSame(allowed([costly, lamps], 'Lamp'), all)
  t.strictSame(allowed([costly, lamps], 'Museum'), ['owner', 'name'])
  t.strictSame(allowed([costly, rule({ attributes: ['*', '!owner'] })], 'Museum'), all)
  const nested = [rule({ paths: ['/a/#'], attributes: ['name'] }), rule({ paths: ['/a/b'], attributes: ['owner'] })]
  t.strictSame(allowed(nested, 'Lamp', '/a/b'), ['owner', 'name'])
  t.strictSame(allowed(nested, 'Lamp', '/a'), ['name'])
  const crossed = [rule({ types: ['Lamp'], attributes: ['name'] }), rule({ types: ['Meter'] })]
  t.strictSame(allowed(crossed, 'Lamp'), ['name'], 'the cost of a lamp is not allowed')
  t.strictSame(allowed([rule({ attributes: ['!cost', '*'] })], 'Lamp'), ['owner', 'name'], 'wherever it stands')
})

t.test('all attributes: whatever the entity has', async t => {
  t.ok(allowsAll([rule({})], at('/')))
  t.ok(allowsAll([rule({ attributes: ['*', '!a'] }), rule({ attributes: ['a'] })], at('/')))
  t.notOk(allowsAll([rule({ attributes: ['*', '!a'] })], at('/')))
  t.notOk(allowsAll([rule({ attributes: ['a', 'b'] })], at('/')))
  t.notOk(allowsAll([rule({ types: ['Meter'] })], at('/')))
})

const filter = (rules: readonly AccessRule[], ...selectors: readonly Selector[]) =>
  allowsFilter(rules, { paths: ['/#'], selectors }, 'cost')

t.test('filters: the table of the document', async t => {
  const costly = rule({ attributes: ['*', '!cost'] })
  const lamps = rule({ types: ['Lamp'] })
  const museums = rule({ types: ['Museum'], attributes: ['*', '!cost'] })
  t.notOk(filter([costly, lamps]), 'other types do not show it')
  t.ok(filter([costly, lamps], { types: ['Lamp'] }))
  t.notOk(filter([costly, lamps], { types: ['Lamp', 'Museum'] }))
  t.ok(filter([museums, lamps], { types: ['Lamp'] }))
})

t.test('filters: patterns, several selectors, paths', async t => {
  const museums = rule({ types: ['Museum'], attributes: ['*', '!cost'] })
  const costly = rule({ attributes: ['*', '!cost'] })
  const lamps = rule({ types: ['Lamp'] })
  t.ok(filter([museums, lamps], { typePattern: '^L' }), 'a pattern of types narrows clauses that name types')
  t.notOk(filter([costly, lamps], { typePattern: '^L' }), 'and no others')
  t.notOk(filter([museums, lamps], { ids: ['E1'], types: ['Lamp'] }, { ids: ['E2'], types: ['Museum'] }))
  t.notOk(filter([museums, lamps], { types: ['Lamp'] }, { ids: ['E2'] }), 'one selector without a type names all')
  const byPattern = rule({ ids: [{ pattern: '^E' }], attributes: ['*', '!cost'] })
  t.notOk(filter([byPattern, rule({ ids: ['E1', 'E2'] })]), 'names do not cover a pattern')
  t.ok(filter([byPattern, rule({ ids: ['E1', 'E2'] })], { ids: ['E1'] }))
  t.notOk(filter([byPattern, rule({ ids: [{ pattern: '^E.' }] })]))
  t.ok(filter([byPattern, rule({ ids: [{ pattern: '^E' }] })]), 'the same pattern')
  t.ok(filter([byPattern, rule({})]), 'all ids')
  t.notOk(filter([byPattern, rule({ ids: ['E1'] })], { idPattern: '^E1$' }), 'a pattern of ids narrows nothing')
  const below = rule({ paths: ['/a/#'], attributes: ['name'] })
  const inA = [below, rule({ paths: ['/a', '/a/b/#'] })]
  t.notOk(filter(inA), 'other paths below')
  t.ok(allowsFilter(inA, { paths: ['/a/b/#'], selectors: [] }, 'cost'))
  t.ok(allowsFilter(inA, { paths: ['/a', '/c'], selectors: [] }, 'cost'))
  t.ok(filter([rule({ types: ['Museum'] })], { types: ['Lamp'] }), 'no covered entity')
})

t.test('a write without a type: every type that the rules cover', async t => {
  const both = [rule({ types: ['Lamp'], attributes: ['a'] }), rule({ types: ['Meter'] })]
  t.ok(allowsUntyped(both, '/', 'E1', 'a'))
  t.notOk(allowsUntyped(both, '/', 'E1', 'b'), 'not of a Lamp')
  t.notOk(allowsUntyped([rule({ ids: ['E2'] })], '/', 'E1', 'a'), 'no rule fits')
  t.notOk(allowsUntyped([rule({ paths: ['/a'] })], '/', 'E1', 'a'))
  t.ok(allowsAllUntyped([rule({ types: ['Lamp'] })], '/', 'E1'))
  t.notOk(allowsAllUntyped(both, '/', 'E1'))
})

t.test('registrations: a rule counts only if it covers an element completely', async t => {
  t.ok(allowsProviding([rule({})], { path: '/' }, []))
  t.notOk(allowsProviding([rule({ types: ['Lamp'] })], { path: '/' }, []), 'every type')
  t.notOk(allowsProviding([rule({ ids: [{ pattern: '.*' }] })], { path: '/', type: 'Lamp' }, []), 'every id')
  t.ok(allowsProviding([rule({ ids: [{ pattern: '^E' }] })], { path: '/', id: 'E1', type: 'Lamp' }, []))
  t.notOk(allowsProviding([rule({ attributes: ['a'] })], { path: '/' }, []), 'all attributes')
  t.ok(allowsProviding([rule({ attributes: ['a'] }), rule({ attributes: ['b'] })], { path: '/' }, ['a', 'b']))
  const half = [rule({ types: ['Lamp'], attributes: ['a'] }), rule({ attributes: ['b'] })]
  t.notOk(allowsProviding(half, { path: '/' }, ['a', 'b']))
  t.ok(allowsProviding(half, { path: '/', type: 'Lamp' }, ['a', 'b']))
})

t.test('a rule of operators is narrowed by nothing', async t => {
  t.ok(isWhole(rule({})))
  t.ok(isWhole(rule({ paths: ['/#'], attributes: ['*'] })))
  for (const narrow of [{ paths: ['/a/#'] }, { types: ['Lamp'] }, { ids: ['E1'] }, { attributes: ['*', '!a'] }])
    t.notOk(isWhole(rule(narrow)), JSON.stringify(narrow))
})
