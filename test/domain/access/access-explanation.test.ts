// Explanations of decisions, as they are printed.

import t from 'tap'
import { type AccessQuestion, explainAccess, explanationLines } from '../../../src/domain/access/access-explanation.js'
import { nothingShown, type PrincipalSource, principalOf } from '../../../src/domain/access/principal.js'
import { accessFile, hashOf } from '../../support/access.js'

const file = accessFile({
  anonymous: ['guest'],
  keys: [
    { name: 'gateway-7', sha256: hashOf(1), roles: ['ingest', 'guest'] },
    { name: 'idle', sha256: hashOf(2), roles: [] },
    { name: 'root', sha256: hashOf(3), roles: ['operator'] },
  ],
  issuers: [
    {
      issuer: 'https://id',
      audience: 'a',
      jwksFile: 'k',
      algorithms: ['ES256'],
      roles: { default: ['operator'] },
      tenants: { claim: 't' },
    },
  ],
  roles: {
    guest: [
      { actions: ['read'], tenants: ['city'], paths: ['/public/#'], types: ['Museum'], attributes: ['*', '!cost'] },
    ],
    ingest: [
      { actions: ['create', 'update'], tenants: ['city'], paths: ['/north/#'], types: ['Meter', 'Lamp'] },
      { actions: ['delete'], tenants: ['city'], ids: ['m1', { pattern: '^tmp' }] },
    ],
    operator: [{ actions: ['*'], tenants: ['*'] }],
  },
})

const gateway: PrincipalSource = { proof: 'key', name: 'gateway-7' }
const visitor: PrincipalSource = {
  proof: 'token',
  issuer: 'https://id',
  name: 'eva',
  claimed: [],
  tenants: ['harbour'],
}
const city = (...paths: string[]) => ({ tenant: 'city', paths })

const rows: readonly (readonly [PrincipalSource, AccessQuestion, ...string[]])[] = [
  [
    nothingShown,
    { action: 'read', place: city('/#') },
    'allowed in part: read in /# of tenant city by anonymous (nothing shown): only what the rules below allow',
    '  + guest, rule 1: allows type Museum in /public/#, attributes *, !cost',
  ],
  [
    nothingShown,
    { action: 'read', place: city('/public/a'), type: 'Museum', id: 'm1', attributes: ['cost'] },
    'denied: read of attribute cost of m1/Museum in /public/a of tenant city by anonymous (nothing shown): attribute cost of this entity is not allowed',
    '  - guest, rule 1: does not have attribute cost, but *, !cost',
  ],
  [
    nothingShown,
    { action: 'read', place: city('/public/a'), type: 'Museum', id: 'm1', attributes: ['name'] },
    'allowed: read of attribute name of m1/Museum in /public/a of tenant city by anonymous (nothing shown)',
    '  + guest, rule 1: allows type Museum in /public/#, attributes *, !cost',
  ],
  [
    nothingShown,
    { action: 'read', place: { tenant: '', paths: ['/'] } },
    'denied: read in / of tenant default-service by anonymous (nothing shown): rules allow read, but not in this tenant',
    '  - guest, rule 1: is not about tenant default-service, but tenant city',
  ],
  [
    gateway,
    { action: 'update', place: city('/south'), type: 'Lamp', id: 'l1' },
    'denied: update of l1/Lamp in /south of tenant city by gateway-7 (key): rules allow update in this tenant, but not in these paths',
    '  - ingest, rule 1: is not about /south, but /north/#',
    '  - ingest, rule 2: is not about update, but delete',
    '  - guest, rule 1: is not about update, but read',
  ],
  [
    gateway,
    { action: 'update', place: city('/north'), type: 'Museum' },
    'denied: update of entities of type Museum in /north of tenant city by gateway-7 (key): rules allow update in these paths, but not of such entities',
    '  - ingest, rule 1: is not about type Museum, but types Meter, Lamp',
    '  - ingest, rule 2: is not about update, but delete',
    '  - guest, rule 1: is not about update, but read',
  ],
  [
    gateway,
    { action: 'update', place: city('/north'), type: 'Lamp', id: 'l1' },
    'allowed: update of l1/Lamp in /north of tenant city by gateway-7 (key)',
    '  + ingest, rule 1: allows types Meter, Lamp in /north/#',
    '  - ingest, rule 2: is not about update, but delete',
    '  - guest, rule 1: is not about update, but read',
  ],
  [
    gateway,
    { action: 'delete', place: city('/x'), id: 'l1' },
    'denied: delete of l1 in /x of tenant city by gateway-7 (key): rules allow delete in these paths, but not of such entities',
    '  - ingest, rule 1: is not about delete, but create, update',
    '  - ingest, rule 2: is not about id l1, but ids m1, /^tmp/',
    '  - guest, rule 1: is not about delete, but read',
  ],
  [
    gateway,
    { action: 'admin', place: 'broker' },
    'denied: admin of this broker by gateway-7 (key): no rule of its roles allows admin',
    '  - ingest, rule 1: is not about admin, but create, update',
    '  - ingest, rule 2: is not about admin, but delete',
    '  - guest, rule 1: is not about admin, but read',
  ],
  [
    { proof: 'key', name: 'idle' },
    { action: 'read', place: city('/') },
    'denied: read in / of tenant city by idle (key): its roles have no rules',
  ],
  [
    { proof: 'key', name: 'gone' },
    { action: 'read', place: city('/') },
    'denied: read in / of tenant city by an unknown principal: the file does not have it',
  ],
  [
    { proof: 'key', name: 'root' },
    { action: 'metrics', place: 'broker' },
    'allowed: metrics of this broker by root (key)',
    '  + operator, rule 1: allows everything in /#',
  ],
  [
    { proof: 'key', name: 'root' },
    { action: 'create', place: 'broker' },
    'denied: create of this broker by root (key): create is about a tenant',
    '  - operator, rule 1: create is about a tenant',
  ],
  [
    visitor,
    { action: 'read', place: city('/') },
    'denied: read in / of tenant city by eva (token): its token is for tenant harbour only',
    '  - operator, rule 1: is narrowed by the tenants of the token',
  ],
  [
    visitor,
    { action: 'admin', place: 'broker' },
    'denied: admin of this broker by eva (token): its token is for tenant harbour only',
    '  - operator, rule 1: is narrowed by the tenants of the token',
  ],
  [
    visitor,
    { action: 'read', place: { tenant: 'harbour', paths: ['/a', '/b/#'] } },
    'allowed: read in /a,/b/# of tenant harbour by eva (token)',
    '  + operator, rule 1: allows everything in /#',
  ],
]

for (const [source, question, ...lines] of rows)
  t.test(lines[0]!, async t => {
    const explanation = explainAccess(file, principalOf(file, source), question)
    t.strictSame(explanationLines(explanation), lines)
  })

t.test('long lists are cut', async t => {
  const types = Array.from({ length: 12 }, (_, at) => `T${at}`)
  const wide = accessFile({ anonymous: ['r'], roles: { r: [{ actions: ['read'], types }] } })
  const { rules } = explainAccess(wide, principalOf(wide, nothingShown), {
    action: 'read',
    place: { tenant: '', paths: ['/#'] },
  })
  t.equal(rules[0]?.text, 'allows types T0, T1, T2, T3, T4, T5, T6, T7, T8, T9 and 2 more in /#')
})
