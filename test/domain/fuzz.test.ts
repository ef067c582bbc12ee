// For any input of a client, the parsers return a value or a refusal, and an accepted query can be asked of any entity.
//
// Texts of the query languages, patterns, query strings and bodies are taken from the tables of test/cases, mutilated,
// and passed to the functions behind the HTTP interface. Accepted ones are then used. No call may throw, and all
// results keep the limits of limits.ts.
//
// The slowest call of each kind is reported. Only the soak judges its time, by FUZZ_CALL_MS_MAX. FUZZ_INPUTS sets the
// number of inputs in all, SEED repeats a run.

import t from 'tap'
import { parseBatchUpdate, parseNotification, parseQueryPayload } from '../../src/domain/entities/batch.js'
import {
  type Entity,
  type Payload,
  parseAttributes,
  parseEntity,
  parseTextValue,
  parseValue,
} from '../../src/domain/entities/entity.js'
import { type Mode, renderEntity } from '../../src/domain/entities/representation.js'
import {
  appendAttributes,
  createEntity,
  deleteAttributes,
  replaceAttributes,
  updateAttributes,
} from '../../src/domain/entities/update.js'
import {
  orderKeysMax,
  patternStepsMax,
  patternWorkMax,
  queryPatternsMax,
  queryStatementsMax,
  shapePositionsMax,
} from '../../src/domain/limits.js'
import { distanceTo, locationOf, matchesGeo } from '../../src/domain/places/geo.js'
import { boundsOf, parseGeoQuery } from '../../src/domain/places/geo-query.js'
import { compareSortValues, parseOrder, sortValues } from '../../src/domain/queries/order.js'
import { charactersMax, compilePattern, literalPrefix } from '../../src/domain/queries/pattern.js'
import { matchesQuery } from '../../src/domain/queries/query.js'
import { parseQuery, type Query, type QueryLanguage } from '../../src/domain/queries/query-parser.js'
import {
  compileSelection,
  mayMeanType,
  meansContent,
  meansIdentity,
  namedIds,
  type Selection,
} from '../../src/domain/queries/selection.js'
import { type Result, refusalText } from '../../src/domain/refusal.js'
import { parseServicePaths, parseTenant, updatePath } from '../../src/domain/scope.js'
import { stampOf } from '../../src/domain/stamp.js'
import { decodeEntity, encodedJson, encodeEntity } from '../../src/encoded-entity.js'
import { parseJson } from '../../src/http/body.js'
import { selectionOf } from '../../src/http/entities.js'
import { viewOfParameters } from '../../src/http/list-body.js'
import { parseAccept } from '../../src/http/request.js'
import { parseParameters, parsePath } from '../../src/http/url.js'
import * as geo from '../cases/geo.js'
import {
  batchLanguage,
  coordsLanguage,
  entityLanguage,
  geometryLanguage,
  geoRows,
  georelLanguage,
  headerLanguage,
  orderLanguage,
  patternLanguage,
  queryLanguage,
  queryStringLanguage,
} from '../cases/languages.js'
import { Mutator, mutateJson, one } from '../support/mutator.js'
import { oddEntities, oddTexts, restless } from '../support/odd-entities.js'
import { Random } from '../support/random.js'
import { Stopwatch } from '../support/stopwatch.js'
import { wkt } from '../support/wkt.js'

const inputs = Number(process.env.FUZZ_INPUTS ?? 20_000)
const callMsMax = Number(process.env.FUZZ_CALL_MS_MAX ?? Number.POSITIVE_INFINITY)
t.setTimeout(400_000 + inputs * 2)

