// Lines of the audit log: whatever a client sends, a line is one line of valid JSON, bounded, without a secret.

import t from 'tap'
import { newKey } from '../../src/access/keys.js'
import { auditLine, auditTextLengthMax, notShown } from '../../src/observe/audit/audit-line.js'
import type { AuditEntry } from '../../src/ports.js'

const atMs = Date.UTC(2026, 10, 27, 9, 5, 7, 42)

const entry = (given: Partial<AuditEntry> = {}): AuditEntry => ({
  principal: undefined,
  shown: undefined,
  address: '10.0.0.9',
  peer: undefined,
  method: 'POST',
  path: '/v2/entities',
  query: '',
  tenant: '',
  servicePath: '',
  status: 201,
  correlator: 'c1',
  entities: undefined,
  id: undefined,
  isMessage: false,
  ...given,
})

const lineOf = (given: Partial<AuditEntry>, isMultitenant = true) =>
  JSON.parse(auditLine(entry(given), atMs, isMultitenant)) as Record<string, unknown>

t.test('a line has what is known, in the order of the page', async t => {
  t.equal(
    auditLine(entry(), atMs, true),
    '{"time":"2026-11-27T09:05:07.042Z","address":"10.0.0.9","method":"POST","path":"/v2/entities","tenant":"","status":201,"correlator":"c1"}',
  )
  const source = {
    proof: 'token',
    issuer: 'https://id.example',
    name: 'ada',
    claimed: ['writer'],
    tenants: ['city'],
  } as const
  const whole = auditLine(
    entry({
      ...{ principal: source, shown: 'token', peer: '10.0.0.1', query: 'options=upsert', tenant: 'City' },
      ...{ servicePath: '/a,/b', entities: 2, id: 'urn:lamp:1', isMessage: true },
    }),
    atMs,
    true,
  )
  t.equal(
    whole,
    '{"time":"2026-11-27T09:05:07.042Z","principal":"ada","proof":"token","issuer":"https://id.example","address":"10.0.0.9","peer":"10.0.0.1",' +
      '"method":"POST","path":"/v2/entities","query":"options=upsert","tenant":"city","servicePath":"/a,/b","status":201,"correlator":"c1",' +
      '"entities":2,"id":"urn:lamp:1","via":"websocket"}',
  )
})

t.test('of a query, only harmless parameters are kept', async t => {
  const kept = (query: string) => lineOf({ query }).query
  t.equal(kept('options=append,keyValues&q=password==hunter2&type=Lamp'), 'options=append,keyValues&type=Lamp')
  t.equal(kept('password=hunter2'), undefined)
  t.equal(kept('hunter2'), undefined)
  t.equal(kept('type'), undefined)
  t.equal(kept('typex&=options'), undefined)
})

t.test('without tenants, the header has no effect', async t => {
  t.equal(lineOf({ tenant: 'city' }, false).tenant, '')
  t.equal(lineOf({ tenant: 'no tenant' }).tenant, 'no tenant')
})

t.test('no text ends the line or forges a member', async t => {
  const odd = ['"', '\\', '\n', '\r\n', '\0', '\x1b[2J', '\u2028', '\ud800', '\udfff', '","status":200,"x":"', '}\n{']
  for (const text of [...odd, odd.join('')]) {
    const texts = { path: text, id: text, correlator: text, tenant: text, servicePath: text, address: text, peer: text }
    const line = auditLine(entry({ ...texts, principal: { proof: 'key', name: text } }), atMs, true)
    t.notMatch(line, /\p{Cc}/u)
    t.ok(line.isWellFormed())
    t.match(JSON.parse(line), {
      path: text,
      id: text,
      correlator: text,
      servicePath: text,
      principal: text,
      status: 201,
    })
  }
})

t.test('long texts are cut, so a line is bounded', async t => {
  const long = '\0'.repeat(16 * 1024)
  const source = { proof: 'token', issuer: long, name: long, claimed: [] } as const
  const texts = { path: long, id: long, correlator: long, tenant: long, servicePath: long, address: long, method: long }
  const line = auditLine(entry({ ...texts, peer: long, query: `type=${long}`, principal: source }), atMs, true)
  t.ok(Buffer.byteLength(line) < 12 * 6 * (auditTextLengthMax + 50), `${line.length} bytes`)
  t.equal((JSON.parse(line) as { id: string }).id, `${'\0'.repeat(auditTextLengthMax)}…`)
})

t.test('a text that looks like a key or a token is not shown', async t => {
  const token = `${base64({ alg: 'none' })}.${base64({ sub: 'ada' })}.`
  for (const secret of [newKey(), `/v2/entities/${newKey()}`, token, `a.b.${token}sig`, `Bearer%20${token}x`]) {
    const line = lineOf({ path: secret, id: secret, correlator: secret, tenant: secret, servicePath: secret })
    t.match(line, { path: notShown, id: notShown, correlator: notShown, tenant: notShown, servicePath: notShown })
  }
  for (const text of ['ok_lamp', 'eyJ.eyJ'.slice(0, 5), 'a.eyJ', 'look_at_this']) t.equal(lineOf({ id: text }).id, text)
})

const base64 = (json: object): string => Buffer.from(JSON.stringify(json)).toString('base64url')
