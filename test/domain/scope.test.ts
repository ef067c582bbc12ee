// Scopes: tenants, service paths and shards. An accepted header is shown with its meaning, a refused one with its text.

import t from 'tap'
import { type Result, refusalText } from '../../src/domain/refusal.js'
import {
  allPaths,
  anyCoversPath,
  coveringPaths,
  coversPath,
  type Placement,
  parseServicePaths,
  parseTenant,
  ShardMap,
  updatePath,
  workerOf,
} from '../../src/domain/scope.js'
import fc from '../support/properties.js'

/** The accepted value, or `400` and the text of the refusal. Every refusal of a scope is a BadRequest. */
function answer(result: Result<string | readonly string[]>): string {
  if (result.ok) return typeof result.value === 'string' ? result.value : result.value.join(' ')
  return result.refusal.kind === 'BadRequest' ? `400 ${refusalText(result.refusal)}` : result.refusal.kind
}

const many = (count: number, part: string): string => part.repeat(count)

const tenantCharacters = '400 bad character in tenant name - only underscore and alphanumeric characters are allowed'
const tenantLong = '400 bad length - a tenant name can be max 50 characters long'

const tenants: [header: string, answer: string][] = [
  ['', ''],
  ['smartcity', 'smartcity'],
  ['SmartCity', 'smartcity'],
  ['SMART_CITY_2', 'smart_city_2'],
  ['_', '_'],
  ['0', '0'],
  ['constructor', 'constructor'],
  [many(50, 'a'), many(50, 'a')],
  [many(50, 'A'), many(50, 'a')],
  [many(51, 'a'), tenantLong],
  ['smart-city', tenantCharacters],
  ['smart city', tenantCharacters],
  [' ', tenantCharacters],
  ['a.b', tenantCharacters],
  ['a/b', tenantCharacters],
  ['a,b', tenantCharacters],
  ['a\nb', tenantCharacters],
  ['a\n', tenantCharacters],
  ['köln', tenantCharacters],
]

t.test('a tenant is lower-cased, and refused for its length or its characters', async t => {
  for (const [header, expected] of tenants) t.equal(answer(parseTenant(header)), expected, JSON.stringify(header))
})

t.test('a tenant holds letters, digits and underscores, and no other character of one byte', async t => {
  for (let code = 0; code < 256; code++) {
    const character = String.fromCharCode(code)
    t.equal(parseTenant(`a${character}`).ok, /[A-Za-z0-9_]/.test(character), `code ${code}`)
  }
})

t.test('a letter that only becomes ASCII in lower case is refused in a tenant', async t => {
  t.equal(answer(parseTenant('\u212a')), tenantCharacters, 'the sign for kelvin is not the letter K')
})

const relative = '400 Only /absolute/ Service Paths allowed [a service path must begin with /]'
const emptyLevel = '400 empty component in ServicePath'
const tooDeep = '400 too many components in ServicePath'
const levelLong = '400 component-name too long in ServicePath'
const pathCharacters = '400 a component of ServicePath contains an illegal character'
const tooMany = '400 too many service paths - a maximum of ten service paths is allowed'

const paths: [header: string, answer: string][] = [
  // absent
  ['', ''],
  ['  ', ''],
  // one path
  ['/', '/'],
  ['/a', '/a'],
  ['/Madrid/Gardens_2/ParqueNorte', '/Madrid/Gardens_2/ParqueNorte'],
  ['/#', '/#'],
  ['/a/#', '/a/#'],
  // preparation
  ['  /a  ', '/a'],
  ['/a/', '/a'],
  ['/a/b/ ', '/a/b'],
  ['/a/#/', '/a/#'],
  // lists
  ['/a,/b', '/a /b'],
  ['/a , /b/c/ ,/d/#', '/a /b/c /d/#'],
  ['/,/a', '/ /a'],
  [`${many(9, '/a,')}/a`, `${many(9, '/a ')}/a`],
  [`${many(10, '/a,')}/a`, tooMany],
  ['/a,b', relative],
  ['/a,/b c', pathCharacters],
  ['/a,', relative],
  [',/a', relative],
  // not absolute
  ['a', relative],
  ['a/b', relative],
  ['#', relative],
  // empty levels
  ['//a', emptyLevel],
  ['/a//b', emptyLevel],
  ['/a//', emptyLevel],
  // levels
  [many(10, '/a'), many(10, '/a')],
  [`${many(10, '/a')}/`, many(10, '/a')],
  [many(11, '/a'), tooDeep],
  [`/a/${many(50, 'b')}`, `/a/${many(50, 'b')}`],
  [`/a/${many(51, 'b')}`, levelLong],
  [`/${many(51, 'b')}/a`, levelLong],
  // characters
  ['/a-b', pathCharacters],
  ['/a b', pathCharacters],
  ['/a.b', pathCharacters],
  ['/a#', pathCharacters],
  ['/#a', pathCharacters],
  ['/##', pathCharacters],
  ['/#/a', pathCharacters],
  ['/a\n', '/a'],
  ['/a\nb', pathCharacters],
  ['/ä', pathCharacters],
]

