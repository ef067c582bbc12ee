// The payloads of op/query, op/update and op/notify: the texts of refusals, and the one answer that the outcomes of
// many entities become.
import t from 'tap'
import {
  type BatchAction,
  batchOutcome,
  parseBatchUpdate,
  parseNotification,
  parseQueryPayload,
} from '../../../src/domain/entities/batch.js'
import type { Payload } from '../../../src/domain/entities/entity.js'
import type { Json } from '../../../src/domain/json.js'
import { type Refusal, type Result, refusals, refusalText } from '../../../src/domain/refusal.js'

const payload = (value: Json): Payload => ({ value, duplicates: [], deep: false })

/** The refusal in short: its text, after its kind if that is not BadRequest; undefined when accepted. */
function no(result: Result<unknown>): string | undefined {
  if (result.ok) return undefined
  const { kind } = result.refusal
  const text = refusalText(result.refusal)
  return kind === 'BadRequest' ? text : `${kind}: ${text}`
}

function accepted<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(refusalText(result.refusal))
  return result.value
}

type Row = readonly [given: Json, text: string]

const notJson = 'ParseError: Errors found in incoming JSON buffer'
const long = 'x'.repeat(257)

const wrongTops: readonly Row[] = [
  [null, notJson],
  [7, notJson],
  ['text', notJson],
  [[], notJson],
  [{}, 'empty payload'],
  [{ foo: 1 }, 'Unrecognized field in JSON payload: /foo/'],
]

t.test('every batch payload is an object with known fields only', async t => {
  for (const [given, text] of wrongTops) {
    const name = JSON.stringify(given)
    t.equal(no(parseQueryPayload(payload(given))), text, `query ${name}`)
    t.equal(no(parseBatchUpdate(payload(given), false)), text, `update ${name}`)
    t.equal(no(parseNotification(payload(given), '')), text, `notify ${name}`)
  }
})

const wrongQueries: readonly Row[] = [
  [{ metadata: ['*'] }, 'Invalid JSON payload, no relevant fields found'],
  [{ entities: [{ id: 'E' }], foo: 1 }, 'Unrecognized field in JSON payload: /foo/'],
  [{ entities: {} }, 'not a JSON array'],
  [{ entities: null }, 'not a JSON array'],
  [{ attrs: 'temp' }, 'the field /attrs/ must be a JSON array'],
  [{ attributes: {} }, 'the field /attributes/ must be a JSON array'],
  [{ attrs: [], metadata: 'm' }, 'the field /metadata/ must be a JSON array'],
  [{ attrs: ['a', 1] }, 'only JSON Strings allowed in attrs list'],
  [{ attributes: [null] }, 'only JSON Strings allowed in attributes list'],
  [{ attrs: [], metadata: [{}] }, 'only JSON Strings allowed in metadata list'],
  [{ expression: 'temp>1' }, 'expression is not an object'],
  [{ expression: [] }, 'expression is not an object'],
  [{ expression: null }, 'expression is not an object'],
  [{ expression: {} }, 'expression is empty'],
]

const wrongSelectors: readonly Row[] = [
  ['E1', 'entity is not a JSON object'],
  [['E1'], 'entity is not a JSON object'],
  [{ id: 'E', idPattern: 'E' }, 'both /id/ and /idPattern/ present'],
  [{ id: 'E', type: 'T', typePattern: 'T' }, 'both /type/ and /typePattern/ present'],
  [{}, 'nor /id/ nor /idPattern/ present'],
  [{ type: 'T' }, 'nor /id/ nor /idPattern/ present'],
  [{ id: 'E', temp: 1 }, 'no attributes allowed in Entity in this payload'],
  [{ id: 1 }, 'Invalid JSON type for entity id'],
  [{ id: null }, 'Invalid JSON type for entity id'],
  [{ idPattern: {} }, 'Invalid JSON type for entity idPattern'],
  [{ id: 'E', type: [] }, 'Invalid JSON type for entity type'],
  [{ id: 'E', typePattern: true }, 'Invalid JSON type for entity typePattern'],
  [{ id: '' }, 'entity id length: 0, min length supported: 1'],
  [{ id: 'a b' }, 'Invalid characters in entity id'],
  [{ id: long }, 'entity id length: 257, max length supported: 256'],
  [{ id: 'E', type: '' }, 'entity type length: 0, min length supported: 1'],
  [{ id: 'E', type: 'T#' }, 'Invalid characters in entity type'],
  [{ idPattern: '.*', type: long }, 'entity type length: 257, max length supported: 256'],
]

