// Reads under narrowed grants, compared with a plain evaluation of the rules: random rules and random requests, on one
// node, on two workers and on three nodes. An answer is that of a broker that has nothing but what the reader may see.

import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/domain/json.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { tempDir } from '../support/broker-process.js'
import { noEtcd } from '../support/etcd.js'
import { LocalNode, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'
import { Random } from '../support/random.js'
import { isAllowed, isCovered, type PlainEntity, type PlainRule } from '../support/reference-access.js'
import { startThreeNodes } from '../support/three-nodes.js'

t.setTimeout(400_000)

const { seed } = Random.fromEnvironment()
const readers = 30
const requestsOfReader = 12

const below = (random: Random, count: number): number => random.between(0, count - 1)
const oneOf = <T>(random: Random, all: readonly T[]): T => all[below(random, all.length)]!

const paths = ['/', '/a', '/a/b', '/c']
const types = ['Lamp', 'Meter', 'Museum']
const names = ['power', 'cost', 'name', 'place']

interface Stored extends PlainEntity {
  readonly attributes: Readonly<Record<string, { readonly type: string; readonly value: unknown }>>
}

/** In order of creation. */
function worldOf(random: Random): readonly Stored[] {
  return Array.from({ length: 420 }, (_, nth) => {
    const all: Record<string, { type: string; value: unknown }> = {
      power: { type: 'Number', value: below(random, 20) },
      cost: { type: 'Number', value: below(random, 20) },
      name: { type: 'Text', value: `n${below(random, 9)}` },
      place: { type: 'geo:json', value: { type: 'Point', coordinates: [below(random, 3), 0] } },
    }
    const attributes = Object.fromEntries(Object.entries(all).filter(() => below(random, 3) > 0))
    return { id: `e${nth}`, path: oneOf(random, paths), type: oneOf(random, types), attributes }
  })
}

function someOf<T>(random: Random, all: readonly T[]): T[] {
  const some = all.filter(() => below(random, 2) === 0)
  return some.length > 0 ? some : [oneOf(random, all)]
}

function ruleOf(random: Random): PlainRule {
  const may = (one: number): boolean => below(random, one) === 0
  const ids = [`e${below(random, 420)}`, `e${below(random, 420)}`, { pattern: `^e[${below(random, 5)}-8]` }]
  const lists = [['*', `!${oneOf(random, names)}`], someOf(random, names)]
  return {
    actions: ['read'],
    tenants: ['city'],
    ...(may(2) && { paths: someOf(random, ['/#', '/', '/a/#', '/a', '/c']) }),
    ...(may(2) && { types: someOf(random, types) }),
    ...(may(3) && { ids: someOf(random, ids) }),
    ...(may(2) && { attributes: oneOf(random, lists) }),
  }
}

interface Reader {
  readonly name: string
  readonly rules: readonly PlainRule[]
}

/** The visible part of all entities for a reader. */
const seenBy = ({ rules }: Reader, world: readonly Stored[]): readonly Stored[] =>
  world
    .filter(entity => isCovered(rules, 'read', 'city', entity))
    .map(entity => ({
      ...entity,
      attributes: Object.fromEntries(
        Object.entries(entity.attributes).filter(([name]) => isAllowed(rules, 'read', 'city', entity, name)),
      ),
    }))

const shown = ({ id, type, attributes }: Stored): JsonObject => ({
  id,
  type,
  ...Object.fromEntries(
    Object.entries(attributes)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, one]) => [name, { ...one, metadata: {} } as JsonObject]),
  ),
})

interface Question {
  readonly line: string
  readonly body?: unknown
  readonly path?: string
  /** The answer of a broker that has only these entities: a status, or a body with the total number. */
  readonly expected: (seen: readonly Stored[]) => { readonly total: number; readonly body: unknown } | number
  /** Attributes that a filter names. */
  readonly filtered?: readonly string[]
}

const inPath =
  (path: string | undefined) =>
  ({ path: own }: Stored): boolean =>
    path === undefined || (path === '/a/#' ? own.startsWith('/a') : own === path)

