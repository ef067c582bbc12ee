// Tokens against a real issuer: which are accepted, refused and remembered, and the cost of many bad
// ones cost. The clock is not real.

import { createHmac, createPublicKey, randomBytes } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import {
  keysAgainMs,
  keysRefreshMs,
  rememberedTokensMax,
  tokensWaitingMax,
  verificationsMax,
} from '../../src/access/limits.js'
import { type TokenOutcome, TokenVerifier } from '../../src/access/tokens.js'
import type { JsonObject } from '../../src/domain/json.js'
import { accessFile } from '../support/access.js'
import { FakeClock } from '../support/fake-clock.js'
import {
  encoded,
  IdentityProvider,
  plainFetch,
  type SigningKey,
  signed,
  signingKey,
} from '../support/identity-provider.js'

t.setTimeout(180_000)

const es = await signingKey('ES256', 'es')
const rs = await signingKey('RS256', 'rs')
const ps = await signingKey('PS256', 'ps')
const ed = await signingKey('EdDSA', 'ed')
const es384 = await signingKey('ES384', 'es384')
const stranger = await signingKey('ES256', 'es')
const nameless = await signingKey('ES256')
const next = await signingKey('ES256', 'next')

const roles = { claim: 'groups', map: { ops: 'operator' }, default: ['guest'] }
const ofRoles = { guest: [], operator: [] }

/** Tokens of an issuer with these keys. `entry`: further members of its entry in the file. */
async function verifying(t: Test, keys: readonly SigningKey[], entry: JsonObject = {}) {
  const provider = await IdentityProvider.start(t, keys)
  const clock = new FakeClock()
  const tokens = new TokenVerifier({
    clock,
    logger: { info: () => {}, warn: () => {} },
    fetch: plainFetch(),
    keysDirectory: undefined,
  })
  t.teardown(() => tokens.stop())
  const use = (others: JsonObject): void =>
    tokens.use(accessFile({ issuers: [provider.entry({ roles, ...others })], roles: ofRoles }), '/')
  use(entry)
  const verify = (text: string): Promise<TokenOutcome> =>
    new Promise(resolve => {
      const now = tokens.verify(text, resolve)
      if (now) resolve(now)
    })
  const claims = (others: JsonObject = {}): JsonObject => provider.claims(clock.wallMs(), 'ada', others)
  return { provider, clock, tokens, use, verify, claims }
}

const nowS = (clock: FakeClock): number => clock.wallMs() / 1000

for (const key of [es, rs, ps, ed, es384])
  t.test(`a token of ${key.algorithm} is accepted, and then remembered`, async t => {
    const { verify, tokens, claims } = await verifying(t, [key])
    const token = await signed(key, claims({ groups: ['ops', 'others'] }))
    const outcome = await verify(token)
    t.match(outcome, {
      ok: true,
      token: {
        source: { proof: 'token', issuer: 'https://id.example.org/realms/city', name: 'ada', claimed: ['ops'] },
      },
    })
    const again = tokens.verify(token, () => t.fail('it is remembered'))
    t.ok(again?.ok && outcome.ok && again.token === outcome.token)
    t.match(tokens.numbers(), { remembered: 1, verified: 1, refused: 0, verifying: 0 })
  })

t.test('a token names its audience alone or in a list, and its type has no meaning', async t => {
  const { verify, claims } = await verifying(t, [es])
  for (const aud of ['orrery', ['orrery'], ['other', 'orrery']])
    t.ok((await verify(await signed(es, claims({ aud })))).ok, JSON.stringify(aud))
  for (const typ of ['JWT', 'at+jwt', 'anything']) t.ok((await verify(await signed(es, claims(), { typ }))).ok, typ)
})

t.test('clocks may differ by 60 s', async t => {
  const { verify, claims, clock } = await verifying(t, [es])
  const faultOf = async (others: JsonObject): Promise<string> => {
    const outcome = await verify(await signed(es, claims(others)))
    return outcome.ok ? 'accepted' : outcome.fault
  }
  t.equal(await faultOf({ exp: nowS(clock) - 59 }), 'accepted')
  t.equal(await faultOf({ exp: nowS(clock) - 60 }), 'expired')
  t.equal(await faultOf({ nbf: nowS(clock) + 60 }), 'accepted')
  t.equal(await faultOf({ nbf: nowS(clock) + 61 }), 'unknown')
})