t.test('wrong query payloads are refused', async t => {
  for (const [given, text] of wrongQueries) t.equal(no(parseQueryPayload(payload(given))), text, JSON.stringify(given))
  for (const [selector, text] of wrongSelectors) {
    const given = { entities: [{ id: 'E0' }, selector] }
    t.equal(no(parseQueryPayload(payload(given))), text, JSON.stringify(selector).slice(0, 60))
  }
  for (const name of ['q', 'mq', 'georel', 'geometry', 'coords']) {
    for (const value of [1, null, ['a'], {}])
      t.equal(no(parseQueryPayload(payload({ expression: { [name]: value } }))), `${name} is not a string`)
    t.equal(no(parseQueryPayload(payload({ expression: { [name]: '' } }))), `${name} is empty`)
  }
})

t.test('a key at the top of a payload may occur only once', async t => {
  const twice = { value: { entities: [] }, duplicates: [['entities']], deep: false }
  t.equal(no(parseQueryPayload(twice)), 'duplicated tag-name: /entities/ in path: /')
})

const selected: readonly (readonly [given: Json, match: object])[] = [
  [{ entities: [] }, { source: { selectors: [] } }],
  [{ attrs: [] }, { source: { selectors: [] }, attrs: undefined }],
  [{ expression: { foo: 1 } }, { source: { selectors: [], q: undefined } }],
  [{ expression: { q: 'a>1', mq: 'a.b' } }, { source: { q: 'a>1', mq: 'a.b', from: 'payload' } }],
  [{ expression: { georel: 'x', coords: 'y' } }, { source: { geo: { georel: 'x', coords: 'y' } } }],
  [
    { attrs: ['b', 'a'], metadata: ['*'] },
    { attrs: ['b', 'a'], metadata: ['*'], source: { anyAttribute: undefined } },
  ],
  [{ attributes: ['a', 'b'] }, { attrs: ['a', 'b'], source: { anyAttribute: ['a', 'b'] } }],
  [{ attributes: [] }, { attrs: undefined, source: { anyAttribute: undefined } }],
  [
    {
      entities: [
        { idPattern: '^Room', type: 'Room' },
        { id: 'bus7', typePattern: '^Veh' },
      ],
    },
    {
      source: {
        selectors: [
          { idPattern: '^Room', types: ['Room'] },
          { ids: ['bus7'], typePattern: '^Veh' },
        ],
      },
    },
  ],
  // These characters are forbidden in identifiers, not in patterns.
  [{ entities: [{ idPattern: '^(a|b) c?$' }] }, { source: { selectors: [{ idPattern: '^(a|b) c?$' }] } }],
]

t.test('a query payload becomes a selection and a view', async t => {
  for (const [given, match] of selected)
    t.match(accepted(parseQueryPayload(payload(given))), match, JSON.stringify(given))
})

const badAction = 'invalid update action type: right ones are: append, appendStric, delete, replace, update'
const one = { id: 'E', type: 'T' }

