// Principals: their identity from proofs, their roles from a file, and the documents that they may handle.

import t from 'tap'
import { grantOf, isAdminOf } from '../../../src/domain/access/grant.js'
import {
  certificateShown,
  isKeyExpired,
  isSamePrincipal,
  keyShown,
  mayHandle,
  nothingShown,
  type Principal,
  type PrincipalSource,
  principalOf,
  tokenShown,
} from '../../../src/domain/access/principal.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { accessFile, hashOf } from '../../support/access.js'

const roles = { a: [{ actions: ['read'], tenants: ['*'] }], b: [], c: [] }
const issuerUrl = 'https://id'
const issuerWith = (parts: JsonObject) => ({
  issuer: issuerUrl,
  audience: 'orrery',
  jwksFile: 'keys.json',
  algorithms: ['ES256'],
  ...parts,
})
const fileWith = (parts: JsonObject) => accessFile({ roles, issuers: [issuerWith(parts)] })
const shownBy = (parts: JsonObject, claims: JsonObject): PrincipalSource | undefined =>
  tokenShown(fileWith(parts).issuers.get(issuerUrl)!, claims)
const principalBy = (parts: JsonObject, claims: JsonObject): Principal | undefined => {
  const source = shownBy(parts, claims)
  return source && principalOf(fileWith(parts), source)
}

const mapping = { claim: 'realm_access.roles', map: { x: 'a', y: 'b', z: 'a' }, default: ['c'] }

for (const [says, claims, expected] of [
  ['no claim', {}, ['c']],
  ['a value', { realm_access: { roles: ['x'] } }, ['a']],
  ['several values', { realm_access: { roles: ['y', 'x', 'z'] } }, ['b', 'a']],
  ['values that are not in the map', { realm_access: { roles: ['a', 'c', 'X'] } }, ['c']],
  ['some that are', { realm_access: { roles: ['n', 'y'] } }, ['b']],
  ['a text is one value', { realm_access: { roles: 'x' } }, ['a']],
  ['it is not divided', { realm_access: { roles: 'x y' } }, ['c']],
  ['other elements are ignored', { realm_access: { roles: [1, null, ['x'], { x: 1 }, 'y'] } }, ['b']],
  ['the exact name comes first', { 'realm_access.roles': ['y'], realm_access: { roles: ['x'] } }, ['b']],
  ['a list on the way is no object', { realm_access: [{ roles: ['x'] }] }, ['c']],
  ['names of prototypes are no claims', { realm_access: { constructor: ['x'] } }, ['c']],
  ['a claim that is no list', { realm_access: { roles: { x: true } } }, ['c']],
  ['too many values', { realm_access: { roles: [...Array.from({ length: 1000 }, () => 'n'), 'x'] } }, ['c']],
] as readonly (readonly [string, JsonObject, readonly string[]])[])
  t.test(`roles of a token: ${says}`, async t => {
    t.strictSame(principalBy({ roles: mapping }, { sub: 'u', ...claims })?.roles, expected)
  })

t.test('a token has at most a hundred roles', async t => {
  const values = Array.from({ length: 150 }, (_, at) => `v${at}`)
  const file = accessFile({
    roles: Object.fromEntries(values.map(value => [value, []])),
    issuers: [issuerWith({ roles: { claim: 'r', map: Object.fromEntries(values.map(value => [value, value])) } })],
  })
  const source = tokenShown(file.issuers.get(issuerUrl)!, { sub: 'u', r: values })!
  t.strictSame(principalOf(file, source)?.roles, values.slice(0, 100))
})

t.test('a token without a mapping has no roles, or the default ones', async t => {
  t.strictSame(principalBy({}, { sub: 'u', roles: ['a'] })?.roles, [])
  t.strictSame(principalBy({ roles: { default: ['a'] } }, { sub: 'u' })?.roles, ['a'])
})

t.test('the name is the subject, or another claim', async t => {
  t.match(shownBy({}, { sub: 'u1' }), { proof: 'token', issuer: issuerUrl, name: 'u1' })
  t.match(shownBy({ subject: 'preferred_username' }, { sub: 'u1', preferred_username: 'eva' }), { name: 'eva' })
  for (const sub of [undefined, '', 7, ['u'], 'a\nb', '\ud800', 'n'.repeat(257)])
    t.equal(shownBy({}, sub === undefined ? {} : { sub }), undefined, JSON.stringify(sub) ?? 'none')
  t.equal(shownBy({ subject: 'toString' }, {}), undefined)
})

