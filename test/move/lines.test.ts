// Lines of an export: every item is read as it was written; and refused lines.

import assert from 'node:assert/strict'
import t from 'tap'
import type { Attribute, Entity } from '../../src/domain/entities/entity.js'
import { refusalText } from '../../src/domain/refusal.js'
import { stampOf } from '../../src/domain/stamp.js'
import { noProgress } from '../../src/domain/subscriptions/subscription.js'
import { encodeSubscription } from '../../src/domain/subscriptions/subscription-json.js'
import { decodeEntity, encodeEntity } from '../../src/encoded-entity.js'
import { checkFirstLine, firstLine, lastLine, parseLastLine, readLine, writeItem } from '../../src/move/lines.js'
import type { MovedEntity, MovedItem } from '../../src/move/moved.js'
import { oddEntities } from '../support/odd-entities.js'
import fc from '../support/properties.js'
import { Random } from '../support/random.js'
import { randomBody } from '../support/random-subscription.js'
import { registrations } from '../support/registrations.js'
import { posted } from '../support/subscriptions.js'

const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed}`)

const nowMs = Date.UTC(2025, 0)
const read = (line: string) => readLine(Buffer.from(line), nowMs)

/** The item that is read from an item's line; the line must be accepted. */
function again(item: MovedItem): MovedItem {
  const found = read(writeItem(item))
  assert(found.ok, found.ok ? '' : `${refusalText(found.refusal)}: ${writeItem(item).slice(0, 300)}`)
  return found.value
}

const moved = (entity: Entity, more: Partial<MovedEntity> = {}): MovedEntity => ({
  kind: 'entity',
  tenant: '',
  path: '/',
  entity,
  root: '',
  isStamped: true,
  hasCreated: true,
  hasModified: true,
  ...more,
})

t.test('odd entities come out of their lines as they went in', async t => {
  for (const [index, odd] of oddEntities.entries()) {
    // The entity as it is stored: without `-0`, and with a hidden dateExpires at the end.
    const entity = decodeEntity(encodeEntity(odd, ''))
    const item = moved(entity, { tenant: 'a_b', path: '/x/y', root: 'é-1' })
    const found = again(item)
    t.equal(writeItem(found), writeItem(item), `entity ${index}`)
    assert.deepEqual(found, item)
  }
})

const attribute = (more: Partial<Attribute> = {}): Attribute => ({
  type: 'DateTime',
  value: '2015-06-01T00:00:00.000Z',
  metadata: new Map(),
  createdMs: nowMs,
  modifiedMs: nowMs,
  ...more,
})
const withExpiry = (expiry: Attribute): Entity => ({
  id: 'E',
  type: 'T',
  attributes: new Map([['dateExpires', expiry]]),
  created: stampOf(nowMs) + 5,
  modifiedMs: nowMs,
})

t.test('a dateExpires that ends its entity is beside it, and a plain one in it', async t => {
  const transient = moved(withExpiry(attribute()))
  t.match(JSON.parse(writeItem(transient)), { expires: { type: 'DateTime' } })
  t.strictSame(again(transient), transient)
  const plain = moved(withExpiry(attribute({ isPlain: true })))
  t.match(JSON.parse(writeItem(plain)), { entity: { dateExpires: { type: 'DateTime' } } })
  t.strictSame(again(plain), plain)
})

t.test('a line of an entity with a known millisecond alone has no more', async t => {
  const line = '{"entity":{"id":"E","type":"T","a":{"value":1}},"dateCreated":"2024-05-01T08:00:00Z"}'
  const found = read(line)
  t.match(found, { ok: true, value: { tenant: '', path: '/', isStamped: false, root: '' } })
  const { entity } = (found as { value: MovedEntity }).value
  const ms = Date.UTC(2024, 4, 1, 8)
  t.equal(entity.created, stampOf(ms))
  t.match(entity.attributes.get('a'), { type: 'Number', createdMs: ms, modifiedMs: ms })
  t.notMatch(writeItem((found as { value: MovedEntity }).value), '"order"')
})

t.test('subscriptions come out of their lines as they went in, passwords and counters included', async t => {
  for (let n = 0; n < 1000; n++) {
    const parsed = posted(randomBody(random))
    assert(parsed.ok)
    const progress = {
      ...noProgress,
      ...(n % 2 === 0 && { timesSent: n, lastNotificationMs: nowMs + n, lastSuccessMs: nowMs, lastSuccessCode: 204 }),
      ...(n % 3 === 0 && { lastFailureMs: nowMs, lastFailureReason: 'why "not"', failsCounter: 3 }),
      ...(n % 5 === 0 && { spentRevision: 1 }),
    }
    const item = { kind: 'subscription', subscription: { ...parsed.value, tenant: 't' }, progress } as const
    const found = again(item)
    assert(found.kind === 'subscription')
    assert.equal(encodeSubscription(found.subscription), encodeSubscription(item.subscription))
    assert.deepEqual(found.progress, progress)
  }
  t.pass('1000 subscriptions')
})

t.test('the status of a subscription counts from the beginning, and a spent one stays spent', async t => {
  const parsed = posted(randomBody(new Random(1)))
  assert(parsed.ok)
  const subscription = { ...parsed.value, statusRevision: 7 }
  const spent = again({ kind: 'subscription', subscription, progress: { ...noProgress, spentRevision: 7 } })
  t.match(spent, { subscription: { statusRevision: 1 }, progress: { spentRevision: 1 } })
  const active = again({ kind: 'subscription', subscription, progress: { ...noProgress, spentRevision: 6 } })
  t.match(active, { subscription: { statusRevision: 1 }, progress: { spentRevision: 0 } })
})

t.test('a subscription as GET shows it is a line', async t => {
  const shown = {
    id: '65F0c2a1b4d3e2f1a0c9b8d7',
    status: 'expired',
    expires: '2020-01-01T00:00:00.000Z',
    subject: { entities: [{ idPattern: '.*' }], condition: { attrs: [], notifyOnMetadataChange: true } },
    notification: {
      timesSent: 4,
      lastNotification: '2019-01-01T00:00:00.000Z',
      attrs: [],
      onlyChangedAttrs: false,
      attrsFormat: 'normalized',
      http: { url: 'http://h' },
      lastSuccess: '2019-01-01T00:00:00.000Z',
      lastSuccessCode: 200,
      covered: false,
    },
  }
  const found = read(JSON.stringify({ subscription: shown, servicePath: '/a/#' }))
  t.match(found, {
    ok: true,
    value: {
      subscription: { id: shown.id.toLowerCase(), status: 'active', servicePath: '/a/#', expiresMs: Date.UTC(2020, 0) },
      progress: { timesSent: 4, lastNotificationMs: Date.UTC(2019, 0), lastSuccessCode: 200, spentRevision: 0 },
    },
  })
})

t.test('registrations come out of their lines as they went in', async () => {
  const legal = registrations.filter(
    ({ description, expiresMs, dataProvided: { entities, attrs } }) =>
      // Registrations that a POST could have made.
      !/[<>"'=;()]/.test(description) &&
      (expiresMs === undefined || Math.abs(expiresMs) < 1e13) &&
      (entities.length > 0 || attrs.length > 0) &&
      new Set(entities.map(one => JSON.stringify(one))).size === entities.length,
  )
  fc.assert(
    fc.property(legal, registration => {
      const item = { kind: 'registration', registration } as const
      assert.deepEqual(again(item), item)
    }),
    { seed: random.seed },
  )
})

const entity = (members: string) => `{"entity":{"id":"E","type":"T"${members}}}`
const refused: readonly (readonly [line: string, why: string | RegExp])[] = [
  ['', /JSON/],
  ['[]', 'it is not an object'],
  ['{}', 'it holds no entity, no subscription and no registration'],
  ['{"entity":1}', 'entity is not an object'],
  ['{"entity":{"type":"T"}}', 'entity.id is not ASCII of 1 to 256 characters'],
  ['{"entity":{"id":"é","type":"T"}}', 'entity.id is not ASCII of 1 to 256 characters'],
  ['{"entity":{"id":"E"}}', 'entity.type is not ASCII of 256 characters at most'],
  [entity(`,"${'é'.repeat(129)}":{}`), 'the name of an attribute is not a text of 1 to 256 bytes'],
  [entity(',"a":1'), 'a is not an object'],
  [entity(',"a":{"value":1},"a":{"value":2}'), '"a" stands twice'],
  [entity(',"a":{"value":{"b":1,"b":2}}'), '"b" stands twice'],
  [entity(',"a":{"valeu":1}'), 'unknown member "valeu"'],
  [entity(',"a":{"value":1,"metadata":{"m":1}}'), 'a.metadata.m is not an object'],
  [entity(',"a":{"type":"DateTime","value":"soon"}'), 'a: date has invalid format'],
  [entity(`,"a":{"value":${'['.repeat(51)}${']'.repeat(51)}}`), /nesting limit: 50/],
  [entity(',"a":{"value":"\\ud800"}'), /JSON/],
  [entity(',"a":{"value":1e999}'), /JSON/],
  [
    entity(',"a":{"type":"geo:point","value":"1,2"},"b":{"type":"geo:point","value":"1,2"}'),
    /more than one geo location/,
  ],
  [entity(',"a":{"type":"geo:json","value":{"type":"Point","coordinates":[1,200]}}'), /./],
  ['{"entity":{"id":"E","type":"T"},"dateCreate":"2024-05-01"}', 'unknown member "dateCreate"'],
  ['{"entity":{"id":"E","type":"T"},"dateCreated":"1969-12-31"}', 'dateCreated is not a date and time since 1970'],
  ['{"entity":{"id":"E","type":"T"},"order":2048}', 'order is not a whole number below 2048'],
  ['{"entity":{"id":"E","type":"T"},"tenant":"a-b"}', /./],
  ['{"entity":{"id":"E","type":"T"},"servicePath":"/a/#"}', 'servicePath ends in #'],
  ['{"entity":{"id":"E","type":"T"},"servicePath":"/a,/b"}', 'servicePath is not one path'],
  ['{"entity":{"id":"E","type":"T"},"times":{"a":["2024-05-01","2024-05-01"]}}', 'times.a: there is no such attribute'],
  [
    '{"entity":{"id":"E","type":"T"},"expires":{"type":"Text","value":"x"}}',
    'expires is not of type DateTime or ISO8601',
  ],
  [`{"entity":{"id":"E","type":"T"},"correlator":"${'x'.repeat(256)}"}`, 'correlator has more than 255 characters'],
  ['{"subscription":{"subject":{}}}', 'it has no id'],
  ['{"subscription":{"id":"65f0c2a1b4d3e2f1a0c9b8d7"}}', /./],
  ['{"registration":{"id":"65f0"}}', /./],
]
for (const [line, why] of refused)
  t.test(`refused: ${line.slice(0, 60)}`, async t => {
    const result = read(line)
    t.match(result.ok ? '' : refusalText(result.refusal), why)
  })

t.test('the first line names the form, and another form is refused', async t => {
  t.equal(checkFirstLine(Buffer.from(firstLine('us'))), undefined)
  t.match(checkFirstLine(Buffer.from('{"orrery-export":2}')), 'has version 2, and this release reads version 1')
  t.match(checkFirstLine(Buffer.from('{"id":"E"}')), 'is not an export')
})

t.test('the last line has the counts', async t => {
  const counts = { entity: 3, registration: 0, subscription: 2 }
  t.strictSame(parseLastLine(Buffer.from(lastLine(counts))), counts)
  t.equal(parseLastLine(Buffer.from('{"entity":{}}')), undefined)
})
