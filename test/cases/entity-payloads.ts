// Payloads that are refused, and the texts of the refusals, written down once more from the specification. Bodies are
// JSON as a client sends it. Every text belongs to a 400; `BadRequest` unless the table says `ParseError`.

export type RefusedPayload = readonly [what: string, body: string, description: string]

const notJson = 'ParseError Errors found in incoming JSON buffer'
const a = (count: number): string => 'a'.repeat(count)

/** Payloads of `POST /v2/entities`, with id and type. */
export const refusedEntities: readonly RefusedPayload[] = [
  ['empty body', '{}', 'entity id length: 0, min length supported: 1'],
  ['no id', '{"type":"Room","temp":{"value":21}}', 'entity id length: 0, min length supported: 1'],
  ['empty id', '{"id":""}', 'entity id length: 0, min length supported: 1'],
  ['id is a number', '{"id":1}', 'Invalid JSON type for entity id'],
  ['id is null', '{"id":null}', 'Invalid JSON type for entity id'],
  ['id is an object', '{"id":{}}', 'Invalid JSON type for entity id'],
  ['id is an array', '{"id":["R1"]}', 'Invalid JSON type for entity id'],
  ['id with a blank', '{"id":"R 1"}', 'Invalid characters in entity id'],
  ['id beyond ASCII', '{"id":"Räum"}', 'Invalid characters in entity id'],
  ['id too long', `{"id":"${a(257)}"}`, 'entity id length: 257, max length supported: 256'],
  ['empty type', '{"id":"R1","type":""}', 'entity type length: 0, min length supported: 1'],
  ['type is a number', '{"id":"R1","type":7}', 'Invalid JSON type for entity type'],
  ['type is null', '{"id":"R1","type":null}', 'Invalid JSON type for entity type'],
  ['type is an object', '{"id":"R1","type":{"value":"Room"}}', 'Invalid JSON type for entity type'],
  ['type with a slash', '{"id":"R1","type":"a/b"}', 'Invalid characters in entity type'],
  ['type too long', `{"id":"R1","type":"${a(257)}"}`, 'entity type length: 257, max length supported: 256'],
  ['body is an array', '[]', notJson],
  ['body is a string', '"R1"', notJson],
  ['body is a number', '1', notJson],
  ['body is null', 'null', notJson],
]

/** Payloads of `POST`, `PATCH` and `PUT` on `/attrs`. */
export const refusedAttributeLists: readonly RefusedPayload[] = [
  ['empty body', '{}', 'empty payload'],
  ['id', '{"id":"R1","temp":{"value":21}}', 'entity id specified in payload'],
  ['id that is no string', '{"id":1}', 'entity id specified in payload'],
  ['type', '{"type":"Room","temp":{"value":21}}', 'entity type specified in payload'],
  ['type that is an attribute', '{"type":{"value":1}}', 'entity type specified in payload'],
  ['body is an array', '[]', notJson],
  ['body is a string', '"temp"', notJson],
  ['body is null', 'null', notJson],
]

