// Writes under narrowed grants, compared with a plain evaluation of the rules: random rules and random writes, on one
// node, on two workers and on three nodes. After each write the difference that it has made is looked at: all of it is
// allowed. A write of entities with types is refused exactly when it names something that no rule allows.

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
const writers = 25
const writesOfWriter = 16

const paths = ['/', '/a']
const types = ['Lamp', 'Thing', 'Museum']
const ids = ['e1', 'e2', 'e3', 'e4']
const names = ['power', 'cost', 'name']

const below = (random: Random, count: number): number => random.between(0, count - 1)
const oneOf = <T>(random: Random, all: readonly T[]): T => all[below(random, all.length)]!

function someOf<T>(random: Random, all: readonly T[]): T[] {
  const some = all.filter(() => below(random, 2) === 0)
  return some.length > 0 ? some : [oneOf(random, all)]
}

function ruleOf(random: Random): PlainRule {
  const may = (one: number): boolean => below(random, one) === 0
  const idLists = [someOf(random, ids), [{ pattern: '^e[12]' }]]
  return {
    actions: someOf(random, ['create', 'update', 'delete', 'notify']),
    tenants: ['city'],
    ...(may(3) && { paths: [oneOf(random, paths)] }),
    ...(may(2) && { types: someOf(random, types) }),
    ...(may(3) && { ids: oneOf(random, idLists) }),
    ...(may(2) && { attributes: oneOf(random, [['*', `!${oneOf(random, names)}`], someOf(random, names)]) }),
  }
}

interface Written {
  readonly id: string
  readonly type: string | undefined
  readonly names: readonly string[]
}

interface Write {
  readonly line: string
  readonly body?: unknown
  readonly path: string
  readonly entities: readonly Written[]
  readonly actions: readonly string[]
  /** Whether it also means attributes that it does not name. */
  readonly meansAll: boolean
}

let value = 0
const attributesOf = (all: readonly string[]): JsonObject =>
  Object.fromEntries(all.map(name => [name, { value: ++value, type: 'Number' }]))

const batches = {
  append: ['create', 'update'],
  appendStrict: ['create', 'update'],
  update: ['update'],
  replace: ['update', 'delete'],
} as const

function writeOf(random: Random): Write {
  const path = oneOf(random, paths)
  const id = oneOf(random, ids)
  const type = oneOf(random, [undefined, ...types])
  const some = someOf(random, names)
  const ofType = type === undefined ? '' : `?type=${type}`
  const one: Written = { id, type, names: some }
  const attrs = `/v2/entities/${id}/attrs${ofType}`
  const plain = (line: string, actions: readonly string[], more: Partial<Write> = {}): Write => ({
    ...{ line, path, actions, entities: [one], meansAll: false, body: attributesOf(some) },
    ...more,
  })
  switch (below(random, 9)) {
    case 0:
    case 1: {
      const isUpsert = below(random, 2) === 0
      const created = { id, ...(type !== undefined && { type }), ...attributesOf(some) }
      const entities = [{ ...one, type: type ?? 'Thing' }]
      return plain(
        `POST /v2/entities${isUpsert ? '?options=upsert' : ''}`,
        isUpsert ? ['create', 'update'] : ['create'],
        { body: created, entities },
      )
    }
    case 2:
      return plain(`POST ${attrs}`, ['update'])
    case 3:
      return plain(`PATCH ${attrs}`, ['update'])
    case 4:
      return plain(`PUT ${attrs}`, ['update', 'delete'], { meansAll: true })
    case 5: {
      const [name = ''] = some
      const named = { entities: [{ ...one, names: [name] }] }
      return below(random, 2) === 0
        ? plain(`DELETE /v2/entities/${id}/attrs/${name}${ofType}`, ['delete'], { ...named, body: undefined })
        : plain(`PUT /v2/entities/${id}/attrs/${name}${ofType}`, ['update'], { ...named, body: { value: ++value } })
    }
    case 6:
      return plain(`DELETE /v2/entities/${id}${ofType}`, ['delete'], {
        ...{ body: undefined, meansAll: true, entities: [{ ...one, names: [] }] },
      })
    case 7: {
      const [action, actions] = oneOf(random, Object.entries(batches))
      const entities = someOf(random, ids).map(id => ({ id, type: oneOf(random, [undefined, ...types]), names: some }))
      const items = entities.map(({ id, type }) => ({ id, ...(type !== undefined && { type }), ...attributesOf(some) }))
      const body = { actionType: action, entities: items }
      return plain('POST /v2/op/update', actions, { body, entities, meansAll: action === 'replace' })
    }
    default: {
      const data = [{ id, ...(type !== undefined && { type }), ...attributesOf(some) }]
      return plain('POST /v2/op/notify', ['notify'], { body: { subscriptionId: 'a'.repeat(24), data } })
    }
  }
}

