// Random rules, entities and requests against the plain reference of test/support: what is seen, that a filter that is
// not refused tells nothing of hidden attributes, that an allowed write changes nothing that no rule allows, and that a
// watcher is told of nothing else.
//
// ORRERY_ACCESS sets the number of rounds, SEED repeats a run.

import t from 'tap'
import { explainAccess } from '../../../src/domain/access/access-explanation.js'
import { type AccessAction, accessActions } from '../../../src/domain/access/access-rule.js'
import { refuseSelection } from '../../../src/domain/access/filters.js'
import { type Grant, grantOf, grantWithin, pathsOf } from '../../../src/domain/access/grant.js'
import { eventAsSeen } from '../../../src/domain/access/watching.js'
import { isWithinLimits, WriteDecisions, type WriteKind, writeKinds } from '../../../src/domain/access/writing.js'
import type { Entity } from '../../../src/domain/entities/entity.js'
import {
  appendAttributes,
  type Change,
  createEntity,
  deleteAttributes,
  deleteEntity,
  replaceAttributes,
  type UpdateOutcome,
  updateAttributes,
} from '../../../src/domain/entities/update.js'
import { parseOrder, sortValues } from '../../../src/domain/queries/order.js'
import { compileSelection, meansContent, meansIdentity, type Selection } from '../../../src/domain/queries/selection.js'
import { anyCoversPath } from '../../../src/domain/scope.js'
import { stampOf } from '../../../src/domain/stamp.js'
import { eventOf } from '../../../src/domain/subscriptions/event.js'
import { demand, fileOfRules, tester } from '../../support/access.js'
import { attribute, entityOf } from '../../support/entities.js'
import { refuseChange } from '../../support/finished-changes.js'
import { Random } from '../../support/random.js'
import { isAllowed, isCovered, type PlainEntity, type PlainRule } from '../../support/reference-access.js'