const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed} FUZZ_INPUTS=${inputs}`)

/** The calls that are made with one input. A call that finds something wrong throws. */
type Trial = (time: <T>(kind: string, call: () => T) => T) => void

/** Makes a share of all inputs, one after the other. */
function fuzz(name: string, share: number, next: () => readonly [input: string, trial: Trial]): void {
  const count = Math.ceil(inputs * share)
  t.test(`${count} ${name} make nothing throw`, async t => {
    const watch = new Stopwatch()
    for (let left = count; left > 0; left--) {
      const [input, trial] = next()
      try {
        trial((kind, call) => watch.time(kind, () => excerpt(input), call))
      } catch (error) {
        return t.fail(`SEED=${random.seed} ${JSON.stringify(input)}: ${(error as Error).stack}`)
      }
    }
    for (const line of watch.report()) t.comment(line)
    t.strictSame(watch.report(callMsMax), [])
  })
}

const excerpt = (input: string): string =>
  JSON.stringify(input.length <= 120 ? input : `${input.slice(0, 100)}…${input.length} characters`)

function expect(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`not so: ${what}`)
}

/** The value, if it was accepted; a refusal must have a text. */
function acceptedOf<T>(result: Result<T>): T | undefined {
  if (result.ok) return result.value
  expect(refusalText(result.refusal).length > 0, 'a refusal has a text')
  return undefined
}

const entity = (): Entity => one(random, oddEntities)

// q and mq

const queries = { q: new Mutator(random, queryLanguage('q')), mq: new Mutator(random, queryLanguage('mq')) }

function fuzzQueries(language: QueryLanguage, share: number): void {
  fuzz(`texts of ${language}`, share, () => {
    const text = queries[language].next()
    return [
      text,
      time => {
        const query = acceptedOf(time(`parseQuery ${language}`, () => parseQuery(text, language)))
        if (!query) return
        checkQuery(query)
        for (let left = 4; left > 0; left--) {
          const one = entity()
          time(`matchesQuery ${language}`, () => matchesQuery(query, one, '/floor1'))
        }
      },
    ]
  })
}

function checkQuery({ statements }: Query): void {
  expect(statements.length <= queryStatementsMax, 'statements are limited')
  const patterns = statements.filter(({ operator }) => operator === 'MatchPattern')
  expect(patterns.length <= queryPatternsMax, 'patterns of a query are limited')
  let [work, steps] = [0, 0]
  for (const pattern of patterns) {
    if (pattern.operator !== 'MatchPattern' || pattern.right.steps === 0) continue
    steps += pattern.right.steps
    work += pattern.right.steps * pattern.charactersMax
  }
  expect(steps <= patternStepsMax, 'steps of all patterns of a query are limited')
  expect(work <= patternWorkMax * 1.001, 'the work of all patterns of a query is limited')
}

fuzzQueries('q', 0.25)
fuzzQueries('mq', 0.1)

// Patterns

const patterns = new Mutator(random, patternLanguage)

fuzz('patterns', 0.2, () => {
  const source = patterns.next()
  return [
    source,
    time => {
      const pattern = time('compilePattern', () => compilePattern(source))
      if (!pattern) return
      expect(pattern.steps >= 0 && pattern.steps <= patternStepsMax, 'steps are limited')
      const prefix = time('literalPrefix', () => literalPrefix(pattern))
      for (let left = 4; left > 0; left--) {
        const text = one(random, oddTexts)
        const matches = time('test', () => pattern.test(text))
        expect(!matches || text.startsWith(prefix), 'a text that matches begins with the prefix')
        expect(!matches || pattern.steps * text.length <= patternWorkMax, 'work is limited')
      }
    },
  ]
})

const hurting = [10, 20, 50, 100, 180].flatMap(n => [
  `(a|b)*a(a|b){${n}}$`,
  `[ab]*a[ab]{${n}}$`,
  `([ab]*a[ab]?){${n / 2}}$`,
])
hurting.push(
  '[ab]*a[ab]{300}$',
  '[ab]*a[ab]{950}$',
  `^${'a?'.repeat(490)}$`,
  '[A-Za-z0-9_.-]{1,255}$',
  '[acegikmoqsuwyb]*a[acegikmoqsuwyb]{30}$',
)
hurting.push(
  `${'a'.repeat(2000)}b${'a'.repeat(2000)}`,
  '^(a+)+$',
  '(a|aa)+$',
  '((a|)+)+$',
  '(a*)*[^a]',
  '(.*a.*b){20}c',
)

t.test('the worst patterns have to look at as long texts as they may', async t => {
  const watch = new Stopwatch(0)
  for (const source of hurting) {
    const pattern = compilePattern(source)
    if (!pattern) return t.fail(source)
    const length = Math.floor(charactersMax(pattern.steps))
    for (const text of [restless(length), 'a'.repeat(length), 'a'.repeat(length / 2) + restless(length / 2)])
      watch.time(
        excerpt(source),
        () => `${length} characters`,
        () => pattern.test(text),
      )
  }
  for (const line of watch.report()) t.comment(line)
  t.strictSame(watch.report(callMsMax), [])
})

// Geography

const georels = new Mutator(random, georelLanguage)
const geometries = new Mutator(random, geometryLanguage)
const coords = new Mutator(random, coordsLanguage)
const locations = [...geo.locations, ...geo.locationsAtTheEdge].map(([, text]) => wkt(text))

/** One of the three is mutilated, mostly the coordinates, so that many are accepted. */
function givenGeo() {
  const { georel, geometry, coords: valid } = one(random, geoRows)
  const which = random.between(0, 4)
  return {
    georel: which === 0 ? georels.next() : georel,
    geometry: which === 1 ? geometries.next() : geometry,
    coords: which >= 2 ? coords.next() : valid,
  }
}

fuzz('geographical queries', 0.15, () => {
  const given = givenGeo()
  return [
    JSON.stringify(given),
    time => {
      const source = random.between(0, 1) === 0 ? 'url' : 'payload'
      const query = acceptedOf(time('parseGeoQuery', () => parseGeoQuery(given, source)))
      if (!query) return
      expect(query.chain.positions.length <= Math.max(shapePositionsMax, 5), 'positions of a shape are limited')
      const bounds = boundsOf(query)
      expect(!bounds || (bounds.west <= bounds.east && bounds.south <= bounds.north), 'a box has an inside')
      for (let left = 4; left > 0; left--) {
        const location = one(random, locations)
        time('matchesGeo', () => matchesGeo(query, location))
        expect(time('distanceTo', () => distanceTo(query, location)) >= 0, 'a distance is a number')
      }
    },
  ]
})

// Order

const orders = new Mutator(random, orderLanguage)
const near = parseGeoQuery({ georel: 'near;maxDistance:1e9', geometry: 'point', coords: '1,1' }, 'url')

fuzz('orders', 0.05, () => {
  const text = orders.next()
  return [
    text,
    time => {
      const keys = acceptedOf(time('parseOrder', () => parseOrder(text)))
      if (!keys) return
      expect(keys.length <= orderKeysMax, 'keys are limited')
      const valuesOf = (one: Entity) => time('sortValues', () => sortValues(keys, one, '/a', acceptedOf(near)))
      const [a, b, c] = [valuesOf(entity()), valuesOf(entity()), valuesOf(entity())]
      const compare = (x: typeof a, y: typeof a) =>
        Math.sign(time('compareSortValues', () => compareSortValues(keys, x, y)))
      const [ab, bc, ac] = [compare(a, b), compare(b, c), compare(a, c)]
      expect(compare(b, a) === -ab + 0 || (ab === 0 && compare(b, a) === 0), 'an order has a reverse')
      expect(ab !== bc || ab === 0 || ac === ab, 'an order is transitive')
    },
  ]
})

// The head of a request

const queryStrings = new Mutator(random, queryStringLanguage)
const headers = new Mutator(random, headerLanguage)

fuzz('query strings and headers', 0.1, () => {
  const text = random.between(0, 2) === 0 ? headers.next() : queryStrings.next()
  return [
    text,
    time => {
      acceptedOf(time('parsePath', () => parsePath(`/${text}`)))
      acceptedOf(time('parseAccept', () => parseAccept(text)))
      acceptedOf(time('parseTenant', () => parseTenant(text)))
      acceptedOf(time('parseTextValue', () => parseTextValue(text)))
      const paths = acceptedOf(time('parseServicePaths', () => parseServicePaths(text)))
      if (paths) acceptedOf(updatePath(paths, 'DELETE'))
      const parameters = acceptedOf(time('parseParameters', () => parseParameters(text)))
      if (!parameters) return
      const [one, view] = [entity(), viewOfParameters(parameters)]
      time('renderEntity', () => renderEntity(one, '/a', view))
      const selection = acceptedOf(time('compileSelection', () => compileSelection(selectionOf(parameters))))
      if (selection) ask(selection, time)
    },
  ]
})

/** Calls the functions of a selection that a list calls for each entity. */
function ask(selection: Selection, time: Parameters<Trial>[0]): void {
  time('namedIds', () => namedIds(selection))
  for (let left = 2; left > 0; left--) {
    const one = entity()
    const { id, type } = one
    const means = time('meansIdentity', () => meansIdentity(selection, id, type))
    expect(
      !means || time('mayMeanType', () => mayMeanType(selection, type)),
      'an entity that is meant has a type that may be',
    )
    time('meansContent', () => meansContent(selection, one, '/floor1'))
  }
}

// Bodies

const entityBodies = new Mutator(random, entityLanguage)
const batchBodies = new Mutator(random, batchLanguage)
const parts: readonly unknown[] = [
  ...[
    null,
    true,
    0,
    -1,
    1e21,
    '',
    'A',
    'R1',
    'T',
    'Room',
    'DateTime',
    'geo:json',
    'geo:point',
    '41,2',
    '2024-01-01',
    '^a',
    '(',
  ],
  ...[
    'id',
    'type',
    'value',
    'metadata',
    'idPattern',
    '$inc',
    '$set',
    '$each',
    'near;maxDistance:1',
    'temp>1',
    'update',
    '*',
  ],
  ...[
    [],
    {},
    [1, 2],
    { k: 1 },
    { $inc: 1 },
    { $push: [1] },
    { type: 'Point', coordinates: [2, 41] },
    { value: 1, type: 'T' },
  ],
]

/** Half of the bodies are valid JSON with odd contents, the others are mutilated texts. */
function nextBody(): string {
  const [language, mutator] = one(random, [
    [entityLanguage, entityBodies],
    [batchLanguage, batchBodies],
  ] as const)
  if (random.between(0, 1) === 0) return mutator.next()
  const body = parseJson(Buffer.from(one(random, language.texts)))
  return body.ok ? JSON.stringify(mutateJson(random, body.value.value, parts)) : mutator.next()
}

fuzz('bodies', 0.15, () => {
  const text = nextBody()
  return [
    text,
    time => {
      const payload = acceptedOf(time('parseJson', () => parseJson(bytesOf(text))))
      if (!payload) return
      const query = acceptedOf(time('parseQueryPayload', () => parseQueryPayload(payload)))
      const selection = query && acceptedOf(time('compileSelection of a body', () => compileSelection(query.source)))
      if (selection) ask(selection, time)
      for (const keyValues of [false, true]) {
        acceptedOf(time('parseBatchUpdate', () => parseBatchUpdate(payload, keyValues)))
        storeAnd(payload, keyValues, time)
      }
      acceptedOf(time('parseNotification', () => parseNotification(payload, '')))
      acceptedOf(time('parseValue', () => parseValue(payload)))
    },
  ]
})

/** The bytes of a text. Now and then one byte is replaced, so that they may be no valid UTF-8. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length > 0 && random.between(0, 30) === 0)
    bytes[random.between(0, bytes.length - 1)] = random.between(0, 255)
  return bytes
}

const madeMs = Date.UTC(2024, 0, 1)
const options = { overrideMetadata: false, forcedUpdate: false }

/** Creates, changes, stores, reads and renders an entity. */
function storeAnd(payload: Payload, keyValues: boolean, time: Parameters<Trial>[0]): void {
  const wanted = acceptedOf(time('parseEntity', () => parseEntity(payload, keyValues)))
  const created = wanted && time('createEntity', () => createEntity(wanted, stampOf(madeMs)))
  if (created?.change?.after) checkStored(created.change.after, time)

  const attributes = acceptedOf(time('parseAttributes', () => parseAttributes(payload, keyValues)))
  if (!attributes) return
  const before = entity()
  const outcomes = [
    time('appendAttributes', () => appendAttributes(before, attributes, options, madeMs)),
    time('updateAttributes', () => updateAttributes(before, attributes, options, before.id, madeMs)),
    time('replaceAttributes', () => replaceAttributes(before, attributes, madeMs)),
    time('deleteAttributes', () => deleteAttributes(before, [...attributes.keys()], before.id, madeMs)),
  ]
  const { change } = one(random, outcomes)
  if (change?.after && change.after !== before) checkStored(change.after, time)
}

const modes: readonly Mode[] = ['normalized', 'keyValues', 'values', 'unique']

function checkStored(stored: Entity, time: Parameters<Trial>[0]): void {
  const encoded = time('encodeEntity', () => encodeEntity(stored, ''))
  const read = time('decodeEntity', () => decodeEntity(encoded))
  expect(encodedJson(encodeEntity(read, '')).equals(encodedJson(encoded)), 'what was stored is read as it was')
  const mode = one(random, modes)
  JSON.parse(time('renderEntity', () => renderEntity(read, '/', { mode, attrs: undefined, metadata: undefined })))
  time('locationOf', () => locationOf(read))
}
