// Registrations: those to which a request is forwarded, at which URL, their shown and their stored form. The cases of
// the specification are in test/cases/forwarding.ts.

import assert from 'node:assert/strict'
import t from 'tap'
import { ForwardedQuery, type QueryRequest } from '../../../src/domain/providers/forwarded-query.js'
import { type Undone, updateRequests } from '../../../src/domain/providers/forwarded-update.js'
import { ProviderIndex } from '../../../src/domain/providers/provider-index.js'
import {
  decodeRegistration,
  encodeRegistration,
  isLooped,
  isOpenTo,
  operationBases,
  operationUrl,
  type Pathless,
  type Registration,
  renderRegistration,
} from '../../../src/domain/providers/registration.js'
import type { SelectorSource } from '../../../src/domain/queries/selection.js'
import * as cases from '../../cases/forwarding.js'
import fc from '../../support/properties.js'
import { provided, registration, registrations } from '../../support/registrations.js'
import { selectionOf } from '../../support/selections.js'

const split = (text: string): string[] => text.split(',').filter(word => word !== '' && word !== '-')

/** `entities attrs mode path` */
function registrationOf(text: string, n = 1): Registration {
  const [entity = '', attrs = '-', mode = 'all', servicePath = '/'] = text.split(' ')
  const [id, type] = entity.split('/')
  const named = id === '*' ? { idPattern: '.*' as const } : { id }
  const entities = entity === '' ? [] : [type === undefined ? named : { ...named, type }]
  return provided(n, entities, split(attrs), `http://h${n}`, { mode: mode as 'all', servicePath })
}

function indexOf(...registrations: readonly Registration[]): ProviderIndex {
  const index = new ProviderIndex()
  for (const one of registrations) index.add(one)
  return index
}

function selectorOf(request: string): SelectorSource {
  const [id = '', type = ''] = request.split('/')
  const types = type === '' ? undefined : [type]
  return id.startsWith('~') ? { idPattern: id.slice(1), types } : { ids: [id], types }
}

function asked(request: string, index: ProviderIndex, attrs: readonly string[] = [], nowMs = 0): QueryRequest[] {
  const sought = { selection: selectionOf({ selectors: [selectorOf(request)] }), paths: ['/'], attrs }
  const local = { entities: [], total: 0 }
  const query = new ForwardedQuery(index, sought, { limit: 20, offset: 0 }, local, '/', nowMs, 1000)
  const all: QueryRequest[] = []
  for (let next = query.next(); next; next = query.next()) all.push(next)
  return all
}

const shown = ({ entity: { id, idPattern, type = '' } }: QueryRequest): string => `${id ?? `~${idPattern}`}/${type}`

function undoneOf(request: string, names: string): Undone {
  const [id = '', type = ''] = request.split('/')
  const attributes = new Map(split(names).map(name => [name, { type: 'Number', value: 1, metadata: undefined }]))
  return { id, type: type === '' ? undefined : type, attributes }
}

for (const [what, request, registration, query, update] of cases.candidates)
  t.test(`${what}: ${request} and ${registration}`, async t => {
    const index = indexOf(registrationOf(registration))
    t.equal(asked(request, index, ['a']).map(shown).join(), query, 'query')
    if (request.startsWith('~')) return
    const requests = updateRequests(index, '/', [undoneOf(request, 'a')], 0)
    t.equal(requests.map(() => request).join(), update, 'update')
  })

t.test('an expired registration is not asked, from its end on', async t => {
  const index = indexOf({ ...registrationOf('E/T a'), expiresMs: 100 })
  t.equal(asked('E/T', index, [], 99).length, 1)
  t.equal(asked('E/T', index, [], 100).length, 0)
  t.equal(updateRequests(index, '/', [undoneOf('E/T', 'a')], 99).length, 1)
  t.equal(updateRequests(index, '/', [undoneOf('E/T', 'a')], 100).length, 0)
})

t.test('the status of a registration has no effect; one of the first version is not asked', async t => {
  const one = registrationOf('E/T a')
  t.ok(isOpenTo({ ...one, status: 'inactive' }, 'query', 0))
  t.notOk(isOpenTo({ ...one, provider: { ...one.provider, legacyForwarding: true } }, 'query', 0))
})

t.test('queries look at all paths that they cover, updates at their own', async t => {
  const index = indexOf(registrationOf('E/T a all /p/q'))
  const found = (paths: readonly string[]) => {
    const sought = { selection: selectionOf({ selectors: [{ ids: ['E'] }] }), paths, attrs: [] }
    const local = { entities: [], total: 0 }
    return new ForwardedQuery(index, sought, { limit: 20, offset: 0 }, local, '/', 0, 9).next() !== undefined
  }
  for (const paths of [['/#'], ['/p/#'], ['/p/q'], ['/x', '/p/q']]) t.ok(found(paths), String(paths))
  for (const paths of [['/'], ['/p'], ['/p/q/r'], ['/x/#']]) t.notOk(found(paths), String(paths))
  for (const path of ['/', '/p', '/p/q'])
    t.equal(updateRequests(index, path, [undoneOf('E/T', 'a')], 0).length, path === '/p/q' ? 1 : 0)
})

