// The reference's answers, for cases that docs/interface/access.md describes, and whether random requests find faults.
//
// A broker that ignores a part of the rules answers as if the file did not have it. So two references, one with a
// changed file, have to differ after a few random requests.

import t from 'tap'
import { Random } from '../support/random.js'
import type { Change, GivenAttribute, Named } from '../support/reference-entities.js'
import type { AccessRequest, WantedChange } from './access-request.js'
import { type AccessFile, type AccessRule, hashOf, openFile, randomAccessFile, secretOf } from './random-access-file.js'
import { Markers, nextProof, nextRead, nextWrite } from './random-access-request.js'
import { AccessReference } from './reference-answers.js'
import { recognize } from './reference-principal.js'

const seed = 7
const shown = (name: string) => ({ 'X-Api-Key': secretOf(seed, name) })

function fileOf(rules: Readonly<Record<string, readonly AccessRule[]>>): AccessFile {
  const names = Object.keys(rules)
  const keys = names.map(name => ({ name, sha256: hashOf(secretOf(seed, name)), roles: [name] }))
  return { keys, roles: rules }
}

const everything: AccessRule = { actions: ['*'], tenants: ['*'] }
const plain = { override: false, forced: false }

const created = (type: string, id: string, path = '/', given: Named<GivenAttribute> = []): AccessRequest => ({
  kind: 'change',
  tenant: '',
  isTyped: true,
  change: { action: 'create', path, id, type, given },
})

const changed = (change: Change, isTyped = true): AccessRequest => ({ kind: 'change', tenant: '', isTyped, change })

const listed = { form: 'GET', selectors: [], counted: true, shown: { mode: 'keyValues' } } as const

t.test('principals', async t => {
  const key = { name: 'k', sha256: hashOf(secretOf(seed, 'k')), roles: ['r'] }
  const file: AccessFile = {
    keys: [key, { ...key, name: 'old', sha256: hashOf('old'), expires: '2020-01-01' }],
    roles: {},
  }
  const secret = secretOf(seed, 'k')
  const now = Date.parse('2024-01-01')
  const asking = { principal: { kind: 'key', name: 'k', roles: ['r'] } }
  for (const headers of [
    { 'X-Api-Key': secret },
    { Authorization: `Bearer ${secret}` },
    { 'X-Auth-Token': secret, 'X-Api-Key': secret },
  ] as Record<string, string>[])
    t.strictSame(recognize(file, headers, now), asking)
  t.strictSame(recognize(file, {}, now), { status: 401 })
  t.strictSame(recognize(file, { 'X-Api-Key': 'old' }, now), { status: 401 })
  t.strictSame(recognize(file, { Authorization: 'Basic x' }, now), { status: 401 })
  t.strictSame(recognize(file, { 'X-Api-Key': secret, 'X-Auth-Token': 'other' }, now), { status: 400 })
  t.strictSame(recognize({ ...file, anonymous: [] }, {}, now), { status: 401 })
  t.match(recognize({ ...file, anonymous: ['guest'] }, {}, now), { principal: { kind: 'anonymous', roles: ['guest'] } })
})