t.test('service paths are trimmed, split and checked', async t => {
  for (const [header, expected] of paths) t.equal(answer(parseServicePaths(header)), expected, JSON.stringify(header))
})

t.test('a level holds letters, digits and underscores, and no other character of one byte', async t => {
  for (let code = 0; code < 256; code++) {
    const character = String.fromCharCode(code)
    if (character === '/' || character === ',') continue
    const isLegal = /[A-Za-z0-9_]/.test(character)
    t.equal(parseServicePaths(`/a${character}b`).ok, isLegal, `code ${code}`)
  }
})

t.test('a query without a path is about the whole tenant', async t => {
  t.strictSame(allPaths, ['/#'])
})

const updates: [verb: 'PATCH' | 'DELETE' | 'POST' | 'PUT', list: string, wildcard: string][] = [
  [
    'PATCH',
    '400 more than one servicepath in patch update request is not allowed',
    '400 servicepath with wildcard # is not allowed in patch update request',
  ],
  [
    'DELETE',
    '400 more than one servicepath is not allowed in DELETE operation',
    '400 servicepath with wildcard # is not allowed in DELETE operation',
  ],
  ['POST', '400 more than one service path in context update request', '400 Bad Character in Service-Path'],
  ['PUT', '400 more than one service path in context update request', '400 Bad Character in Service-Path'],
]

t.test('an update acts on one path without wildcard, and its refusal has the words of its verb', async t => {
  for (const [verb, list, wildcard] of updates) {
    t.equal(answer(updatePath(['/a/b'], verb)), '/a/b', `${verb} one path`)
    t.equal(answer(updatePath(['/a', '/b'], verb)), list, `${verb} two paths`)
    t.equal(answer(updatePath(['/a', '/a'], verb)), list, `${verb} the same path twice`)
    t.equal(answer(updatePath(['/a/#'], verb)), wildcard, `${verb} wildcard`)
    t.equal(answer(updatePath(['/#'], verb)), wildcard, `${verb} wildcard for all`)
  }
})

t.test('an update without a path acts on the root scope', async t => {
  for (const [verb] of updates) t.equal(answer(updatePath([], verb)), '/', verb)
})

const covers: [pattern: string, covered: string, notCovered: string][] = [
  ['/', '/', '/a /a/b'],
  ['/a', '/a', '/ /a/b /ab /b /A'],
  ['/a/b', '/a/b', '/ /a /a/b/c /a/bc'],
  ['/#', '/ /a /a/b /a/b/c', ''],
  ['/a/#', '/a /a/b /a/b/c', '/ /ab /ab/c /b /b/a'],
  ['/a/b/#', '/a/b /a/b/c', '/a /a/c /a/bc /b'],
]

const listed = (text: string): string[] => (text === '' ? [] : text.split(' '))

t.test('a path covers itself, and with a wildcard also all below it', async t => {
  for (const [pattern, covered, notCovered] of covers) {
    for (const path of listed(covered)) t.ok(coversPath(pattern, path), `${pattern} covers ${path}`)
    for (const path of listed(notCovered)) t.notOk(coversPath(pattern, path), `${pattern} does not cover ${path}`)
  }
})

t.test('a path is covered by itself, by everything, and with a wildcard by each path from it upwards', async t => {
  t.strictSame([...coveringPaths('/')].sort(), ['/', '/#'])
  t.strictSame([...coveringPaths('/ab/c')].sort(), ['/#', '/ab/#', '/ab/c', '/ab/c/#'])
  for (const [pattern, covered, notCovered] of covers)
    for (const path of listed(`${covered} ${notCovered}`.trim()))
      t.equal(coveringPaths(path).includes(pattern), coversPath(pattern, path), `${pattern} and ${path}`)
})

t.test('a list covers every path that any of its paths covers', async t => {
  for (const path of ['/a', '/c', '/c/d']) t.ok(anyCoversPath(['/a', '/c/#'], path), path)
  for (const path of ['/', '/a/b', '/d']) t.notOk(anyCoversPath(['/a', '/c/#'], path), path)
  t.notOk(anyCoversPath([], '/'))
})

const shardsOf = ({ shards, spread }: Placement, tenant: string, path: string, ids: readonly string[]): number[] => {
  const map = new ShardMap({ shards, spread })
  return ids.map(id => map.shardOf(tenant, path, id))
}