const wrongUpdates: readonly Row[] = [
  [{ actionType: 'append' }, 'Invalid JSON payload, mandatory field /entities/ not found'],
  [{ entities: [one] }, 'Invalid JSON payload, mandatory field /actionType/ not found'],
  [{ actionType: 'append', entities: [] }, 'empty entities vector'],
  [{ actionType: 'append', entities: one }, 'not a JSON array'],
  [{ actionType: 'append', entities: null }, 'not a JSON array'],
  [{ actionType: 'upsert', entities: [one] }, badAction],
  [{ actionType: '', entities: [one] }, badAction],
  [{ actionType: 'constructor', entities: [one] }, badAction],
  [{ actionType: 1, entities: [one] }, badAction],
  [{ actionType: null, entities: [one] }, badAction],
  [{ actionType: 'append', entities: [one], foo: 1 }, 'Unrecognized field in JSON payload: /foo/'],
]

const wrongItems: readonly Row[] = [
  [{ idPattern: '.*' }, 'NotImplemented: NotImplemented'],
  [{ id: 'E', idPattern: '.*' }, 'NotImplemented: NotImplemented'],
  [{ type: 'T' }, 'nor /id/ nor /idPattern/ present'],
  [{ id: 'E', type: '' }, 'entity type length: 0, min length supported: 1'],
  [{ id: '' }, 'entity id length: 0, min length supported: 1'],
  [{ id: 'a&b' }, 'Invalid characters in entity id'],
  [{ id: long }, 'entity id length: 257, max length supported: 256'],
  [{ id: 1 }, 'Invalid JSON type for entity id'],
  [{ id: 'E', type: null }, 'Invalid JSON type for entity type'],
  [{ id: 'E', 'a b': { value: 1 } }, 'Invalid characters in attribute name'],
  [{ id: 'E', '': { value: 1 } }, 'attribute name length: 0, min length supported: 1'],
]

const wrongAttributes: readonly Row[] = [
  [{ id: 'E', a: 1 }, 'attribute must be a JSON object, unless keyValues option is used'],
  [{ id: 'E', a: { value: 1, foo: 1 } }, 'unrecognized property for context attribute'],
  [{ id: 'E', a: { value: '<' } }, 'Invalid characters in attribute value'],
  [{ id: 'E', a: { value: 1, type: 'a b' } }, 'Invalid characters in attribute type'],
  [{ id: 'E', a: { value: 1, metadata: 1 } }, 'metadata not a JSON object'],
]

t.test('wrong update payloads are refused, for each position of the wrong entity', async t => {
  for (const [given, text] of wrongUpdates)
    t.equal(no(parseBatchUpdate(payload(given), false)), text, JSON.stringify(given))
  for (const actionType of ['append', 'appendStrict', 'update', 'replace', 'delete'])
    for (const [item, text] of actionType === 'delete' ? wrongItems : [...wrongItems, ...wrongAttributes])
      t.equal(
        no(parseBatchUpdate(payload({ actionType, entities: [one, item] }), false)),
        text,
        `${actionType} ${JSON.stringify(item).slice(0, 60)}`,
      )
  for (const item of [null, 'E', ['E']])
    t.equal(
      no(parseBatchUpdate(payload({ actionType: 'append', entities: [item] }), false)),
      'entity is not a JSON object',
    )
})

t.test('the same entity may occur twice in a batch, the same attribute only once in an entity', async t => {
  const batch = { actionType: 'append', entities: [one, { ...one, a: { value: 1 } }] }
  t.equal(accepted(parseBatchUpdate(payload(batch), false)).items.length, 2)
  const duplicates = [['entities', 1, 'a']]
  t.equal(no(parseBatchUpdate({ value: batch, duplicates, deep: false }, false)), 'duplicated attribute /a/')
})

const names: readonly (readonly [given: string, action: BatchAction])[] = [
  ['append', 'append'],
  ['appendStrict', 'appendStrict'],
  ['update', 'update'],
  ['delete', 'delete'],
  ['replace', 'replace'],
  ['APPEND', 'append'],
  ['APPEND_STRICT', 'appendStrict'],
  ['append_strict', 'appendStrict'],
  ['UPDATE', 'update'],
  ['Delete', 'delete'],
  ['REPLACE', 'replace'],
]

t.test('actions have new names and deprecated ones', async t => {
  for (const [actionType, action] of names)
    t.equal(accepted(parseBatchUpdate(payload({ actionType, entities: [one] }), false)).action, action, actionType)
})

