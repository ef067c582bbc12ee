// The keys of issuers: what is accepted as keys, when they are fetched, how they are kept on disk, and what a bad
// answer does. The issuer is a real HTTP server; time is not real where a test waits for it.

import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { FetchedKeys, type FetchKeys, FileKeys } from '../../src/access/issuer-keys.js'
import { type KeySet, readKeySet } from '../../src/access/jwks.js'
import { JwksStore } from '../../src/access/jwks-store.js'
import {
  jwksBytesMax,
  jwksKeysMax,
  keysAgainMs,
  keysRefreshMs,
  keysTimeoutMs,
  withdrawnKeysMax,
} from '../../src/access/limits.js'
import { tempDir } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'
import { IdentityProvider, plainFetch, type SigningKey, signingKey } from '../support/identity-provider.js'

const first = await signingKey('ES256', 'first')
const second = await signingKey('ES256', 'second')
const nameless = await signingKey('ES256')
const rsa = await signingKey('RS256', 'rsa')

const setOf = (...keys: readonly SigningKey[]): string => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })
const kidsOf = (set: KeySet | undefined): unknown => set?.keys.map(({ kid }) => kid)

t.test('a set of keys says which of them a token may have', async t => {
  const set = readKeySet(setOf(first, second, nameless, rsa))
  const fitting = (algorithm: string, kid?: string): unknown => set.keysFor(algorithm, kid).map(key => key.kid)
  t.strictSame(fitting('ES256', 'second'), ['second'])
  t.strictSame(fitting('ES256', 'rsa'), [])
  t.strictSame(fitting('ES384', 'first'), [], 'another curve')
  t.strictSame(fitting('RS256'), ['rsa'])
  t.strictSame(fitting('ES256'), ['first', 'second', undefined])
  t.strictSame(fitting('ES256', '../first'), [])
})

t.test('a key that stays is the same object in the next set', async t => {
  const before = readKeySet(setOf(first, second))
  const reordered = Object.fromEntries(Object.entries(second.jwk).reverse())
  const after = readKeySet(JSON.stringify({ keys: [reordered, rsa.jwk] }), before)
  t.equal(after.keys[0], before.keys[1])
  t.notOk(after.isSame(before))
  t.ok(readKeySet(setOf(second, first)).isSame(before))
})

const { jwk } = first
const wrongSets: readonly (readonly [said: string, text: string, fault: RegExp])[] = [
  ['no JSON', 'secret', /^the keys are not JSON$/],
  ['a list', '[]', /^there is no member "keys"/],
  ['no keys', '{}', /^there is no member "keys"/],
  ['an empty list', '{"keys":[]}', /^the list of keys is empty$/],
  ['something else in the list', '{"keys":[1]}', /^keys\[0\] is no key$/],
  ['a private key', JSON.stringify({ keys: [jwk, { ...jwk, d: 'x' }] }), /^keys\[1\] is not public/],
  ['a symmetric key', JSON.stringify({ keys: [{ kty: 'oct', k: 'x' }] }), /^keys\[0\] is not public/],
  ['too many', JSON.stringify({ keys: Array(jwksKeysMax + 1).fill(jwk) }), /^there are 101 keys, at most 100$/],
  ['too long', ' '.repeat(jwksBytesMax + 1), /^the keys have more than 262144 bytes$/],
]
for (const [said, text, fault] of wrongSets)
  t.test(`as keys of an issuer, ${said}: refused`, async t => {
    t.throws(() => readKeySet(text), { message: fault })
  })

/** The keys of an issuer that publishes `first`. */
async function fetching(t: Test, given: { directory?: string; fetch?: FetchKeys; provider?: IdentityProvider } = {}) {
  const provider = given.provider ?? (await IdentityProvider.start(t, [first]))
  const clock = new FakeClock()
  const lines: string[] = []
  let changes = 0
  const fetched = { done: 0, failed: 0 }
  const keys = new FetchedKeys(
    { issuer: provider.issuer, url: provider.url },
    new JwksStore(given.directory),
    given.fetch ?? plainFetch(),
    {
      clock,
      logger: { info: line => lines.push(`INFO ${line}`), warn: line => lines.push(`WARN ${line}`) },
      onChange: () => changes++,
      onFetched: isDone => fetched[isDone ? 'done' : 'failed']++,
    },
  )
  t.teardown(() => keys.stop())
  return {
    provider,
    clock,
    lines,
    keys,
    fetched,
    get changes() {
      return changes
    },
  }
}

/** Waits for a fetch that is under way. */
const settled = async (keys: FetchedKeys): Promise<void> => {
  await keys.ready
  await keys.again()
}

t.test('keys are fetched at once, and all that ask meanwhile share the fetch', async t => {
  const { keys, provider, lines } = await fetching(t)
  const asked = [keys.again(), keys.again()]
  t.ok(asked[0] && asked[0] === asked[1])
  await asked[0]
  t.strictSame(kidsOf(keys.current), ['first'])
  t.equal(provider.asked, 1)
  t.strictSame(lines, [`INFO access: 1 key of the issuer ${provider.issuer}`])
})

