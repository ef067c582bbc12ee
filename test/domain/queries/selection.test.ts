// The entities that a selection means, by identity and by content, and the one of its mistakes that the refusal names.
import t from 'tap'
import type { Entity } from '../../../src/domain/entities/entity.js'
import type { Json } from '../../../src/domain/json.js'
import { selectionPatternsMax } from '../../../src/domain/limits.js'
import {
  compileSelection,
  isAboutIdentity,
  mayMeanType,
  meansAllIds,
  meansContent,
  meansIdentity,
  namedIds,
  type SelectionSource,
  type SelectorSource,
} from '../../../src/domain/queries/selection.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { stampOf } from '../../../src/domain/stamp.js'
import { meaning, selectionOf } from '../../support/selections.js'

const identities = ['R1/Room', 'R2/Room', 'R1/Hall', 'bus7/Vehicle', 'R.1/Room']

const meant = (...selectors: SelectorSource[]) => {
  const selection = meaning(...selectors)
  return identities.filter(label => meansIdentity(selection, ...(label.split('/') as [string, string]))).join(' ')
}

const all = identities.join(' ')

const byIdentity: readonly (readonly [selectors: readonly SelectorSource[], expected: string])[] = [
  [[], all],
  [[{}], all],
  [[{ ids: ['R1'] }], 'R1/Room R1/Hall'],
  [[{ ids: ['R.1'] }], 'R.1/Room'],
  [[{ ids: ['bus7', 'R2', 'none'] }], 'R2/Room bus7/Vehicle'],
  [[{ types: ['Hall', 'Vehicle'] }], 'R1/Hall bus7/Vehicle'],
  [[{ ids: ['R1'], types: ['Room'] }], 'R1/Room'],
  [[{ idPattern: '1' }], 'R1/Room R1/Hall R.1/Room'],
  [[{ idPattern: '^R[0-9]$', typePattern: 'oo' }], 'R1/Room R2/Room'],
  [[{ ids: ['R1', 'bus7'], typePattern: '^[HV]' }], 'R1/Hall bus7/Vehicle'],
  [
    [
      { idPattern: '^R', types: ['Hall'] },
      { ids: ['bus7'], typePattern: '^Veh' },
    ],
    'R1/Hall bus7/Vehicle',
  ],
  [
    [
      { ids: ['R1'], types: ['Vehicle'] },
      { ids: ['bus7'], types: ['Room'] },
    ],
    '',
  ],
]

t.test('an entity is meant when all of one selector fits', async t => {
  for (const [selectors, expected] of byIdentity) t.equal(meant(...selectors), expected, JSON.stringify(selectors))
})

t.test('a type may be meant when some selector admits it', async t => {
  const types = (...selectors: SelectorSource[]) =>
    ['Room', 'Hall', 'Vehicle'].filter(type => mayMeanType(meaning(...selectors), type)).join(' ')
  t.equal(types(), 'Room Hall Vehicle')
  t.equal(types({ ids: ['R1'] }), 'Room Hall Vehicle')
  t.equal(types({ types: ['Room'] }), 'Room')
  t.equal(types({ typePattern: 'l' }), 'Hall Vehicle')
  t.equal(types({ types: ['Room'] }, { typePattern: '^V' }), 'Room Vehicle')
  t.equal(types({ types: ['Room'] }, { ids: ['x'] }), 'Room Hall Vehicle')
})

t.test('ids are named when every selector names them', async t => {
  t.equal(namedIds(meaning()), undefined)
  t.equal(namedIds(meaning({ types: ['Room'] })), undefined)
  t.equal(namedIds(meaning({ ids: ['a'] }, { idPattern: 'b' })), undefined)
  t.strictSame([...(namedIds(meaning({ ids: ['a', 'b'] }, { ids: ['b', 'c'], types: ['T'] })) ?? [])], ['a', 'b', 'c'])
})

t.test('many selectors are asked as fast as few, and the same id may occur in several', async t => {
  const selectors = Array.from({ length: 30_000 }, (_, at) => ({ ids: [`e${at}`], types: [`t${at % 10_000}`] }))
  const selection = meaning(...selectors, { ids: ['e1'], types: ['other'] }, { ids: ['e2'] })
  for (let at = 0; at < 30_000; at++)
    if (!meansIdentity(selection, `e${at}`, `t${at % 10_000}`) || !mayMeanType(selection, `t${at}`)) t.fail(`e${at}`)
  t.ok(meansIdentity(selection, 'e1', 'other'))
  t.ok(meansIdentity(selection, 'e2', 'whatever'))
  t.notOk(meansIdentity(selection, 'e3', 't4'))
  t.notOk(meansIdentity(selection, 'e30000', 't0'))
  t.equal(namedIds(selection)?.size, 30_000)
})

