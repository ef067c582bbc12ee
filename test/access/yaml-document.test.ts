// Access files in YAML: the same file as in JSON, its faults with their lines, and its limits.

import t from 'tap'
import { accessYamlLengthMax } from '../../src/access/limits.js'
import { readAccessYaml } from '../../src/access/yaml-document.js'
import { type AccessFile, accessFileOf, parseAccessFile } from '../../src/domain/access/access-file.js'
import { type Result, refusalText } from '../../src/domain/refusal.js'
import { demand } from '../support/access.js'

const parse = (text: string): Result<AccessFile> => {
  const document = readAccessYaml(text)
  return document.ok ? accessFileOf(document.value) : document
}

const faultOf = (text: string): string => {
  const file = parse(text)
  return file.ok ? 'no fault' : refusalText(file.refusal)
}

const hash = 'ab'.repeat(32)

t.test('a file in YAML is the file in JSON', async t => {
  const yaml = `
# who may do what
anonymous: [guest]
keys:
  - {name: gateway-7, sha256: ${hash}, roles: [ingest-north], expires: 2027-01-01T00:00:00Z}
issuers:
  - issuer: https://id.example.org/realms/city
    audience: orrery
    jwks: https://id.example.org/realms/city/certs
    algorithms: [RS256, ES256]
    subject: preferred_username
    roles: {claim: realm_access.roles, map: {city-operator: operator}, default: [guest]}
    tenants: {claim: fiware_tenants}
certificates:
  - {subject: "CN=gateway-9,O=City", roles: [ingest-north]}
roles:
  guest:        [{actions: [read], tenants: [city], paths: ["/public/#"], types: [Museum], attributes: ["*", "!cost"]}]
  ingest-north: [{actions: [create, update], tenants: [city], paths: ["/north/#"], types: [Meter, Lamp]}]
  operator:     [{actions: ["*"], tenants: ["*"]}]
quotas:
  city: {entities: 1000000, requestsPerSecond: 5000}
  "*":  {requestsPerSecond: 500}
egress:
  allow: ["*.city.example", "10.20.0.0/16", "quantumleap:8668"]
  deny:  ["10.20.0.1"]
`
  const json = {
    anonymous: ['guest'],
    keys: [{ name: 'gateway-7', sha256: hash, roles: ['ingest-north'], expires: '2027-01-01T00:00:00Z' }],
    issuers: [
      {
        issuer: 'https://id.example.org/realms/city',
        audience: 'orrery',
        jwks: 'https://id.example.org/realms/city/certs',
        algorithms: ['RS256', 'ES256'],
        subject: 'preferred_username',
        roles: { claim: 'realm_access.roles', map: { 'city-operator': 'operator' }, default: ['guest'] },
        tenants: { claim: 'fiware_tenants' },
      },
    ],
    certificates: [{ subject: 'CN=gateway-9,O=City', roles: ['ingest-north'] }],
    roles: {
      guest: [
        {
          actions: ['read'],
          tenants: ['city'],
          paths: ['/public/#'],
          types: ['Museum'],
          attributes: ['*', '!cost'],
        },
      ],
      'ingest-north': [
        { actions: ['create', 'update'], tenants: ['city'], paths: ['/north/#'], types: ['Meter', 'Lamp'] },
      ],
      operator: [{ actions: ['*'], tenants: ['*'] }],
    },
    quotas: { city: { entities: 1000000, requestsPerSecond: 5000 }, '*': { requestsPerSecond: 500 } },
    egress: { allow: ['*.city.example', '10.20.0.0/16', 'quantumleap:8668'], deny: ['10.20.0.1'] },
  }
  t.strictSame(demand(parse(yaml)), demand(parseAccessFile(JSON.stringify(json))))
  t.strictSame(demand(parse(JSON.stringify(json))), demand(parse(yaml)), 'JSON is YAML')
})

t.test('an alias is a copy', async t => {
  const file = demand(parse('roles:\n  a: &rules [{actions: [read]}]\n  b: *rules\n'))
  t.strictSame(file.roles.get('b'), file.roles.get('a'))
})