/** One attribute, called temp, in every request that takes normalized attributes. */
export const refusedAttributes: readonly RefusedPayload[] = [
  // its form
  ['bare number', '21', 'attribute must be a JSON object, unless keyValues option is used'],
  ['bare string', '"21"', 'attribute must be a JSON object, unless keyValues option is used'],
  ['null', 'null', 'attribute must be a JSON object, unless keyValues option is used'],
  ['array', '[]', 'attribute must be a JSON object, unless keyValues option is used'],
  ['unknown key', '{"value":1,"unit":"C"}', 'unrecognized property for context attribute'],
  ['key in upper case', '{"Value":1}', 'unrecognized property for context attribute'],
  ['key __proto__', '{"__proto__":{"value":1}}', 'unrecognized property for context attribute'],
  ['key constructor', '{"constructor":1}', 'unrecognized property for context attribute'],
  // its type
  ['type is a number', '{"type":1,"value":1}', 'invalid JSON type for attribute type'],
  ['type is null', '{"type":null,"value":1}', 'invalid JSON type for attribute type'],
  ['empty type', '{"type":""}', 'attribute type length: 0, min length supported: 1'],
  ['type with a blank', '{"type":"a b"}', 'Invalid characters in attribute type'],
  ['type with a forbidden character', '{"type":"a=b"}', 'Invalid characters in attribute type'],
  ['type too long', `{"type":"${a(257)}"}`, 'attribute type length: 257, max length supported: 256'],
  // its metadata
  ['metadata is an array', '{"metadata":[]}', 'metadata not a JSON object'],
  ['metadata is null', '{"metadata":null}', 'metadata not a JSON object'],
  ['metadata is a string', '{"metadata":"x"}', 'metadata not a JSON object'],
  ['metadata element is bare', '{"metadata":{"m":1}}', 'metadata must be a JSON object'],
  ['metadata element is null', '{"metadata":{"m":null}}', 'metadata must be a JSON object'],
  ['metadata element is an array', '{"metadata":{"m":[]}}', 'metadata must be a JSON object'],
  ['metadata in metadata', '{"metadata":{"m":{"metadata":{}}}}', 'invalid JSON field for attribute metadata'],
  ['metadata key __proto__', '{"metadata":{"m":{"__proto__":1}}}', 'invalid JSON field for attribute metadata'],
  ['metadata type is a number', '{"metadata":{"m":{"type":1}}}', 'invalid JSON type for attribute metadata type'],
  ['empty metadata type', '{"metadata":{"m":{"type":""}}}', 'metadata type length: 0, min length supported: 1'],
  ['metadata type with a blank', '{"metadata":{"m":{"type":"a b"}}}', 'Invalid characters in metadata type'],
  [
    'metadata type too long',
    `{"metadata":{"m":{"type":"${a(257)}"}}}`,
    'metadata type length: 257, max length supported: 256',
  ],
  ['empty metadata name', '{"metadata":{"":{}}}', 'metadata name length: 0, min length supported: 1'],
  ['metadata name with a blank', '{"metadata":{"a b":{}}}', 'Invalid characters in metadata name'],
  ['metadata name too long', `{"metadata":{"${a(257)}":{}}}`, 'metadata name length: 257, max length supported: 256'],
  // characters
  ['string', '{"value":"a<b"}', 'Invalid characters in attribute value'],
  ['string in an array', '{"value":["a","b("]}', 'Invalid characters in attribute value'],
  ['string at depth', '{"value":{"a":[{"b":"="}]}}', 'Invalid characters in attribute value'],
  ['key', '{"value":{"a;":1}}', 'Invalid characters in attribute value'],
  ['key at depth', '{"value":[{"a":{"b>":1}}]}', 'Invalid characters in attribute value'],
  ['argument of an operator', '{"value":{"$push":"a;b"}}', 'Invalid characters in attribute value'],
  ['type nearly exempt', '{"type":"textunrestricted","value":"a<b"}', 'Invalid characters in attribute value'],
  ['metadata string', '{"metadata":{"m":{"value":"a\'b"}}}', 'Invalid characters in metadata value'],
  ['metadata string at depth', '{"metadata":{"m":{"value":[{"a":"\\""}]}}}', 'Invalid characters in metadata value'],
  ['metadata key', '{"metadata":{"m":{"value":{"a(":1}}}}', 'Invalid characters in metadata value'],
  [
    'metadata of an unrestricted attribute',
    '{"type":"TextUnrestricted","value":"<","metadata":{"m":{"value":"<"}}}',
    'Invalid characters in metadata value',
  ],
  [
    'metadata that is unrestricted itself',
    '{"metadata":{"m":{"type":"TextUnrestricted","value":"<"}}}',
    'Invalid characters in metadata value',
  ],
  [
    'metadata beside a compound',
    '{"value":{"a":1},"metadata":{"m":{"value":"<"}}}',
    'Invalid characters in metadata value',
  ],
  // dates
  ['date is a number', '{"type":"DateTime","value":1}', 'date has invalid format'],
  ['date is a boolean', '{"type":"DateTime","value":true}', 'date has invalid format'],
  ['date is an object', '{"type":"DateTime","value":{}}', 'date has invalid format'],
  ['date is an operator', '{"type":"DateTime","value":{"$max":"2030-01-01"}}', 'date has invalid format'],
  ['date is empty', '{"type":"DateTime","value":""}', 'date has invalid format'],
  ['date is words', '{"type":"DateTime","value":"tomorrow"}', 'date has invalid format'],
  ['date with zone but no time', '{"type":"DateTime","value":"2016-10-01Z"}', 'date has invalid format'],
  ['month 13', '{"type":"DateTime","value":"2016-13-01"}', 'date has invalid format'],
  [
    'more than 29 characters',
    '{"type":"DateTime","value":"2016-10-01T00:00:00.0000000000Z"}',
    'date has invalid format',
  ],
  ['date by the other name', '{"type":"ISO8601","value":"tomorrow"}', 'date has invalid format'],
  ['metadata date', '{"metadata":{"m":{"type":"DateTime","value":"tomorrow"}}}', 'date has invalid format'],
  ['metadata date is a number', '{"metadata":{"m":{"type":"ISO8601","value":1}}}', 'date has invalid format'],
  // locations
  ['GeoJSON is a string', '{"type":"geo:json","value":"1,2"}', 'geo:json needs an object or null as value'],
  ['GeoJSON is a number', '{"type":"geo:json","value":1}', 'geo:json needs an object or null as value'],
  ['GeoJSON is a boolean', '{"type":"geo:json","value":false}', 'geo:json needs an object or null as value'],
  ['GeoJSON is an array', '{"type":"geo:json","value":[1,2]}', 'geo:json needs an object or null as value'],
]