t.test('a query that names nothing asks every provider', async t => {
  const index = indexOf(...['E/T a', '*/U -', 'F a', '* -'].map(registrationOf2))
  const sought = { selection: selectionOf({ selectors: [] }), paths: ['/'], attrs: [] }
  const local = { entities: [], total: 0 }
  const query = new ForwardedQuery(index, sought, { limit: 20, offset: 0 }, local, '/', 0, 9)
  const all: string[] = []
  for (let next = query.next(); next; next = query.next()) all.push(shown(next))
  t.strictSame(all, ['E/T', 'F/', '~.*/U', '~.*/'])
})

const registrationOf2 = (text: string, at: number): Registration => registrationOf(text, at + 1)

t.test('a pattern of types fits those that are registered', async t => {
  const index = indexOf(...['E/T1 a', 'E/U a', 'E a'].map(registrationOf2))
  const sought = { selection: selectionOf({ selectors: [{ typePattern: '^T' }] }), paths: ['/'], attrs: [] }
  const local = { entities: [], total: 0 }
  const query = new ForwardedQuery(index, sought, { limit: 20, offset: 0 }, local, '/', 0, 9)
  const all: string[] = []
  for (let next = query.next(); next; next = query.next()) all.push(shown(next))
  t.strictSame(all, ['E/T1', 'E/'])
})

t.test('the operation follows the URL of a provider', async t => {
  for (const [url, plain, slash, v2] of cases.urls) {
    const first = (pathless: Pathless) => operationUrl(operationBases(url, pathless)[0], 'query')
    t.equal(first('plain'), plain)
    t.equal(first('slash'), slash)
    t.equal(first('v2'), v2)
    t.equal(operationUrl(operationBases(url, 'plain')[0], 'update'), plain.replace('query', 'update'))
  }
})

t.test('a provider has one other path, below its URL, unless that ends with /v2', async t => {
  for (const [url, pathless, other] of cases.others) t.equal(operationBases(url, pathless)[1], other, url)
})

t.test('a correlator with ten suffixes goes in a circle, one with nine does not', async t => {
  for (const root of ['', 'c', 'x'.repeat(36)]) {
    t.notOk(isLooped(root + '; cbfwd=1'.repeat(9)))
    t.ok(isLooped(root + '; cbfwd=1'.repeat(10)))
    t.ok(isLooped(root + '; cbfwd=12; cbnotif=3'.repeat(5)))
    t.ok(isLooped(root + ';cbfwd=1'.repeat(10)))
  }
  t.notOk(isLooped('cbfwd=1'.repeat(100)))
  t.notOk(isLooped('; other=1'.repeat(100)))
})

t.test('a registration is shown with all that has a default, in the order of the interface', async t => {
  const plain = registration(
    '{"provider":{"http":{"url":"http://h"}},"dataProvided":{"entities":[{"type":"T","id":"E"}]}}',
  )
  t.equal(
    renderRegistration(plain),
    `{"id":"${plain.id}","dataProvided":{"entities":[{"id":"E","type":"T"}],"attrs":[]},` +
      '"provider":{"http":{"url":"http://h"},"supportedForwardingMode":"all","legacyForwarding":false},"status":"active"}',
  )
})

t.test('given members are shown, and an expired registration is not called expired', async t => {
  const full = registration(
    '{"status":"inactive","expires":"2001-01-01T00:00:00Z","description":"d","provider":{"legacyForwarding":true,' +
      '"supportedForwardingMode":"none","http":{"url":"http://h"}},"dataProvided":{"attrs":["b","a"],"entities":[{"type":"T","idPattern":".*"}]}}',
  )
  t.equal(
    renderRegistration(full),
    `{"id":"${full.id}","description":"d","expires":"2001-01-01T00:00:00.000Z",` +
      '"dataProvided":{"entities":[{"idPattern":".*","type":"T"}],"attrs":["b","a"]},' +
      '"provider":{"http":{"url":"http://h"},"supportedForwardingMode":"none","legacyForwarding":true},"status":"inactive"}',
  )
})

t.test('a registration comes out of its stored text as it went in', async () => {
  fc.assert(
    fc.property(registrations, one => {
      assert.deepEqual(decodeRegistration(encodeRegistration(one)), one)
    }),
  )
})

t.test('a text of another version is not read', async t => {
  const text = encodeRegistration(registration('{"provider":{"http":{"url":"http://h"}},"dataProvided":{"attrs":[]}}'))
  t.throws(
    () => decodeRegistration(text.replace('"version":1', '"version":2')),
    /has version 2, and this release reads version 1/,
  )
})