t.test('of a delete only the names of attributes count', async t => {
  const entities = [{ id: 'E', type: 'T', b: null, a: 5, c: { value: '<', foo: 1 } }, { id: 'F' }]
  t.match(accepted(parseBatchUpdate(payload({ actionType: 'delete', entities }), false)).items, [
    { id: 'E', type: 'T', names: ['b', 'a', 'c'] },
    { id: 'F', type: undefined, names: [] },
  ])
})

const formatRefused = (word: string) => `attribute render format /${word}/ not supported for notifications`

const wrongNotifications: readonly Row[] = [
  [{ data: [] }, 'invalid JSON payload, mandatory field /subscriptionId/ not found'],
  [{ subscriptionId: 's' }, 'Invalid JSON payload, mandatory field /data/ not found'],
  [{ subscriptionId: 1, data: [] }, '/subscriptionId/ must be a JSON string'],
  [{ subscriptionId: null, data: [] }, '/subscriptionId/ must be a JSON string'],
  [{ subscriptionId: 's', data: one }, 'notification field /data/ must be a JSON array'],
  [{ subscriptionId: 's', data: null }, 'notification field /data/ must be a JSON array'],
  [{ subscriptionId: 's', data: [one, 'E'] }, 'notification data vector item must be a JSON object'],
  [{ subscriptionId: 's', data: [null] }, 'notification data vector item must be a JSON object'],
  [{ subscriptionId: 's', data: [one], foo: 1 }, 'Unrecognized field in JSON payload: /foo/'],
  [
    { subscriptionId: 's', data: [{ ...one, a: 1 }] },
    'attribute must be a JSON object, unless keyValues option is used',
  ],
]

t.test('wrong notifications are refused', async t => {
  for (const [given, text] of wrongNotifications)
    t.equal(no(parseNotification(payload(given), '')), text, JSON.stringify(given))
})

t.test('a notification is normalized, or names its format', async t => {
  const given = payload({ subscriptionId: 's', data: [{ id: 'E' }, one] })
  for (const format of ['', 'normalized'])
    t.match(accepted(parseNotification(given, format)), { action: 'append', items: [{ type: 'Thing' }, one] })
  for (const format of ['keyValues', 'uniqueValues', 'custom'])
    t.equal(no(parseNotification(given, format)), formatRefused(format))
  for (const format of ['values', 'simplifiedNormalized', 'NORMALIZED', 'legacy'])
    t.equal(no(parseNotification(given, format)), 'invalid render format for notifications', format)
})

t.test('a notification of a deletion is about identities, and its other contents do not count', async t => {
  const given = payload({ subscriptionId: 's', data: [{ id: 'E' }, { ...one, a: { value: '<' }, b: 1 }] })
  t.strictSame(accepted(parseNotification(given, 'normalized', 'entityDelete')), {
    action: 'delete',
    items: [
      { id: 'E', type: 'Thing', attributes: new Map(), names: [] },
      { id: one.id, type: one.type, attributes: new Map(), names: [] },
    ],
  })
  const nameless = payload({ subscriptionId: 's', data: [{ type: 'T' }] })
  t.equal(no(parseNotification(nameless, '', 'entityDelete')), no(parseNotification(nameless, '')))
})

t.test('a notification of any other alteration is to be appended, and a word that is none is refused', async t => {
  const given = payload({ subscriptionId: 's', data: [one] })
  for (const alteration of ['', 'entityCreate', 'entityUpdate', 'entityChange'])
    t.match(accepted(parseNotification(given, '', alteration)), { action: 'append', items: [one] }, alteration)
  for (const alteration of ['delete', 'entitydelete', 'entityDelete, entityDelete', 'toString'])
    t.equal(
      no(parseNotification(given, '', alteration)),
      'invalid alteration type for notifications, accepted values: entityCreate, entityChange, entityUpdate, entityDelete',
      alteration,
    )
})