t.test('the patterns of a selection are limited in number and in steps', async t => {
  const refusalOf = (selectors: readonly SelectorSource[]) => {
    const selection = compileSelection({ selectors, from: 'payload' })
    return selection.ok ? undefined : refusalText(selection.refusal)
  }
  const patterns = (count: number, one: string) => Array.from({ length: count }, () => ({ idPattern: one }))
  t.equal(refusalOf(patterns(selectionPatternsMax, '^a')), undefined)
  t.equal(
    refusalOf([...patterns(selectionPatternsMax, '^a'), { typePattern: 'b' }]),
    'number of regular expressions for ids and types: max supported: 200',
  )
  t.equal(refusalOf(patterns(3, '[ab]{500}')), undefined)
  t.equal(
    refusalOf(patterns(4, '[ab]{500}')),
    'steps of all regular expressions for ids and types: max supported: 1500',
  )
})

t.test('counts need no ids when none are excluded, and no look inside when identity alone decides', async t => {
  t.ok(meansAllIds(meaning()))
  t.ok(meansAllIds(meaning({ types: ['Room'] }, { typePattern: 'x' })))
  t.notOk(meansAllIds(meaning({ types: ['Room'] }, { idPattern: '.*' })))
  t.notOk(meansAllIds(meaning({ ids: ['a'] })))
  t.ok(isAboutIdentity(meaning({ idPattern: 'a' })))
  for (const source of [{ q: 'a' }, { mq: 'a.b' }, { anyAttribute: ['a'] }, { geo: point(1000) }])
    t.notOk(isAboutIdentity(selectionOf(source)), JSON.stringify(source))
})

function point(maxDistance: number) {
  return { georel: `near;maxDistance:${maxDistance}`, geometry: 'point', coords: '40,-3' }
}

function entity(attributes: Readonly<Record<string, readonly [type: string, value: Json]>>): Entity {
  const [createdMs, metadata] = [Date.UTC(2024, 0, 1), new Map([['accuracy', { type: 'Number', value: 5 }]])]
  const entries = Object.entries(attributes).map(
    ([name, [type, value]]) => [name, { type, value, metadata, createdMs, modifiedMs: createdMs }] as const,
  )
  return { id: 'R1', type: 'Room', attributes: new Map(entries), created: stampOf(createdMs), modifiedMs: createdMs }
}

const room = entity({ temp: ['Number', 25], at: ['geo:point', '40, -3.001'] })

const byContent: readonly (readonly [source: Partial<SelectionSource>, fits: boolean])[] = [
  [{}, true],
  [{ q: 'temp>20' }, true],
  [{ q: 'temp>30' }, false],
  [{ mq: 'temp.accuracy==5' }, true],
  [{ mq: 'temp.accuracy==6' }, false],
  [{ geo: point(1000) }, true],
  [{ geo: point(10) }, false],
  [{ anyAttribute: ['none', 'temp'] }, true],
  [{ anyAttribute: ['none'] }, false],
  [{ q: 'servicePath==/a' }, true],
  [{ q: 'temp>20', mq: 'temp.accuracy==5', geo: point(1000), anyAttribute: ['temp'] }, true],
  [{ q: 'temp>30', mq: 'temp.accuracy==5', geo: point(1000), anyAttribute: ['temp'] }, false],
  [{ q: 'temp>20', mq: 'temp.accuracy==6', geo: point(1000), anyAttribute: ['temp'] }, false],
  [{ q: 'temp>20', mq: 'temp.accuracy==5', geo: point(10), anyAttribute: ['temp'] }, false],
  [{ q: 'temp>20', mq: 'temp.accuracy==5', geo: point(1000), anyAttribute: ['none'] }, false],
]

t.test('all that is asked of the content must fit', async t => {
  for (const [source, fits] of byContent)
    t.equal(meansContent(selectionOf(source), room, '/a'), fits, JSON.stringify(source))
})

t.test('an entity without location fits no geography, not even disjoint', async t => {
  const geo = { georel: 'disjoint', geometry: 'point', coords: '0,0' }
  t.notOk(meansContent(selectionOf({ geo }), entity({ temp: ['Number', 1] }), '/'))
  t.ok(meansContent(selectionOf({ geo }), room, '/'))
})

t.test('the refusal names the first mistake: patterns, then geography, then q, then mq', async t => {
  const patterns = [{ idPattern: '(' }, { typePattern: '(' }]
  const geo = { georel: 'near', geometry: 'circle', coords: '0,0' }
  const text = (source: Partial<SelectionSource>) => {
    const selection = compileSelection({ selectors: [], from: 'url', ...source })
    return selection.ok ? undefined : `${selection.refusal.kind}: ${refusalText(selection.refusal)}`
  }
  const wrong = { geo, q: 'a>', mq: '' }
  t.equal(text({ ...wrong, selectors: patterns }), 'BadRequest: Invalid regex for entity idPattern')
  t.equal(text({ ...wrong, selectors: patterns.slice(1) }), 'BadRequest: Invalid regex for entity typePattern')
  const word = 'error parsing geometry: Invalid selector in geometry specification'
  t.equal(text(wrong), `BadRequest: Invalid query: ${word}`)
  t.equal(text({ ...wrong, from: 'payload' }), `BadRequest: error parsing geo-query fields: ${word}`)
  t.equal(text({ ...wrong, geo: {} }), 'BadRequest: empty right-hand-side in q-item')
  t.equal(text({ mq: 'a>1' }), 'BadRequest: no metadata name - not valid for metadata filters')
})