const rounds = Number(process.env.ORRERY_ACCESS ?? 1000)
t.setTimeout(30_000 + rounds * 20)
const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed}`)

const tenants = ['', 'city', 'harbour'] as const
const paths = ['/', '/a', '/a/b', '/ab', '/b'] as const
const patterns = ['/', '/a', '/a/b', '/#', '/a/#', '/a/b/#', '/b'] as const
const types = ['Lamp', 'Meter', 'Thing'] as const
const ids = ['m1', 'm2', 'n1'] as const
const idSelectors = ['m1', 'n1', { pattern: '^m' }, { pattern: '1$' }, { pattern: 'n' }] as const
const names = ['a', 'b', 'c'] as const
const words = ['*', '*', 'a', 'b', 'c', '!a', '!b', '!c'] as const

const chance = (percent: number): boolean => random.between(1, 100) <= percent
const some = <T>(choices: readonly T[], most: number): T[] =>
  Array.from({ length: random.between(1, most) }, () => choices[random.between(0, choices.length - 1)] as T)

function someRule(): PlainRule {
  const attributes = some(words, 3)
  return {
    actions: chance(35) ? ['*'] : some(accessActions, 4),
    ...(chance(80) && { tenants: chance(30) ? ['*'] : some(tenants, 2) }),
    ...(chance(60) && { paths: some(patterns, 2) }),
    ...(chance(50) && { types: some(types, 2) }),
    ...(chance(30) && { ids: some(idSelectors, 2) }),
    ...(chance(60) && {
      attributes: attributes.every(word => word.startsWith('!')) ? ['*', ...attributes] : attributes,
    }),
  }
}

interface Scene {
  readonly rules: readonly PlainRule[]
  readonly tenant: string
  grant(action: AccessAction): Grant
  readonly file: ReturnType<typeof fileOfRules>
}

function someScene(): Scene {
  const rules = Array.from({ length: random.between(0, 5) }, someRule)
  const file = fileOfRules(rules)
  const tenant = random.pick(tenants)
  return { rules, tenant, file, grant: action => grantOf(file, tester(file), tenant, action) }
}

const everyPlace: readonly PlainEntity[] = paths.flatMap(path =>
  ids.flatMap(id => types.map(type => ({ path, id, type }))),
)

const someAttributes = (): [string, ReturnType<typeof attribute>][] =>
  names.filter(() => chance(70)).map(name => [name, attribute(random.between(0, 2))])

const someEntity = ({ id, type }: PlainEntity): Entity => ({
  ...entityOf(id, type, stampOf(1), {}),
  attributes: new Map(someAttributes()),
})

/** The entity without what the reference does not allow; undefined: it is not there. */
function plainlySeen({ rules, tenant }: Scene, action: string, place: PlainEntity, entity: Entity): Entity | undefined {
  if (!isCovered(rules, action, tenant, place)) return undefined
  const shown = [...entity.attributes].filter(([name]) => isAllowed(rules, action, tenant, place, name))
  return { ...entity, attributes: new Map(shown) }
}

function seen(grant: Grant, path: string, entity: Entity): Entity | undefined {
  if (grant.kind === 'denied') return undefined
  if (!anyCoversPath(pathsOf(grant), path)) return undefined
  return grant.kind === 'all' ? entity : grant.condition.seen(entity, path)
}

const keysOf = (entity: Entity | undefined): string | undefined => entity && [...entity.attributes.keys()].join()

t.test('an entity shows what the rules allow, attribute by attribute', async t => {
  let covered = 0
  for (let round = 0; round < rounds; round++) {
    const scene = someScene()
    const action = random.pick(accessActions)
    const asked = some(patterns, 2)
    const grant = grantWithin(scene.grant(action), asked)
    for (const place of everyPlace) {
      const entity = someEntity(place)
      const expected = anyCoversPath(asked, place.path) ? plainlySeen(scene, action, place, entity) : undefined
      if (expected) covered++
      if (keysOf(seen(grant, place.path, entity)) !== keysOf(expected))
        return void t.fail(JSON.stringify({ rules: scene.rules, tenant: scene.tenant, action, asked, place }))
    }
  }
  t.ok(covered > rounds, `${covered} of ${rounds * everyPlace.length} entities are there`)
})

t.test('a grant is denied exactly when no entity could be covered', async t => {
  for (let round = 0; round < rounds; round++) {
    const scene = someScene()
    const action = random.pick(accessActions)
    const asked = [random.pick(paths)]
    const isDenied = grantWithin(scene.grant(action), asked).kind === 'denied'
    const isPossible = scene.rules.some(({ types: _, ids: __, ...rule }) =>
      isCovered([rule], action, scene.tenant, { path: asked[0]!, id: 'x', type: 'X' }),
    )
    if (isDenied === isPossible) return void t.fail(JSON.stringify({ ...scene, action, asked }))
  }
  t.pass(`${rounds} grants`)
})

function someSelection(): Selection {
  const selectors = chance(60)
    ? [
        {
          ...(chance(50) ? { types: some(types, 2) } : chance(30) && { typePattern: random.pick(['^L', 'e', 'T']) }),
          ...(chance(40) ? { ids: some(ids, 2) } : chance(30) && { idPattern: random.pick(['^m', '1', 'n']) }),
        },
      ]
    : []
  const [one, other] = [random.pick(names), random.pick(names)]
  const q = random.pick([undefined, one, `!${one}`, `${one}==1`, `${one}>0;${other}<2`, `${one}!=1`])
  const mq = chance(20) ? `${one}.dateModified>2020-01-01` : undefined
  const anyAttribute = chance(20) ? [one, other] : undefined
  return demand(compileSelection({ selectors, q, mq, anyAttribute, from: 'url' }))
}

const plainlySelected = (selection: Selection, entity: Entity, path: string): boolean =>
  meansIdentity(selection, entity.id, entity.type) && meansContent(selection, entity, path)

t.test('a list that is not refused is that of a broker that has only what is seen', async t => {
  let [refused, listed, narrowed] = [0, 0, 0]
  for (let round = 0; round < rounds; round++) {
    const scene = someScene()
    const selection = someSelection()
    const order = demand(parseOrder(random.pick([undefined, 'a', '!b,c', 'dateModified'])))
    const asked = chance(60) ? ['/#'] : some(patterns, 2)
    const grant = grantWithin(scene.grant('read'), asked)
    if (grant.kind === 'denied') continue
    if (refuseSelection(grant, { tenant: scene.tenant, paths: asked }, selection, order)) {
      refused++
      continue
    }
    if (grant.kind === 'narrowed') narrowed++
    for (const place of everyPlace) {
      const entity = someEntity(place)
      const world = anyCoversPath(asked, place.path) ? plainlySeen(scene, 'read', place, entity) : undefined
      const expected = world && plainlySelected(selection, world, place.path)
      // As a shard does it: identity by the condition, filters and order on the stored entity.
      const isThere = seen(grant, place.path, entity) !== undefined
      const found = isThere && plainlySelected(selection, entity, place.path)
      const keys = (one: Entity) => JSON.stringify(sortValues(order, one, place.path, undefined))
      if (found !== (expected ?? false) || (found && world && keys(entity) !== keys(world)))
        return void t.fail(
          JSON.stringify({ ...scene, source: selection.source, order, asked, place, entity: keysOf(entity) }),
        )
      if (found) listed++
    }
  }
  t.ok(refused > rounds / 100 && listed > rounds / 10 && narrowed > rounds / 20, `${refused} refused, ${listed} found`)
})

t.test('with one rule, a filter is refused exactly when its attribute is hidden', async t => {
  for (let round = 0; round < rounds; round++) {
    const rule = { ...someRule(), actions: ['read'], tenants: ['city'] }
    const file = fileOfRules([rule])
    const grant = grantWithin(grantOf(file, tester(file), 'city', 'read'), ['/#'])
    if (grant.kind === 'denied') return void t.fail('a rule for the tenant')
    const name = random.pick(names)
    const selection = demand(compileSelection({ selectors: [], q: name, from: 'url' }))
    const refusal = refuseSelection(grant, { tenant: 'city', paths: ['/#'] }, selection, [])
    const isHidden = !isAllowed(
      [{ ...rule, paths: ['/#'], types: ['T'], ids: ['i'] }],
      'read',
      'city',
      { path: '/', id: 'i', type: 'T' },
      name,
    )
    if ((refusal !== undefined) !== isHidden) return void t.fail(JSON.stringify({ rule, name }))
  }
  t.pass(`${rounds} rules`)
})

const options = { overrideMetadata: false, forcedUpdate: false }
const wanted = (list: readonly string[]) => new Map(list.map(name => [name, { ...attribute(9), metadata: undefined }]))

/** The effect of a write on an entity, as in the turn. */
function outcomeOf(
  kind: WriteKind,
  entity: Entity | undefined,
  { id, type }: PlainEntity,
  list: readonly string[],
): UpdateOutcome {
  if (!entity)
    return kind === 'create' || kind === 'upsert' || kind === 'notify'
      ? createEntity({ id, type, attributes: wanted(list) }, stampOf(2))
      : {}
  switch (kind) {
    case 'create':
      return {}
    case 'upsert':
    case 'notify':
      return appendAttributes(entity, wanted(list), options, 2)
    case 'update':
      return chance(50)
        ? updateAttributes(entity, wanted(list), options, id, 2)
        : appendAttributes(entity, wanted(list), options, 2)
    case 'replace':
      return replaceAttributes(entity, wanted(list), 2)
    case 'deleteAttributes':
      return list.length === 0 ? {} : deleteAttributes(entity, list, id, 2)
    case 'deleteEntity':
    case 'notifyDeletion':
      return deleteEntity(entity)
  }
}

const isNotice = (kind: WriteKind): boolean => kind === 'notify' || kind === 'notifyDeletion'

/** Whether the reference allows each alteration of a change. */
function isPlainlyAllowed({ rules, tenant }: Scene, kind: WriteKind, place: PlainEntity, change: Change): boolean {
  const whole = isNotice(kind) ? 'notify' : !change.before ? 'create' : !change.after ? 'delete' : undefined
  if (whole && !isCovered(rules, whole, tenant, place)) return false
  return change.alterations.every(({ name, action }) =>
    isAllowed(rules, whole ?? (action === 'delete' ? 'delete' : 'update'), tenant, place, name),
  )
}

t.test('a write that is allowed does nothing that no rule allows', async t => {
  const kinds = Object.keys(writeKinds) as [WriteKind, ...WriteKind[]]
  let [allowed, untyped] = [0, 0]
  for (let round = 0; round < rounds * 5; round++) {
    const scene = someScene()
    const kind = random.pick(kinds)
    const path = random.pick(paths)
    const id = random.pick(ids)
    const type = chance(60) || isNotice(kind) ? random.pick(types) : undefined
    const list = [...new Set(Array.from({ length: random.between(0, 2) }, () => random.pick(names)))]
    const scope = { tenant: scene.tenant, path }
    const decision = new WriteDecisions(scene.grant, scope).decide(kind, [{ id, type, names: list }])
    if (!decision.ok) {
      if (decision.refusal.kind !== 'Forbidden') return void t.fail(decision.refusal.code)
      continue
    }
    allowed++
    if (type === undefined) untyped++
    // Any state of the world that the turn may find.
    for (const found of type === undefined ? types : [type]) {
      const isThere = isWithinLimits(decision.value, path, found, id)
      const place = { path, id, type: isThere ? found : 'Thing' }
      for (const before of [undefined, isThere ? someEntity(place) : undefined]) {
        const created = { ...place, type: before ? place.type : (type ?? 'Thing') }
        const { change } = outcomeOf(kind, before, created, list)
        if (!change) continue
        const refusal = refuseChange(scene.grant, scope, change, isNotice(kind))
        const isFine = isPlainlyAllowed(scene, kind, created, change)
        if (refusal || !isFine)
          return void t.fail(JSON.stringify({ rules: scene.rules, scope, kind, id, type, list, created, refusal }))
      }
    }
  }
  t.ok(allowed > rounds / 10 && untyped > rounds / 50, `${allowed} allowed, ${untyped} of them without a type`)
})

t.test('a write with a type is refused exactly when an action, the entity or an attribute is not allowed', async t => {
  const kinds = Object.keys(writeKinds) as [WriteKind, ...WriteKind[]]
  for (let round = 0; round < rounds * 5; round++) {
    const scene = someScene()
    const { rules, tenant } = scene
    const kind = random.pick(kinds)
    const place = random.pick(everyPlace as [PlainEntity, ...PlainEntity[]])
    const list = [...new Set(Array.from({ length: random.between(0, 2) }, () => random.pick(names)))]
    const { actions, means } = writeKinds[kind]
    // A name that no list has stands for all the others.
    const needed = means === 'all' ? [...list, ...names, 'another'] : list
    const expected = actions.every(
      action =>
        isCovered(rules, action, tenant, place) && needed.every(name => isAllowed(rules, action, tenant, place, name)),
    )
    const decision = new WriteDecisions(scene.grant, { tenant, path: place.path }).decide(kind, [
      { ...place, names: list },
    ])
    if (decision.ok !== expected) return void t.fail(JSON.stringify({ rules, tenant, kind, place, list, expected }))
  }
  t.pass(`${rounds * 5} writes`)
})

t.test('an event under a grant is the event of the entity as it is seen', async t => {
  let [there, changed] = [0, 0]
  for (let round = 0; round < rounds * 5; round++) {
    const scene = someScene()
    const place = random.pick(everyPlace as [PlainEntity, ...PlainEntity[]])
    const scope = { tenant: scene.tenant, path: place.path }
    const before = chance(70) ? someEntity(place) : undefined
    const kind = random.pick(['upsert', 'update', 'replace', 'deleteAttributes', 'deleteEntity'])
    const list = some(names, 2)
    const { change } = outcomeOf(kind, before, place, list)
    const grant = grantWithin(scene.grant('subscribe'), [place.path])
    if (!change || grant.kind !== 'narrowed') continue
    const event = eventAsSeen(grant.condition, eventOf(change, scope))
    const sees = (entity: Entity | undefined) => entity && plainlySeen(scene, 'subscribe', place, entity)
    if (!isCovered(scene.rules, 'subscribe', scene.tenant, place)) {
      if (event) return void t.fail(JSON.stringify({ ...scene, place }))
      continue
    }
    there++
    const shown = change.alterations.filter(({ name }) =>
      isAllowed(scene.rules, 'subscribe', scene.tenant, place, name),
    )
    if (shown.length < change.alterations.length) changed++
    const expected = eventOf({ before: sees(change.before), after: sees(change.after), alterations: shown }, scope)
    if (!t.strictSame(event, expected)) return
  }
  t.ok(there > rounds / 10 && changed > rounds / 50, `${there} events, ${changed} without some attribute`)
})

t.test('an explanation decides as the grant does, and finds a rule for each allowed action', async t => {
  for (let round = 0; round < rounds; round++) {
    const scene = someScene()
    const action = random.pick(accessActions)
    const place = random.pick(everyPlace as [PlainEntity, ...PlainEntity[]])
    const name = chance(50) ? random.pick(names) : undefined
    const { path, type, id } = place
    const attributes = name === undefined ? [] : [name]
    const question = { action, place: { tenant: scene.tenant, paths: [path] }, type, id, attributes }
    const { decision, rules } = explainAccess(scene.file, tester(scene.file), question)
    const expected =
      name === undefined
        ? isCovered(scene.rules, action, scene.tenant, place)
        : isAllowed(scene.rules, action, scene.tenant, place, name)
    const isAny = rules.some(({ allows }) => allows)
    if ((decision !== 'denied') !== expected || isAny !== expected)
      return void t.fail(JSON.stringify({ rules: scene.rules, question, decision, explained: rules }))
  }
  t.pass(`${rounds} questions`)
})