for (const [says, claims, expected] of [
  ['no claim', {}, []],
  ['a list', { tenants: ['city', 'Harbour'] }, ['city', 'harbour']],
  ['a text', { tenants: 'city' }, ['city']],
  ['an empty text is none', { tenants: '' }, []],
  ['an empty text in a list is the default tenant', { tenants: [''] }, ['']],
  ['an asterisk is no name', { tenants: ['*'] }, []],
  ['names that are none', { tenants: ['a-b', 'city', 5] }, ['city']],
  ['an object', { tenants: { city: true } }, []],
] as readonly (readonly [string, JsonObject, readonly string[]])[])
  t.test(`tenants of a token: ${says}`, async t => {
    const principal = principalBy({ tenants: { claim: 'tenants' } }, { sub: 'u', ...claims })
    t.strictSame([...(principal?.tenants ?? ['all'])], expected)
  })

t.test('every rule of a token with tenants counts only there', async t => {
  const parts = { tenants: { claim: 'tenants' }, roles: { default: ['a'] } }
  const file = fileWith(parts)
  const principal = principalBy(parts, { sub: 'u', tenants: ['city'] })
  t.equal(grantOf(file, principal, 'city', 'read').kind, 'all')
  t.match(grantOf(file, principal, 'harbour', 'read'), { kind: 'denied', reason: 'tokenTenants' })
  t.match(grantOf(file, principalBy(parts, { sub: 'u' }), '', 'read'), { kind: 'denied', reason: 'tokenTenants' })
})

t.test('a key, until it expires', async t => {
  const key = { name: 'k', sha256: hashOf(1), roles: ['a'], expires: '2027-01-01T00:00:00Z' }
  const file = accessFile({ roles, keys: [key, { name: 'l', sha256: hashOf(2), roles: [] }] })
  const found = file.keys.get(hashOf(1))!
  t.match(principalOf(file, keyShown(found)), { source: { proof: 'key', name: 'k' }, roles: ['a'], tenants: undefined })
  const atMs = Date.UTC(2027, 0, 1)
  t.notOk(isKeyExpired(found, atMs - 1))
  t.ok(isKeyExpired(found, atMs))
  t.notOk(isKeyExpired(file.keys.get(hashOf(2))!, Number.MAX_SAFE_INTEGER))
})

t.test('a client that shows nothing is a principal only if the file has one', async t => {
  t.match(principalOf(accessFile({ roles, anonymous: ['a'] }), nothingShown), { roles: ['a'] })
  t.equal(principalOf(accessFile({ roles }), nothingShown), undefined)
  t.equal(principalOf(accessFile({ roles, anonymous: [] }), nothingShown), undefined)
})

t.test('a certificate is found by its subject, then by its other names', async t => {
  const file = accessFile({
    roles,
    certificates: [
      { subject: 'DNS:g.city', roles: ['b'] },
      { subject: 'CN=g', roles: ['a'] },
    ],
  })
  t.strictSame(certificateShown(file, 'CN=g', ['DNS:g.city']), { proof: 'certificate', name: 'CN=g' })
  t.strictSame(certificateShown(file, 'CN=h', ['URI:x', 'DNS:g.city']), { proof: 'certificate', name: 'DNS:g.city' })
  t.equal(certificateShown(file, 'cn=g', ['dns:g.city']), undefined)
  t.strictSame(principalOf(file, { proof: 'certificate', name: 'CN=g' })?.roles, ['a'])
})

