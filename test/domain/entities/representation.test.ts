// Entities as JSON text. Columns of the tables: the filter or mode as sent, and the exact text of the answer.

import t from 'tap'
import { type Entity, parseEntity } from '../../../src/domain/entities/entity.js'
import {
  attributesPieces,
  entityPieces,
  fullView,
  isFullView,
  isHidden,
  type Mode,
  renderAttribute,
  renderAttributes,
  renderEntity,
  type View,
  writeStoredAttribute,
  writeStoredIdentity,
  writeStoredMember,
} from '../../../src/domain/entities/representation.js'
import { appendAttributes, createEntity } from '../../../src/domain/entities/update.js'
import { type Json, JsonWriter } from '../../../src/domain/json.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { stampOf } from '../../../src/domain/stamp.js'
import fc from '../../support/properties.js'

const createdMs = Date.UTC(2024, 4, 1, 8)
const modifiedMs = Date.UTC(2024, 4, 2, 9, 30)

const created = '{"type":"DateTime","value":"2024-05-01T08:00:00.000Z","metadata":{}}'
const modified = '{"type":"DateTime","value":"2024-05-02T09:30:00.000Z","metadata":{}}'
const servicePath = '{"type":"Text","value":"/floor1/east","metadata":{}}'
const expires = '{"type":"DateTime","value":"2030-01-01T00:00:00.000Z","metadata":{}}'

/** The room R1 with these attributes. The second ones were appended at `modifiedMs`, which modified the entity. */
function room(attributes: object, appended?: object): Entity {
  const read = (more: object) => {
    const parsed = parseEntity({ value: { id: 'R1', type: 'Room', ...more }, duplicates: [], deep: true }, false)
    if (!parsed.ok) throw new Error(refusalText(parsed.refusal))
    return parsed.value
  }
  const first = createEntity(read(attributes), stampOf(createdMs) + 3).change!.after!
  if (!appended) return first
  const options = { overrideMetadata: false, forcedUpdate: false }
  return appendAttributes(first, read(appended).attributes, options, modifiedMs).change!.after!
}

const view = (mode: Mode, attrs?: string, metadata?: string): View => ({
  mode,
  attrs: attrs?.split(','),
  metadata: metadata?.split(','),
})

const entityText = (entity: Entity, view: View): string => renderEntity(entity, '/floor1/east', view)
const attrsText = (entity: Entity, view: View): string => renderAttributes(entity, '/floor1/east', view)

/** B before A: storage order is not alphabetical order. */
const plainRoom = room({ B: { value: 1 } }, { A: { value: 'x' } })
const [a, b] = ['"A":{"type":"Text","value":"x","metadata":{}}', '"B":{"type":"Number","value":1,"metadata":{}}']

const filters: [attrs: string | undefined, answered: string][] = [
  [undefined, `${b},${a}`],
  ['A,B', `${a},${b}`],
  ['B,A', `${b},${a}`],
  ['A', a],
  ['A,Z', a],
  ['Z', ''],
  ['A,B,A', `${a},${b}`],
  ['*', `${b},${a}`],
  ['A,*', `${b},${a}`],
  ['dateCreated', `"dateCreated":${created}`],
  ['dateModified', `"dateModified":${modified}`],
  ['servicePath', `"servicePath":${servicePath}`],
  ['dateModified,*', `${b},${a},"dateModified":${modified}`],
  ['*,dateModified', `${b},${a},"dateModified":${modified}`],
  [
    'servicePath,dateModified,*,dateCreated',
    `${b},${a},"dateCreated":${created},"dateModified":${modified},"servicePath":${servicePath}`,
  ],
  ['dateModified,A', `"dateModified":${modified},${a}`],
  ['dateModified,dateCreated', `"dateModified":${modified},"dateCreated":${created}`],
  ['dateModified,dateModified', `"dateModified":${modified}`],
  ['dateExpires', ''],
  ['*,dateExpires', `${b},${a}`],
  ['constructor,__proto__', ''],
]

