// Requests that cost a broker as much as one request can, grouped by the stored data that they need. Most are right at
// a limit (docs/interface/request-limits.md), some far beyond. None may hold the event loop for long. Of the answer
// only the status is checked.
//
// A body fills the default limit: 1 MB.

import { valuesMax } from '../../src/domain/limits.js'
import type { LocalNode } from '../support/local-node.js'

export interface HostileRequest {
  readonly name: string
  readonly line: string
  readonly body?: string
  readonly headers?: readonly string[]
  readonly status: number
}

/** Data that is stored first, and requests. */
export interface World {
  readonly name: string
  prepare(node: LocalNode): Promise<void>
  readonly requests: readonly HostileRequest[]
}

const bodyBytesMax = 1_048_576

const list = <T>(count: number, item: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => item(n))

/** Members `a0`, `a1` and so on. */
const members = (count: number, value: (n: number) => unknown, prefix = 'a'): Record<string, unknown> =>
  Object.fromEntries(list(count, n => [`${prefix}${n}`, value(n)]))

/**
 * As many copies of a piece, between a beginning and an end, as a body may hold: by bytes, and unless `beyond` by
 * values.
 */
function filled(begin: string, piece: (n: number) => string, end: string, separator = ',', beyond = false): string {
  const pieces: string[] = []
  let bytesLeft = bodyBytesMax - Buffer.byteLength(begin) - Buffer.byteLength(end)
  let valuesLeft = valuesMax(bodyBytesMax) - valuesIn(begin) - valuesIn(end)
  for (let n = 0; ; n++) {
    const next = piece(n)
    bytesLeft -= Buffer.byteLength(next) + separator.length
    valuesLeft -= valuesIn(next) + valuesIn(separator)
    if (bytesLeft < 0 || (valuesLeft < 0 && !beyond)) return begin + pieces.join(separator) + end
    pieces.push(next)
  }
}