t.test('the roles of a stored creator are those of the current file', async t => {
  const key = (names: readonly string[]) => [{ name: 'k', sha256: hashOf(1), roles: names }]
  const source = { proof: 'key', name: 'k' } as const
  t.strictSame(principalOf(accessFile({ roles, keys: key(['a', 'b']) }), source)?.roles, ['a', 'b'])
  t.strictSame(principalOf(accessFile({ roles, keys: key(['b']) }), source)?.roles, ['b'])
  t.equal(principalOf(accessFile({ roles }), source), undefined)

  const shown = shownBy({ roles: mapping }, { sub: 'u', realm_access: { roles: ['x', 'y'] } })!
  t.strictSame(principalOf(fileWith({ roles: { ...mapping, map: { y: 'b' } } }), shown)?.roles, ['b'])
  t.strictSame(principalOf(fileWith({ roles: { ...mapping, map: { n: 'b' } } }), shown)?.roles, ['c'])
  t.equal(principalOf(accessFile({ roles }), shown), undefined)
})

t.test('a stored creator has no tenants when the file begins to narrow tokens, and keeps its own', async t => {
  const before = shownBy({}, { sub: 'u', tenants: ['city'] })!
  t.equal(principalOf(fileWith({}), before)?.tenants, undefined)
  t.strictSame(principalOf(fileWith({ tenants: { claim: 'tenants' } }), before)?.tenants, new Set())
  const narrowed = shownBy({ tenants: { claim: 'tenants' } }, { sub: 'u', tenants: ['city'] })!
  t.strictSame(principalOf(fileWith({}), narrowed)?.tenants, new Set(['city']))
})

t.test('names count only within one kind of proof and one issuer', async t => {
  const token = (issuer: string, name: string, ...claimed: string[]): PrincipalSource => ({
    proof: 'token',
    issuer,
    name,
    claimed,
  })
  t.ok(isSamePrincipal({ proof: 'key', name: 'k' }, { proof: 'key', name: 'k' }))
  t.notOk(isSamePrincipal({ proof: 'key', name: 'k' }, { proof: 'certificate', name: 'k' }))
  t.notOk(isSamePrincipal({ proof: 'key', name: 'k' }, { proof: 'key', name: 'l' }))
  t.ok(isSamePrincipal(token('i', 'k'), token('i', 'k', 'x')))
  t.notOk(isSamePrincipal(token('i', 'k'), token('j', 'k')))
  t.notOk(isSamePrincipal(token('i', 'k'), { proof: 'key', name: 'k' }))
})

const key = (name: string, ...names: string[]): Principal => ({
  source: { proof: 'key', name },
  roles: names,
  tenants: undefined,
})

for (const [says, principal, creator, isAdmin, expected] of [
  ['its own', key('k', 'a'), key('k', 'a'), false, true],
  ['its own, with other roles since', key('k', 'a'), key('k', 'b'), false, true],
  ['of the same roles', key('k', 'a', 'b'), key('l', 'b', 'a'), false, true],
  ['of some of its roles', key('k', 'a', 'b'), key('l', 'b'), false, true],
  ['of more roles: it would act with them', key('k', 'a'), key('l', 'a', 'b'), false, false],
  ['of another role', key('k', 'a'), key('l', 'b'), false, false],
  ['of a creator without roles', key('k', 'a'), key('l'), false, false],
  ['without an owner', key('k', 'a'), undefined, false, false],
  ['with admin', key('k', 'a'), key('l', 'b'), true, true],
  ['with admin, without an owner', key('k', 'a'), undefined, true, true],
] as readonly (readonly [string, Principal, Principal | undefined, boolean, boolean])[])
  t.test(`a document ${says} may ${expected ? '' : 'not '}be handled`, async t => {
    t.equal(mayHandle(principal, creator, isAdmin), expected)
  })

t.test('admin of a tenant is a rule for everything in it', async t => {
  const adminWith = (parts: JsonObject) => {
    const file = accessFile({
      roles: { r: [{ actions: ['admin'], tenants: ['city'], ...parts }] },
      keys: [{ name: 'k', sha256: hashOf(1), roles: ['r'] }],
    })
    return isAdminOf(file, principalOf(file, { proof: 'key', name: 'k' }), 'city')
  }
  t.ok(adminWith({}))
  t.ok(adminWith({ actions: ['*'], tenants: ['*'] }))
  t.notOk(adminWith({ actions: ['subscribe'] }))
  t.notOk(adminWith({ tenants: ['harbour'] }))
  t.notOk(adminWith({ paths: ['/a/#'] }))
  t.notOk(adminWith({ types: ['Lamp'] }))
  t.notOk(adminWith({ attributes: ['*', '!cost'] }))
})