t.test('attrs selects and orders the attributes of the answer, and never leaves an entity out', async t => {
  for (const [attrs, answered] of filters) {
    const members = ['"id":"R1"', '"type":"Room"', ...(answered === '' ? [] : [answered])].join(',')
    t.equal(entityText(plainRoom, view('normalized', attrs)), `{${members}}`, `${attrs}`)
    t.equal(attrsText(plainRoom, view('normalized', attrs)), `{${answered}}`, `${attrs}, on /attrs`)
  }
})

const measured = room({
  temp: { type: 'Celsius', value: 21, metadata: { unit: { value: 'C' }, accuracy: { value: 0.5 } } },
})
const unit = '"unit":{"type":"Text","value":"C"}'
const accuracy = '"accuracy":{"type":"Number","value":0.5}'
const madeAt = '{"type":"DateTime","value":"2024-05-01T08:00:00.000Z"}'

const metadataFilters: [metadata: string | undefined, answered: string][] = [
  [undefined, `${unit},${accuracy}`],
  ['accuracy', accuracy],
  ['accuracy,unit', `${accuracy},${unit}`],
  ['unit,missing', unit],
  ['missing', ''],
  ['unit,unit', unit],
  ['*', `${unit},${accuracy}`],
  ['accuracy,*', `${unit},${accuracy}`],
  ['dateCreated', `"dateCreated":${madeAt}`],
  ['dateModified', `"dateModified":${madeAt}`],
  ['dateModified,*', `${unit},${accuracy},"dateModified":${madeAt}`],
  ['dateModified,*,dateCreated', `${unit},${accuracy},"dateCreated":${madeAt},"dateModified":${madeAt}`],
  ['dateModified,unit', `"dateModified":${madeAt},${unit}`],
  ['previousValue,actionType', ''],
  ['constructor', ''],
]

t.test('metadata selects and orders the metadata of each attribute in the answer', async t => {
  for (const [metadata, answered] of metadataFilters) {
    const attribute = `{"type":"Celsius","value":21,"metadata":{${answered}}}`
    t.equal(attrsText(measured, view('normalized', undefined, metadata)), `{"temp":${attribute}}`, `${metadata}`)
    t.equal(renderAttribute(measured.attributes.get('temp')!, metadata?.split(',')), attribute, `${metadata}, alone`)
  }
})

t.test('metadata dates are those of the attribute', async t => {
  t.equal(
    attrsText(plainRoom, view('normalized', 'B,A', 'dateCreated')),
    '{"B":{"type":"Number","value":1,"metadata":{"dateCreated":{"type":"DateTime","value":"2024-05-01T08:00:00.000Z"}}},' +
      '"A":{"type":"Text","value":"x","metadata":{"dateCreated":{"type":"DateTime","value":"2024-05-02T09:30:00.000Z"}}}}',
  )
})

t.test('builtin attributes have no metadata, though it is requested', async t => {
  const answered = attrsText(plainRoom, view('normalized', 'dateCreated,servicePath', '*,dateCreated,dateModified'))
  t.equal(answered, `{"dateCreated":${created},"servicePath":${servicePath}}`)
})

const modesRoom = room({ temp: { value: 21 }, on: { value: 'on' }, list: { value: [1, { a: null }] }, none: {} })
const modes: [mode: Mode, attrs: string, entity: string, attributes: string][] = [
  [
    'normalized',
    'temp',
    '{"id":"R1","type":"Room","temp":{"type":"Number","value":21,"metadata":{}}}',
    '{"temp":{"type":"Number","value":21,"metadata":{}}}',
  ],
  [
    'keyValues',
    '*',
    '{"id":"R1","type":"Room","temp":21,"on":"on","list":[1,{"a":null}],"none":null}',
    '{"temp":21,"on":"on","list":[1,{"a":null}],"none":null}',
  ],
  ['keyValues', 'none,Z', '{"id":"R1","type":"Room","none":null}', '{"none":null}'],
  ['keyValues', 'Z', '{"id":"R1","type":"Room"}', '{}'],
  [
    'keyValues',
    'dateCreated,servicePath',
    '{"id":"R1","type":"Room","dateCreated":"2024-05-01T08:00:00.000Z","servicePath":"/floor1/east"}',
    '{"dateCreated":"2024-05-01T08:00:00.000Z","servicePath":"/floor1/east"}',
  ],
  ['values', '*', '[21,"on",[1,{"a":null}],null]', '[21,"on",[1,{"a":null}],null]'],
  ['values', 'none,Z,temp', '[null,21]', '[null,21]'],
  ['values', 'Z', '[]', '[]'],
  ['values', 'servicePath,on', '["/floor1/east","on"]', '["/floor1/east","on"]'],
  ['unique', 'on,temp', '["on",21]', '["on",21]'],
]

