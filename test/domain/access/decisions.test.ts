// The tables of test/cases/access.ts, one test for each row.

import t from 'tap'
import { clauseText } from '../../../src/domain/access/access-explanation.js'
import type { AccessAction } from '../../../src/domain/access/access-rule.js'
import { refuseSelection } from '../../../src/domain/access/filters.js'
import { brokerGrantOf, type Grant, grantWithin } from '../../../src/domain/access/grant.js'
import { refuseRegistration } from '../../../src/domain/access/providing.js'
import { grantOfWatcher } from '../../../src/domain/access/watching.js'
import {
  mayGoToProvider,
  WriteDecisions,
  type WriteKind,
  type WriteLimits,
} from '../../../src/domain/access/writing.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { parseRegistration } from '../../../src/domain/providers/registration-parser.js'
import { parseOrder } from '../../../src/domain/queries/order.js'
import { compileSelection } from '../../../src/domain/queries/selection.js'
import { type Refusal, type Result, refusalText } from '../../../src/domain/refusal.js'
import { parseSubscription } from '../../../src/domain/subscriptions/subscription-parser.js'
import {
  brokerCases,
  filterCases,
  forwardedWriteCases,
  grantCases,
  registrationCases,
  seenCases,
  subscriptionCases,
  writeCases,
} from '../../cases/access.js'
import { demand, fileOfRules, grantsOf, tester } from '../../support/access.js'
import { entityOf } from '../../support/entities.js'

const tenantOf = (name: string): string => (name === 'default' ? '' : name)
const entity = (id: string, type: string) => entityOf(id, type, 1, { name: 'n', cost: 1, place: 'p' })

function grantText(grant: Grant): string {
  if (grant.kind === 'denied') return `denied: ${grant.reason}`
  return grant.kind === 'all' ? `all in ${grant.paths.join(',')}` : grant.condition.clauses.map(clauseText).join('; ')
}

for (const [says, rules, request, expected] of grantCases)
  t.test(`grant: ${says}`, async t => {
    const [action, tenant, paths] = request.split(' ') as [AccessAction, string, string]
    const grant = grantsOf(rules, tenantOf(tenant))(action)
    t.equal(grantText(grantWithin(grant, paths.split(','))), expected)
  })

for (const [says, rules, request, expected] of seenCases)
  t.test(`seen: ${says}`, async t => {
    const [action, tenant, path, label] = request.split(' ') as [AccessAction, string, string, string]
    const [id, type] = label.split('/') as [string, string]
    const grant = grantWithin(grantsOf(rules, tenantOf(tenant))(action), [path])
    if (grant.kind === 'denied') return void t.fail(grant.reason)
    const all = entity(id, type)
    const seen = grant.kind === 'all' ? all : grant.condition.seen(all, path)
    t.equal(seen ? [...seen.attributes.keys()].join(' ') : 'not there', expected)
    if (grant.kind === 'narrowed') t.equal(grant.condition.covers({ path, type, id }), seen !== undefined)
  })

for (const [says, rules, request, expected] of filterCases)
  t.test(`filter: ${says}`, async t => {
    const [query = '', path = '/#'] = request.split(' in ')
    const given = Object.fromEntries(new URLSearchParams(query.replaceAll('+', '%2B')))
    const { id, type, idPattern, typePattern, q, mq, georel, geometry, coords, attributes, orderBy } = given
    const selection = demand(
      compileSelection({
        selectors: [{ ids: id?.split(','), types: type?.split(','), idPattern, typePattern }],
        q,
        mq,
        geo: { georel, geometry, coords },
        anyAttribute: attributes?.split(','),
        from: 'url',
      }),
    )
    const place = { tenant: 'city', paths: [path] }
    const grant = grantWithin(grantsOf(rules, 'city')('read'), place.paths)
    if (grant.kind === 'denied') return void t.fail(grant.reason)
    const refusal = refuseSelection(grant, place, selection, demand(parseOrder(orderBy)))
    if (expected === 'allowed') return void t.equal(refusal && refusalText(refusal), undefined)
    const [filter, attribute] = expected.split(' on ')
    t.match(refusal, { kind: 'Forbidden', code: 'filterNotAllowed', filter, attribute })
  })

