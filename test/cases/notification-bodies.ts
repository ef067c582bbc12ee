// The bodies of notifications about the room R1 (test/support/notification-inputs.ts) for a subscription with these
// members of `notification`.
//
// The room has temperature (Number 21.5, with metadata unit), name and where; a PATCH has just set the temperature from
// 20 to 21.5. `stored` gives it other attributes, in normalized form.

import type { JsonObject } from '../../src/domain/json.js'
import type { AlterationType } from '../../src/domain/subscriptions/subscription.js'

/**
 * One format after the other (docs/interface/notifications.md#formats, docs/interface/notifications.md#legacy-format).
 */
export const formatCases: readonly (readonly [format: string, body: string])[] = [
  [
    'normalized',
    '{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","data":[{"id":"R1","type":"Room","temperature":{"type":"Number","value":21.5,"metadata":{"unit":{"type":"Text","value":"CEL"}}},"name":{"type":"Text","value":"north","metadata":{}},"where":{"type":"StructuredValue","value":{"floor":2},"metadata":{}}}]}',
  ],
  [
    'simplifiedNormalized',
    '{"id":"R1","type":"Room","temperature":{"type":"Number","value":21.5,"metadata":{"unit":{"type":"Text","value":"CEL"}}},"name":{"type":"Text","value":"north","metadata":{}},"where":{"type":"StructuredValue","value":{"floor":2},"metadata":{}}}',
  ],
  [
    'keyValues',
    '{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","data":[{"id":"R1","type":"Room","temperature":21.5,"name":"north","where":{"floor":2}}]}',
  ],
  ['simplifiedKeyValues', '{"id":"R1","type":"Room","temperature":21.5,"name":"north","where":{"floor":2}}'],
  ['values', '{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","data":[[21.5,"north",{"floor":2}]]}'],
  [
    'legacy',
    '{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","originator":"localhost","contextResponses":[{"contextElement":{"type":"Room","isPattern":"false","id":"R1","attributes":[{"name":"temperature","type":"Number","value":21.5,"metadatas":[{"name":"unit","type":"Text","value":"CEL"}]},{"name":"name","type":"Text","value":"north"},{"name":"where","type":"StructuredValue","value":{"floor":2}}]},"statusCode":{"code":"200","reasonPhrase":"OK"}}]}',
  ],
]

/** The formats of an entity without attributes to send. */
export const emptyFormatCases: readonly (readonly [format: string, body: string])[] = [
  ['normalized', '{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","data":[{"id":"R1","type":"Room"}]}'],
  ['simplifiedNormalized', '{"id":"R1","type":"Room"}'],
  ['keyValues', '{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","data":[{"id":"R1","type":"Room"}]}'],
  ['simplifiedKeyValues', '{"id":"R1","type":"Room"}'],
  ['values', '{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","data":[[]]}'],
  [
    'legacy',
    '{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","originator":"localhost","contextResponses":[{"contextElement":{"type":"Room","isPattern":"false","id":"R1"},"statusCode":{"code":"200","reasonPhrase":"OK"}}]}',
  ],
]

export interface AttributeCase {
  readonly rule: string
  readonly notification: JsonObject
  readonly stored?: JsonObject
  /** The attributes that the request named; by default the temperature. */
  readonly named?: readonly string[]
  readonly alteration?: AlterationType
  /** The members after id and type, as keyValues. */
  readonly sent: string
}

const one = { type: 'Number', value: 1 }
const expiring = { A: one, dateExpires: { type: 'DateTime', value: '2030-01-01T00:00:00Z' } }
const abc = { A: one, B: { type: 'Number', value: 2 }, C: { type: 'Number', value: 3 } }