t.test('a token without the name of its key is tried with all that fit', async t => {
  const { verify, claims } = await verifying(t, [es, rs, nameless])
  t.ok((await verify(await signed(nameless, claims()))).ok)
  t.ok((await verify(await signed({ ...es, kid: undefined }, claims()))).ok)
  t.match(await verify(await signed({ ...stranger, kid: undefined }, claims())), { ok: false, fault: 'unknown' })
})

interface Bad {
  readonly said: string
  readonly fault: string
  readonly reason?: RegExp
  make(given: { readonly claims: JsonObject; readonly nowS: number }): Promise<string> | string
}

const pem = createPublicKey({ key: rs.jwk as never, format: 'jwk' }).export({ type: 'spki', format: 'pem' })

function hmacSigned(header: object, claims: object, secret: string | Buffer): string {
  const text = `${encoded(header)}.${encoded(claims)}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

/** The token of a right one, with other parts. */
async function changed(claims: JsonObject, change: (parts: string[]) => readonly string[]): Promise<string> {
  return change((await signed(es, claims)).split('.')).join('.')
}

const unsigned = (header: object, claims: object): string => `${encoded(header)}.${encoded(claims)}.c2ln`

const badTokens: readonly Bad[] = [
  {
    said: 'of alg none, without a signature',
    fault: 'malformed',
    make: ({ claims }) => `${encoded({ alg: 'none' })}.${encoded(claims)}.`,
  },
  {
    said: 'of alg none, with something as a signature',
    fault: 'unknown',
    make: ({ claims }) => unsigned({ alg: 'none' }, claims),
  },
  { said: 'of alg None', fault: 'unknown', make: ({ claims }) => unsigned({ alg: 'None', kid: 'es' }, claims) },
  {
    said: 'of HS256, signed with the public key (PEM)',
    fault: 'unknown',
    make: ({ claims }) => hmacSigned({ alg: 'HS256', kid: 'rs' }, claims, pem),
  },
  {
    said: 'of HS256, signed with the public key (JWK)',
    fault: 'unknown',
    make: ({ claims }) => hmacSigned({ alg: 'HS256', kid: 'rs' }, claims, JSON.stringify(rs.jwk)),
  },
  {
    said: 'of HS256, signed with the modulus',
    fault: 'unknown',
    make: ({ claims }) => hmacSigned({ alg: 'HS256', kid: 'rs' }, claims, Buffer.from(rs.jwk.n!, 'base64url')),
  },
  {
    said: 'signed with HS256 that claims RS256',
    fault: 'unknown',
    make: ({ claims }) => hmacSigned({ alg: 'RS256', kid: 'rs' }, claims, pem),
  },
  {
    said: 'of an algorithm that the issuer does not use',
    fault: 'unknown',
    reason: /algorithm/,
    make: ({ claims }) =>
      signed({ ...rs, algorithm: 'PS256' }, claims).catch(() => unsigned({ alg: 'PS256', kid: 'rs' }, claims)),
  },
  {
    said: 'of another key type under the kid',
    fault: 'unknown',
    make: ({ claims }) => signed({ ...rs, kid: 'es' }, claims),
  },
  {
    said: 'of another curve under the kid',
    fault: 'unknown',
    make: ({ claims }) => signed({ ...es384, kid: 'es' }, claims),
  },
  {
    said: 'signed by somebody else',
    fault: 'unknown',
    reason: /signature/,
    make: ({ claims }) => signed(stranger, claims),
  },
  {
    said: 'with its own key in the header',
    fault: 'unknown',
    reason: /signature/,
    make: ({ claims }) => signed(stranger, claims, { jwk: stranger.jwk as unknown as JsonObject }),
  },
  {
    said: 'with a URL of keys in the header',
    fault: 'unknown',
    reason: /no such key/,
    make: ({ claims }) => signed({ ...stranger, kid: 'mine' }, claims, { jku: 'http://127.0.0.1:1/keys' }),
  },
  {
    said: 'with an unknown critical member',
    fault: 'unknown',
    make: ({ claims }) => unsigned({ alg: 'ES256', kid: 'es', crit: ['exp2'], exp2: 1 }, claims),
  },
  {
    said: 'with an unencoded payload',
    fault: 'unknown',
    make: ({ claims }) => unsigned({ alg: 'ES256', kid: 'es', crit: ['b64'], b64: false }, claims),
  },
  {
    said: 'for another audience',
    fault: 'unknown',
    reason: /claim aud/,
    make: ({ claims }) => signed(es, { ...claims, aud: 'other' }),
  },
  {
    said: 'for a list without the audience',
    fault: 'unknown',
    reason: /claim aud/,
    make: ({ claims }) => signed(es, { ...claims, aud: ['orrery2', 'Orrery'] }),
  },
  {
    said: 'without an audience',
    fault: 'unknown',
    reason: /claim aud/,
    make: ({ claims: { aud, ...others } }) => signed(es, others),
  },
  {
    said: 'for an audience in another form',
    fault: 'unknown',
    reason: /claim aud/,
    make: ({ claims }) => signed(es, { ...claims, aud: { orrery: true } }),
  },
  {
    said: 'of another issuer',
    fault: 'unknown',
    reason: /no such issuer/,
    make: ({ claims }) => signed(es, { ...claims, iss: 'https://id.example.org' }),
  },
  {
    said: 'of an issuer with a slash more',
    fault: 'unknown',
    reason: /no such issuer/,
    make: ({ claims }) => signed(es, { ...claims, iss: `${claims.iss}/` }),
  },
  {
    said: 'of a list of issuers',
    fault: 'unknown',
    reason: /no such issuer/,
    make: ({ claims }) => signed(es, { ...claims, iss: [claims.iss!] }),
  },
  {
    said: 'of the issuer __proto__',
    fault: 'unknown',
    reason: /no such issuer/,
    make: ({ claims }) => signed(es, { ...claims, iss: '__proto__' }),
  },
  {
    said: 'expired by one second beyond the leeway',
    fault: 'expired',
    make: ({ claims, nowS }) => signed(es, { ...claims, exp: nowS - 61 }),
  },
  {
    said: 'expired, and of somebody else',
    fault: 'expired',
    make: ({ claims, nowS }) => signed(stranger, { ...claims, exp: nowS - 61 }),
  },
  {
    said: 'without an end',
    fault: 'unknown',
    reason: /no end/,
    make: ({ claims: { exp, ...others } }) => signed(es, others),
  },
  {
    said: 'with a text as its end',
    fault: 'unknown',
    reason: /no end/,
    make: ({ claims }) => signed(es, { ...claims, exp: '2099-01-01' }),
  },
  {
    said: 'that begins in the future',
    fault: 'unknown',
    reason: /claim nbf/,
    make: ({ claims, nowS }) => signed(es, { ...claims, nbf: nowS + 61 }),
  },
  {
    said: 'that begins at no time',
    fault: 'unknown',
    reason: /claim nbf/,
    make: ({ claims }) => signed(es, { ...claims, nbf: 'soon' }),
  },
  {
    said: 'with a kid that is a path',
    fault: 'unknown',
    reason: /no such key/,
    make: ({ claims }) => signed({ ...es, kid: '../../../../dev/null' }, claims),
  },
  {
    said: 'with a kid that is a command',
    fault: 'unknown',
    reason: /no such key/,
    make: ({ claims }) => signed({ ...es, kid: "x' UNION SELECT 'a" }, claims),
  },
  {
    said: 'with a kid that is no text',
    fault: 'malformed',
    make: ({ claims }) => unsigned({ alg: 'ES256', kid: ['es'] }, claims),
  },
  {
    said: 'with an empty kid',
    fault: 'unknown',
    reason: /no such key/,
    make: ({ claims }) => signed({ ...es, kid: '' }, claims),
  },
  {
    said: 'without a name in its claim',
    fault: 'unknown',
    reason: /claim sub/,
    make: ({ claims: { sub, ...others } }) => signed(es, others),
  },
  {
    said: 'with a number as its name',
    fault: 'unknown',
    reason: /claim sub/,
    make: ({ claims }) => signed(es, { ...claims, sub: 7 }),
  },
  {
    said: 'of 1 MB',
    fault: 'unknown',
    make: ({ claims }) => signed(stranger, { ...claims, more: 'x'.repeat(1_000_000) }),
  },
  {
    said: 'without a signature',
    fault: 'malformed',
    make: ({ claims }) => changed(claims, ([header, payload]) => [header!, payload!, '']),
  },
  {
    said: 'of two parts',
    fault: 'malformed',
    make: ({ claims }) => changed(claims, ([header, payload]) => [header!, payload!]),
  },
  { said: 'of four parts', fault: 'malformed', make: ({ claims }) => changed(claims, parts => [...parts, parts[2]!]) },
  { said: 'of five parts, as one that is encrypted', fault: 'malformed', make: () => 'e30.e30.e30.e30.e30' },
  {
    said: 'with another payload',
    fault: 'unknown',
    reason: /signature/,
    make: ({ claims }) =>
      changed(claims, ([header, , signature]) => [header!, encoded({ ...claims, sub: 'root' }), signature!]),
  },
  {
    said: 'with half of its signature',
    fault: 'unknown',
    reason: /signature/,
    make: ({ claims }) =>
      changed(claims, ([header, payload, signature]) => [header!, payload!, signature!.slice(0, 40)]),
  },
  {
    said: 'with a signature of zeros',
    fault: 'unknown',
    reason: /signature/,
    make: ({ claims }) =>
      changed(claims, ([header, payload]) => [header!, payload!, Buffer.alloc(64).toString('base64url')]),
  },
  { said: 'with padding', fault: 'malformed', make: async ({ claims }) => `${await signed(es, claims)}==` },
  { said: 'with a blank', fault: 'malformed', make: async ({ claims }) => `${await signed(es, claims)} ` },
  {
    said: 'with a header that is no JSON',
    fault: 'malformed',
    make: ({ claims }) => changed(claims, ([, payload, signature]) => ['AAAA', payload!, signature!]),
  },
  {
    said: 'with a header that is a list',
    fault: 'malformed',
    make: ({ claims }) => changed(claims, ([, payload, signature]) => [encoded([]), payload!, signature!]),
  },
  {
    said: 'with a payload that is a text',
    fault: 'malformed',
    make: ({ claims }) => changed(claims, ([header, , signature]) => [header!, encoded('ada'), signature!]),
  },
  { said: 'without an algorithm', fault: 'malformed', make: ({ claims }) => unsigned({ kid: 'es' }, claims) },
  {
    said: 'with a payload of deep lists',
    fault: 'malformed',
    make: ({ claims }) =>
      changed(claims, ([header, , signature]) => [
        header!,
        Buffer.from('['.repeat(10_000)).toString('base64url'),
        signature!,
      ]),
  },
  { said: 'that is no token', fault: 'malformed', make: () => 'hello' },
  { said: 'that is empty', fault: 'malformed', make: () => '' },
]

t.test('bad tokens', async t => {
  const { verify, tokens, claims, clock } = await verifying(t, [es, rs])
  t.ok((await verify(await signed(es, claims()))).ok)
  for (const { said, fault, reason, make } of badTokens) {
    const outcome = await verify(await make({ claims: claims(), nowS: nowS(clock) }))
    t.match(outcome, { ok: false, fault, ...(reason && { reason }) }, `a token ${said}`)
  }
  t.match(tokens.numbers(), { remembered: 1, verified: 1, refused: badTokens.length, verifying: 0, waiting: 0 })
})

t.test('requests with the same token share one verification', async t => {
  const { verify, tokens, claims } = await verifying(t, [es])
  const token = await signed(es, claims())
  const outcomes = await Promise.all(Array.from({ length: 50 }, () => verify(token)))
  t.ok(outcomes.every(({ ok }) => ok))
  t.equal(tokens.numbers().verified, 1)
})

t.test('a remembered token is forgotten when it ends', async t => {
  const { verify, claims, clock, tokens } = await verifying(t, [es])
  const token = await signed(es, claims({ exp: nowS(clock) + 10 }))
  t.ok((await verify(token)).ok)
  clock.advance(69_999)
  t.ok((await verify(token)).ok)
  clock.advance(1)
  t.match(await verify(token), { ok: false, fault: 'expired' })
  t.equal(tokens.numbers().remembered, 0)
  await verify(await signed(es, claims({ exp: nowS(clock) + 10 })))
  t.equal(tokens.numbers().remembered, 1)
  clock.advance(180_000)
  t.equal(tokens.numbers().remembered, 0, 'also if nobody shows it again')
})

t.test('a new key is fetched when a token names it, and a withdrawn one ends its tokens', async t => {
  const { verify, claims, clock, provider, tokens } = await verifying(t, [es])
  const old = await signed(es, claims())
  t.ok((await verify(old)).ok)
  provider.keys = [es, next]
  t.ok((await verify(await signed(next, claims()))).ok)
  t.ok((await verify(old)).ok)
  provider.keys = [next]
  clock.advance(keysRefreshMs)
  await untilTrue(() => tokens.numbers().remembered === 1)
  t.match(await verify(old), { ok: false, fault: 'unknown' })
  t.ok((await verify(await signed(next, claims()))).ok)
})

/** Lets promises and sockets go on until it is so. */
async function untilTrue(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(resolve => setImmediate(resolve))
}

t.test('an unknown kid costs one fetch in 30 s, for any number of tokens', async t => {
  const { verify, claims, clock, provider } = await verifying(t, [es])
  await verify(await signed(es, claims()))
  const asked = provider.asked
  for (let round = 0; round < 3; round++) {
    const many = await Promise.all(
      Array.from({ length: 200 }, (_, at) => signed({ ...stranger, kid: `kid ${round} ${at}` }, claims())),
    )
    const outcomes = await Promise.all(many.map(verify))
    t.ok(outcomes.every(outcome => !outcome.ok && outcome.fault === 'unknown'))
    t.equal(provider.asked, asked + round + 1)
    clock.advance(keysAgainMs)
  }
})

t.test('without any keys a token is not refused for good', async t => {
  const { verify, claims, provider, clock } = await verifying(t, [es])
  provider.answer = response => response.destroy()
  const token = await signed(es, claims())
  t.match(await verify(token), { ok: false, fault: 'keysMissing' })
  provider.answer = undefined
  clock.advance(keysAgainMs)
  t.match(await verify(token), { ok: true })
})

t.test('an issuer that answers late holds back only its own tokens', async t => {
  const slow = await IdentityProvider.start(t, [es])
  slow.answer = () => {}
  const { provider, tokens, claims, verify } = await verifying(t, [es])
  const slowEntry = { ...slow.entry(), issuer: 'https://slow.example' }
  tokens.use(accessFile({ issuers: [provider.entry(), slowEntry], roles: ofRoles }), '/')
  const outcomes: TokenOutcome[] = []
  const count = tokensWaitingMax + 50
  const late = await Promise.all(
    Array.from({ length: count }, (_, at) => signed(es, claims({ iss: 'https://slow.example', sub: `u${at}` }))),
  )
  let at = 0
  for (const token of late) {
    tokens.verify(token, outcome => outcomes.push(outcome))
    if (++at % 100 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  await untilTrue(() => outcomes.length === 50)
  t.ok(outcomes.every(outcome => !outcome.ok && outcome.fault === 'busy'))
  t.match(tokens.numbers(), { waiting: tokensWaitingMax, verifying: 0 })
  t.ok((await verify(await signed(es, claims()))).ok)
  slow.answer = undefined
})

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

t.test('10,000 different bad tokens at once are refused, most without work, and leave nothing behind', async t => {
  const { verify, tokens, claims } = await verifying(t, [es])
  const good = await signed(es, claims())
  await verify(good)
  const payload = encoded({ ...claims(), more: 'x'.repeat(500) })
  const header = encoded({ alg: 'ES256', kid: 'es' })
  const bad = (): string => `${header}.${payload}.${randomBytes(64).toString('base64url')}`
  const round = async (): Promise<Record<string, number>> => {
    const faults: Record<string, number> = {}
    await new Promise<void>(resolve => {
      let left = 10_000
      const take = (outcome: TokenOutcome): void => {
        const fault = outcome.ok ? 'accepted' : outcome.fault
        faults[fault] = (faults[fault] ?? 0) + 1
        if (--left === 0) resolve()
      }
      for (let number = 0; number < 10_000; number++) {
        const now = tokens.verify(bad(), take)
        if (now) take(now)
        if (number % 1_000 === 0 && !tokens.verify(good, () => {})?.ok) t.fail('the good one is remembered')
      }
    })
    return faults
  }
  t.strictSame(await round(), { unknown: verificationsMax, busy: 10_000 - verificationsMax })
  collect()
  const before = process.memoryUsage().heapUsed
  for (let rounds = 0; rounds < 3; rounds++) await round()
  collect()
  const grown = process.memoryUsage().heapUsed - before
  t.ok(grown < 5_000_000, `the heap has grown by ${grown} bytes`)
  t.match(tokens.numbers(), { remembered: 1, verifying: 0, waiting: 0 })
})

t.test('no more tokens are remembered than the limit', async t => {
  const { tokens, claims, verify } = await verifying(t, [ed])
  const count = rememberedTokensMax + 200
  for (let from = 0; from < count; from += 300)
    await Promise.all(
      Array.from({ length: Math.min(300, count - from) }, async (_, at) => {
        const outcome = await verify(await signed(ed, claims({ sub: `u${from + at}` })))
        if (!outcome.ok) t.fail(outcome.reason)
      }),
    )
  t.equal(tokens.numbers().remembered, rememberedTokensMax)
})

t.test('a new file counts at once, without new signatures', async t => {
  const { use, verify, tokens, claims, provider } = await verifying(t, [es])
  const token = await signed(es, claims({ groups: ['ops', 'staff'], aud: ['orrery', 'other'] }))
  const shown = async (): Promise<unknown> => {
    const outcome = await verify(token)
    return outcome.ok ? 'claimed' in outcome.token.source && outcome.token.source.claimed : outcome.fault
  }
  t.strictSame(await shown(), ['ops'])
  use({})
  t.strictSame(await shown(), ['ops'])
  use({ roles: { claim: 'groups', map: { staff: 'guest' } } })
  t.strictSame(await shown(), ['staff'])
  use({ audience: 'other' })
  t.strictSame(await shown(), ['ops'])
  t.equal(tokens.numbers().verified, 1)
  use({ audience: 'third' })
  t.equal(await shown(), 'unknown')
  use({ algorithms: ['RS256'] })
  t.equal(await shown(), 'unknown')
  use({ subject: 'nobody' })
  t.equal(await shown(), 'unknown')
  use({ issuer: 'https://other.example' })
  t.equal(await shown(), 'unknown')
  use({})
  t.strictSame(await shown(), ['ops'])
  t.ok(provider.asked <= 4)
})

t.test('a file that changes while a token is verified decides about it', async t => {
  const { use, tokens, claims, verify } = await verifying(t, [es])
  await verify(await signed(es, claims({ sub: 'first' })))
  const token = await signed(es, claims())
  const outcome = new Promise<TokenOutcome>(resolve => t.equal(tokens.verify(token, resolve), undefined))
  use({ audience: 'other' })
  t.match(await outcome, { ok: false, fault: 'unknown' })
  const again = new Promise<TokenOutcome>(resolve => t.equal(tokens.verify(token, resolve), undefined))
  use({})
  t.match(await again, { ok: true })
})
