// Conditions on entities: what indexes and counts may ask them, areas, and the budget of patterns. Sets of attributes
// and of paths, against their elements.

import t from 'tap'
import {
  type AttributeSet,
  asSeen,
  attributeSetOf,
  includesAll,
  listOfSet,
  shows,
  union,
} from '../../../src/domain/access/attribute-set.js'
import { AccessCondition, type GrantClause } from '../../../src/domain/access/condition.js'
import { coversPattern, meetingPath, meetingPaths, withoutCovered } from '../../../src/domain/access/path-patterns.js'
import {
  anyEntities,
  attributesOfEveryType,
  entitiesOf,
  ReachedClauses,
} from '../../../src/domain/access/rule-overlap.js'
import { EventWork } from '../../../src/domain/queries/pattern.js'
import { coversPath } from '../../../src/domain/scope.js'
import { entityOf } from '../../support/entities.js'

const clause = (parts: Partial<GrantClause> = {}): GrantClause => ({
  paths: ['/#'],
  types: undefined,
  ids: undefined,
  attributes: ['*'],
  ...parts,
})
const condition = (...parts: Partial<GrantClause>[]) => new AccessCondition(parts.map(clause))

t.test('the types that can be covered are known if all clauses name types', async t => {
  t.strictSame(condition({ types: ['A'] }, { types: ['A', 'B'] }).namedTypes(), new Set(['A', 'B']))
  t.equal(condition({ types: ['A'] }, {}).namedTypes(), undefined)
  t.ok(condition({ types: ['A'] }).mayMeanType('A'))
  t.notOk(condition({ types: ['A'] }).mayMeanType('B'))
  t.ok(condition({ types: ['A'] }, {}).mayMeanType('B'))
})

t.test('the ids that can be covered are known if all clauses name ids without patterns', async t => {
  t.strictSame(condition({ ids: ['a'] }, { ids: ['b'] }).namedIds(), new Set(['a', 'b']))
  t.equal(condition({ ids: ['a'] }, {}).namedIds(), undefined)
  t.equal(condition({ ids: ['a', { pattern: 'b' }] }).namedIds(), undefined)
})

t.test('which entities of a path and type are covered depends on ids only if a clause has some', async t => {
  const one = condition({ types: ['A'], ids: ['a'] }, { types: ['B'] })
  t.strictSame(
    ['A', 'B', 'C'].map(type => one.coversRange('/', type)),
    ['some', 'all', 'none'],
  )
  t.equal(one.attributesOfRange('/', 'A'), undefined)
  t.equal(one.attributesOfRange('/', 'B')?.kind, 'all')
})

t.test('the paths of a condition have none within another one', async t => {
  t.strictSame(condition({ paths: ['/a', '/b'] }, { paths: ['/a/#'] }).paths, ['/b', '/a/#'])
})

t.test('an area has attributes only if clauses cover all of it', async t => {
  const one = condition(
    { paths: ['/a/#'], attributes: ['x'] },
    { types: ['T'], attributes: ['y'] },
    { types: ['T'], ids: ['i'], attributes: ['z'] },
  )
  const list = (path: string, type?: string, id?: string) => {
    const set = one.attributesOfArea(path, type, id)
    return set && listOfSet(set)
  }
  t.strictSame(list('/a/b'), ['x'])
  t.strictSame(list('/a/#', 'T'), ['x', 'y'])
  t.strictSame(list('/#', 'T', 'i'), ['y', 'z'])
  t.equal(list('/#'), undefined)
  t.equal(list('/b', undefined, 'i'), undefined)
})

t.test('an entity that shows everything is not copied', async t => {
  const entity = entityOf('i', 'T', 1, { a: 1, b: 2 })
  t.equal(condition({ attributes: ['*', '!c'] }).seen(entity, '/'), entity)
  t.strictSame(
    [
      ...condition({ attributes: ['*', '!a'] })
        .seen(entity, '/')!
        .attributes.keys(),
    ],
    ['b'],
  )
  t.equal(condition({ paths: ['/a'] }).seen(entity, '/'), undefined)
})

t.test('without budget for a pattern, an entity is not covered', async t => {
  const one = condition({ ids: [{ pattern: '^a[0-9]+[bc]$' }, 'named'] })
  const place = (id: string) => ({ path: '/', type: 'T', id })
  const work = new EventWork()
  t.ok(one.covers(place('a1b'), work))
  while (work.spend(1000));
  while (work.spend(1));
  t.notOk(one.covers(place('a1b'), work))
  t.ok(work.isExceeded)
  t.ok(one.covers(place('named'), work))
  t.ok(one.covers(place('a1b')))
})

