// The access file: the result of parsing, the message for each fault, and the time of a large one.

import t from 'tap'
import { readAccessJson } from '../../../src/domain/access/access-document.js'
import { accessFileOf, parseAccessFile } from '../../../src/domain/access/access-file.js'
import { accessFileLengthMax } from '../../../src/domain/access/access-limits.js'
import { quotasOf } from '../../../src/domain/access/quotas.js'
import type { Json } from '../../../src/domain/json.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { memberFaults, syntaxFaults } from '../../cases/access-files.js'
import { accessFile, demand, hashOf } from '../../support/access.js'
import { readPage } from '../../support/markdown.js'
import { Random } from '../../support/random.js'

const faultOf = (text: string): string => {
  const file = parseAccessFile(text)
  return file.ok ? 'no fault' : refusalText(file.refusal)
}

for (const [text, message] of syntaxFaults)
  t.test(`syntax: ${text.slice(0, 60)}`, async t => {
    if (message.startsWith('line')) t.equal(faultOf(text), message)
    else t.match(faultOf(text), new RegExp(message))
  })

for (const [file, message] of memberFaults)
  t.test(`fault: ${message.slice(0, 100)}`, async t => {
    t.equal(faultOf(JSON.stringify(file)), `line 1: ${message}`)
  })

t.test('a fault names the line of the value, or of the object that lacks a member', async t => {
  const text = JSON.stringify({ roles: { r: [{ actions: ['read'] }, { actions: ['read', 'x'] }] } }, null, 2)
  t.match(faultOf(text), /^line 12: roles\.r\[1\]\.actions\[1\]: must be one of/)
  t.match(faultOf('{"keys": [\n{"name": "a",\n"roles": []}]}'), 'line 2: keys[0]: the member sha256 is missing')
})

t.test('a document of another syntax brings its own lines', async t => {
  const lines = accessFileOf({ value: { roles: 1 }, lineOf: place => (place.join() === 'roles' ? 7 : 0) })
  t.equal(lines.ok || refusalText(lines.refusal), 'line 7: roles: must be an object')
  const none = accessFileOf({ value: { roles: 1 }, lineOf: () => 0 })
  t.equal(none.ok || refusalText(none.refusal), 'roles: must be an object')
})

t.test('no message shows what may be a secret', async t => {
  const secret = `ok_${'x'.repeat(43)}`
  for (const members of [{ sha256: secret }, { key: secret }, { secret }, { sha256: [secret] }, { expires: secret }])
    t.notMatch(faultOf(JSON.stringify({ keys: [{ name: 'k', roles: [], ...members }] })), secret)
  t.notMatch(faultOf(`{"keys": [{"name": "k", "sha256": ${secret}}]}`), secret)
})

t.test('a file without members, or with a byte order mark, allows nothing', async t => {
  for (const text of ['{}', '\uFEFF{}', ' \r\n\t{ } \n']) {
    const file = demand(parseAccessFile(text))
    t.match(file, { anonymous: undefined, keys: new Map(), roles: new Map(), egress: undefined })
  }
})

t.test('a file that is too long is refused before it is read', async t => {
  t.match(faultOf(' '.repeat(accessFileLengthMax + 1)), /^the file has 33554433 characters, at most 33554432$/)
})

t.test('the example of the page is a file, with the meaning that the page describes', async t => {
  const [, example] = /```json\n([\s\S]*?)\n```/.exec(readPage('docs/interface/access.md'))!
  const file = demand(parseAccessFile(example!.replace('6b51…', hashOf(1))))
  t.strictSame(file.anonymous, ['guest'])
  t.strictSame(file.keys.get(hashOf(1)), {
    name: 'gateway-7',
    sha256: hashOf(1),
    roles: ['ingest-north'],
    expiresMs: Date.UTC(2027, 0, 1),
  })
  t.strictSame(file.issuers.get('https://id.example.org/realms/city'), {
    issuer: 'https://id.example.org/realms/city',
    audience: 'orrery',
    keys: { kind: 'url', url: 'https://id.example.org/realms/city/certs' },
    algorithms: ['RS256', 'ES256'],
    subject: 'preferred_username',
    roles: { claim: 'realm_access.roles', map: new Map([['city-operator', 'operator']]), byDefault: ['guest'] },
    tenantsClaim: 'fiware_tenants',
  })
  t.strictSame(file.certificates.get('CN=gateway-9,O=City'), {
    subject: 'CN=gateway-9,O=City',
    roles: ['ingest-north'],
  })
  t.match(file.roles.get('guest'), [{ types: ['Museum'], paths: ['/public/#'], attributes: ['*', '!cost'] }])
  t.strictSame(file.egress, { allow: ['*.city.example', '10.20.0.0/16'], deny: ['10.20.0.1'] })
})

t.test('a missing member of a rule has its default', async t => {
  const [rule] = accessFile({ roles: { r: [{ actions: ['read'] }] } }).roles.get('r')!
  t.strictSame(rule, {
    actions: new Set(['read']),
    tenants: new Set(['']),
    paths: ['/#'],
    types: undefined,
    ids: undefined,
    attributes: ['*'],
  })
})