t.test('reads show what is covered, as if nothing else existed', async t => {
  const museums: AccessRule = { actions: ['read'], paths: ['/a/#'], types: ['Museum'], attributes: ['*', '!b'] }
  const reference = new AccessReference(fileOf({ all: [everything], guest: [museums] }))
  const given = [
    ['a', { value: 'x' }],
    ['b', { value: 'y' }],
  ] as const
  for (const [type, path] of [
    ['Museum', '/a'],
    ['Museum', '/'],
    ['Lamp', '/a'],
  ] as const)
    t.equal(reference.judge(created(type, 'E1', path, given), shown('all')).answer.status, 201)
  const answer = (request: AccessRequest) => reference.judge(request, shown('guest')).answer
  const list = answer({ kind: 'entities', tenant: '', query: listed })
  t.strictSame(list, { status: 200, text: '[{"id":"E1","type":"Museum","a":"x"}]', total: 1 })
  t.equal(answer({ kind: 'entities', tenant: '', query: { ...listed, paths: ['/c'] } }).status, 403)
  t.equal(answer({ kind: 'entities', tenant: 'city', query: listed }).status, 403)
  t.equal(answer({ kind: 'entity', tenant: '', id: 'E1', part: 'entity' }).status, 200, 'no other one of its id')
  t.equal(answer({ kind: 'entity', tenant: '', id: 'E1', type: 'Lamp', part: 'entity' }).status, 404)
  t.equal(answer({ kind: 'attribute', tenant: '', id: 'E1', name: 'b', part: 'value' }).status, 404)
  const types = [{ type: 'Museum', attrs: { a: { types: ['Text'] } }, count: 1 }]
  t.strictSame(answer({ kind: 'types', tenant: '', detail: 'all' }), { status: 200, json: types, total: 1 })
  t.equal(answer({ kind: 'type', tenant: '', type: 'Lamp' }).status, 404)
  t.equal(answer(created('Museum', 'E2', '/a')).status, 403)
})

t.test('writes: the table of the document', async t => {
  const roles = {
    all: [everything],
    creator: [{ actions: ['create'], attributes: ['a'] }],
    updater: [{ actions: ['update'], attributes: ['a'] }],
    both: [{ actions: ['create', 'update'], attributes: ['a'] }],
    deleter: [{ actions: ['delete'] }],
    replacer: [{ actions: ['update', 'delete'] }],
    partly: [{ actions: ['update', 'delete'], attributes: ['*', '!b'] }],
    notifier: [{ actions: ['notify'], attributes: ['a'] }],
  }
  const target = { path: '/', id: 'E1', type: 'Lamp' }
  const a = [['a', { value: 'x' }]] as const
  const b = [['b', { value: 'x' }]] as const
  const allowed = (request: AccessRequest) =>
    Object.keys(roles).filter(name => {
      const reference = new AccessReference(fileOf(roles))
      reference.judge(created('Lamp', 'E1', '/', [...a, ...b]), shown('all'))
      return reference.judge(request, shown(name)).answer.status !== 403
    })
  t.strictSame(allowed(created('Lamp', 'E2', '/', a)), ['all', 'creator', 'both'])
  t.strictSame(allowed(created('Lamp', 'E2', '/', b)), ['all'])
  const append = { ...target, action: 'append', given: a, ...plain } as const
  t.strictSame(allowed(changed({ ...append, creates: true })), ['all', 'both'], 'upsert')
  const updaters = ['all', 'updater', 'both', 'replacer', 'partly']
  t.strictSame(allowed(changed({ ...append, creates: false })), updaters)
  t.strictSame(allowed(changed({ ...target, action: 'update', given: a, ...plain })), updaters)
  t.strictSame(allowed(changed({ ...target, action: 'updateValue', name: 'a', value: 'x', forced: false })), updaters)
  t.strictSame(allowed(changed({ ...target, action: 'replace', given: a })), ['all', 'replacer'])
  t.strictSame(allowed(changed({ ...target, action: 'deleteSome', names: ['a'] })), [
    'all',
    'deleter',
    'replacer',
    'partly',
  ])
  t.strictSame(allowed(changed({ ...target, action: 'deleteSome', names: ['b'] })), ['all', 'deleter', 'replacer'])
  t.strictSame(allowed(changed({ ...target, action: 'deleteEntity' })), ['all', 'deleter', 'replacer'])
  const wanted: WantedChange = { isTyped: true, change: { ...append, creates: true } }
  t.strictSame(allowed({ kind: 'notify', tenant: '', deletes: false, changes: [wanted] }), ['all', 'notifier'])
  t.strictSame(allowed({ kind: 'notify', tenant: '', deletes: true, changes: [wanted] }), ['all'])
  const items: readonly WantedChange[] = [wanted, { isTyped: true, change: { ...append, given: b, creates: true } }]
  t.strictSame(allowed({ kind: 'batch', tenant: '', action: 'append', changes: items }), ['all'], 'the whole batch')
})