t.test('each mode has its shape', async t => {
  for (const [mode, attrs, entity, attributes] of modes) {
    t.equal(entityText(modesRoom, view(mode, attrs)), entity, `${mode} ${attrs}`)
    t.equal(attrsText(modesRoom, view(mode, attrs)), attributes, `${mode} ${attrs}, on /attrs`)
  }
})

t.test('an entity without attributes has a shape in each mode', async t => {
  const answers = (['normalized', 'keyValues', 'values', 'unique'] as const).map(mode => {
    return [entityText(room({}), view(mode)), attrsText(room({}), view(mode))]
  })
  const empty = ['{"id":"R1","type":"Room"}', '{}']
  t.strictSame(answers, [empty, empty, ['[]', '[]'], ['[]', '[]']])
})

t.test('unique leaves out values whose text was already answered', async t => {
  const repeated = room({
    a: { value: 1 },
    b: { value: '1' },
    c: { value: 1.0000000001 },
    d: { value: [1, 2] },
    e: { value: [1, 2] },
    f: { value: [2, 1] },
    g: { type: 'T', value: 1 },
  })
  t.equal(entityText(repeated, view('unique', '*')), '[1,"1",[1,2],[2,1]]')
  t.equal(entityText(repeated, view('unique', 'g,f,a,e')), '[1,[2,1],[1,2]]')
  t.equal(entityText(repeated, view('values', 'g,a,e')), '[1,1,[1,2]]')
})

t.test('without attrs, bare values come in the order of the names', async t => {
  // The interface leaves this order open; this is the order of the reference.
  t.equal(entityText(plainRoom, view('values')), '["x",1]')
  t.equal(entityText(plainRoom, view('unique')), '["x",1]')
})

t.test('attributes come in the order in which they were added', async t => {
  const entity = room({ z: { value: 1 }, b: { value: 2 } }, { c: { value: 3 }, a: { value: 4 }, b: { value: 5 } })
  t.equal(attrsText(entity, view('keyValues')), '{"z":1,"b":5,"c":3,"a":4}')
})

const transient = room({ dateExpires: { type: 'DateTime', value: '2030-01-01' }, B: { value: 1 } })

t.test('dateExpires of a transient entity is shown only when it is named', async t => {
  const answers: [attrs: string | undefined, answered: string][] = [
    [undefined, b],
    ['*', b],
    ['B', b],
    ['dateExpires', `"dateExpires":${expires}`],
    ['B,dateExpires', `${b},"dateExpires":${expires}`],
  ]
  for (const [attrs, answered] of answers)
    t.equal(attrsText(transient, view('normalized', attrs)), `{${answered}}`, `${attrs}`)
  const both = JSON.parse(attrsText(transient, view('keyValues', '*,dateExpires'))) as Json
  t.strictSame(both, { B: 1, dateExpires: '2030-01-01T00:00:00.000Z' })
})

t.test('dateExpires is hidden in every mode', async t => {
  t.equal(entityText(transient, view('keyValues')), '{"id":"R1","type":"Room","B":1}')
  t.equal(entityText(transient, view('values')), '[1]')
  t.equal(entityText(transient, view('unique')), '[1]')
})

const named = room({ servicePath: { value: 'mine' }, dateCreated: { type: 'T', value: 7 }, B: { value: 1 } })
const [mine, seven] = ['{"type":"Text","value":"mine","metadata":{}}', '{"type":"T","value":7,"metadata":{}}']

