// The proof that a request shows: headers in all combinations.

import t from 'tap'
import { isKeyForm, keyHash, keyIn, newKey } from '../../src/access/keys.js'
import { proofLengthMax } from '../../src/access/limits.js'
import { proofInText, type ShownCertificate, type ShownProof, shownProof } from '../../src/access/proof.js'
import { accessFile } from '../support/access.js'

type Headers = readonly (readonly [name: string, value: string])[]

const shown = (headers: Headers, certificate?: ShownCertificate): ShownProof =>
  shownProof(
    {
      header: name => headers.find(([other]) => other === name)?.[1] ?? '',
      headerTimes: name => headers.filter(([other]) => other === name).length,
    },
    certificate,
  )

const key = newKey()
const other = newKey()
const token = 'eyJhbGciOiJSUzI1NiJ9.e30.c2ln'
const longest = `${token.slice(0, 20)}${'A'.repeat(proofLengthMax - 20)}`
const certificate = { subject: 'CN=gateway-9,O=City', otherNames: ['DNS:gateway'], endsMs: 1 }

const keyProof = { kind: 'key', text: key, certificate: undefined }
const tokenProof = { kind: 'token', text: token, certificate: undefined }

const cases: readonly (readonly [said: string, headers: Headers, proof: object])[] = [
  ['no header', [], { kind: 'nothing' }],
  ['another header', [['x-auth', token]], { kind: 'nothing' }],
  ['a bearer key', [['authorization', `Bearer ${key}`]], keyProof],
  ['a bearer token', [['authorization', `Bearer ${token}`]], tokenProof],
  ['a scheme in other letters, and more blanks', [['authorization', `bEARER   ${token}`]], tokenProof],
  ['X-Auth-Token with a key', [['x-auth-token', key]], keyProof],
  ['X-Auth-Token with a token', [['x-auth-token', token]], tokenProof],
  ['X-Api-Key', [['x-api-key', key]], keyProof],
  [
    'the same proof in two headers, as orrery export sends it',
    [
      ['authorization', `Bearer ${token}`],
      ['x-auth-token', token],
    ],
    tokenProof,
  ],
  [
    'the same key in three headers',
    [
      ['authorization', `Bearer ${key}`],
      ['x-auth-token', key],
      ['x-api-key', key],
    ],
    keyProof,
  ],
  [
    'two tokens',
    [
      ['authorization', `Bearer ${token}`],
      ['x-auth-token', `${token}A`],
    ],
    { kind: 'conflict' },
  ],
  [
    'a key and a token',
    [
      ['authorization', `Bearer ${token}`],
      ['x-api-key', key],
    ],
    { kind: 'conflict' },
  ],
  [
    'two keys',
    [
      ['x-auth-token', other],
      ['x-api-key', key],
    ],
    { kind: 'conflict' },
  ],
  [
    'a header twice, also with the same value',
    [
      ['authorization', `Bearer ${key}`],
      ['authorization', `Bearer ${key}`],
    ],
    { kind: 'conflict' },
  ],
  ['an empty header', [['authorization', '']], { kind: 'malformed' }],
  ['an empty X-Auth-Token', [['x-auth-token', '']], { kind: 'malformed' }],
  ['a scheme alone', [['authorization', 'Bearer']], { kind: 'malformed' }],
  ['a scheme and blanks', [['authorization', 'Bearer   ']], { kind: 'malformed' }],
  ['another scheme', [['authorization', 'Basic YTpi']], { kind: 'malformed' }],
  ['a token without a scheme', [['authorization', token]], { kind: 'malformed' }],
  ['X-Api-Key with a token', [['x-api-key', token]], { kind: 'malformed' }],
  ['the longest text', [['x-auth-token', longest]], { ...tokenProof, text: longest }],
  ['a longer text', [['x-auth-token', `${longest}A`]], { kind: 'malformed' }],
  ['a longer text in Authorization', [['authorization', `Bearer ${longest}A`]], { kind: 'malformed' }],
  ['1 MB', [['authorization', `Bearer ${'A'.repeat(1_000_000)}`]], { kind: 'malformed' }],
  [
    'a right header beside an empty one',
    [
      ['authorization', `Bearer ${key}`],
      ['x-auth-token', ''],
    ],
    { kind: 'malformed' },
  ],
]
for (const [said, headers, proof] of cases)
  t.test(said, async t => {
    t.strictSame(shown(headers), proof)
  })

t.test('a certificate is a proof without a header, and is reported beside one', async t => {
  t.strictSame(shown([], certificate), { kind: 'certificate', certificate })
  t.strictSame(shown([['x-api-key', key]], certificate), { ...keyProof, certificate })
  t.strictSame(shown([['x-auth-token', token]], certificate), { ...tokenProof, certificate })
  t.strictSame(shown([['x-auth-token', '']], certificate), { kind: 'malformed' })
})

t.test('a text alone is a key or a token', async t => {
  t.strictSame(proofInText(key), keyProof)
  t.strictSame(proofInText(token, certificate), { ...tokenProof, certificate })
  for (const text of ['', 'A'.repeat(proofLengthMax + 1)]) t.strictSame(proofInText(text), { kind: 'malformed' })
})

t.test('a new key has its form, and is another one each time', async t => {
  t.ok([key, other].every(isKeyForm))
  t.not(key, other)
  for (const wrong of ['', 'ok_', key.slice(1), `${key}A`, key.slice(0, -1), `${key.slice(0, -1)}+`, `${key}\n`])
    t.notOk(isKeyForm(wrong), JSON.stringify(wrong))
})

t.test('a key is found by its hash alone', async t => {
  const file = accessFile({
    keys: [
      { name: 'a', sha256: keyHash(key), roles: [] },
      { name: 'b', sha256: keyHash(other).toUpperCase(), roles: [] },
    ],
  })
  t.match(keyIn(file, key), { name: 'a' })
  t.match(keyIn(file, other), { name: 'b' })
  for (const wrong of [newKey(), keyHash(key), `${key} `, '', key.toUpperCase()]) t.equal(keyIn(file, wrong), undefined)
})