/** Whether every part of a write of entities with types is allowed. */
function isWhollyAllowed(rules: readonly PlainRule[], { path, entities, actions, meansAll }: Write): boolean {
  return entities.every(({ id, type = '', names: named }) =>
    actions.every(action => {
      const entity = { path, id, type }
      const meant = meansAll ? [...named, ...names, 'anyOther'] : named
      return (
        isCovered(rules, action, 'city', entity) && meant.every(name => isAllowed(rules, action, 'city', entity, name))
      )
    }),
  )
}

type World = ReadonlyMap<
  string,
  { readonly entity: PlainEntity; readonly attributes: Readonly<Record<string, unknown>> }
>

async function worldOf(node: LocalNode, root: readonly string[]): Promise<World> {
  const world = new Map()
  for (const path of paths) {
    const headers = [...root, 'Ctx-Service: city', `Ctx-ServicePath: ${path}`]
    const { json } = await node.json('GET /v2/entities?limit=1000', undefined, headers)
    for (const { id, type, ...attributes } of json as readonly { readonly id: string; readonly type: string }[])
      world.set(`${path} ${type} ${id}`, { entity: { path, id, type }, attributes })
  }
  return world
}

/** The differences that no rule allows. */
function forbiddenIn(rules: readonly PlainRule[], before: World, after: World, isNotified: boolean): readonly string[] {
  const wrong: string[] = []
  const need = (action: string, entity: PlainEntity, name?: string): void => {
    const wanted = isNotified ? 'notify' : action
    const isRight =
      name === undefined ? isCovered(rules, wanted, 'city', entity) : isAllowed(rules, wanted, 'city', entity, name)
    if (!isRight) wrong.push(`${wanted} of ${name ?? 'all'} of ${JSON.stringify(entity)}`)
  }
  for (const [key, { entity, attributes }] of after) {
    const earlier = before.get(key)
    if (!earlier) need('create', entity)
    for (const [name, one] of Object.entries(attributes))
      if (JSON.stringify(one) !== JSON.stringify(earlier?.attributes[name]))
        need(earlier ? 'update' : 'create', entity, name)
  }
  for (const [key, { entity, attributes }] of before) {
    const later = after.get(key)
    if (!later) need('delete', entity)
    for (const name of Object.keys(attributes)) if (!later?.attributes[name]) need('delete', entity, name)
  }
  return wrong
}

async function compare(
  t: Test,
  nodes: readonly LocalNode[],
  scene: AccessScene,
  random: Random,
  all: readonly Writer[],
) {
  const root = scene.as('root')
  let [refused, done] = [0, 0]
  for (const { name, rules } of all) {
    for (const path of paths)
      for (const id of ids)
        for (const type of someOf(random, types))
          await nodes[0]!.json('POST /v2/entities', { id, type, ...attributesOf(names) }, [
            ...[...root, 'Ctx-Service: city', `Ctx-ServicePath: ${path}`],
          ])
    let before = await worldOf(nodes[0]!, root)
    for (let nth = 0; nth < writesOfWriter; nth++) {
      const write = writeOf(random)
      const headers = [...scene.as(name), 'Ctx-Service: city', `Ctx-ServicePath: ${write.path}`]
      const { status } = await oneOf(random, nodes).json(write.line, write.body, headers)
      const after = await worldOf(nodes[0]!, root)
      const what = `${write.line} ${JSON.stringify(write.body)} in ${write.path}: ${JSON.stringify(rules)} (seed ${seed})`
      t.strictSame(forbiddenIn(rules, before, after, write.line.endsWith('notify')), [], what)
      if (status === 403) {
        refused++
        t.strictSame(after, before, `nothing has happened: ${what}`)
      } else if (status < 300) done++
      if (write.entities.every(({ type }) => type !== undefined))
        t.equal(status === 403, !isWhollyAllowed(rules, write), `${status}: ${what}`)
      before = after
    }
  }
  t.ok(refused > 20 && done > 20, `${refused} were refused, ${done} were done`)
}

interface Writer {
  readonly name: string
  readonly rules: readonly PlainRule[]
}

const scenes = [
  ['one node', async (t: Test, accessFile: string) => [await startLocalNode(t, { accessFile })]],
  ['two workers', (t: Test, accessFile: string) => startLocalWorkers(t, 2, { accessFile })],
  ['three nodes', startCluster],
] as const

async function startCluster(t: Test, accessFile: string): Promise<readonly LocalNode[]> {
  const nodes = await startThreeNodes(t, { folder: tempDir(t), args: ['-multiservice', '-access', accessFile] })
  return nodes.map(({ port }) => new LocalNode(port))
}

const skipOf = (name: string) => ({ skip: name === 'three nodes' && noEtcd() })

for (const [name, start] of scenes)
  t.test(`writers change what a plain evaluation of their rules allows: ${name}`, skipOf(name), async t => {
    const random = new Random(seed)
    const all = Array.from({ length: writers }, (_, nth) => ({
      name: `w${nth}`,
      rules: Array.from({ length: 1 + below(random, 4) }, () => ruleOf(random)),
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