t.test('comparing very many rules ends with a refusal', async t => {
  const many = (prefix: string) => Array.from({ length: 1000 }, (_, at) => `${prefix}${at}`)
  const narrow = clause({ types: many('T'), ids: many('i'), attributes: ['x'] })
  const reached = new ReachedClauses(new AccessCondition([narrow, clause({ types: many('T') })]).compiled, anyEntities)
  t.notOk(reached.showAll('y'), 'a million pairs')
  t.ok(reached.showAll('x'))
  const few = new ReachedClauses(
    new AccessCondition([narrow, clause({ types: many('T') })]).compiled,
    entitiesOf('T1', undefined),
  )
  t.ok(few.showAll('y'), 'a thousand pairs')
})

t.test('the attributes of entities of every type', async t => {
  const listed = (...parts: Partial<GrantClause>[]) => {
    const found = attributesOfEveryType(condition(...parts))
    return typeof found === 'object' ? listOfSet(found).join() : found
  }
  t.equal(listed({}), '*')
  t.equal(listed({ attributes: ['a', 'b'] }), 'a,b')
  t.equal(listed({ attributes: ['*', '!a'] }, { types: ['A'], attributes: ['*'] }), '*,!a')
  t.equal(listed({ types: ['A'], attributes: ['*', '!a'] }, { attributes: ['*'] }), '*')
  t.equal(listed({ types: ['A'], attributes: ['a', 'b'] }, { types: ['B'], attributes: ['b', 'c'] }), 'b')
  t.equal(listed({ types: [] }), 'none')
  t.equal(listed({}, { ids: ['x'], attributes: ['a'] }), undefined, 'that depends on the id')
})

t.test('a request that reaches no clause', async t => {
  const { compiled } = condition({ types: ['A'] })
  t.ok(new ReachedClauses(compiled, entitiesOf('B', undefined)).isEmpty)
  t.notOk(new ReachedClauses(compiled, entitiesOf(undefined, 'b')).isEmpty)
})

const names = ['a', 'b', 'c', 'other']
const lists: readonly (readonly string[])[] = [
  ['*'],
  ['*', '!a'],
  ['!b', '*', '!a'],
  ['a'],
  ['a', 'b', '!b'],
  ['a', '!a'],
  ['b', 'c'],
  [],
  ['*', 'a', '!a', '!c'],
]
const elements = (set: AttributeSet): string => names.filter(name => shows(set, name)).join()

t.test('sets of attributes have their elements, and so do their unions', async t => {
  for (const list of lists) {
    const set = attributeSetOf(list)
    const expected = names.filter(name => !list.includes(`!${name}`) && (list.includes('*') || list.includes(name)))
    t.equal(elements(set), expected.join(), list.join())
    t.equal(elements(attributeSetOf(listOfSet(set))), expected.join(), `${list.join()} as a list`)
    const entity = entityOf('i', 'T', 1, { a: 1, b: 1, c: 1, other: 1 })
    t.equal([...asSeen(set, entity).attributes.keys()].join(), expected.join())
    for (const another of lists) {
      const other = attributeSetOf(another)
      const both = names.filter(name => shows(set, name) || shows(other, name)).join()
      t.equal(elements(union(set, other)), both, `${list.join()} and ${another.join()}`)
      const isIncluded = names.every(name => shows(set, name) || !shows(other, name))
      t.equal(includesAll(set, other), isIncluded && (set.kind !== 'only' || other.kind === 'only'))
      if (both === names.join()) t.equal(union(set, other).kind, 'all')
    }
  }
})

const patterns = ['/', '/#', '/a', '/a/#', '/a/b', '/a/b/#', '/ab', '/b/#']
const paths = ['/', '/a', '/a/b', '/a/b/c', '/ab', '/b', '/b/c', '/c']
const pathsIn = (pattern: string | undefined): string =>
  paths.filter(path => pattern !== undefined && coversPath(pattern, path)).join()

t.test('patterns of paths cover and meet as their paths do', async t => {
  for (const one of patterns) {
    for (const other of patterns) {
      const common = paths.filter(path => coversPath(one, path) && coversPath(other, path)).join()
      t.equal(pathsIn(meetingPath(one, other)), common, `${one} and ${other}`)
      const isWithin = paths.every(path => coversPath(one, path) || !coversPath(other, path))
      t.equal(coversPattern(one, other), isWithin && !(other.endsWith('#') && !one.endsWith('#')), `${one} ${other}`)
    }
  }
})

t.test('lists of patterns have no pattern within another one', async t => {
  t.strictSame(withoutCovered(['/a/b', '/a/#', '/a/b', '/c', '/']), ['/a/#', '/c', '/'])
  t.strictSame(withoutCovered(['/a', '/#', '/a/#']), ['/#'])
  t.strictSame(withoutCovered(['/', '/#']), ['/#'])
  t.strictSame(meetingPaths(['/a/#', '/b'], ['/#']), ['/a/#', '/b'])
  t.strictSame(meetingPaths(['/a/#', '/a/b'], ['/a/b/#', '/c']), ['/a/b/#'])
  t.strictSame(meetingPaths(['/a'], ['/b']), [])
})