/** The sent attributes, and their order (docs/interface/notifications.md). */
export const attributeCases: readonly AttributeCase[] = [
  {
    rule: 'an empty list sends all user attributes in the order of the entity',
    notification: { attrs: [] },
    stored: abc,
    sent: '"A":1,"B":2,"C":3',
  },
  {
    rule: 'a list gives its order, and what is missing is skipped',
    notification: { attrs: ['C', 'X', 'A'] },
    stored: abc,
    sent: '"C":3,"A":1',
  },
  {
    rule: 'a list that leaves nothing sends id and type alone',
    notification: { attrs: ['X'] },
    stored: abc,
    sent: '',
  },
  {
    rule: 'builtin attributes are sent by name',
    notification: { attrs: ['servicePath', 'A', 'alterationType', 'dateModified', 'dateCreated'] },
    stored: abc,
    sent: '"servicePath":"/b1","A":1,"alterationType":"entityChange","dateModified":"2024-05-02T09:30:00.000Z","dateCreated":"2024-05-01T08:00:00.000Z"',
  },
  {
    rule: '* is all user attributes and lets builtin ones follow',
    notification: { attrs: ['alterationType', '*', 'dateCreated'] },
    stored: abc,
    sent: '"A":1,"B":2,"C":3,"dateCreated":"2024-05-01T08:00:00.000Z","alterationType":"entityChange"',
  },
  {
    rule: '* sends nothing twice',
    notification: { attrs: ['B', '*'] },
    stored: abc,
    sent: '"A":1,"B":2,"C":3',
  },
  {
    rule: 'exceptAttrs leaves out, and sends no builtin attribute',
    notification: { exceptAttrs: ['B', 'X'] },
    stored: abc,
    sent: '"A":1,"C":3',
  },
  {
    rule: 'the date of expiry is not sent unless it is listed',
    notification: {},
    stored: expiring,
    sent: '"A":1',
  },
  {
    rule: 'the date of expiry is sent when it is listed',
    notification: { attrs: ['dateExpires', 'A'] },
    stored: expiring,
    sent: '"dateExpires":"2030-01-01T00:00:00.000Z","A":1',
  },
  {
    rule: 'the date of expiry is sent when it is listed beside *',
    notification: { attrs: ['dateExpires', '*'] },
    stored: expiring,
    sent: '"A":1,"dateExpires":"2030-01-01T00:00:00.000Z"',
  },
  {
    rule: 'an entity without date of expiry has none to send',
    notification: { attrs: ['dateExpires', 'A'] },
    stored: abc,
    sent: '"A":1',
  },
  {
    rule: 'a user attribute with a builtin name is sent without being listed',
    notification: {},
    stored: { alterationType: { type: 'Text', value: 'mine' }, servicePath: one },
    sent: '"alterationType":"mine","servicePath":1',
  },
  {
    rule: 'a user attribute with a builtin name wins',
    notification: { attrs: ['alterationType', '*'] },
    stored: { alterationType: { type: 'Text', value: 'mine' } },
    sent: '"alterationType":"mine"',
  },
  ...(['entityCreate', 'entityChange', 'entityUpdate', 'entityDelete'] as const).map(alteration => ({
    rule: `alterationType tells ${alteration}`,
    notification: { attrs: ['alterationType'] },
    alteration,
    sent: `"alterationType":"${alteration}"`,
  })),
  {
    rule: 'a deleted entity is sent as it was last',
    notification: {},
    stored: abc,
    alteration: 'entityDelete',
    sent: '"A":1,"B":2,"C":3',
  },
  {
    rule: 'a location that is a feature is sent as its geometry, as everywhere',
    notification: {},
    stored: {
      L: {
        type: 'geo:json',
        value: { type: 'Feature', properties: {}, geometry: { type: 'Point', coordinates: [1, 2] } },
      },
    },
    sent: '"L":{"type":"Point","coordinates":[1,2]}',
  },
  {
    rule: 'numbers are written as everywhere',
    notification: {},
    stored: { A: { type: 'Number', value: 1e21 }, B: { type: 'Number', value: 0.1234567891 } },
    sent: '"A":1000000000000000000000,"B":0.123456789',
  },

  // onlyChangedAttrs (docs/interface/notifications.md#only-changed-attributes)
  {
    rule: 'onlyChangedAttrs sends what the request named, changed or not',
    notification: { onlyChangedAttrs: true },
    stored: abc,
    named: ['C', 'A'],
    sent: '"A":1,"C":3',
  },
  {
    rule: 'onlyChangedAttrs keeps the order of the list',
    notification: { onlyChangedAttrs: true, attrs: ['C', 'B', 'A'] },
    stored: abc,
    named: ['A', 'C'],
    sent: '"C":3,"A":1',
  },
  {
    rule: 'onlyChangedAttrs with exceptAttrs sends what was named and is not left out',
    notification: { onlyChangedAttrs: true, exceptAttrs: ['B'] },
    stored: abc,
    named: ['A', 'B'],
    sent: '"A":1',
  },
  {
    rule: 'onlyChangedAttrs keeps alterationType and the dates when they are listed, and servicePath not',
    notification: {
      onlyChangedAttrs: true,
      attrs: ['servicePath', 'alterationType', 'dateCreated', 'dateModified', 'A'],
    },
    stored: abc,
    named: ['B'],
    sent: '"alterationType":"entityChange","dateCreated":"2024-05-01T08:00:00.000Z","dateModified":"2024-05-02T09:30:00.000Z"',
  },
  {
    rule: 'onlyChangedAttrs with * sends what was named and the builtin attributes that are listed',
    notification: { onlyChangedAttrs: true, attrs: ['*', 'alterationType', 'servicePath'] },
    stored: abc,
    named: ['B'],
    sent: '"B":2,"alterationType":"entityChange"',
  },
  {
    rule: 'onlyChangedAttrs leaves the date of expiry out unless the request named it',
    notification: { onlyChangedAttrs: true, attrs: ['dateExpires', 'A'] },
    stored: expiring,
    named: ['A'],
    sent: '"A":1',
  },
  {
    rule: 'onlyChangedAttrs leaves out a user attribute with a builtin name that is not listed',
    notification: { onlyChangedAttrs: true },
    stored: { A: one, alterationType: { type: 'Text', value: 'mine' } },
    named: ['A'],
    sent: '"A":1',
  },
  {
    rule: 'the deletion of an entity names no attribute',
    notification: { onlyChangedAttrs: true, attrs: ['A', 'alterationType'] },
    stored: abc,
    named: ['A', 'B', 'C'],
    alteration: 'entityDelete',
    sent: '"alterationType":"entityDelete"',
  },

  // covered (docs/interface/notifications.md#missing-attributes)
  {
    rule: 'covered sends null for what the entity lacks, where the list has it',
    notification: { covered: true, attrs: ['X', 'A', 'Y'] },
    stored: abc,
    sent: '"X":null,"A":1,"Y":null',
  },
  {
    rule: 'covered does not touch what the entity has',
    notification: { covered: true, attrs: ['A'] },
    stored: { A: { type: 'Text', value: 'a' } },
    sent: '"A":"a"',
  },
  {
    rule: 'covered makes nulls neither of * nor of builtin names',
    notification: { covered: true, attrs: ['*', 'X', 'dateExpires', 'servicePath'] },
    stored: abc,
    sent: '"A":1,"B":2,"C":3,"servicePath":"/b1","X":null',
  },
  {
    rule: 'covered sends null for an attribute that the request deleted',
    notification: { covered: true, onlyChangedAttrs: true, attrs: ['A', 'X', 'Y'] },
    stored: abc,
    named: ['X'],
    sent: '"X":null',
  },
]