t.test(
  'a user attribute with a builtin name is shown without a request for it, and goes before the builtin',
  async t => {
    const stored = `"servicePath":${mine},"dateCreated":${seven},${b}`
    const answers: [attrs: string | undefined, answered: string][] = [
      [undefined, stored],
      ['*', stored],
      ['*,dateCreated,servicePath', stored],
      ['dateCreated', `"dateCreated":${seven}`],
      ['B,servicePath', `${b},"servicePath":${mine}`],
    ]
    for (const [attrs, answered] of answers)
      t.equal(attrsText(named, view('normalized', attrs)), `{${answered}}`, `${attrs}`)
  },
)

t.test('user metadata with a builtin name is shown without a request for it, and goes before the builtin', async t => {
  const own = '{"type":"Number","value":7}'
  const entity = room({ B: { value: 1, metadata: { dateCreated: { value: 7 }, m: { value: 7 } } } })
  const answers: [metadata: string | undefined, answered: string][] = [
    [undefined, `"dateCreated":${own},"m":${own}`],
    ['*', `"dateCreated":${own},"m":${own}`],
    ['*,dateCreated', `"dateCreated":${own},"m":${own}`],
    ['dateCreated', `"dateCreated":${own}`],
  ]
  for (const [metadata, answered] of answers)
    t.equal(
      renderAttribute(entity.attributes.get('B')!, metadata?.split(',')),
      `{"type":"Number","value":1,"metadata":{${answered}}}`,
      `${metadata}`,
    )
})

const numbers: [stored: number, text: string][] = [
  [200, '200'],
  [200.0000000001, '200'],
  [-0, '0'],
  [0.5, '0.5'],
  [442.123456785551, '442.123456786'],
  [0.1 + 0.2, '0.3'],
  [1e21, '1000000000000000000000'],
  [2 ** 53, '9007199254740992'],
]

t.test('numbers have at most nine decimals and no exponent, in every mode and at any depth', async t => {
  for (const [stored, text] of numbers) {
    const entity = room({ n: { type: 'T', value: stored, metadata: { m: { type: 'T', value: [stored] } } } })
    t.equal(
      attrsText(entity, view('normalized')),
      `{"n":{"type":"T","value":${text},"metadata":{"m":{"type":"T","value":[${text}]}}}}`,
      text,
    )
    t.equal(attrsText(entity, view('keyValues')), `{"n":${text}}`, `${text}, keyValues`)
    t.equal(attrsText(entity, view('values')), `[${text}]`, `${text}, values`)
    t.equal(attrsText(entity, view('unique')), `[${text}]`, `${text}, unique`)
    const deep = room({ n: { value: { a: [{ b: stored }] } } })
    t.equal(attrsText(deep, view('keyValues')), `{"n":{"a":[{"b":${text}}]}}`, `${text}, deep`)
  }
})

const geometry = { type: 'Point', coordinates: [2.2, 41.4] }
const feature = { type: 'Feature', properties: { name: 'x' }, geometry }
const collection = { type: 'FeatureCollection', features: [feature] }

t.test('of a Feature only the geometry is answered, in every mode', async t => {
  const text = JSON.stringify(geometry)
  for (const value of [geometry, feature, collection]) {
    const entity = room({ loc: { type: 'geo:json', value } })
    const normalized = `{"type":"geo:json","value":${text},"metadata":{}}`
    t.equal(attrsText(entity, view('normalized')), `{"loc":${normalized}}`, value.type)
    t.equal(renderAttribute(entity.attributes.get('loc')!, undefined), normalized, `${value.type}, alone`)
    t.equal(attrsText(entity, view('keyValues', 'loc')), `{"loc":${text}}`, `${value.type}, keyValues`)
    t.equal(attrsText(entity, view('values')), `[${text}]`, `${value.type}, values`)
    t.equal(attrsText(entity, view('unique')), `[${text}]`, `${value.type}, unique`)
  }
})

