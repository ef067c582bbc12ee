// The way from the proof of a request to a principal or a refusal, also while keys and files change under load. Files
// and the issuer are real, time is not.

import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { AccessSource } from '../../src/access/access-source.js'
import { Authenticator, type Identification } from '../../src/access/authenticator.js'
import { keyHash, newKey } from '../../src/access/keys.js'
import { keysRefreshMs, verificationsMax } from '../../src/access/limits.js'
import { proofInText, type ShownCertificate, type ShownProof } from '../../src/access/proof.js'
import type { JsonObject } from '../../src/domain/json.js'
import { refusalText } from '../../src/domain/refusal.js'
import { statusOf } from '../../src/http/reply.js'
import { tempDir } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'
import { IdentityProvider, plainFetch, type SigningKey, signed, signingKey } from '../support/identity-provider.js'

t.setTimeout(180_000)

const first = await signingKey('ES256', 'first')
const second = await signingKey('ES256', 'second')

const key = newKey()
const shortKey = newKey()
const nothing: ShownProof = { kind: 'nothing' }
const known: ShownCertificate = { subject: 'CN=gateway-9,O=City', otherNames: [], endsMs: Number.POSITIVE_INFINITY }
const other: ShownCertificate = { ...known, subject: 'CN=other,O=City', otherNames: ['DNS:other'] }

/** An authenticator whose file has a key, a certificate, and an issuer with the key `first`. */
async function authenticating(
  t: Test,
  given: { folder?: string; provider?: IdentityProvider; anonymous?: boolean } = {},
) {
  const provider = given.provider ?? (await IdentityProvider.start(t, [first]))
  const folder = given.folder ?? tempDir(t)
  const clock = new FakeClock()
  const path = join(folder, 'access.json')
  const members = (others: JsonObject = {}): JsonObject => ({
    ...(given.anonymous !== false && { anonymous: ['guest'] }),
    keys: [
      { name: 'gateway-7', sha256: keyHash(key), roles: ['writer'] },
      {
        name: 'short',
        sha256: keyHash(shortKey),
        roles: ['writer'],
        expires: new Date(clock.wallMs() + 5_000).toISOString(),
      },
    ],
    issuers: [provider.entry({ roles: { claim: 'groups', map: { ops: 'operator' }, default: ['guest'] } })],
    certificates: [{ subject: known.subject, roles: ['writer'] }],
    roles: { guest: [], writer: [], operator: [] },
    ...others,
  })
  const put = (others: JsonObject = {}): void => {
    writeFileSync(`${path}.new`, JSON.stringify(members(others)))
    renameSync(`${path}.new`, path)
  }
  put()
  const logger = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {} }
  const source = new AccessSource(path, { clock, logger })
  source.begin()
  const authenticator = new Authenticator({
    source,
    clock,
    logger,
    fetch: plainFetch(),
    keysDirectory: join(folder, 'keys'),
  })
  t.teardown(() => {
    authenticator.stop()
    source.stop()
  })
  await authenticator.ready()
  const authenticate = (shown: ShownProof): Promise<Identification> =>
    new Promise(resolve => {
      const now = authenticator.authenticate(shown, resolve)
      if (now) resolve(now)
    })
  /** The outcome, if it is known at once. */
  const atOnce = (shown: ShownProof): Identification | undefined => authenticator.authenticate(shown, () => {})
  const token = (others: JsonObject = {}, by: SigningKey = first): Promise<string> =>
    signed(by, provider.claims(clock.wallMs(), 'ada', others))
  return { provider, folder, clock, put, source, authenticator, authenticate, atOnce, token }
}

/** A principal as text, or a refusal with its status and challenge. */
function said(found: Identification | undefined): string {
  if (!found) return 'later'
  if (found.ok) return `${found.principal.source.proof} ${found.principal.source.name}: ${found.principal.roles.join()}`
  return `${statusOf[found.refusal.kind]} ${refusalText(found.refusal)}; ${found.challenge ?? 'no challenge'}`
}

const invalid = 'Bearer error="invalid_token"'