t.test('for an unknown kid they are fetched again once in 30 s', async t => {
  const { keys, provider, clock } = await fetching(t)
  await settled(keys)
  provider.keys = [first, second]
  await keys.again()
  t.strictSame(kidsOf(keys.current), ['first', 'second'])
  t.equal(keys.again(), undefined)
  clock.advance(keysAgainMs - 1)
  t.equal(keys.again(), undefined)
  clock.advance(1)
  await keys.again()
  t.equal(provider.asked, 3)
})

t.test('a key that was there is known as withdrawn, until it is there again', async t => {
  const { keys, provider, clock } = await fetching(t)
  await settled(keys)
  const kids = ['first', 'second', 'third']
  const withdrawn = (): unknown => kids.filter(kid => keys.isWithdrawn(kid))
  const publish = async (...published: readonly SigningKey[]): Promise<void> => {
    provider.keys = published
    clock.advance(keysAgainMs)
    await keys.again()
  }
  t.strictSame(withdrawn(), [])
  await publish(second)
  t.strictSame(withdrawn(), ['first'])
  await publish(first)
  t.strictSame(withdrawn(), ['second'])
  for (let number = 0; number < withdrawnKeysMax + 1; number++)
    await publish({ ...first, jwk: { ...first.jwk, kid: `k${number}` } })
  t.strictSame(withdrawn(), [], 'only so many are remembered')
  t.ok(keys.isWithdrawn(`k${withdrawnKeysMax - 1}`))
})

t.test('they are fetched regularly, so a key that was withdrawn does not stay', async t => {
  const { keys, provider, clock } = await fetching(t)
  await settled(keys)
  provider.keys = [second]
  clock.advance(keysRefreshMs)
  await keys.again()
  t.strictSame(kidsOf(keys.current), ['second'])
  t.equal(provider.asked, 2)
})

const badAnswers: readonly (readonly [said: string, answer: IdentityProvider['answer'], reason: RegExp])[] = [
  ['an error', response => response.writeHead(500).end('secret'), /the answer has the status 500$/],
  ['a redirect', response => response.writeHead(302, { Location: '/other' }).end(), /the answer has the status 302$/],
  ['no keys', response => response.end('{}'), /there is no member "keys" with a list$/],
  ['a page', response => response.end('<html>secret</html>'), /the keys are not JSON$/],
  ['a broken connection', response => response.destroy(), /Server returned nothing/],
  ['half an answer', response => response.writeHead(200, { 'Content-Length': 100 }).end('{'), /.+/],
  [
    'an endless answer',
    response => {
      const more = (): void => {
        while (response.write('['.repeat(16_384)));
      }
      response.on('drain', more)
      more()
    },
    /the answer has more than 262144 bytes$/,
  ],
]
for (const [said, answer, reason] of badAnswers)
  t.test(`${said} changes nothing, and is reported once`, async t => {
    const { keys, provider, clock, lines, fetched } = await fetching(t)
    await settled(keys)
    const { current } = keys
    provider.answer = answer
    await keys.again()
    clock.advance(keysAgainMs)
    await keys.again()
    t.equal(keys.current, current)
    t.equal(fetched.failed, 2)
    t.equal(lines.length, 2)
    t.match(lines[1], /^WARN access: keys of the issuer .*: cannot be fetched from http:\/\/127\.0\.0\.1:\d+\/certs: /)
    t.match(lines[1], reason)
    t.notMatch(lines[1], /secret/)
    provider.answer = undefined
    provider.keys = [first, second]
    clock.advance(keysAgainMs)
    await keys.again()
    t.strictSame(kidsOf(keys.current), ['first', 'second'], 'it is asked again after 30 s, not after 10 minutes')
  })

t.test('a fetch without an answer ends after its time, even if the port does not end it', async t => {
  let signal: AbortSignal | undefined
  const { keys, clock, lines } = await fetching(t, {
    fetch: (_url, given) => {
      signal = given
      return new Promise(() => {})
    },
  })
  await keys.ready
  const asked = keys.again()
  await untilTrue(() => signal !== undefined)
  clock.advance(keysTimeoutMs)
  await asked
  t.equal(signal?.aborted, true)
  t.match(lines, [/no answer within 5000 ms$/])
})

/** Lets promises go on until it is so. */
async function untilTrue(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(resolve => setImmediate(resolve))
}

t.test('keys on disk let a start work while the issuer is away', async t => {
  const directory = join(tempDir(t), 'keys')
  const { keys, provider } = await fetching(t, { directory })
  await settled(keys)
  keys.stop()
  t.equal(readdirSync(directory).length, 1)
  provider.answer = response => response.destroy()
  const later = await fetching(t, { directory, provider })
  await later.keys.ready
  t.strictSame(kidsOf(later.keys.current), ['first'])
  await later.keys.again()
  t.strictSame(kidsOf(later.keys.current), ['first'])
  t.match(later.lines, [/^INFO .*, which were fetched before this start$/, /^WARN /])
})