/** The same for `dateExpires`. */
export const refusedExpiries: readonly RefusedPayload[] = [
  ['no date', '{"type":"DateTime","value":"soon"}', 'date has invalid format'],
  ['a number', '{"type":"DateTime","value":1}', 'date has invalid format'],
  ['no type', '{"value":"2030-01-01"}', 'error processing date expiration attribute, see log traces'],
  [
    'another type',
    '{"type":"Text","value":"2030-01-01"}',
    'error processing date expiration attribute, see log traces',
  ],
  [
    'type but in other case',
    '{"type":"datetime","value":"2030-01-01"}',
    'error processing date expiration attribute, see log traces',
  ],
  ['nothing', '{}', 'error processing date expiration attribute, see log traces'],
]

/** Names of attributes. */
export const refusedNames: readonly RefusedPayload[] = [
  ['empty', '', 'attribute name length: 0, min length supported: 1'],
  ['blank', 'a b', 'Invalid characters in attribute name'],
  ['slash', 'a/b', 'Invalid characters in attribute name'],
  ['parenthesis', 'a(b', 'Invalid characters in attribute name'],
  ['beyond ASCII', 'größe', 'Invalid characters in attribute name'],
  ['too long', a(257), 'attribute name length: 257, max length supported: 256'],
]

/** The form in which a request has its attributes. */
export type Carrier = 'entity' | 'keyValues' | 'attribute' | 'value'

/**
 * Keys that a body has twice: their path from the root of the body, and the refusal; `accepted` where the last one
 * wins. An entity with keyValues, an attribute and a value have other roots than a normalized entity.
 */
export const duplicates: readonly (readonly [carrier: Carrier, where: readonly (string | number)[], answer: string])[] =
  [
    ['entity', ['temp'], 'duplicated attribute /temp/'],
    ['entity', ['id'], 'accepted'],
    ['entity', ['type'], 'accepted'],
    ['entity', ['temp', 'type'], 'accepted'],
    ['entity', ['temp', 'value'], 'duplicated value key in attribute'],
    ['entity', ['temp', 'value', 'a'], 'duplicated tag-name: /a/ in path: /'],
    ['entity', ['temp', 'value', 'b', 'a'], 'duplicated tag-name: /a/ in path: /b/'],
    ['entity', ['temp', 'value', 'c', 'b', 'a'], 'duplicated tag-name: /a/ in path: /c/b/'],
    ['entity', ['temp', 'value', 'type'], 'duplicated tag-name: /type/ in path: /'],
    ['keyValues', ['temp'], 'duplicated attribute /temp/'],
    ['keyValues', ['id'], 'accepted'],
    ['keyValues', ['type'], 'accepted'],
    ['keyValues', ['temp', 'a'], 'duplicated tag-name: /a/ in path: /'],
    ['keyValues', ['temp', 'value'], 'duplicated tag-name: /value/ in path: /'],
    ['keyValues', ['temp', 'b', 'a'], 'duplicated tag-name: /a/ in path: /b/'],
    ['attribute', ['type'], 'accepted'],
    ['attribute', ['value'], 'duplicated value key in attribute'],
    ['attribute', ['value', 'a'], 'duplicated tag-name: /a/ in path: /'],
    ['attribute', ['value', 'b', 'a'], 'duplicated tag-name: /a/ in path: /b/'],
    ['value', ['a'], 'duplicated tag-name: /a/ in path: /'],
    ['value', ['b', 'a'], 'duplicated tag-name: /a/ in path: /b/'],
    ['value', ['type'], 'duplicated tag-name: /type/ in path: /'],
  ]