t.test('keys, certificates and nothing are decided at once', async t => {
  const { atOnce, clock } = await authenticating(t)
  t.equal(said(atOnce(nothing)), 'none anonymous: guest')
  t.equal(said(atOnce(proofInText(key))), 'key gateway-7: writer')
  t.equal(said(atOnce(proofInText(shortKey))), 'key short: writer')
  t.equal(said(atOnce({ kind: 'certificate', certificate: known })), 'certificate CN=gateway-9,O=City: writer')
  t.equal(
    said(atOnce({ kind: 'certificate', certificate: other })),
    `401 the key, token or certificate is not known here; ${invalid}`,
  )
  t.equal(said(atOnce(proofInText(newKey()))), `401 the key, token or certificate is not known here; ${invalid}`)
  t.equal(said(atOnce(proofInText('ok_short'))), `401 the key or token is malformed; ${invalid}`)
  t.equal(said(atOnce(proofInText('hello'))), `401 the key or token is malformed; ${invalid}`)
  t.equal(said(atOnce({ kind: 'malformed' })), `401 the key or token is malformed; ${invalid}`)
  t.equal(said(atOnce({ kind: 'conflict' })), '400 the request shows two different proofs; no challenge')
  clock.advance(4_999)
  t.equal(said(atOnce(proofInText(shortKey))), 'key short: writer')
  clock.advance(1)
  t.equal(said(atOnce(proofInText(shortKey))), `401 the key, token or certificate has expired; ${invalid}`)
})

t.test('a certificate is accepted until it ends, and one name is one principal', async t => {
  const { atOnce, authenticator, clock } = await authenticating(t)
  const shownUntil = (endsMs: number): ShownProof => ({ kind: 'certificate', certificate: { ...known, endsMs } })
  const [early, late] = [shownUntil(clock.wallMs() + 5_000), shownUntil(clock.wallMs() + 9_000)]
  const [ofEarly, ofLate] = [atOnce(early), atOnce(late)]
  if (!ofEarly?.ok || !ofLate?.ok) return t.fail('both are principals')
  t.equal(ofEarly.principal, ofLate.principal, 'they share their grants')
  t.equal(atOnce(early), ofEarly, 'the very same')
  t.strictSame([ofEarly.endsMs, ofLate.endsMs], [clock.wallMs() + 5_000, clock.wallMs() + 9_000])
  clock.advance(4_999)
  t.ok(atOnce(early)?.ok)
  t.ok(authenticator.asOfNow(ofEarly))
  clock.advance(1)
  t.equal(said(atOnce(early)), `401 the key, token or certificate has expired; ${invalid}`)
  t.equal(authenticator.asOfNow(ofEarly), undefined)
  t.ok(authenticator.asOfNow(ofLate))
  t.notOk(atOnce(shownUntil(Number.NaN))?.ok, 'an end that cannot be read')
})

t.test('without anonymous a proof is missing', async t => {
  const { atOnce } = await authenticating(t, { anonymous: false })
  t.equal(said(atOnce(nothing)), '401 no key, token or certificate was shown; Bearer')
})

t.test('a token is decided later the first time, and then at once', async t => {
  const { authenticate, atOnce, token } = await authenticating(t)
  const shown = proofInText(await token({ groups: ['ops'] }))
  t.equal(said(await authenticate(shown)), 'token ada: operator')
  const again = atOnce(shown)
  t.equal(said(again), 'token ada: operator')
  t.equal(atOnce(shown), again, 'the very same')
  t.equal(said(await authenticate(proofInText(await token()))), 'token ada: guest')
})

t.test(
  'a certificate of the file beside another proof is a conflict; another certificate has no meaning there',
  async t => {
    const { atOnce, authenticate, token } = await authenticating(t)
    const text = await token()
    t.equal(said(atOnce(proofInText(key, known))), '400 the request shows two different proofs; no challenge')
    t.equal(said(atOnce(proofInText(text, known))), '400 the request shows two different proofs; no challenge')
    t.equal(said(atOnce(proofInText(key, other))), 'key gateway-7: writer')
    t.equal(said(await authenticate(proofInText(text, other))), 'token ada: guest')
  },
)