t.test('a Feature that is no location is answered whole', async t => {
  const ignored = room({ loc: { type: 'geo:json', value: feature, metadata: { ignoreType: { value: true } } } })
  const other = room({ loc: { type: 'Geo', value: feature } })
  for (const entity of [ignored, other])
    t.equal(attrsText(entity, view('keyValues')), `{"loc":${JSON.stringify(feature)}}`)
})

t.test('an empty location is null', async t => {
  t.equal(attrsText(room({ loc: { type: 'geo:json', value: null } }), view('keyValues')), '{"loc":null}')
})

t.test('names and values are escaped as JSON wants', async t => {
  const entity = room({
    'a\\b': { type: 'c\\d', value: 'é\n\\😀', metadata: { 'e\\f': { type: 'g\\h', value: { 'k\n': 1 } } } },
  })
  t.equal(
    attrsText(entity, view('normalized')),
    '{"a\\\\b":{"type":"c\\\\d","value":"é\\n\\\\😀","metadata":{"e\\\\f":{"type":"g\\\\h","value":{"k\\n":1}}}}}',
  )
  t.equal(attrsText(entity, view('keyValues')), '{"a\\\\b":"é\\n\\\\😀"}')
})

t.test('names of the language are ordinary names', async t => {
  const entity = room(JSON.parse('{"__proto__":{"value":{"__proto__":1}},"constructor":{"value":2}}') as object)
  t.equal(attrsText(entity, view('keyValues')), '{"__proto__":{"__proto__":1},"constructor":2}')
  t.equal(
    attrsText(entity, view('keyValues', 'constructor,toString,__proto__')),
    '{"constructor":2,"__proto__":{"__proto__":1}}',
  )
})

t.test('the full view is the normalized one without filters', async t => {
  t.ok(isFullView(fullView))
  t.ok(isFullView(view('normalized')))
  t.notOk(isFullView(view('keyValues')))
  t.notOk(isFullView(view('normalized', '*')))
  t.notOk(isFullView(view('normalized', undefined, '*')))
})

function stored(entity: Entity): { text: string; asIs: boolean } {
  const writer = new JsonWriter()
  writeStoredIdentity(entity, writer)
  for (const [name, attribute] of entity.attributes)
    if (!isHidden(name, attribute)) writeStoredMember(name, attribute, writer)
  writer.raw('}')
  return { text: Buffer.from(writer.bytes.subarray(0, writer.length)).toString(), asIs: writer.asIs }
}

t.test('stored text keeps Features, full precision, and no dateExpires', async t => {
  const kept = stored(room({ loc: { type: 'geo:json', value: feature } }))
  t.strictSame((JSON.parse(kept.text) as { loc: { value: Json } }).loc.value, feature)
  const precise = stored(room({ n: { value: 442.123456785551 } }))
  t.match(precise.text, '442.123456785551')
  t.equal(stored(transient).text, `{"id":"R1","type":"Room",${b}}`)
})

t.test('stored text is never the answer where a Feature or a number is rendered otherwise', async t => {
  t.notOk(stored(room({ loc: { type: 'geo:json', value: feature } })).asIs)
  t.notOk(stored(room({ n: { value: 442.123456785551 } })).asIs)
  t.notOk(stored(room({ n: { value: 1, metadata: { m: { value: 1e21 } } } })).asIs)
  t.ok(stored(room({ loc: { type: 'geo:json', value: geometry } })).asIs)
  t.ok(stored(transient).asIs)
})

const value = fc.oneof(
  fc.constantFrom<Json>(1, -0, 0.5, 1e21, 442.123456785551, 'x', 'é😀\n', '', true, null, feature),
  fc.array(fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer()), { maxLength: 3 }),
  fc.dictionary(fc.constantFrom('k', 'ß"'), fc.integer(), { noNullPrototype: true }),
)
const attribute = fc.record({
  type: fc.constant('TextUnrestricted'),
  value,
  metadata: fc.dictionary(fc.constantFrom('m', 'n\\'), fc.record({ value: fc.constantFrom<Json>(1, 0.1 + 0.2, 'é') }), {
    noNullPrototype: true,
  }),
})
const anyRoom = fc
  .dictionary(fc.constantFrom('a', 'b', 'x\\y', 'dateCreated', 'constructor'), attribute, { noNullPrototype: true })
  .map(attributes => room(attributes))