t.test('a write without a type finds only what is covered', async t => {
  const lamps: AccessRule = { actions: ['update', 'delete'], types: ['Lamp'] }
  const reference = new AccessReference(fileOf({ all: [everything], lamps: [lamps] }))
  const update: Change = { path: '/', id: 'E1', type: '', action: 'update', given: [['a', { value: 'x' }]], ...plain }
  reference.judge(created('Museum', 'E1'), shown('all'))
  t.equal(reference.judge(changed(update, false), shown('lamps')).answer.status, 404)
  reference.judge(created('Lamp', 'E1', '/', [['a', { value: 'y' }]]), shown('all'))
  t.equal(reference.judge(changed(update, false), shown('lamps')).answer.status, 204)
  t.equal(reference.judge(changed(update, false), shown('all')).answer.status, 409)
})

const requestsMax = 20_000

/** The number of the first random request that two references answer in another way. */
function foundAfter(random: Random, change: (rule: AccessRule) => AccessRule): number {
  const [right, wrong] = [new AccessReference(openFile(random.seed)), new AccessReference(openFile(random.seed))]
  const markers = new Markers()
  for (let count = 1; count <= requestsMax; count++) {
    if (count % 1000 === 1) {
      const file = randomAccessFile(random, 'probe')
      right.file = file
      const changed = Object.entries(file.roles).map(([name, rules]) => [name, rules.map(change)] as const)
      wrong.file = { ...file, roles: Object.fromEntries(changed) }
    }
    const draw = random.pick([nextRead, nextWrite])
    const request = draw({ random, reference: right, markers, withDocuments: true })
    const proof = nextProof(random, random.seed, draw === nextWrite)
    const judged = [right, wrong].map(one => one.judge(request, proof))
    if (JSON.stringify(judged[0]!.answer) !== JSON.stringify(judged[1]!.answer)) return count
  }
  return Number.POSITIVE_INFINITY
}

const ignored: Readonly<Record<string, (rule: AccessRule) => AccessRule>> = {
  actions: rule => ({ ...rule, actions: ['*'] }),
  'create and update are one': ({ actions, ...rule }) => ({
    ...rule,
    actions: actions.includes('update') ? [...actions, 'create'] : actions,
  }),
  tenants: rule => ({ ...rule, tenants: ['*'] }),
  'the default tenant is every tenant': rule => ({ ...rule, ...(!rule.tenants && { tenants: ['*'] }) }),
  paths: ({ paths: _paths, ...rule }) => rule,
  'below a path': ({ paths = ['/#'], ...rule }) => ({
    ...rule,
    paths: paths.map(path => (path === '/#' ? path : path.replace('/#', ''))),
  }),
  'a path without wildcard': ({ paths = ['/#'], ...rule }) => ({
    ...rule,
    paths: paths.map(path => (path === '/' || path.endsWith('#') ? path : `${path}/#`)),
  }),
  types: ({ types: _types, ...rule }) => rule,
  ids: ({ ids: _ids, ...rule }) => rule,
  'patterns of ids': ({ ids, ...rule }) => ({
    ...rule,
    ...(ids && { ids: ids.map(one => (typeof one === 'string' ? one : one.pattern)) }),
  }),
  attributes: ({ attributes: _attributes, ...rule }) => rule,
  exclusions: ({ attributes, ...rule }) => ({
    ...rule,
    ...(attributes && { attributes: attributes.filter(one => !one.startsWith('!')) }),
  }),
  locations: ({ attributes, ...rule }) => ({
    ...rule,
    ...(attributes && { attributes: [...attributes.filter(one => one !== '!loc'), 'loc'] }),
  }),
}

for (const [what, change] of Object.entries(ignored))
  t.test(`random requests find a broker that ignores: ${what}`, async t => {
    const random = Random.fromEnvironment()
    const count = foundAfter(random, change)
    t.ok(count <= requestsMax, `SEED=${random.seed}: after ${count} requests`)
    t.comment(`after ${count} requests`)
  })