t.test('requests without a principal are counted by their reason', async t => {
  const { atOnce, authenticate, token, clock, authenticator } = await authenticating(t, { anonymous: false })
  for (const shown of [nothing, { kind: 'conflict' }, { kind: 'malformed' }, proofInText(newKey())] as const)
    atOnce(shown)
  await authenticate(proofInText(await token({ exp: clock.wallMs() / 1000 - 100 })))
  await authenticate(proofInText(await token()))
  t.match(authenticator.numbers(), {
    denied: { missing: 1, conflict: 1, malformed: 1, unknown: 1, expired: 1, busy: 0, keysMissing: 0 },
    tokens: { remembered: 1, verified: 1, refused: 1, fetches: 1, fetchFailures: 0 },
  })
})

t.test('a principal from before may act as long as its proof and the file say so', async t => {
  const { atOnce, authenticate, token, clock, put, source, authenticator } = await authenticating(t)
  const ofKey = atOnce(proofInText(key))
  const ofToken = await authenticate(proofInText(await token({ exp: clock.wallMs() / 1000 + 40 })))
  if (!ofKey?.ok || !ofToken.ok) return t.fail('both are principals')
  t.strictSame(authenticator.asOfNow(ofKey)?.roles, ['writer'])
  t.equal(ofToken.endsMs, clock.wallMs() + 100_000)
  put({ keys: [{ name: 'gateway-7', sha256: keyHash(key), roles: ['guest'] }] })
  source.readAgain()
  t.strictSame(authenticator.asOfNow(ofKey)?.roles, ['guest'])
  put({ keys: [] })
  source.readAgain()
  t.equal(authenticator.asOfNow(ofKey), undefined)
  t.ok(authenticator.asOfNow(ofToken))
  clock.advance(100_000)
  t.equal(authenticator.asOfNow(ofToken), undefined)
})

t.test('a restart while the issuer is away accepts tokens', async t => {
  const before = await authenticating(t)
  const text = await before.token()
  t.equal(said(await before.authenticate(proofInText(text))), 'token ada: guest')
  await untilKept(join(before.folder, 'keys'))
  before.authenticator.stop()
  before.provider.answer = response => response.destroy()
  const after = await authenticating(t, { folder: before.folder, provider: before.provider })
  t.equal(said(await after.authenticate(proofInText(text))), 'token ada: guest')
  t.equal(
    said(await after.authenticate(proofInText(await after.token({}, second)))),
    `401 the key, token or certificate is not known here; ${invalid}`,
  )
})

/** Waits until keys of an issuer are on disk: they are in use before that. */
async function untilKept(directory: string): Promise<void> {
  while (!existsSync(directory) || !readdirSync(directory).some(name => name.endsWith('.json')))
    await new Promise(resolve => setImmediate(resolve))
}

/** Requests of several clients at once, which go on until `stop`. */
class Load {
  count = 0
  private isStopped = false
  private readonly clients: Promise<void>[] = []

  /** `ask` sends one request and checks its answer. */
  client(ask: () => Promise<void>): void {
    this.clients.push(this.run(ask))
  }

  async stop(): Promise<void> {
    this.isStopped = true
    await Promise.all(this.clients)
  }

  /** Waits until so many more requests were answered. */
  async more(count: number): Promise<void> {
    const until = this.count + count
    while (this.count < until) await new Promise(resolve => setImmediate(resolve))
  }

  private async run(ask: () => Promise<void>): Promise<void> {
    while (!this.isStopped) {
      await ask()
      this.count++
      await new Promise(resolve => setImmediate(resolve))
    }
  }
}