function questionOf(random: Random, world: readonly Stored[]): Question {
  const path = oneOf(random, [undefined, undefined, '/a/#', '/c', '/'])
  const type = oneOf(random, [undefined, ...types])
  const [offset, limit] = [below(random, 3) * 7, 1 + below(random, 40)]
  const page = `limit=${limit}&offset=${offset}&options=count`
  const ofType = type === undefined ? '' : `&type=${type}`
  const list = (line: string, holds: (one: Stored) => boolean, more: Partial<Question> = {}): Question => ({
    line,
    ...(path !== undefined && { path }),
    expected: seen => {
      const found = seen.filter(one => inPath(path)(one) && (type === undefined || one.type === type) && holds(one))
      return { total: found.length, body: found.slice(offset, offset + limit).map(shown) }
    },
    ...more,
  })
  const number = (one: Stored, name: string): number => Number(one.attributes[name]?.value ?? -1)
  const one = oneOf(random, world)
  switch (below(random, 8)) {
    case 0:
    case 1:
      return list(`GET /v2/entities?${page}${ofType}`, () => true)
    case 2:
      return list(`GET /v2/entities?${page}${ofType}&q=power>9`, one => number(one, 'power') > 9, {
        filtered: ['power'],
      })
    case 3:
      return list(
        `GET /v2/entities?${page}${ofType}&georel=near;maxDistance:1000&geometry=point&coords=0,1`,
        ({ attributes: { place } }) => place !== undefined && JSON.stringify(place.value).includes('[1,'),
      )
    case 4:
      return list(`POST /v2/op/query?${page}`, ({ id }) => /^e1/.test(id), {
        body: { entities: [{ idPattern: '^e1', ...(type !== undefined && { type }) }] },
      })
    case 5:
      return {
        line: `GET /v2/entities/${one.id}`,
        expected: seen => {
          const found = seen.find(({ id }) => id === one.id)
          return found ? { total: 0, body: shown(found) } : 404
        },
      }
    case 6:
      return {
        line: `GET /v2/entities/${one.id}/attrs/cost`,
        expected: seen => {
          const found = seen.find(({ id }) => id === one.id)?.attributes.cost
          return found ? { total: 0, body: { ...found, metadata: {} } } : 404
        },
      }
    default:
      return { line: 'GET /v2/types?options=count', ...(path !== undefined && { path }), expected: typesIn(path) }
  }
}

const typesIn = (path: string | undefined) => (seen: readonly Stored[]) => {
  const found = types.flatMap(type => {
    const own = seen.filter(one => one.type === type && inPath(path)(one))
    if (own.length === 0) return []
    const attrs = names
      .filter(name => own.some(({ attributes }) => attributes[name]))
      .sort()
      .map(name => [name, { types: [own.find(({ attributes }) => attributes[name])?.attributes[name]?.type] }])
    return [{ type, attrs: Object.fromEntries(attrs), count: own.length }]
  })
  return { total: found.length, body: found }
}

async function compare(
  t: Tap,
  nodes: readonly LocalNode[],
  scene: AccessScene,
  random: Random,
  all: readonly Reader[],
) {
  const world = worldOf(random)
  for (const { path, id, type, attributes } of world) {
    const headers = [...scene.as('root'), 'Ctx-Service: city', `Ctx-ServicePath: ${path}`]
    const { status, text } = await nodes[0]!.json('POST /v2/entities', { id, type, ...attributes }, headers)
    if (status !== 201) throw new Error(text)
  }
  let narrowed = 0
  for (const reader of all) {
    const seen = seenBy(reader, world)
    if (seen.length > 0 && seen.length < world.length) narrowed++
    for (let nth = 0; nth < requestsOfReader; nth++) {
      const { line, body, path, expected, filtered } = questionOf(random, world)
      const headers = [...scene.as(reader.name), 'Ctx-Service: city', ...(path ? [`Ctx-ServicePath: ${path}`] : [])]
      const answer = await oneOf(random, nodes).json(line.replace('>', '%3E'), body, headers)
      const wanted = expected(seen)
      const what = `${line} ${path ?? ''} ${JSON.stringify(reader.rules)} (seed ${seed})`
      // No rule reaches these paths, or a filter names a hidden attribute.
      if (answer.status === 403) {
        const mayBe = filtered !== undefined || typeof wanted === 'number' || wanted.total === 0
        if (!mayBe) t.fail(`403: ${what}`)
        continue
      }
      if (typeof wanted === 'number') t.equal(answer.status, wanted, what)
      else {
        t.strictSame(answer.json, wanted.body, what)
        if (line.includes('count')) t.equal(answer.headers['ctx-total-count'], String(wanted.total), what)
      }
    }
  }
  t.ok(narrowed > all.length / 4, `${narrowed} readers see some of the entities`)
}

type Tap = Test

const scenes = [
  ['one node', async (t: Tap, accessFile: string) => [await startLocalNode(t, { accessFile })]],
  ['two workers', (t: Tap, accessFile: string) => startLocalWorkers(t, 2, { accessFile })],
  ['three nodes', startCluster],
] as const

async function startCluster(t: Tap, accessFile: string): Promise<readonly LocalNode[]> {
  const nodes = await startThreeNodes(t, { folder: tempDir(t), args: ['-multiservice', '-access', accessFile] })
  return nodes.map(({ port }) => new LocalNode(port))
}

const skipOf = (name: string) => ({ skip: name === 'three nodes' && noEtcd() })

for (const [name, start] of scenes)
  t.test(`readers see what a plain evaluation of their rules shows: ${name}`, skipOf(name), async t => {
    const random = new Random(seed)
    const all = Array.from({ length: readers }, (_, nth) => ({
      name: `r${nth}`,
      rules: Array.from({ length: 1 + below(random, 3) }, () => ruleOf(random)),
    }))
    // Nodes are asked without a proof whether they have settled.
    const anonymous = [{ actions: ['admin'], tenants: ['*'] }]
    const scene = new AccessScene(t, {
      root: everything,
      anonymous,
      ...Object.fromEntries(all.map(one => [one.name, one.rules])),
    })
    await compare(t, await start(t, scene.path), scene, random, all)
  })