/** The text of a refusal without what is the same in all of them. */
const shortText = (refusal: Refusal): string =>
  refusalText(refusal)
    .replace(/^not allowed: /, '')
    .replace(/ of tenant city$/, '')

const resultText = (result: Result<unknown>): string => (result.ok ? 'allowed' : shortText(result.refusal))

function writtenEntities(text: string) {
  return text.split('; ').map(item => {
    const [label = '', names] = item.split(' ')
    const [id = '', type] = label.split('/')
    return { id, type, names: names?.split(',') ?? [] }
  })
}

function limitsText(limits: WriteLimits): string {
  const types = limits.flatMap(condition => [...(condition.namedTypes() ?? ['any'])])
  return limits.length === 0 ? 'allowed' : `allowed within ${types.join(', ')}`
}

for (const [says, rules, request, expected] of writeCases)
  t.test(`write: ${says}`, async t => {
    const [, kind, path, items] = /^(\w+) (\S+) (.*)$/.exec(request) as unknown as [string, WriteKind, string, string]
    const result = new WriteDecisions(grantsOf(rules, 'city'), { tenant: 'city', path }).decide(
      kind,
      writtenEntities(items),
    )
    t.equal(result.ok ? limitsText(result.value) : shortText(result.refusal), expected)
    if (!result.ok) t.equal(result.refusal.kind, 'Forbidden')
  })

for (const [says, rules, request, expected] of forwardedWriteCases)
  t.test(`write to a provider: ${says}`, async t => {
    const [, kind, path, items] = /^(\w+) (\S+) (.*)$/.exec(request) as unknown as [string, WriteKind, string, string]
    const written = writtenEntities(items)
    const limits = demand(new WriteDecisions(grantsOf(rules, 'city'), { tenant: 'city', path }).decide(kind, written))
    t.equal(mayGoToProvider(limits, path, written[0]!) ? 'to providers' : 'stored only', expected)
  })

const payload = (value: JsonObject) => ({ value, duplicates: [], deep: false })

for (const [says, rules, servicePath, subject, expected] of subscriptionCases)
  t.test(`subscription: ${says}`, async t => {
    const body = { subject, notification: { http: { url: 'http://receiver/' } } }
    const head = { id: '0'.repeat(24), tenant: 'city', servicePath }
    const subscription = demand(parseSubscription(payload(body), head))
    t.equal(resultText(grantOfWatcher(grantsOf(rules, 'city')('subscribe'), 'subscribe', subscription)), expected)
  })

for (const [says, rules, dataProvided, expected] of registrationCases)
  t.test(`registration: ${says}`, async t => {
    const body = { dataProvided, provider: { http: { url: 'http://provider/' } } }
    const head = { id: '0'.repeat(24), tenant: 'city', servicePath: '/a' }
    const registration = demand(parseRegistration(payload(body), head))
    const refusal = refuseRegistration(grantsOf(rules, 'city')('register'), registration)
    t.equal(refusal ? shortText(refusal) : 'allowed', expected)
  })

for (const [says, rules, action, expected] of brokerCases)
  t.test(`broker: ${says}`, async t => {
    const file = fileOfRules(rules)
    const grant = brokerGrantOf(file, tester(file), action)
    t.equal(grant.kind === 'all' ? 'allowed' : grantText(grant), expected)
  })

t.test('there are many rows', async t => {
  const rows = [grantCases, seenCases, filterCases, writeCases, subscriptionCases, registrationCases, brokerCases]
  t.ok(rows.flat().length > 150, `${rows.flat().length} rows`)
})