t.test('keys of an issuer change under load: right tokens pass, and wrong ones do not', async t => {
  const { provider, authenticate, token, clock, authenticator } = await authenticating(t)
  const wrong: string[] = []
  /** How the issuer signs now, and which keys must not be accepted any more. */
  let signer = first
  const withdrawn = new Set<SigningKey>()
  let number = 0
  const load = new Load()
  for (let client = 0; client < 8; client++)
    load.client(async () => {
      const by = signer
      const isFresh = number++ % 2 === 0
      const text = await token(isFresh ? { sub: `u${number}` } : { sub: `known ${number % 20}`, iat: 0 }, by)
      const wasWithdrawn = withdrawn.has(by)
      const found = await authenticate(proofInText(text))
      if (wasWithdrawn ? found.ok : !found.ok && !withdrawn.has(by)) wrong.push(`${by.kid}: ${said(found)}`)
    })
  let current = first
  const old: string[] = []
  for (let rotation = 0; rotation < 5; rotation++) {
    await load.more(100)
    old.push(await token({ sub: `old ${rotation}` }, current))
    t.equal(said(await authenticate(proofInText(old.at(-1)!))), `token old ${rotation}: guest`)
    const next = await signingKey('ES256', `rotation ${rotation}`)
    provider.keys = [current, next]
    signer = next
    await load.more(100)
    t.equal(said(await authenticate(proofInText(old.at(-1)!))), `token old ${rotation}: guest`, 'both are published')
    const { fetches } = authenticator.numbers().tokens
    provider.keys = [next]
    clock.advance(keysRefreshMs)
    while (authenticator.numbers().tokens.fetches === fetches) await load.more(1)
    withdrawn.add(current)
    current = next
    for (const text of old) t.notOk((await authenticate(proofInText(text))).ok)
  }
  await load.stop()
  t.strictSame(wrong, [])
  t.match(authenticator.numbers().tokens, { verifying: 0, waiting: 0, fetchFailures: 0 })
  t.comment(`${load.count} requests`)
})

t.test('the file changes under load: right proofs pass, and wrong ones do not', async t => {
  const { authenticate, token, put, source, clock, authenticator, provider } = await authenticating(t)
  const count = verificationsMax + 500
  const texts: string[] = []
  for (let number = 0; number < count; number++) {
    texts.push(await token({ sub: `u${number}`, groups: ['ops'] }))
    const found = await authenticate(proofInText(texts[number]!))
    if (!found.ok) return t.fail(said(found))
  }
  const sometimes = newKey()
  const wrong: string[] = []
  const states = [
    { roleOfOps: 'operator', hasKey: true },
    { roleOfOps: 'writer', hasKey: false },
    { roleOfOps: 'guest', hasKey: true },
  ]
  let { roleOfOps, hasKey } = { roleOfOps: 'operator', hasKey: false }
  source.on(() => {
    ;({ roleOfOps, hasKey } = states[(source.generation - 2) % states.length]!)
  })
  const load = new Load()
  let at = 0
  for (let client = 0; client < 4; client++) {
    load.client(async () => {
      // All of them at once: none may find that too many are being verified.
      const found = await Promise.all(
        Array.from({ length: 100 }, () => authenticate(proofInText(texts[at++ % count]!))),
      )
      for (const one of found)
        if (!one.ok || one.principal.roles.join() !== roleOfOps) wrong.push(`${roleOfOps}: ${said(one)}`)
    })
    load.client(async () => {
      const found = await authenticate(proofInText(sometimes))
      if (found.ok !== hasKey) wrong.push(`key: ${said(found)}`)
    })
    load.client(async () => {
      const found = await authenticate(proofInText(key))
      if (said(found) !== 'key gateway-7: writer') wrong.push(said(found))
    })
    load.client(async () => {
      const found = await authenticate(nothing)
      if (said(found) !== 'none anonymous: guest') wrong.push(said(found))
    })
  }
  for (let change = 0; change < 12; change++) {
    await load.more(200)
    const next = states[change % states.length]!
    const keys = [
      { name: 'gateway-7', sha256: keyHash(key), roles: ['writer'] },
      ...(next.hasKey ? [{ name: 'sometimes', sha256: keyHash(sometimes), roles: [] }] : []),
    ]
    const roles = { claim: 'groups', map: { ops: next.roleOfOps } }
    put({ keys, issuers: [provider.entry({ roles })] })
    const { generation } = source
    while (source.generation === generation) {
      clock.advance(1_000)
      await source.looked
    }
  }
  await load.more(200)
  await load.stop()
  t.strictSame(wrong, [])
  t.match(authenticator.numbers(), { tokens: { verified: count, refused: 0 }, denied: { busy: 0 } })
  t.match(source.numbers(), { generation: 13, reloadFailures: 0 })
  t.comment(`${load.count} requests`)
})