const faults: readonly (readonly [said: string, text: string, fault: string | RegExp])[] = [
  [
    'a value of another kind',
    'roles:\n  guest:\n    - actions: [read]\n    - read\n',
    'line 4: roles.guest[1]: must be an object',
  ],
  [
    'an unknown action',
    'roles:\n  guest:\n    - actions:\n        - read\n        - raed\n',
    /^line 5: roles\.guest\[0\]\.actions\[1\]: must be one of/,
  ],
  ['a missing member', 'keys:\n  - name: a\n    roles: []\n', 'line 2: keys[0]: the member sha256 is missing'],
  ['an unknown member', 'roles: {}\nkyes: []\n', /^line 2: kyes: is not known here/],
  ['an undefined role', 'anonymous:\n  - gest\n', 'line 2: anonymous: names the role "gest", which is not in roles'],
  ['a name twice', 'roles:\n  a: []\n  b: []\n  a: []\n', 'line 4: roles.a: is there twice'],
  ['a name twice, once quoted', 'roles: {}\n"roles": {}\n', 'line 2: roles: is there twice'],
  ['a fault in a member without a value', 'roles:\n  a:\n  b: []\n', 'line 2: roles.a: must be a list'],
  [
    'a number as a name in a list',
    'roles:\n  123: []\nanonymous: [123]\n',
    /^line 3: anonymous\[0\]: must be .*: put it in quotes$/,
  ],
  [
    'infinity',
    'quotas:\n  city:\n    entities: .inf\n',
    'line 3: quotas.city.entities: is of a kind that JSON does not have',
  ],
  ['a tag', 'roles: !roles {}\n', 'line 1: a tag is not known'],
  ['a date with a tag', 'roles: !!timestamp 2027-01-01\n', /^line 1: /],
  ['a merge key', 'roles:\n  <<: {a: []}\n', /^line 2: roles\["<<"\]/],
  ['YAML 1.1', '%YAML 1.1\n---\nroles: {}\n', 'line 1: the file has to be of YAML 1.2'],
  [
    'two documents',
    'roles: {}\n---\nroles: {}\n',
    /^line 2: the file has several documents$|^line 3: the file has several documents$/,
  ],
  ['a tab', 'roles:\n\ta: []\n', /^line 2: /],
  ['an open bracket', 'roles:\n  a: [\n', /^line 3: |^line 2: /],
  ['an alias without an anchor', 'roles:\n  a: *rules\n', 'line 2: roles.a: an alias has no anchor before it'],
  ['a list as a name', 'roles:\n  ? [a]\n  : []\n', 'line 2: a name is not a text'],
  ['an alias to itself', 'roles: &all\n  a: *all\n', /nested more than 20 levels deep/],
  ['many levels', `roles: ${'['.repeat(30)}${']'.repeat(30)}\n`, /nested more than 20 levels deep/],
  ['very many levels', '['.repeat(50_000), /nested too deep/],
  ['an empty file', '', 'must be an object'],
  ['a text', 'hello\n', 'line 1: must be an object'],
]
for (const [said, text, fault] of faults)
  t.test(`${said} is a fault with its line`, async t => {
    if (typeof fault === 'string') t.equal(faultOf(text), fault)
    else t.match(faultOf(text), fault)
  })

t.test('aliases of aliases are counted with their full values', async t => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let level = 1; level < 10; level++)
    lines.push(
      `a${level}: &a${level} [${Array(10)
        .fill(`*a${level - 1}`)
        .join(', ')}]`,
    )
  const beganMs = performance.now()
  t.match(
    faultOf(lines.join('\n')),
    /^line \d+: a\d.*: the file has more than 500000 values, with those that aliases repeat$/,
  )
  t.ok(performance.now() - beganMs < 5_000)
})

t.test('a fault does not quote the file', async t => {
  const secret = 'ok_secretsecretsecretsecretsecretsecretsecretsecr'
  for (const text of [
    `keys:\n  - name: a\n    sha256: ${secret}\n    roles: []\n`,
    `keys:\n  - name: a\n   sha256: ${secret}\n`,
    `keys: !${secret} []\n`,
    `keys: "${secret}\n`,
    `${secret}\n`,
  ]) {
    t.not(faultOf(text), 'no fault')
    t.notMatch(faultOf(text), /secret/)
  }
})

t.test('a name like __proto__ is a name', async t => {
  const document = demand(readAccessYaml('__proto__: {a: 1}\n'))
  t.strictSame(Object.keys(document.value as object), ['__proto__'])
  t.equal(({} as Record<string, unknown>).a, undefined)
})

t.test('a file beyond the limit has to be JSON', async t => {
  t.match(
    faultOf(`# ${'x'.repeat(accessYamlLengthMax)}\n`),
    /^the file has \d+ characters, at most 1048576 in YAML: write it in JSON$/,
  )
})