t.test('stored text that is marked as is, is the normalized answer', async () => {
  fc.assert(
    fc.property(anyRoom, entity => {
      const { text, asIs } = stored(entity)
      return !asIs || text === entityText(entity, fullView)
    }),
  )
})

t.test('the normalized answer is JSON with the stored values, rounded', async () => {
  fc.assert(
    fc.property(anyRoom, entity => {
      const answered = JSON.parse(entityText(entity, fullView)) as Record<string, { value: Json }>
      const names = Object.keys(answered).filter(name => name !== 'id' && name !== 'type')
      return (
        names.join() === [...entity.attributes.keys()].join() &&
        names.every(name => near(answered[name]!.value, entity.attributes.get(name)!.value))
      )
    }),
  )
})

function near(a: Json, b: Json): boolean {
  if (typeof a === 'number' && typeof b === 'number') return Math.abs(a - b) <= 1e-9
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  const [x, y] = [Object.entries(a), Object.entries(b)]
  return (
    x.length === y.length && x.every(([key, part], at) => key === y[at]![0] && near(part as Json, y[at]![1] as Json))
  )
}

t.test('an attribute is stored as it is answered', async t => {
  const writer = new JsonWriter()
  writeStoredAttribute(measured.attributes.get('temp')!, writer)
  t.equal(
    Buffer.from(writer.bytes.subarray(0, writer.length)).toString(),
    `{"type":"Celsius","value":21,"metadata":{${unit},${accuracy}}}`,
  )
})

t.test('a long list of names has the same meaning as a short one', async t => {
  const metadata = new Map(['m', 'n', 'dateCreated'].map(name => [name, { type: 'Text', value: name }]))
  const attribute = (value: number) => ({ type: 'Number', value, metadata, createdMs: 0, modifiedMs: 0 })
  const attributes = new Map(['b', 'a', 'c'].map((name, at) => [name, attribute(at)]))
  const entity = { id: 'E', type: 'T', attributes, created: 0, modifiedMs: 0 }
  const fillers = Array.from({ length: 100 }, (_, n) => `no-${n}`)
  const shown = (names: readonly string[], mode: 'normalized' | 'keyValues') =>
    renderEntity(entity, '/', { mode, attrs: names, metadata: names })
  for (const names of [
    ['a', 'b', 'a', 'm', 'dateModified'],
    ['dateCreated', 'c', 'n', 'm', 'servicePath'],
    ['*', 'dateModified', 'a'],
    ['nothing'],
  ])
    for (const mode of ['normalized', 'keyValues'] as const)
      t.equal(shown([...fillers, ...names, ...fillers], mode), shown(names, mode), `${names} ${mode}`)
})

t.test('a large entity in pieces has the same text', async t => {
  const values: readonly Json[] = [1, 1, 'a b', null, [1, 'x'], { m: 1.5 }, 1]
  const attributes = Object.fromEntries(values.map((value, n) => [`a${n}`, { value, metadata: { m: { value: n } } }]))
  const filters = [undefined, ['a1'], ['*', 'dateCreated'], ['nobody'], ['a6', 'a0', 'servicePath']]
  for (const entity of [room(attributes), room({}), room({ only: { value: 1 } })])
    for (const mode of ['normalized', 'keyValues', 'values', 'unique'] as const)
      for (const attrs of filters)
        for (const metadata of [undefined, [], ['dateModified']]) {
          const view: View = { mode, attrs, metadata }
          const name = JSON.stringify(view)
          t.equal([...entityPieces(entity, '/a', view)].join(''), renderEntity(entity, '/a', view), name)
          t.equal(
            [...attributesPieces(entity, '/a', view)].join(''),
            renderAttributes(entity, '/a', view),
            `${name} /attrs`,
          )
        }
})
