// Refusals and their texts: the rows of docs/interface/errors.md (with docs/interface/requests.md,
// docs/interface/entities.md#identifiers, docs/interface/entities.md#attributes, docs/interface/queries.md#lists,
// docs/interface/updates.md#one-entity, docs/interface/updates.md#single-attributes, docs/interface/entities.md#expiry)
// that concern single entities and attributes.
//
// A row is: request, body, status, name, text. The body is sent as JSON; a string is sent unchanged. Texts are written
// without escaping: on the wire the eight forbidden characters are HTML entities. A text that ends in `...` is only the
// beginning.
//
// Every broker that gets these rows has the stock below, and no row may change it.

export const stock = [
  {
    id: 'R1',
    type: 'Room',
    temp: { type: 'Number', value: 21.5, metadata: {} },
    on: { type: 'Boolean', value: true, metadata: {} },
    name: { type: 'Text', value: 'kitchen', metadata: {} },
    note: { type: 'TextUnrestricted', value: '<b>', metadata: {} },
    since: { type: 'DateTime', value: '2016-10-01T00:00:00.000Z', metadata: {} },
    list: { type: 'StructuredValue', value: [1, 2], metadata: {} },
    place: { type: 'geo:json', value: { type: 'Point', coordinates: [2, 41] }, metadata: {} },
  },
  // Two entities with one id.
  { id: 'twin', type: 'A', temp: { type: 'Number', value: 1, metadata: {} } },
  { id: 'twin', type: 'B', temp: { type: 'Number', value: 2, metadata: {} } },
]

export interface ErrorCase {
  readonly request: string
  readonly headers?: readonly string[]
  readonly body?: unknown
  readonly status: number
  readonly error: string
  readonly text: string
}

type Row = readonly [request: string, body: unknown, text: string, ...headers: string[]]

const all = (status: number, error: string, rows: readonly Row[]): ErrorCase[] =>
  rows.map(([request, body, text, ...headers]) => ({ request, body, headers, status, error, text }))

const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
const plain = 'Content-Type: text/plain'
const long = 'x'.repeat(257)
const notFound = 'The requested entity has not been found. Check type and id'
const noAttribute = 'The entity does not have such an attribute'
const ambiguous = 'More than one matching entity. Please refine your query'
const create = 'POST /v2/entities'
const attrs = '/v2/entities/R1/attrs'
const secondLocation =
  'You cannot use more than one geo location attribute when creating an entity. ' +
  'Use ignoreType metadata if you want to add additional informative locations.'

