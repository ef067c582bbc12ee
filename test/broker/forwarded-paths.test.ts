// Which path of a provider is known, for how long, and which 404 means that no context provider has seen the request.

import t from 'tap'
import { ForwardedPaths, isFromElsewhere, knownPathsMax, pathKnownMs } from '../../src/broker/forwarded-paths.js'
import type { Registration } from '../../src/domain/providers/registration.js'
import { FakeClock } from '../support/fake-clock.js'

const at = (url: string, id = '1'): Registration => ({
  id,
  tenant: '',
  servicePath: '/',
  description: '',
  expiresMs: undefined,
  dataProvided: { entities: [], attrs: [] },
  provider: { url, supportedForwardingMode: 'all', legacyForwarding: false },
  status: 'active',
})

const both = ['http://h', 'http://h/v2']

t.test('a path that has served is the only one until it is forgotten', async t => {
  const clock = new FakeClock()
  const paths = new ForwardedPaths(clock, 'plain')
  const registration = at('http://h')
  t.strictSame(paths.basesOf(registration), both)
  paths.learn(registration, 'http://h/v2')
  t.strictSame(paths.basesOf(registration), ['http://h/v2'])
  t.strictSame(paths.basesOf(at('http://h', '2')), ['http://h/v2'], 'also for another registration of the provider')
  clock.advance(pathKnownMs - 1)
  t.strictSame(paths.basesOf(registration), ['http://h/v2'])
  clock.advance(1)
  t.strictSame(paths.basesOf(registration), both)
})

t.test('a path is forgotten when the registration changes that it was learned by', async t => {
  const paths = new ForwardedPaths(new FakeClock(), 'plain')
  paths.learn(at('http://h'), 'http://h/v2')
  t.strictSame(paths.basesOf(at('http://h', '2')), ['http://h/v2'])
  t.strictSame(paths.basesOf(at('http://h')), both)
})

t.test('of more providers than are remembered the first one is forgotten', async t => {
  const paths = new ForwardedPaths(new FakeClock(), 'plain')
  const all = Array.from({ length: knownPathsMax + 1 }, (_, n) => at(`http://h${n}`))
  for (const one of all) paths.learn(one, `${one.provider.url}/v2`)
  t.equal(paths.basesOf(all[0]!).length, 2)
  t.strictSame(paths.basesOf(all[1]!), ['http://h1/v2'])
})

/** Bodies of a 404, and whether a router wrote them. */
const bodies: readonly (readonly [body: string, isFromElsewhere: boolean])[] = [
  ['', true],
  ['404 page not found', true],
  ['<!DOCTYPE html><pre>Cannot POST //op/update</pre>', true],
  ['{"detail":"Not Found"}', true],
  ['{"statusCode":404,"message":"Cannot POST /op/update","error":"Not Found"}', true],
  ['{"error":"NotFound","description":"The requested entity has not been found. Check type and id"}', false],
  ['{"error":"PartialUpdate","description":"do not exist: E1/T - [ a ]"}', false],
  ['{"name":"DEVICE_NOT_FOUND","message":"No device was found with id:Lamp1"}', false],
  ['[]', false],
  [`"${'x'.repeat(70_000)}"`, false],
]

t.test('a 404 with an error of the interface is an answer, one of a router is not', async t => {
  for (const [body, isElsewhere] of bodies) {
    const answer = { kind: 'answered', status: 404, body: Buffer.from(body), header: () => undefined } as const
    t.equal(isFromElsewhere(answer), isElsewhere, body.slice(0, 80))
    for (const status of [204, 302, 400, 422, 500]) t.notOk(isFromElsewhere({ ...answer, status }))
  }
  t.notOk(isFromElsewhere({ kind: 'failed', reason: 'Timeout was reached' }))
})