const rooms = (count: number): string[] => Array.from({ length: count }, (_, n) => `urn:ngsi-ld:Room:${n}`)

/** Computed once and frozen, because data directories depend on them. */
const placed: [tenant: string, path: string, id: string, in64over1: number, in64over8: number, in64over64: number][] = [
  ['', '/', 'R1', 33, 58, 34],
  ['', '/', 'R2', 33, 58, 26],
  ['', '/', 'urn:ngsi-ld:Room:1', 33, 5, 29],
  ['', '/floor1', 'R1', 9, 34, 10],
  ['', '/floor1/east', 'R1', 2, 27, 3],
  ['city', '/', 'R1', 46, 5, 29],
  ['city', '/floor1', 'urn:ngsi-ld:Room:1', 29, 57, 33],
  ['smart_city_2', '/a/b/c', 'x', 53, 42, 10],
  ['', '/', '', 33, 58, 18],
]

t.test('an entity stays in its shard for good', async t => {
  for (const [tenant, path, id, over1, over8, over64] of placed) {
    const found = [1, 8, 64].map(spread => shardsOf({ shards: 64, spread }, tenant, path, [id])[0])
    t.strictSame(found, [over1, over8, over64], `tenant '${tenant}', path ${path}, id ${id}`)
  }
})

t.test('a spread of 1 keeps a scope in one shard', async t => {
  for (const path of ['/', '/a', '/a/b'])
    t.equal(new Set(shardsOf({ shards: 64, spread: 1 }, 'city', path, rooms(500))).size, 1, path)
})

t.test('a spread of 1 still gives scopes different shards', async t => {
  const map = new ShardMap({ shards: 64, spread: 1 })
  t.ok(new Set(rooms(500).map((_, n) => map.shardOf('city', `/floor${n}`, 'R1'))).size > 50, 'paths')
  t.ok(new Set(rooms(500).map((_, n) => map.shardOf(`city${n}`, '/', 'R1'))).size > 50, 'tenants')
})

t.test('a scope reaches exactly as many shards as its spread', async t => {
  for (const spread of [1, 2, 4, 8, 16, 32, 64])
    for (const path of ['/', '/a', '/b'])
      t.equal(new Set(shardsOf({ shards: 64, spread }, 'city', path, rooms(2000))).size, spread, `${spread} ${path}`)
})

t.test('entities of one scope are spread evenly', async t => {
  const counts = new Map<number, number>()
  for (const shard of shardsOf({ shards: 16, spread: 16 }, '', '/', rooms(16_000)))
    counts.set(shard, (counts.get(shard) ?? 0) + 1)
  for (let shard = 0; shard < 16; shard++) {
    const count = counts.get(shard) ?? 0
    t.ok(count > 800 && count < 1200, `shard ${shard} holds ${count} of 16000`)
  }
})

const placement = fc
  .tuple(fc.integer({ min: 0, max: 16 }), fc.integer({ min: 0, max: 16 }))
  .map(([a, b]): Placement => ({ shards: 2 ** Math.max(a, b), spread: 2 ** Math.min(a, b) }))

t.test('a shard is a whole number from 0 to below the number of shards', async () => {
  const name = fc.string({ unit: 'binary-ascii', maxLength: 40 })
  fc.assert(
    fc.property(placement, name, name, name, (placement, tenant, path, id) => {
      const [shard] = shardsOf(placement, tenant, path, [id])
      return Number.isInteger(shard) && shard! >= 0 && shard! < placement.shards
    }),
  )
})

t.test('a map gives the same shard after any other calls', async t => {
  const map = new ShardMap({ shards: 1024, spread: 8 })
  const asked = placed.map(([tenant, path, id]) => map.shardOf(tenant, path, id))
  for (let n = 0; n < 100_001; n++) map.shardOf('city', `/${n}`, 'R1')
  t.strictSame(
    placed.map(([tenant, path, id]) => map.shardOf(tenant, path, id)),
    asked,
  )
})

t.test('another path of a tenant moves all its entities by the same distance', async t => {
  const here = shardsOf({ shards: 64, spread: 64 }, 'city', '/a', rooms(300))
  const there = shardsOf({ shards: 64, spread: 64 }, 'city', '/b', rooms(300))
  t.equal(new Set(here.map((shard, n) => (there[n]! - shard + 64) % 64)).size, 1)
})

t.test('shards are dealt to the workers in turn', async t => {
  const owners = (workers: number) => Array.from({ length: 8 }, (_, shard) => workerOf(shard, workers))
  t.strictSame(owners(1), [0, 0, 0, 0, 0, 0, 0, 0])
  t.strictSame(owners(3), [0, 1, 2, 0, 1, 2, 0, 1])
})