export const errorCases: readonly ErrorCase[] = [
  ...all(400, 'ParseError', [
    // Invalid JSON or wrong root kind
    [create, '{"id":"R2",}', 'Errors found in incoming JSON buffer'],
    [create, ' ', 'Errors found in incoming JSON buffer'],
    [create, '[]', 'Errors found in incoming JSON buffer'],
    [create, '"R2"', 'Errors found in incoming JSON buffer'],
    [create, 'null', 'Errors found in incoming JSON buffer'],
    [create, '{"id":"R2","a":{"value":1e999}}', 'Errors found in incoming JSON buffer'],
    [create, '{"id":"R2","a":{"value":"\\ud800"}}', 'Errors found in incoming JSON buffer'],
    [`POST ${attrs}`, '[]', 'Errors found in incoming JSON buffer'],
    [`PATCH ${attrs}`, 'true', 'Errors found in incoming JSON buffer'],
    [`PUT ${attrs}`, '{', 'Errors found in incoming JSON buffer'],
    [`PUT ${attrs}/temp`, '21', 'Errors found in incoming JSON buffer'],
    [`PUT ${attrs}/temp/value`, '{21}', 'Errors found in incoming JSON buffer'],
    // Nesting above 50
    ...[
      [create, { id: 'R2', a: { value: nested(51) } }],
      [create, { id: 'R2', a: { value: 1, metadata: { m: { value: nested(51) } } } }],
      [`${create}?options=keyValues`, { id: 'R2', a: nested(51) }],
      [`PUT ${attrs}/list/value`, nested(51)],
      [`PUT ${attrs}/list`, { value: nested(51) }],
      [`PATCH ${attrs}`, '['.repeat(100_000)],
    ].map(
      ([request, body]): Row => [
        request as string,
        body,
        'attribute or metadata value has overpassed maximum nesting limit: 50',
      ],
    ),
  ]),
  ...all(400, 'BadRequest', [
    // Empty object payload
    [`POST ${attrs}`, {}, 'empty payload'],
    [`PATCH ${attrs}`, {}, 'empty payload'],
    [`PUT ${attrs}`, {}, 'empty payload'],
    // Unknown path
    ['GET /v2/entitys', undefined, 'Service not found. Check your URL as probably it is wrong.'],
    ['GET /nowhere', undefined, 'Service not found. Check your URL as probably it is wrong.'],
    // Bad character in path or path identifier
    ['GET /v2/entities/a<b', undefined, 'invalid character in URI'],
    ['GET /v2/entities/a%20b', undefined, 'invalid character in URI'],
    ['DELETE /v2/entities/%C3%BC', undefined, 'invalid character in URI'],
    [`GET ${attrs}/a%23b`, undefined, 'invalid character in URI'],
    [`DELETE ${attrs}/a%26b`, undefined, 'invalid character in URI'],
    [`PUT ${attrs}/a%26b/value`, 1, 'invalid character in URI'],
    [`PUT ${attrs}/a%26b`, { value: 1 }, 'Invalid characters in attribute name'],
    [`GET /v2/entities/${long}`, undefined, 'entity id length: 257, max length supported: 256'],
    [`GET ${attrs}/${long}`, undefined, 'attribute name length: 257, max length supported: 256'],
    // URL parameters
    ['GET /v2/entities/R1?type=a%3Bb', undefined, 'invalid character in URI parameter'],
    ['GET /v2/entities/R1?foo', undefined, 'Empty right-hand-side for URI param /foo/'],
    ['GET /v2/entities/R1?options=fast', undefined, 'Invalid value for URI param /options/'],
    ['GET /v2/entities/R1?limit=x', undefined, 'Bad pagination limit: /x/ [must be a positive integer number]'],
    ['GET /v2/entities?limit=1001', undefined, 'Bad pagination limit: /1001/ [max: 1000]'],
    ['GET /v2/entities?offset=x', undefined, 'Bad pagination offset: /x/ [must be a decimal number]'],
    ['GET /v2/entities?id=R1&idPattern=.*', undefined, 'Incompatible parameters: id, IdPattern'],
    ['GET /v2/entities?type=T&typePattern=.*', undefined, 'Incompatible parameters: type, typePattern'],
    // Content-Type without a body
    [
      'GET /v2/entities/R1',
      undefined,
      'Orion accepts no payload for GET/DELETE requests. HTTP header Content-Type is thus forbidden',
      'Content-Type: application/json',
    ],
    [
      'DELETE /v2/entities/R1',
      undefined,
      'Orion accepts no payload for GET/DELETE requests. HTTP header Content-Type is thus forbidden',
      plain,
    ],
    // Tenant and service path
    [
      create,
      { id: 'R2' },
      'bad character in tenant name - only underscore and alphanumeric characters are allowed',
      'Ctx-Service: a-b',
    ],
    [
      create,
      { id: 'R2' },
      'bad length - a tenant name can be max 50 characters long',
      `Ctx-Service: ${'a'.repeat(51)}`,
    ],
    [create, { id: 'R2' }, 'empty component in ServicePath', 'Ctx-ServicePath: /a//b'],
    // Identifiers: characters, shortest, longest
    [create, { id: 'a b' }, 'Invalid characters in entity id'],
    [create, { id: 'a/b' }, 'Invalid characters in entity id'],
    [create, { id: 'ü' }, 'Invalid characters in entity id'],
    [create, { id: 'R2', type: 'a?b' }, 'Invalid characters in entity type'],
    [create, { id: 'R2', 'a b': { value: 1 } }, 'Invalid characters in attribute name'],
    [create, { id: 'R2', a: { value: 1, type: 'a<b' } }, 'Invalid characters in attribute type'],
    [create, { id: 'R2', a: { value: 1, metadata: { 'm#': { value: 1 } } } }, 'Invalid characters in metadata name'],
    [
      create,
      { id: 'R2', a: { value: 1, metadata: { m: { value: 1, type: 'é' } } } },
      'Invalid characters in metadata type',
    ],
    [create, {}, 'entity id length: 0, min length supported: 1'],
    [create, { type: 'Room' }, 'entity id length: 0, min length supported: 1'],
    [create, { id: '' }, 'entity id length: 0, min length supported: 1'],
    [create, { id: 'R2', type: '' }, 'entity type length: 0, min length supported: 1'],
    [create, { id: 'R2', '': { value: 1 } }, 'attribute name length: 0, min length supported: 1'],
    [create, { id: 'R2', a: { value: 1, type: '' } }, 'attribute type length: 0, min length supported: 1'],
    [create, { id: 'R2', a: { value: 1, metadata: { '': {} } } }, 'metadata name length: 0, min length supported: 1'],
    [
      create,
      { id: 'R2', a: { value: 1, metadata: { m: { type: '' } } } },
      'metadata type length: 0, min length supported: 1',
    ],
    [create, { id: long }, 'entity id length: 257, max length supported: 256'],
    [create, { id: 'R2', type: long }, 'entity type length: 257, max length supported: 256'],
    [create, { id: 'R2', [long]: {} }, 'attribute name length: 257, max length supported: 256'],
    [create, { id: 'R2', a: { type: long } }, 'attribute type length: 257, max length supported: 256'],
    [create, { id: 'R2', a: { metadata: { [long]: {} } } }, 'metadata name length: 257, max length supported: 256'],
    [
      create,
      { id: 'R2', a: { metadata: { m: { type: long } } } },
      'metadata type length: 257, max length supported: 256',
    ],
    // Forbidden character in value
    [create, { id: 'R2', a: { value: 'a<b' } }, 'Invalid characters in attribute value'],
    [create, { id: 'R2', a: { value: { b: ['x', { c: 'y=z' }] } } }, 'Invalid characters in attribute value'],
    [create, { id: 'R2', a: { value: { 'b;': 1 } } }, 'Invalid characters in attribute value'],
    [`${create}?options=keyValues`, { id: 'R2', a: "it's" }, 'Invalid characters in attribute value'],
    [`PUT ${attrs}/name/value`, '"a(b)"', 'Invalid characters in attribute value'],
    [`PUT ${attrs}/name/value`, '"a>b"', 'Invalid characters in attribute value', plain],
    [`PATCH ${attrs}`, { name: { value: '"' } }, 'Invalid characters in attribute value'],
    [create, { id: 'R2', a: { metadata: { m: { value: '>' } } } }, 'Invalid characters in metadata value'],
    [create, { id: 'R2', a: { metadata: { m: { value: [{ '(': 1 }] } } } }, 'Invalid characters in metadata value'],
    [
      create,
      { id: 'R2', a: { type: 'TextUnrestricted', value: '<', metadata: { m: { value: '<' } } } },
      'Invalid characters in metadata value',
    ],
    [create, { id: 'R2', a: { value: [1], metadata: { m: { value: '<' } } } }, 'Invalid characters in metadata value'],
    // Wrong JSON kind of id and type; id and type among attributes
    [create, { id: 5 }, 'Invalid JSON type for entity id'],
    [create, { id: null }, 'Invalid JSON type for entity id'],
    [create, { id: 'R2', type: {} }, 'Invalid JSON type for entity type'],
    [create, { id: 'R2', type: null }, 'Invalid JSON type for entity type'],
    [`POST ${attrs}`, { id: 'R1', a: { value: 1 } }, 'entity id specified in payload'],
    [`PATCH ${attrs}`, { type: 'Room', temp: { value: 1 } }, 'entity type specified in payload'],
    [`PUT ${attrs}`, { id: 'R1', type: 'Room' }, 'entity id specified in payload'],
    // Attribute structure
    [create, { id: 'R2', a: 5 }, 'attribute must be a JSON object, unless keyValues option is used'],
    [create, { id: 'R2', a: [] }, 'attribute must be a JSON object, unless keyValues option is used'],
    [create, { id: 'R2', a: null }, 'attribute must be a JSON object, unless keyValues option is used'],
    [create, { id: 'R2', a: { val: 5 } }, 'unrecognized property for context attribute'],
    [`PUT ${attrs}/temp`, { value: 5, unit: 'C' }, 'unrecognized property for context attribute'],
    [create, { id: 'R2', a: { type: 5 } }, 'invalid JSON type for attribute type'],
    [create, '{"id":"R2","a":{"value":1,"value":2}}', 'duplicated value key in attribute'],
    [create, { id: 'R2', a: { metadata: [] } }, 'metadata not a JSON object'],
    [create, { id: 'R2', a: { metadata: { m: 5 } } }, 'metadata must be a JSON object'],
    [create, { id: 'R2', a: { metadata: { m: { unit: 1 } } } }, 'invalid JSON field for attribute metadata'],
    [create, { id: 'R2', a: { metadata: { m: { type: 1 } } } }, 'invalid JSON type for attribute metadata type'],
    [create, { id: 'R2', a: { metadata: { m: { type: 'DateTime', value: 'x' } } } }, 'date has invalid format'],
    // Duplicates
    [create, '{"id":"R2","temp":{"value":1},"temp":{"value":2}}', 'duplicated attribute /temp/'],
    [`${create}?options=keyValues`, '{"id":"R2","temp":1,"temp":1}', 'duplicated attribute /temp/'],
    [`PATCH ${attrs}`, '{"temp":{},"t\\u0065mp":{}}', 'duplicated attribute /temp/'],
    [create, '{"id":"R2","t":{"value":{"a":1,"a":2}}}', 'duplicated tag-name: /a/ in path: /'],
    [create, '{"id":"R2","t":{"value":{"b":{"a":1,"a":2}}}}', 'duplicated tag-name: /a/ in path: /b/'],
    [`${create}?options=keyValues`, '{"id":"R2","t":{"b":{"a":1,"a":2}}}', 'duplicated tag-name: /a/ in path: /b/'],
    [`PUT ${attrs}/list/value`, '{"b":{"a":1,"a":2}}', 'duplicated tag-name: /a/ in path: /b/'],
    // Dates
    [create, { id: 'R2', a: { type: 'DateTime', value: 'yesterday' } }, 'date has invalid format'],
    [create, { id: 'R2', a: { type: 'ISO8601', value: 5 } }, 'date has invalid format'],
    [create, { id: 'R2', a: { type: 'DateTime', value: '2016-13-01' } }, 'date has invalid format'],
    [`PUT ${attrs}/since/value`, '"soon"', 'date has invalid format'],
    [create, { id: 'R2', dateExpires: { type: 'DateTime', value: 'soon' } }, 'date has invalid format'],
    [
      create,
      { id: 'R2', dateExpires: { value: '2030-01-01' } },
      'error processing date expiration attribute, see log traces',
    ],
    [
      `${create}?options=keyValues`,
      { id: 'R2', dateExpires: '2030-01-01' },
      'error processing date expiration attribute, see log traces',
    ],
    // Locations
    [create, { id: 'R2', p: { type: 'geo:json', value: 'x' } }, 'geo:json needs an object or null as value'],
    [create, { id: 'R2', p: { type: 'geo:json', value: { type: 'Spot' } } }, 'Wrong GeoJson'],
    [
      create,
      { id: 'R2', p: { type: 'geo:point', value: 'here' } },
      'error parsing location attribute: geo coordinates format error [see Orion user manual]: here',
    ],
    // Plain-text values
    [`PUT ${attrs}/name/value`, '"on', 'Missing citation-mark at end of string', plain],
    [`PUT ${attrs}/name/value`, 'on', 'attribute value type not recognized', plain],
    [`PUT ${attrs}/name/value`, '{"a":1}', 'attribute value type not recognized', plain],
  ]),
  ...all(404, 'NotFound', [
    ['GET /v2/entities/R2', undefined, notFound],
    ['GET /v2/entities/R2/attrs', undefined, notFound],
    ['GET /v2/entities/R2/attrs/temp', undefined, notFound],
    ['GET /v2/entities/R2/attrs/temp/value', undefined, notFound],
    ['GET /v2/entities/R1?type=Lamp', undefined, notFound],
    ['GET /v2/entities/R1?type=Room,Lamp', undefined, notFound],
    ['DELETE /v2/entities/R2', undefined, notFound],
    ['DELETE /v2/entities/R1?type=Lamp', undefined, notFound],
    ['DELETE /v2/entities/R2/attrs/temp', undefined, notFound],
    ['POST /v2/entities/R2/attrs', { a: { value: 1 } }, notFound],
    ['POST /v2/entities/R2/attrs?options=append', { a: { value: 1 } }, notFound],
    ['PATCH /v2/entities/R2/attrs', { a: { value: 1 } }, notFound],
    ['PUT /v2/entities/R2/attrs', { a: { value: 1 } }, notFound],
    ['PUT /v2/entities/R2/attrs/temp', { value: 1 }, notFound],
    ['PUT /v2/entities/R2/attrs/temp/value', 1, notFound],
    [`GET ${attrs}/hum`, undefined, noAttribute],
    [`GET ${attrs}/hum/value`, undefined, noAttribute],
    [`GET ${attrs}/dateCreated`, undefined, noAttribute],
    [`PUT ${attrs}/hum`, { value: 1 }, noAttribute],
    [`PUT ${attrs}/hum/value`, 1, noAttribute],
    [`DELETE ${attrs}/hum`, undefined, noAttribute],
  ]),
  ...all(405, 'MethodNotAlowed', [
    ['DELETE /v2', undefined, 'method not allowed'],
    ['PATCH /v2/entities/R1', { temp: { value: 1 } }, 'method not allowed'],
  ]),
  ...all(406, 'NotAcceptable', [
    ['GET /v2/entities/R1', undefined, 'no acceptable mime-type in accept header', 'Accept: text/html'],
    ['GET /v2/entities/R1', undefined, 'acceptable MIME types: application/json', 'Accept: text/plain'],
    [create, { id: 'R2' }, 'acceptable MIME types: application/json', 'Accept: text/*'],
    [`GET ${attrs}/temp/value`, undefined, 'accepted MIME types: text/plain', 'Accept: application/json'],
  ]),
  ...all(409, 'TooManyResults', [
    ['GET /v2/entities/twin', undefined, ambiguous],
    ['GET /v2/entities/twin/attrs', undefined, ambiguous],
    ['GET /v2/entities/twin/attrs/temp', undefined, ambiguous],
    ['GET /v2/entities/twin/attrs/temp/value', undefined, ambiguous],
    ['DELETE /v2/entities/twin', undefined, ambiguous],
    ['POST /v2/entities/twin/attrs', { a: { value: 1 } }, ambiguous],
    ['PATCH /v2/entities/twin/attrs', { temp: { value: 1 } }, ambiguous],
    ['PUT /v2/entities/twin/attrs', { temp: { value: 1 } }, ambiguous],
    ['PUT /v2/entities/twin/attrs/temp', { value: 1 }, ambiguous],
    ['PUT /v2/entities/twin/attrs/temp/value', 1, ambiguous],
    ['DELETE /v2/entities/twin/attrs/temp', undefined, ambiguous],
  ]),
  ...all(411, 'ContentLengthRequired', [
    [create, undefined, 'Zero/No Content-Length in PUT/POST/PATCH request'],
    [`PATCH ${attrs}`, undefined, 'Zero/No Content-Length in PUT/POST/PATCH request', 'Content-Length: 0'],
    [`PUT ${attrs}/temp/value`, undefined, 'Zero/No Content-Length in PUT/POST/PATCH request', plain],
  ]),
  ...all(413, 'RequestEntityTooLarge', [
    [create, undefined, 'payload size: 1048577, max size supported: 1048576', 'Content-Length: 1048577'],
  ]),
  ...all(413, 'NoResourceAvailable', [
    [
      create,
      {
        id: 'R2',
        p: { type: 'geo:json', value: { type: 'Point', coordinates: [1, 1] } },
        q: { type: 'geo:point', value: '1, 1' },
      },
      secondLocation,
    ],
    [`POST ${attrs}`, { second: { type: 'geo:point', value: '1, 1' } }, secondLocation],
    [`PATCH ${attrs}`, { name: { type: 'geo:point', value: '1, 1' } }, secondLocation],
  ]),
  ...all(415, 'UnsupportedMediaType', [
    [create, '<a/>', 'not supported content type: text/xml', 'Content-Type: text/xml'],
    [create, { id: 'R2' }, 'not supported content type: text/plain', plain],
    [`PUT ${attrs}/temp`, { value: 1 }, 'not supported content type: text/plain', plain],
    [`PUT ${attrs}/temp/value`, '1', 'not supported content type: text/csv', 'Content-Type: text/csv'],
    [
      create,
      '{"id":"R2"}',
      'Content-Type header not used, default application/octet-stream is not supported',
      'Content-Type:',
    ],
  ]),
  ...all(422, 'Unprocessable', [
    [create, { id: 'R1', type: 'Room' }, 'Already Exists'],
    [
      `POST ${attrs}?options=append`,
      { temp: { value: 1 }, on: { value: 1 } },
      'one or more of the attributes in the request already exist: R1 - [ temp, on ]',
    ],
    [
      `POST ${attrs}?options=append&type=Room`,
      { on: { value: 1 } },
      'one or more of the attributes in the request already exist: R1/Room - [ on ]',
    ],
    [`PATCH ${attrs}`, { b: { value: 1 }, a: { value: 1 } }, 'do not exist: R1 - [ b, a ]'],
    [`PATCH ${attrs}?type=Room`, { a: { value: 1 } }, 'do not exist: R1/Room - [ a ]'],
  ]),
  ...all(500, 'InternalServerError', [
    [`PATCH ${attrs}`, { temp: { value: 1 }, name: { value: { $inc: 1 } } }, 'Database Error (...'],
    [`POST ${attrs}`, { list: { value: { $inc: 1 } }, extra: { value: 1 } }, 'Database Error (...'],
    [`PUT ${attrs}/temp/value`, { $push: 1 }, 'Database Error (...'],
    [create, { id: 'R2', a: { value: { $inc: 'x' } } }, 'Database Error (...'],
  ]),
]