t.test('the files on disk are private, named by the issuer, and replaced as a whole', async t => {
  const directory = join(tempDir(t), 'keys')
  const store = new JwksStore(directory)
  const owner = { issuer: 'https://a.example', url: 'https://a.example/certs' }
  t.equal(await store.read(owner), undefined)
  await store.write(owner, { set: readKeySet(setOf(first)), fetchedMs: 1_000 })
  await Promise.all([
    store.write(owner, { set: readKeySet(setOf(second)), fetchedMs: 2_000 }),
    store.write({ ...owner, url: 'https://a.example/other' }, { set: readKeySet(setOf(rsa)), fetchedMs: 2_000 }),
  ])
  const stored = await store.read(owner)
  t.strictSame([kidsOf(stored?.set), stored?.fetchedMs], [['second'], 2_000])
  const names = readdirSync(directory)
  t.equal(names.length, 2)
  t.ok(names.every(name => /^[0-9a-f]{40}\.json$/.test(name)))
  t.equal(statSync(directory).mode & 0o777, 0o700)
  t.equal(statSync(join(directory, names[0]!)).mode & 0o777, 0o600)

  const [left, fresh] = ['a.new', 'b.new'].map(name => join(directory, name)) as [string, string]
  for (const path of [left, fresh, join(directory, 'mine.txt')]) writeFileSync(path, '')
  utimesSync(left, 1, 1)
  await store.keepOnly([owner], Date.now())
  const kept = readdirSync(directory)
  t.strictSame(kept.filter(name => !names.includes(name)).sort(), ['b.new', 'mine.txt'])
  t.equal(kept.filter(name => names.includes(name)).length, 1, 'the keys of the other URL are gone')
  t.strictSame(kidsOf((await store.read(owner))?.set), ['second'])
})

t.test('a file on disk that is wrong is not used', async t => {
  const directory = tempDir(t)
  const store = new JwksStore(directory)
  const owner = { issuer: 'https://a.example', url: 'https://a.example/certs' }
  await store.write(owner, { set: readKeySet(setOf(first)), fetchedMs: 1_000 })
  const path = join(directory, readdirSync(directory)[0]!)
  const right = JSON.parse(readFileSync(path, 'utf8')) as object
  for (const [wrong, fault] of [
    ['', /is not JSON$/],
    [JSON.stringify({ ...right, format: 2 }), /is of another format or issuer$/],
    [JSON.stringify({ ...right, issuer: 'https://b.example' }), /is of another format or issuer$/],
    [JSON.stringify({ ...right, keys: [] }), /the list of keys is empty$/],
    ['x'.repeat(2 * jwksBytesMax), /has more than \d+ bytes$/],
  ] as const) {
    writeFileSync(path, wrong)
    await t.rejects(store.read(owner), { message: fault })
  }
})

t.test('a disk that cannot be written is reported, and keys are used without it', async t => {
  const directory = join(tempDir(t), 'file')
  writeFileSync(directory, '')
  const { keys, lines } = await fetching(t, { directory })
  await settled(keys)
  t.strictSame(kidsOf(keys.current), ['first'])
  t.match(lines.at(-1), /^WARN .*cannot be kept on disk: /)
})

t.test('keys from a file follow the file', async t => {
  const path = join(tempDir(t), 'keys.json')
  writeFileSync(path, setOf(first))
  const clock = new FakeClock()
  const lines: string[] = []
  const keys = new FileKeys('i', path, {
    clock,
    logger: { info: line => lines.push(`INFO ${line}`), warn: line => lines.push(`WARN ${line}`) },
    onChange: () => {},
    onFetched: () => {},
  })
  t.teardown(() => keys.stop())
  await keys.ready
  t.strictSame(kidsOf(keys.current), ['first'])
  t.equal(keys.again(), undefined, 'it has just been looked at')
  const next = async (): Promise<void> => {
    clock.advance(1_000)
    await keys.again()
  }
  writeFileSync(path, setOf(first, second))
  await next()
  t.strictSame(kidsOf(keys.current), ['first', 'second'])
  writeFileSync(path, '{"keys":[')
  await next()
  await next()
  t.strictSame(kidsOf(keys.current), ['first', 'second'])
  t.equal(lines.filter(line => line.startsWith('WARN')).length, 1)
  writeFileSync(path, setOf(second))
  await next()
  t.strictSame(kidsOf(keys.current), ['second'])
  keys.stop()
  t.equal(clock.waiting, 0)
})

t.test('nothing goes on after the stop', async t => {
  const { keys, clock, provider } = await fetching(t)
  await settled(keys)
  keys.stop()
  t.equal(clock.waiting, 0)
  t.equal(keys.again(), undefined)
  const early = await fetching(t, { provider })
  early.keys.stop()
  await early.keys.ready
  await new Promise(resolve => setImmediate(resolve))
  t.equal(early.clock.waiting, 0)
  t.equal(provider.asked, 1)
})