t.test('names of roles are ordinary names', async t => {
  const file = demand(
    parseAccessFile(
      '{"anonymous": ["__proto__", "constructor", "1"], "roles": {"__proto__": [], "constructor": [], "1": []}}',
    ),
  )
  t.strictSame([...file.roles.keys()].sort(), ['1', '__proto__', 'constructor'])
  t.match(faultOf('{"anonymous": ["toString"], "roles": {}}'), /names the role "toString"/)
})

t.test('an empty list of anonymous is none', async t => {
  t.equal(accessFile({ anonymous: [] }).anonymous, undefined)
})

t.test('keys may share a name if they have the same roles, in any order', async t => {
  const roles = { a: [], b: [] }
  const key = (number: number, names: readonly string[]) => ({ name: 'k', sha256: hashOf(number), roles: names })
  const file = accessFile({ roles, keys: [key(1, ['a', 'b']), key(2, ['b', 'a', 'a'])] })
  t.equal(file.keys.size, 2)
  t.equal(file.rolesOfKeys.get('k')?.length, 2)
})

t.test('subjects of certificates have the forms of OpenSSL', async t => {
  for (const subject of [
    'CN=a',
    'CN=a+OU=b,O=c',
    'CN=a\\, b,O=c',
    'emailAddress=a@b,CN=c',
    '2.5.4.15=x',
    'URI:spiffe://a/b',
    'DNS:a.b',
  ])
    t.ok(accessFile({ certificates: [{ subject, roles: [] }] }).certificates.has(subject), subject)
})

t.test('quotas of a tenant, and under * what they do not have', async t => {
  const { quotas } = accessFile({
    quotas: { city: { entities: 5, streams: 0 }, '': { entities: 1 }, '*': { entities: 9, requestsPerSecond: 7 } },
  })
  t.match(quotasOf(quotas, 'city'), { entities: 5, streams: 0, requestsPerSecond: 7, subscriptions: undefined })
  t.match(quotasOf(quotas, ''), { entities: 1, requestsPerSecond: 7, streams: undefined })
  t.match(quotasOf(quotas, 'other'), { entities: 9, requestsPerSecond: 7, streams: undefined })
  t.match(quotasOf(accessFile({}).quotas, 'city'), { entities: undefined, requestsPerSecond: undefined })
})

t.test('the reader reads the JSON that JSON.parse reads, and the lines of its values', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  for (let round = 0; round < 2000; round++) {
    const value = someJson(random, 4)
    const text = JSON.stringify(value, null, random.between(0, 2))
    const document = demand(readAccessJson(text))
    if (JSON.stringify(document.value) !== JSON.stringify(value)) return void t.fail(text)
    // Damaged by one character, it is refused exactly when JSON.parse refuses it, unless a name is there twice.
    const at = random.between(0, text.length - 1)
    const damaged =
      text.slice(0, at) + random.pick(['', '"', '}', ',', ':', '0', '\\', '\n', 'e', '-']) + text.slice(at + 1)
    if (readAccessJson(damaged).ok !== isJson(damaged) && !isTwice(damaged)) return void t.fail(damaged)
  }
  t.pass('2000 texts')
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const isTwice = (text: string): boolean => {
  const document = readAccessJson(text)
  return !document.ok && /is there twice|surrogate/.test(refusalText(document.refusal))
}

function someJson(random: Random, depth: number): Json {
  const kind = random.between(0, depth > 0 ? 6 : 4)
  switch (kind) {
    case 0:
      return random.pick([null, true, false])
    case 1:
      return random.pick([0, -1.5, 1e21, 12, -0.001])
    case 2:
    case 3:
    case 4:
      return random.pick(['', 'a', 'ä"\\\n', '\u0001', '😀', '__proto__', '/'])
    case 5:
      return Array.from({ length: random.between(0, 3) }, () => someJson(random, depth - 1))
    default:
      return Object.fromEntries(
        Array.from({ length: random.between(0, 3) }, () => [
          random.pick(['a', 'b', '1', '__proto__', 'x"']),
          someJson(random, depth - 1),
        ]),
      )
  }
}

t.test('10,000 keys and 1,000 roles are read quickly', async t => {
  const names = Array.from({ length: 1000 }, (_, at) => `role-${at}`)
  const rule = { actions: ['read'], tenants: ['city'], paths: ['/a/#'], types: ['A', 'B'], attributes: ['*', '!c'] }
  const text = JSON.stringify(
    {
      roles: Object.fromEntries(names.map(name => [name, [rule, { ...rule, ids: ['m1', 'm2'] }]])),
      keys: Array.from({ length: 10_000 }, (_, at) => ({
        name: `key-${at}`,
        sha256: hashOf(at),
        roles: [names[at % 1000]!, names[(at + 1) % 1000]!],
        expires: '2027-01-01T00:00:00Z',
      })),
    },
    null,
    2,
  )
  // Processor time: other programs may run beside this one.
  const took = Array.from({ length: 5 }, () => {
    const began = process.cpuUsage()
    demand(parseAccessFile(text))
    return process.cpuUsage(began).user / 1000
  })
  t.comment(`${text.length} characters, ms: ${took.map(ms => ms.toFixed(0)).join(', ')}`)
  t.ok(Math.min(...took) < 200)
})
