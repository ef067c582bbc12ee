// `orrery access key` and `orrery access explain`, as a shell runs them.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runAccess } from '../../src/access/command.js'
import { isKeyForm, keyHash } from '../../src/access/keys.js'
import { parseAccessFile } from '../../src/domain/access/access-file.js'
import { tempDir } from '../support/broker-process.js'
import { IdentityProvider, signed, signingKey } from '../support/identity-provider.js'

interface Printed {
  readonly status: number
  readonly out: string
  readonly err: string
}

async function run(t: Test, verb: 'key' | 'explain', words: readonly string[]): Promise<Printed> {
  const out = t.capture(process.stdout, 'write')
  const err = t.capture(process.stderr, 'write')
  const status = await runAccess(verb, words, {})
  const textOf = (calls: readonly { readonly args: readonly unknown[] }[]): string =>
    calls.map(({ args }) => String(args[0])).join('')
  const printed = { status, out: textOf(out()), err: textOf(err()) }
  out.restore()
  err.restore()
  return printed
}

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1)!

t.test('a new key is printed with its line for the file', async t => {
  const words = ['--name', 'gateway-7', '-role', 'a', '--role=b', '--role', 'a', '--expires', '2027-01-01T00:00:00Z']
  const { status, out } = await run(t, 'key', words)
  const [key = '', entry = '', ...more] = out.split('\n')
  t.equal(status, 0)
  t.ok(isKeyForm(key))
  t.strictSame(more, [''])
  t.strictSame(JSON.parse(entry), {
    name: 'gateway-7',
    sha256: keyHash(key),
    roles: ['a', 'b'],
    expires: '2027-01-01T00:00:00Z',
  })
  const file = parseAccessFile(`{"keys":[${entry}],"roles":{"a":[],"b":[]}}`)
  t.ok(file.ok)
  t.not((await run(t, 'key', words)).out.split('\n')[0], key)
})

const wrongKeys: readonly (readonly [words: string, fault: RegExp])[] = [
  ['--role a', /^--name is missing$/],
  ['--name a', /^--role is missing$/],
  ['--name a --role b --expires tomorrow', /keys\[0\]\.expires: must be a date/],
  ['--name anonymous --role b', /keys\[0\]\.name: may not be anonymous/],
  ['--name a --role b --roles c', /--roles/],
  ['--name a --role b c', /c/],
]
for (const [words, fault] of wrongKeys)
  t.test(`orrery access key ${words}: refused`, async t => {
    const { status, out, err } = await run(t, 'key', words.split(' '))
    t.strictSame([status, out], [1, ''])
    t.match(lastLine(err), fault)
  })

const yaml = (more = ''): string => `
anonymous: [guest]
keys:
  - {name: gateway-7, sha256: ${'ab'.repeat(32)}, roles: [ingest]}
  - {name: old, sha256: ${'cd'.repeat(32)}, roles: [ingest], expires: 2020-01-01T00:00:00Z}
certificates:
  - {subject: "CN=gateway-9,O=City", roles: [ingest]}
roles:
  guest:  [{actions: [read], tenants: [city], paths: ["/public/#"], attributes: ["*", "!cost"]}]
  ingest: [{actions: [create, update], tenants: [city], types: [Lamp]}]
  root:   [{actions: ["*"], tenants: ["*"]}]
${more}`

function fileWith(t: Test, text = yaml()): string {
  const path = join(tempDir(t), 'access.yaml')
  writeFileSync(path, text)
  return path
}

const explained: readonly (readonly [words: string, status: number, lines: readonly string[]])[] = [
  [
    '--as anonymous GET /v2/entities --tenant city',
    0,
    [
      'allowed in part: read in /# of tenant city by anonymous (nothing shown): only what the rules below allow',
      '  + guest, rule 1: allows everything in /public/#, attributes *, !cost',
    ],
  ],
  [
    '--as anonymous get /v2/entities/M1/attrs/cost --tenant city --path /public --type Museum',
    1,
    [
      'denied: read of attribute cost of M1/Museum in /public of tenant city by anonymous (nothing shown): attribute cost of this entity is not allowed',
      '  - guest, rule 1: does not have attribute cost, but *, !cost',
    ],
  ],
  [
    '--as gateway-7 POST /v2/entities --tenant city --path /a --type Lamp --id L1',
    0,
    [
      'allowed: create of L1/Lamp in /a of tenant city by gateway-7 (key)',
      '  + ingest, rule 1: allows type Lamp in /#',
    ],
  ],
  [
    '--as CN=gateway-9,O=City PUT /v2/entities/L1/attrs?type=Lamp --tenant city',
    1,
    [
      'allowed: update of L1/Lamp in / of tenant city by CN=gateway-9,O=City (certificate)',
      '  + ingest, rule 1: allows type Lamp in /#',
      'denied: delete of L1/Lamp in / of tenant city by CN=gateway-9,O=City (certificate): no rule of its roles allows delete',
      '  - ingest, rule 1: is not about delete, but create, update',
    ],
  ],
  ['--as gateway-7 GET /version', 0, ['allowed: it needs a principal, and no rule']],
  ['--as gateway-7 GET /health/live', 0, ['allowed: it needs no proof']],
]
for (const [words, status, lines] of explained)
  t.test(`orrery access explain ${words}`, async t => {
    t.strictSame(await run(t, 'explain', ['--file', fileWith(t), ...words.split(' ')]), {
      status,
      out: `${lines.join('\n')}\n`,
      err: '',
    })
  })