export interface MetadataCase {
  readonly rule: string
  readonly metadata: readonly string[]
  /**
   * The member `metadata` of the temperature, of the name (which the request did not name), and of a covered attribute
   * that is missing.
   */
  readonly sent: readonly [temperature: string, name: string, missing: string]
}

const unit = '"unit":{"type":"Text","value":"CEL"}'
const created = '"dateCreated":{"type":"DateTime","value":"2024-05-01T08:00:00.000Z"}'
const modified = '"dateModified":{"type":"DateTime","value":"2024-05-02T09:30:00.000Z"}'
const notModified = '"dateModified":{"type":"DateTime","value":"2024-05-01T08:00:00.000Z"}'
const update = '"actionType":{"type":"Text","value":"update"}'
const previous = '"previousValue":{"type":"Number","value":20}'

/** The sent metadata (docs/interface/notifications.md#metadata). */
export const metadataCases: readonly MetadataCase[] = [
  { rule: 'an empty list sends all user metadata', metadata: [], sent: [`{${unit}}`, '{}', '{}'] },
  { rule: 'a list sends what it names', metadata: ['unit', 'other'], sent: [`{${unit}}`, '{}', '{}'] },
  { rule: 'a list hides the others', metadata: ['other'], sent: ['{}', '{}', '{}'] },
  {
    rule: 'dates are those of each attribute',
    metadata: ['dateModified', 'dateCreated'],
    sent: [`{${modified},${created}}`, `{${notModified},${created}}`, '{}'],
  },
  {
    rule: 'builtin metadata alone hide user metadata, and only a named attribute has those of the request',
    metadata: ['previousValue', 'actionType'],
    sent: [`{${previous},${update}}`, '{}', '{}'],
  },
  {
    rule: '* is all user metadata and lets builtin ones follow',
    metadata: ['previousValue', '*', 'actionType'],
    sent: [`{${unit},${update},${previous}}`, '{}', '{}'],
  },
]