const missing = (kind: 'Unprocessable' | 'PartialUpdate', label: string, ...attributes: string[]) =>
  refusals.attributesMissing(kind, label, attributes)
const exist = (kind: 'Unprocessable' | 'PartialUpdate', label: string, ...attributes: string[]) =>
  refusals.attributesExist(kind, label, attributes)
const gone = refusals.entityNotFound
const fine = undefined

/** The answer to a batch of entities, written `R1/Room` or `R1`, from the outcome of each. */
function outcome(action: BatchAction, ...rows: readonly (readonly [label: string, Refusal | undefined])[]) {
  const items = rows.map(([label]) => {
    const [id, type] = label.split('/') as [string, string?]
    return { id, type }
  })
  const refusal = batchOutcome(
    action,
    items,
    rows.map(([, each]) => each),
  )
  return refusal && `${refusal.kind}: ${refusalText(refusal)}`
}

t.test('a batch of which all succeeded is not refused', async t => {
  t.equal(outcome('update', ['R1/Room', fine], ['R2', fine]), undefined)
  t.equal(outcome('append', ['R1/Room', fine]), undefined)
})

const existing = 'one or more of the attributes in the request already exist'

t.test('the examples of the interface', async t => {
  t.equal(
    outcome('update', ['R8/Room', gone], ['R9/Room', gone]),
    'NotFound: do not exist: R8/Room - [entity itself], R9/Room [entity itself]',
  )
  t.equal(
    outcome('update', ['R1/Room', missing('PartialUpdate', 'R1/Room', 'x')], ['R9/Room', gone]),
    'PartialUpdate: do not exist: R1/Room - [ x ], R9/Room [entity itself]',
  )
  t.equal(
    outcome('update', ['R1/Room', missing('Unprocessable', 'R1/Room', 'x')]),
    'Unprocessable: do not exist: R1/Room - [ x ]',
  )
  t.equal(
    outcome(
      'appendStrict',
      ['R1/Room', exist('Unprocessable', 'R1/Room', 'a', 'b')],
      ['R2/Room', exist('Unprocessable', 'R2/Room', 'a', 'b')],
    ),
    `Unprocessable: ${existing}: R1/Room - [ a, b ], R2/Room - [ a, b ]`,
  )
  t.equal(
    outcome('appendStrict', ['R1/Room', fine], ['R2/Room', exist('Unprocessable', 'R2/Room', 'a')]),
    `PartialUpdate: ${existing}: R2/Room - [ a ]`,
  )
})

t.test('only the first of the failing items has a dash before "entity itself"', async t => {
  t.equal(
    outcome('delete', ['R1/Room', fine], ['R2/Room', gone], ['R3', gone]),
    'PartialUpdate: do not exist: R2/Room - [entity itself], R3 [entity itself]',
  )
  t.equal(
    outcome('replace', ['R1', gone], ['R2', gone], ['R3/T', gone]),
    'NotFound: do not exist: R1 - [entity itself], R2 [entity itself], R3/T [entity itself]',
  )
  t.equal(
    outcome('update', ['R9', gone], ['R1', missing('Unprocessable', 'R1', 'x', 'y')]),
    'Unprocessable: do not exist: R9 - [entity itself], R1 - [ x, y ]',
  )
})

t.test('a failure of another kind decides, the last of them', async t => {
  t.equal(
    outcome('update', ['R1', refusals.entityAmbiguous], ['R2', gone], ['R3', fine]),
    'TooManyResults: More than one matching entity. Please refine your query',
  )
  t.equal(
    outcome('append', ['R1', refusals.entityAmbiguous], ['R2', refusals.locationSecond], ['R3', fine]),
    `NoResourceAvailable: ${refusalText(refusals.locationSecond)}`,
  )
  t.equal(
    outcome('append', ['R1', refusals.operatorStored('$inc', 'a number')], ['R2', fine]),
    'InternalServerError: Database Error ($inc needs a number as stored value)',
  )
})