/** Counts values as the broker counts them in a body; none of our texts holds one of these characters. */
const valuesIn = (text: string): number => text.match(/[,:[{]/g)?.length ?? 0

let made = 0
/** A new entity whose only attribute `a` has a value that fills the body. */
const withValue = (
  name: string,
  piece: (n: number) => string,
  status = 201,
  [open, close] = ['[', ']'],
  separator = ',',
): HostileRequest => ({
  name: `create with ${name}`,
  line: 'POST /v2/entities',
  body: filled(`{"id":"V${made++}","type":"Value","a":{"value":${open}`, piece, `${close}}}`, separator),
  status,
})

const create = (name: string, entity: object, status = 201, options = ''): HostileRequest => ({
  name: `create with ${name}`,
  line: `POST /v2/entities${options}`,
  body: JSON.stringify({ id: `C${made++}`, type: 'Created', ...entity }),
  status,
})

const post = (name: string, line: string, body: unknown, status: number): HostileRequest => ({
  name,
  line,
  body: typeof body === 'string' ? body : JSON.stringify(body),
  status,
})

const get = (name: string, line: string, status = 200, headers: readonly string[] = []): HostileRequest => ({
  name,
  line: `GET ${line}`,
  status,
  headers,
})

// Geography

const circle = (count: number, longitude = 0, latitude = 0, radius = 1): number[][] => {
  const open = list(count - 1, n => {
    const angle = (2 * Math.PI * n) / (count - 1)
    return [longitude + radius * Math.cos(angle), latitude + radius * Math.sin(angle)]
  })
  return [...open, open[0]!]
}

/** A comb of slanting teeth whose edges all overlap. */
function comb(count: number): number[][] {
  const teeth = Math.floor((count - 4) / 2)
  const open: number[][] = []
  for (let at = 0; at < teeth; at++) {
    const shift = (40 * at) / teeth
    open.push([shift, -shift], [80 + shift, 80 - shift])
  }
  open.push([125, 45], [80, 90], [-5, 5])
  return [...open, open[0]!]
}

const place = (type: string, coordinates: unknown): object => ({ type: 'geo:json', value: { type, coordinates } })
const zigzag = (count: number): number[][] => list(count, n => [(n % 3600) / 10 - 180, n % 90])
const triangles = (count: number): number[][][][] => list(count, n => [circle(4, (n % 340) - 169, (n % 160) - 80)])

// Names and lists

const names = (count: number): string[] => list(count, n => `a${n}`)
const ids = (count: number): { id: string; type: string }[] => list(count, n => ({ id: `E${n}`, type: 'T' }))
/** Patterns that have no shortcut; the first one has no parentheses, which a filter may not contain. */
const bracketed = (n: number): string => `[ab]*a[ab]{${n}}x`
const pattern = (n: number): string => `${'(a|b'}${n}${')*x'}`

const statements = (count: number, one: (n: number) => string): string => list(count, one).join(';')

const subscription = (fields: { subject?: object; notification?: object; condition?: object }): object => ({
  subject: {
    entities: [{ idPattern: 'nobody' }],
    ...(fields.condition && { condition: fields.condition }),
    ...fields.subject,
  },
  notification: { http: { url: 'http://127.0.0.1:9/' }, ...fields.notification },
})

const subscribe = (name: string, fields: Parameters<typeof subscription>[0], status = 201): HostileRequest =>
  post(`subscribe with ${name}`, 'POST /v2/subscriptions', subscription(fields), status)

/** The macro for the value of the attribute `a`. */
const macro = ['$', '{a}'].join('')

const custom = (fields: object): { notification: object } => ({
  notification: { http: undefined, httpCustom: { url: 'http://127.0.0.1:9/', ...fields } },
})

const register = (name: string, dataProvided: object, status = 201): HostileRequest =>
  post(
    `register ${name}`,
    'POST /v2/registrations',
    { dataProvided, provider: { http: { url: 'http://127.0.0.1:9/' } } },
    status,
  )

const batch = (name: string, actionType: string, entities: unknown, status = 204): HostileRequest =>
  post(`batch ${name}`, 'POST /v2/op/update', { actionType, entities }, status)

/** A query for a page of one entity: the size of the answer is not the point here. */
const query = (name: string, body: unknown, status = 200, parameters = '?limit=1'): HostileRequest =>
  post(`query ${name}`, `POST /v2/op/query${parameters}`, body, status)

/** Nothing is stored: the cost is that of bodies and parameters themselves. */
const emptyWorld: World = {
  name: 'nothing',
  prepare: async () => {},
  requests: [
    create(
      'as many attributes as there may be, key values',
      members(5_000, n => n),
      201,
      '?options=keyValues',
    ),
    create(
      'as many attributes, of 200 bytes each',
      members(5_000, n => ({ type: 'Text', value: 'x'.repeat(150) + n })),
    ),
    create(
      'as many attributes with metadata',
      members(5_000, n => ({ value: n, metadata: { m: { value: n }, n: { value: 'x' } } })),
    ),
    create(
      'as many dates',
      members(5_000, () => ({ type: 'DateTime', value: '2024-05-01T00:00:00Z' })),
    ),
    post(
      'create with 90,000 attributes',
      'POST /v2/entities?options=keyValues',
      filled('{"id":"many",', n => `"a${n}":1`, '}'),
      400,
    ),
    create('500 metadata of one attribute', { a: { value: 1, metadata: members(500, n => ({ value: n })) } }),
    post(
      'create with 90,000 metadata of one attribute',
      'POST /v2/entities',
      filled('{"id":"meta","a":{"metadata":{', n => `"m${n}":{}`, '}}}'),
      400,
    ),
    post(
      'create with metadata all over',
      'POST /v2/entities',
      filled(
        '{"id":"metas","a":{"metadata":{',
        n => (n % 499 === 498 ? `"m${n}":{}}},"a${n}":{"metadata":{"x":{}` : `"m${n}":{}`),
        '}}}',
      ),
      201,
    ),
    withValue('as many numbers as there may be', () => '1'),
    withValue('numbers of many digits', n => `${n}.123456789012345`),
    withValue('huge numbers', n => `1e${n % 308}`, 400),
    withValue('empty arrays', () => '[]'),
    withValue('empty objects', () => '{}'),
    withValue('objects of one member', () => '{"a":1}'),
    withValue('objects of many names', n => `{"k${n}":1}`),
    withValue('as many members', n => `"k${n}":${n}`, 201, ['{', '}']),
    withValue('members that are array indexes', n => `"${1_000_000 - n}":1`, 201, ['{', '}']),
    withValue('short texts', () => '""'),
    withValue('nulls', () => 'null'),
    withValue('arrays as deep as they may be', () => '['.repeat(48) + ']'.repeat(48)),
    withValue('one text', () => 'x'.repeat(1000), 201, ['"', '"'], ''),
    withValue('a text of escapes', () => '\\u00e9', 201, ['"', '"'], ''),
    withValue('a text of backslashes', () => '\\\\', 201, ['"', '"'], ''),
    withValue('a text of other scripts', () => 'ü€😀', 201, ['"', '"'], ''),
    withValue('a forbidden character at its end', n => (n === 100_000 ? '"<"' : '1'), 400),
    post(
      'create with 500,000 numbers',
      'POST /v2/entities',
      filled('{"id":"numbers","a":{"value":[', () => '1', ']}}', ',', true),
      400,
    ),
    post(
      'create with empty arrays all over',
      'POST /v2/entities',
      filled('{"id":"arrays","a":{"value":[', () => '[]', ']}}', ',', true),
      400,
    ),
    post('create with arrays without end', 'POST /v2/entities', '['.repeat(bodyBytesMax), 400),
    post(
      'create with an array that is not closed',
      'POST /v2/entities',
      `${'[1,'.repeat(10)}${'1,'.repeat(500_000)}`,
      400,
    ),
    post('create with blanks', 'POST /v2/entities', ' '.repeat(bodyBytesMax), 400),
    post(
      'create with names that stand twice',
      'POST /v2/entities?options=keyValues',
      filled('{"id":"twice",', n => `"k${n % 40_000}":1`, '}'),
      400,
    ),
    post(
      'create with names that stand twice deep inside',
      'POST /v2/entities',
      filled('{"id":"twice","a":{"value":[', () => '{"a":1,"a":2}', ']}}'),
      400,
    ),
    post(
      'create with long names',
      'POST /v2/entities?options=keyValues',
      filled('{"id":"long",', n => `"${String(n).padStart(256, 'n')}":1`, '}'),
      201,
    ),

    create('a line of as many positions as there may be', { a: place('LineString', zigzag(10_000)) }),
    create('a ring of as many positions', { a: place('Polygon', [circle(10_000)]) }),
    create('a ring whose edges lie over one another', { a: place('Polygon', [comb(10_000)]) }),
    create('as many positions in triangles', { a: place('MultiPolygon', triangles(2_500)) }),
    create('as many positions in legacy form', {
      a: { type: 'geo:line', value: list(10_000, n => `${n % 90}.5, ${n % 180}.25`) },
    }),
    create(
      'blanks in legacy form',
      { a: { type: 'geo:point', value: `${' '.repeat(500_000)}1${' '.repeat(500_000)}` } },
      400,
    ),
    post(
      'create with 40,000 triangles',
      'POST /v2/entities',
      filled(
        '{"id":"triangles","a":{"type":"geo:json","value":{"type":"MultiPolygon","coordinates":[',
        () => '[[[0,0],[1,0],[1,1],[0,0]]]',
        ']}}}',
      ),
      400,
    ),
    post(
      'create with 170,000 positions',
      'POST /v2/entities',
      filled('{"id":"line","a":{"type":"geo:json","value":{"type":"LineString","coordinates":[', () => '[0,0]', ']}}}'),
      400,
    ),
    create(
      'seventeen locations',
      members(17, () => place('Polygon', [list(10_000, n => [n % 180, 1])])),
      413,
    ),

    batch(
      'of as many entities as there may be, without attributes',
      'append',
      list(10_000, n => ({ id: `B${n}`, type: 'Batch' })),
    ),
    batch(
      'of as many deletions of what is not there',
      'delete',
      list(10_000, n => ({ id: `N${n}`, type: 'Batch' })),
      404,
    ),
    batch(
      'of one entity 10,000 times',
      'append',
      list(10_000, n => ({ id: 'same', type: 'Batch', a: { value: n } })),
    ),
    batch(
      'of 60,000 entities',
      'append',
      list(60_000, n => ({ id: `M${n}` })),
      400,
    ),
    post(
      'notify of as many entities',
      'POST /v2/op/notify',
      { subscriptionId: 's', data: list(10_000, n => ({ id: `O${n}`, type: 'Batch' })) },
      200,
    ),

    query('for as many ids', { entities: ids(10_000) }),
    query('for as many ids in order', { entities: ids(10_000) }, 200, '?limit=1&orderBy=id&options=count'),
    query('for 30,000 ids', { entities: list(30_000, n => ({ id: `E${n}` })) }, 400),
    query('for as many patterns as there may be', { entities: list(200, n => ({ idPattern: `^x${n}`, type: 'T' })) }),
    query(
      'for patterns that are all of a kind',
      { entities: list(10_000, () => ({ idPattern: '.*', type: 'T' })) },
      400,
    ),
    query('for patterns with many steps', {
      entities: list(15, n => ({ idPattern: pattern(n).repeat(10), type: 'T' })),
    }),
    query('for as many names', { entities: [{ idPattern: '.*' }], attrs: names(10_000), metadata: names(10_000) }),
    query('for 100,000 names', { entities: [{ idPattern: '.*' }], attrs: names(100_000) }, 400),
    query('for as many names, the old way', { attributes: names(10_000) }),
    query('by many statements', { expression: { q: statements(100, n => `a${n}==${'1,'.repeat(300)}2`) } }),
    query('by a long list', { expression: { q: `a==${list(10_000, n => n).join()}` } }),
    query('by many patterns', { expression: { q: statements(10, n => `a~=${bracketed(n)}`) } }),
    query('by one long name', { expression: { q: `a${'.b'.repeat(30_000)}==1` } }),
    query('by parentheses', { expression: { q: '('.repeat(60_000) } }, 400),
    query('by metadata', { expression: { mq: statements(100, n => `a${n}.m==${'x,'.repeat(300)}y`) } }),
    query('by a shape of many positions', {
      expression: {
        georel: 'intersects',
        geometry: 'line',
        coords: zigzag(2_000)
          .map(([x, y]) => `${y},${x}`)
          .join(';'),
      },
    }),
    query('by a ring of many positions', {
      expression: {
        georel: 'coveredBy',
        geometry: 'polygon',
        coords: comb(2_000)
          .map(([x, y]) => `${y},${x}`)
          .join(';'),
      },
    }),
    query(
      'by 400,000 coordinates',
      { expression: { georel: 'near;maxDistance:1', geometry: 'point', coords: '1,1;'.repeat(200_000) } },
      400,
    ),

    get('list of twenty large entities', '/v2/entities'),
    get('list by many ids', `/v2/entities?limit=1&id=${list(2_700, n => n).join()}`),
    get('list with many names', `/v2/entities?limit=1&attrs=${list(2_700, n => n).join()}`),
    get('list with many parameters', `/v2/entities?limit=1&${list(1_800, n => `p${n}=1`).join('&')}`),
    get('list with encoded parameters', `/v2/entities?limit=1&id=${'%41'.repeat(5_000)}`),
    get('list with as many keys as there may be', `/v2/entities?limit=1&orderBy=${names(16).join()}`),
    get('list with many keys', `/v2/entities?limit=1&orderBy=${names(2_000).join()}`, 400),
    get('a path of many components', `/v2/entities${'/a'.repeat(7_000)}`, 400),
    get('list of an encoded path', `/v2/entities/${'%41'.repeat(5_000)}`, 400),
    get('list of ten paths', '/v2/entities', 200, [
      `Ctx-ServicePath: ${list(10, n => `/${`p${n}/`.repeat(9)}#`).join()}`,
    ]),

    subscribe('as many entities', { subject: { entities: ids(10_000) } }),
    subscribe('30,000 entities', { subject: { entities: list(30_000, n => ({ id: `E${n}` })) } }, 400),
    subscribe('as many types', { subject: { entities: list(10_000, n => ({ idPattern: '.*', type: `T${n}` })) } }, 400),
    subscribe('as many patterns', { subject: { entities: list(200, n => ({ idPattern: `^x${n}`, type: 'T' })) } }),
    subscribe('as many names in its condition', { condition: { attrs: names(10_000) } }),
    subscribe('as many names to notify', { notification: { attrs: names(10_000), metadata: names(10_000) } }),
    subscribe('100,000 names to notify', { notification: { attrs: names(100_000) } }, 400),
    subscribe('a long filter', {
      condition: { expression: { q: statements(100, n => `a${n}==${'1,'.repeat(300)}2`) } },
    }),
    subscribe('a template that fills the body', custom({ json: list(130_000, () => macro) })),
    subscribe('a template of many members', custom({ json: members(65_000, () => 1) })),
    subscribe('a text that fills the body', custom({ payload: `${macro} `.repeat(200_000) })),
    subscribe('as many headers', custom({ headers: members(10_000, () => 'x') })),
    subscribe('as many attributes of its own', custom({ ngsi: { id: 'x', ...members(5_000, n => ({ value: n })) } })),
    register('as many entities', { entities: ids(10_000) }),
    register('as many names', { entities: [{ id: 'E', type: 'T' }], attrs: names(10_000) }),
    register('60,000 entities', { entities: list(30_000, n => ({ id: `E${n}` })) }, 400),
    get('list of subscriptions', '/v2/subscriptions?limit=1000'),
    get('list of registrations', '/v2/registrations?limit=1000'),
  ],
}

/** Entities at the limit of attributes, and a subscription to one. */
const wideWorld: World = {
  name: 'wide entities',
  async prepare(node) {
    const wide = (id: string, type: string): object => ({
      id,
      type,
      ...members(5_000, n => ({ type: 'Number', value: n, metadata: { unit: { type: 'Text', value: 'cm' } } })),
    })
    for (let n = 0; n < 12; n++) await done(node.json('POST /v2/entities', wide(`W${n}`, 'Wide')))
    for (let n = 0; n < 20; n++) {
      const attributes = members(5_000, () => 1, `b${n}-`)
      await done(node.json('POST /v2/entities?options=keyValues', { id: `X${n}`, type: 'Wider', ...attributes }))
    }
    const notification = { http: { url: 'http://127.0.0.1:9/' }, attrs: names(5_000), onlyChangedAttrs: true }
    const subject = { entities: [{ id: 'W9' }], condition: { attrs: names(10_000) } }
    await done(node.json('POST /v2/subscriptions', { subject, notification }))
    const all = { http: { url: 'http://127.0.0.1:9/' } }
    await done(node.json('POST /v2/subscriptions', { subject: { entities: [{ id: 'W9' }] }, notification: all }))
  },
  requests: [
    post('patch of one attribute', 'PATCH /v2/entities/W0/attrs?options=keyValues', '{"a0":9}', 204),
    post('patch of one attribute once more', 'PATCH /v2/entities/W0/attrs?options=keyValues', '{"a0":8}', 204),
    post('patch that leaves all as it is', 'PATCH /v2/entities/W0/attrs?options=keyValues', '{"a0":8}', 204),
    post('one attribute too many', 'POST /v2/entities/W1/attrs?options=keyValues', '{"more":1}', 400),
    post(
      'patch of all attributes',
      'PATCH /v2/entities/W1/attrs?options=keyValues',
      members(5_000, n => n + 1),
      204,
    ),
    post(
      'patch of all attributes, their metadata replaced',
      'PATCH /v2/entities/W1/attrs?options=overrideMetadata',
      members(5_000, n => ({ type: 'Number', value: n })),
      204,
    ),
    post(
      'patch of attributes that are not there',
      'PATCH /v2/entities/W1/attrs?options=keyValues',
      members(5_000, n => n, 'no'),
      422,
    ),
    post(
      'replacement of all attributes',
      'PUT /v2/entities/W2/attrs?options=keyValues',
      members(5_000, n => n),
      204,
    ),
    post(
      'replacement of all attributes by others',
      'PUT /v2/entities/W2/attrs?options=keyValues',
      members(5_000, n => n, 'c'),
      204,
    ),
    post(
      'addition of attributes that are there',
      'POST /v2/entities/W3/attrs?options=append,keyValues',
      members(5_000, n => n),
      422,
    ),
    post(
      'upsert of all attributes',
      'POST /v2/entities?options=upsert',
      { id: 'W3', type: 'Wide', ...members(5_000, n => ({ value: n })) },
      204,
    ),
    post('update of one attribute', 'PUT /v2/entities/W4/attrs/a4999', '{"value":0}', 204),
    post('update of one value', 'PUT /v2/entities/W4/attrs/a4998/value', '{"x":0}', 204),
    { name: 'deletion of one attribute', line: 'DELETE /v2/entities/W4/attrs/a0', status: 204 },
    batch('deletion of all attributes', 'delete', [{ id: 'W5', type: 'Wide', ...members(5_000, () => 1) }]),
    batch(
      'patch of twelve of them',
      'update',
      list(12, n => ({ id: `W${n === 2 || n === 5 ? 6 : n}`, type: 'Wide', a7: { value: -1 } })),
    ),
    post('patch of one that is watched', 'PATCH /v2/entities/W9/attrs?options=keyValues', '{"a0":9}', 204),
    post(
      'patch of all attributes of one that is watched',
      'PATCH /v2/entities/W9/attrs?options=keyValues',
      members(5_000, n => n + 7),
      204,
    ),
    { name: 'deletion of one that is watched', line: 'DELETE /v2/entities/W9', status: 204 },
    get('one', '/v2/entities/W6'),
    get('its key values', '/v2/entities/W6?options=keyValues'),
    get('its values', '/v2/entities/W6?options=values'),
    get('its unique values', '/v2/entities/W6?options=unique'),
    get(
      'all of it and builtins',
      '/v2/entities/W6?attrs=*,dateCreated,dateModified&metadata=*,dateCreated,dateModified',
    ),
    get('many of its attributes', `/v2/entities/W6?attrs=${names(2_400).join()}`),
    get('its attributes', '/v2/entities/W6/attrs'),
    get('one attribute of it', '/v2/entities/W7/attrs/a4999'),
    get('one value of it', '/v2/entities/W8/attrs/a4999/value'),
    get('list by its last attribute', '/v2/entities?q=a4999>1&limit=1'),
    get('list by its last attribute, in order', '/v2/entities?q=a4997>1&orderBy=!a4996,a1&limit=1'),
    get('list of one attribute', '/v2/entities?type=Wide&attrs=a1'),
    get('list of one attribute of one', '/v2/entities?type=Wide&attrs=a1&limit=1'),
    get('list by what is nowhere', '/v2/entities?q=!a4999;nothing>1'),
    get('list by metadata', '/v2/entities?mq=a4999.unit==cm&limit=1'),
    query('for all its attributes', { entities: [{ id: 'W6' }], attrs: names(10_000), metadata: names(10_000) }),
    query(
      'for any of many attributes',
      { entities: [{ idPattern: '.*' }], attributes: [...list(9_999, n => `z${n}`), 'a1'] },
      200,
      '?limit=1',
    ),
    get('types', '/v2/types'),
    get('types, their names only', '/v2/types?options=values'),
    get('types without detail', '/v2/types?options=noAttrDetail'),
    get('the widest type', '/v2/types/Wider'),
    { name: 'deletion of one', line: 'DELETE /v2/entities/W10', status: 204 },
  ],
}

/** An entity of 14 MB. One request cannot create it, but many can. */
const hugeWorld: World = {
  name: 'a huge entity',
  async prepare(node) {
    await done(node.json('POST /v2/entities', { id: 'H', type: 'Huge', a: { value: 1 } }))
    for (let part = 0; part < 16; part++)
      await done(
        node.json(
          'POST /v2/entities/H/attrs',
          members(300, () => ({ value: 'x'.repeat(3_000) }), `p${part}-`),
        ),
      )
  },
  requests: [
    get('the entity', '/v2/entities/H'),
    get('the entity as keyValues', '/v2/entities/H?options=keyValues'),
    get('its values', '/v2/entities/H?options=unique'),
    get('its attributes', '/v2/entities/H/attrs'),
    get('its attributes as keyValues', '/v2/entities/H/attrs?options=keyValues'),
    get('one attribute', '/v2/entities/H/attrs/p15-299'),
    get('a list of it', '/v2/entities?type=Huge'),
    get('a list of it as keyValues', '/v2/entities?type=Huge&options=keyValues'),
    get('its types', '/v2/types/Huge'),
  ],
}

/** Both numbers give 12,000 pairs of path and type. */
const pathsOfMany = 120
const typesOfEach = 100

const scatteredWorld: World = {
  name: 'many paths and types',
  async prepare(node) {
    for (let path = 0; path < pathsOfMany; path++) {
      const entities = list(typesOfEach, n => ({ id: `E${n}`, type: `T${n}`, [`a${n}`]: n }))
      const headers = [`Ctx-ServicePath: /p${path}`]
      await done(node.json('POST /v2/op/update?options=keyValues', { actionType: 'append', entities }, headers))
    }
  },
  requests: [
    get('list', '/v2/entities'),
    get('list, counted', '/v2/entities?options=count&limit=1'),
    get('list from far behind', '/v2/entities?offset=11500&limit=100'),
    get('list in order of ids', '/v2/entities?orderBy=id'),
    get('list in order of an attribute', '/v2/entities?orderBy=!a1,a2'),
    get('list by an attribute', '/v2/entities?q=a5>1'),
    get('list by a pattern of ids', '/v2/entities?idPattern=7$'),
    get('list by a pattern of types', '/v2/entities?typePattern=7$'),
    get('list by many patterns', '/v2/entities?q=a5~=[ab]*a[ab]{100}$;a6~=x'),
    get('list of one type', '/v2/entities?type=T5'),
    get('list of many types', `/v2/entities?type=${list(2_400, n => `T${n}`).join()}&q=a5>1`),
    get('list of one id', '/v2/entities?id=E7'),
    get('list of many ids', `/v2/entities?id=${list(2_400, n => `E${n}`).join()}`),
    get('list by distance', '/v2/entities?georel=near;maxDistance:1000&geometry=point&coords=1,1&orderBy=geo:distance'),
    get('list of ten paths', '/v2/entities?q=a5>1', 200, [`Ctx-ServicePath: ${list(10, n => `/p${n}`).join()}`]),
    get('one whose id is everywhere', '/v2/entities/E7', 409),
    query('for 10,000 ids', { entities: list(10_000, n => ({ id: `E${n}` })) }),
    query('for 10,000 ids and types', {
      entities: list(10_000, n => ({ id: `E${n % 100}`, type: `T${Math.floor(n / 100)}` })),
    }),
    query('for patterns', { entities: list(200, n => ({ idPattern: `^x${n}`, typePattern: undefined })) }),
    query('for 200 patterns of types', {
      entities: list(60, n => ({ idPattern: `(a|b)*${n}$`, typePattern: `(a|b)*${n}$` })),
    }),
    get('types', '/v2/types?limit=1000'),
    get('types, from far behind', '/v2/types?offset=90'),
    get('one type', '/v2/types/T5'),
    batch(
      'of one in each type',
      'append',
      list(100, n => ({ id: `E${n}`, type: `T${n}`, more: { value: 1 } })),
    ),
  ],
}

const typedWorld: World = {
  name: 'many types',
  async prepare(node) {
    for (let at = 0; at < 10_000; at += 1_000) {
      const entities = list(1_000, n => ({ id: `E${at + n}`, type: `T${at + n}`, ...members(8, () => 1, `a${n}-`) }))
      await done(node.json('POST /v2/op/update?options=keyValues', { actionType: 'append', entities }))
    }
  },
  requests: [
    get('types', '/v2/types'),
    get('as many types as a page has', '/v2/types?limit=1000'),
    get('types from far behind', '/v2/types?limit=1000&offset=9000&options=count'),
    get('names of types', '/v2/types?limit=1000&options=values'),
    get('one type', '/v2/types/T5'),
    get('list', '/v2/entities'),
    get('list in order of types', '/v2/entities?orderBy=type'),
    get('list by an attribute', '/v2/entities?q=a5-1>0'),
    get('list by a pattern of types', '/v2/entities?typePattern=(a|b)*9$'),
    get('list by what is nowhere', '/v2/entities?q=nothing'),
    query('for 10,000 types', { entities: list(10_000, n => ({ id: `E${n}`, type: `T${n}` })) }),
  ],
}

const locatedWorld: World = {
  name: 'large locations',
  async prepare(node) {
    for (let n = 0; n < 20; n++) {
      const value = [circle(10_000, n, n), comb(10_000), zigzag(10_000)][n % 3]!
      const at = n % 3 === 2 ? place('LineString', value) : place('Polygon', [value])
      await done(node.json('POST /v2/entities', { id: `L${n}`, type: 'Located', at }))
    }
  },
  requests: [
    post('move of one', 'PATCH /v2/entities/L0/attrs', { at: place('Polygon', [comb(10_000)]) }, 204),
    get('those near', '/v2/entities?georel=near;maxDistance:100000&geometry=point&coords=1,1&attrs=none'),
    get(
      'those near, by distance',
      '/v2/entities?georel=near;minDistance:1&geometry=point&coords=1,1&orderBy=geo:distance&attrs=none',
    ),
    query('those that a long line meets', {
      attrs: ['none'],
      expression: {
        georel: 'intersects',
        geometry: 'line',
        coords: zigzag(2_000)
          .map(([x, y]) => `${y},${x}`)
          .join(';'),
      },
    }),
    query('those that a comb covers', {
      attrs: ['none'],
      expression: {
        georel: 'coveredBy',
        geometry: 'polygon',
        coords: comb(2_000)
          .map(([x, y]) => `${y},${x}`)
          .join(';'),
      },
    }),
    query('those that a comb does not meet', {
      attrs: ['none'],
      expression: {
        georel: 'disjoint',
        geometry: 'polygon',
        coords: comb(2_000)
          .map(([x, y]) => `${y},${x}`)
          .join(';'),
      },
    }),
    query('those that equal a line', {
      attrs: ['none'],
      expression: {
        georel: 'equals',
        geometry: 'line',
        coords: zigzag(2_000)
          .map(([x, y]) => `${y},${x}`)
          .join(';'),
      },
    }),
  ],
}

export const worlds: readonly World[] = [emptyWorld, wideWorld, hugeWorld, scatteredWorld, typedWorld, locatedWorld]

async function done(answer: Promise<{ readonly status: number; readonly text: string }>): Promise<void> {
  const { status, text } = await answer
  if (status >= 300) throw new Error(`${status} ${text.slice(0, 300)}`)
}