t.test('a batch may be allowed for some kinds', async t => {
  const words = ['--file', fileWith(t), '--as', 'gateway-7', 'POST', '/v2/op/update', '--tenant', 'city']
  const { status, out } = await run(t, 'explain', words)
  t.equal(status, 0)
  t.match(
    out,
    /^allowed in part: create .*\n.*\nallowed in part: update .*\n.*\ndenied: delete .*\n.*\na batch needs those of its actionType: /,
  )
})

const refused: readonly (readonly [words: string, line: RegExp])[] = [
  ['--as gateway-7 GET /v2/entities', /^--file is missing$/],
  ['--file F GET /v2/entities', /^one of --as and --token has to be given$/],
  ['--file F --as a --token b GET /v2/entities', /^one of --as and --token has to be given$/],
  ['--file F --as gateway-7 GET', /^a method and a path have to be given, as in GET \/v2\/entities$/],
  ['--file F --as gateway-7 GET /v2/entities more', /^a method and a path have to be given/],
  ['--file F --as gateway-7 GET /v2/entities --tenant a-b', /^--tenant: bad character/],
  ['--file F --as gateway-7 GET /v2/entities --path a', /^--path: Only \/absolute\//],
  ['--file F --as gateway-7 GET /v2/entity', /^GET \/v2\/entity: Orrery has no such path, or not with this method$/],
  [
    '--file F --as nobody GET /v2/entities',
    /^--as: the file has no key and no certificate "nobody"; for a user of an issuer give --token$/,
  ],
  ['--file F --as old GET /v2/entities', /^401: the key old has expired$/],
  ['--file F --token hello GET /v2/entities', /^401: the token is malformed: /],
  ['--file F --token ok_x GET /v2/entities', /^401: --token is no token: for a key give --as with its name$/],
  ['--file /none --as a GET /v2/entities', /^\/none: ENOENT/],
]
for (const [words, line] of refused)
  t.test(`orrery access explain ${words}: refused`, async t => {
    const file = fileWith(t)
    const { status, out, err } = await run(
      t,
      'explain',
      words.split(' ').map(word => (word === 'F' ? file : word)),
    )
    t.strictSame([status, out], [1, ''])
    t.match(lastLine(err), line)
  })

t.test('a wrong file is shown with its line', async t => {
  const path = fileWith(t, yaml().replace('[read]', '[raed]'))
  const { status, err } = await run(t, 'explain', ['--file', path, '--as', 'old', 'GET', '/v2/entities'])
  t.equal(status, 1)
  t.match(err, /access\.yaml: line 9: roles\.guest\[0\]\.actions\[0\]: must be one of/)
})

t.test('a token is verified with the keys of its issuer, fetched or from a file', async t => {
  const key = await signingKey('ES256', 'a')
  const provider = await IdentityProvider.start(t, [key])
  const roles = { claim: 'groups', map: { admins: 'root' } }
  const { jwks: _, ...others } = provider.entry({ roles })
  const path = fileWith(t, yaml(`issuers: [${JSON.stringify(provider.entry({ roles }))}]\n`))
  const token = await signed(key, provider.claims(Date.now(), 'ada', { groups: ['admins'] }))
  const words = (file: string, shown: string): string[] => [
    '--file',
    file,
    '--token',
    shown,
    'DELETE',
    '/v2/entities/L1',
  ]
  const allowed = {
    status: 0,
    out: 'allowed: delete of L1 in / of tenant default-service by ada (token)\n  + root, rule 1: allows everything in /#\n',
    err: '',
  }
  t.strictSame(await run(t, 'explain', words(path, token)), allowed)
  t.equal(provider.asked, 1)

  const withFile = fileWith(t, yaml(`issuers: [${JSON.stringify({ ...others, jwksFile: 'keys.json' })}]\n`))
  writeFileSync(join(withFile, '..', 'keys.json'), JSON.stringify(provider.published))
  t.strictSame(await run(t, 'explain', words(withFile, token)), allowed)
  t.equal(provider.asked, 1)

  const egress = 'egress: {deny: ["127.0.0.1"]}\n'
  const denied = fileWith(t, yaml(`issuers: [${JSON.stringify(provider.entry({ roles }))}]\n${egress}`))
  t.match(await run(t, 'explain', words(denied, token)), { status: 1, err: /certs: The target is denied here\n503: / })
  t.equal(provider.asked, 1)

  const forged = await signed(await signingKey('ES256', 'a'), provider.claims(Date.now()))
  t.strictSame(await run(t, 'explain', words(withFile, forged)), {
    status: 1,
    out: '',
    err: '401: the token is not accepted: the signature does not fit\n',
  })
  provider.answer = response => response.writeHead(500).end()
  const away = await run(t, 'explain', words(path, token))
  t.equal(away.status, 1)
  t.match(
    away.err,
    /^access: keys of the issuer .*: cannot be fetched from .*: the answer has the status 500\n503: the token is not verified: the keys of the issuer could not be had so far\n$/,
  )
})
