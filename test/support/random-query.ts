// Random queries about the entities of a reference. Right sides are mostly taken from existing entities, so that many
// queries find something and their bounds fall on values. The others come from the same few values of random-entity, or
// are new.
//
// Left out, because the interface leaves it open or no plain argument decides the answer: longitudes of exactly 180
// degrees, quoted names and unary statements of builtins, strings that are empty, keys of `orderBy` with a dot that an
// attribute has.

import type { Random } from './random.js'
import {
  attributeNames,
  boxCorners,
  chance,
  dateText,
  identity,
  instant,
  latitudeFirst,
  line,
  longString,
  metadataNames,
  numbers,
  plainNames,
  position,
  ring,
  several,
  shuffled,
  sometimes,
  stems,
  strings,
  types,
  wordsOf,
} from './random-entity.js'
import type { Entity, Json } from './reference-entities.js'
import { boxRing, type Geo, type Place, type Position } from './reference-geo.js'
import {
  type Operator,
  type OrderKey,
  type Query,
  type Selector,
  type Shown,
  type Statement,
  targetsOf,
  type Word,
} from './reference-query.js'

/** The subject of queries: the entities, and the number of ids of each stem. */
export interface Stock {
  readonly entities: readonly Entity[]
  readonly idsPerStem: number
}

export function nextQuery(random: Random, stock: Stock): Query {
  const form = random.pick(['GET', 'GET', 'POST'])
  const asked = random.pick(filters).split('+')
  const most = random.pick([1, 1, 2, 3])
  const statements = (language: Language) => several(random, 1, most, () => statement(random, stock, language))
  const q = asked.includes('q') ? statements('q') : undefined
  const mq = asked.includes('mq') ? statements('mq') : undefined
  const geo = asked.includes('geo') ? geoQuery(random, stock) : undefined
  const attributes = form === 'POST' ? sometimes(random, 0.05, () => someNames(random)) : undefined
  const orderBy = sometimes(random, 0.35, () => order(random, geo))
  const limit = sometimes(random, 0.8, () => random.pick([0, 1, 5, 20, 100, 1000, 1000]))
  const offset = sometimes(random, 0.4, () =>
    random.pick([0, 1, limit ?? 20, 2 * (limit ?? 20), random.between(0, 3000)]),
  )
  const pathItems = sometimes(random, 0.5, () => random.pick(pathHeaders))
  return {
    form,
    selectors: selectors(random, stock, form),
    counted: chance(random, 0.9),
    shown: attributes ? { mode: 'keyValues', attrs: attributes } : shown(random),
    ...(pathItems && { paths: pathItems }),
    ...(geo && { geo }),
    ...(q && { q }),
    ...(mq && { mq }),
    ...(attributes && { attributes }),
    ...(orderBy && { orderBy }),
    ...(limit !== undefined && { limit }),
    ...(offset !== undefined && { offset }),
  }
}

/** Mostly one kind of filter: an entity that one filter excludes does not test another one. */
const filters = wordsOf('q q q q mq geo geo q+mq q+geo q+mq+geo none')

/** A query for one full page in order of creation: the kind of list that can be checked while others write. */
export function nextWholeQuery(random: Random, stock: Stock): Query {
  const { orderBy: _orderBy, offset: _offset, attributes: _attributes, ...query } = nextQuery(random, stock)
  return { ...query, limit: 1000, shown: identityShown }
}

const pathHeaders: [readonly string[], ...(readonly string[])[]] = [
  ['/#'],
  ['/'],
  ['/a'],
  ['/a/#'],
  ['/a/b', '/'],
  ['/ab/#', '/a', '/none'],
  ['/a/#', '/a/b'],
]

function selectors(random: Random, stock: Stock, form: Query['form']): readonly Selector[] {
  const draw = random.fraction()
  if (draw < 0.6) return []
  if (draw < 0.72 && form === 'GET') return [{ types: several(random, 1, 2, () => random.pick(types)) }]
  if (draw < 0.76 && form === 'GET') return [{ typePattern: random.pick(typePatterns) }]
  return several(random, 1, form === 'GET' ? 1 : 3, () => selector(random, stock, form))
}

const typePatterns = ['^Room', 'l$|^V', 'X', 'o{2}', '.'] as const

function selector(random: Random, { idsPerStem }: Stock, form: Query['form']): Selector {
  const isOne = form === 'POST'
  const id = () => identity(random, idsPerStem).id
  const typed = random.fraction()
  return {
    ...(chance(random, 0.2) ? { ids: several(random, 1, isOne ? 1 : 8, id) } : { idPattern: idPattern(random) }),
    ...(typed < 0.4 && { types: several(random, 1, isOne ? 1 : 2, () => random.pick(types)) }),
    ...(typed > 0.85 && { typePattern: random.pick(typePatterns) }),
  }
}

const idPattern = (random: Random): string =>
  random.pick([
    () => `^${random.pick(stems)}`,
    () => `${random.between(0, 9)}$`,
    () => random.pick(['.*', '^(room|x\\.)', 'oom[0-9]$', '[13579]$', '^.r', 'R', 'none'] as const),
  ])()

// The shown part: mostly the identity, by id, type and path

const identityShown: Shown = { mode: 'keyValues', attrs: ['servicePath'] }

function shown(random: Random): Shown {
  const draw = random.fraction()
  if (draw < 0.75) return identityShown
  if (draw < 0.83) return { mode: 'normalized' }
  if (draw < 0.86) return { mode: 'keyValues' }
  const attrs = shuffled(random, [...someNames(random), ...shownNames.filter(() => chance(random, 0.3))])
  if (attrs.length === 0) attrs.push('*')
  const metadata = chance(random, 0.5) ? [...shownMetadata, 'acc'].filter(() => chance(random, 0.5)) : []
  const mode = random.pick(['normalized', 'normalized', 'keyValues', 'values', 'unique'])
  return { mode, attrs, ...(metadata.length > 0 && { metadata: shuffled(random, metadata) }) }
}

const shownNames = ['dateCreated', 'dateModified', 'dateExpires', 'servicePath', 'loc', '*'] as const
const shownMetadata = ['dateCreated', 'dateModified', '*'] as const

const someNames = (random: Random): string[] => [...new Set(several(random, 1, 3, () => random.pick(attributeNames)))]

// Order

function order(random: Random, geo: Geo | undefined): OrderKey[] {
  if (geo?.relation === 'near' && chance(random, 0.5)) return [{ name: 'geo:distance', descending: false }]
  return several(random, 1, 3, () => ({ name: random.pick(orderNames)(random), descending: chance(random, 0.4) }))
}

const always = (name: string) => () => name

const orderNames = [
  (random: Random) => random.pick(plainNames),
  (random: Random) => random.pick(plainNames),
  (random: Random) => random.pick(attributeNames.filter(name => !name.includes('.')) as ['temp']),
  (random: Random) => random.pick(['id', 'type', 'servicePath', 'dateCreated', 'dateModified', 'dateExpires'] as const),
  always('status'),
  always('none'),
  always('geo:distance'),
] as const

// Statements

type Form = Operator | 'exists' | 'missing' | 'range' | 'list'

const forms = wordsOf('== == == == != != > > < < >= <= ~= exists missing range range list list') as [Form, ...Form[]]

type Language = 'q' | 'mq'

function statement(random: Random, stock: Stock, language: Language): Statement {
  const form = random.pick(forms)
  const isUnary = form === 'exists' || form === 'missing'
  const tokens = language === 'q' ? valuePath(random, isUnary) : metadataPath(random, isUnary)
  const left = tokens.map(token => writtenToken(random, token)).join('.')
  if (form === 'exists' || form === 'missing')
    return { form, tokens, shape: 'one', words: [], text: padded(random, form === 'exists' ? left : `!${left}`) }
  const draw = (isFit: (value: Json) => boolean) => wordLike(random, stock, language, tokens, isFit)
  const shape = form === 'range' || form === 'list' ? form : 'one'
  const operator = shape === 'one' ? (form as Operator) : random.pick(['==', '==', '!='])
  const words = shape === 'one' ? [oneWord(random, operator, draw)] : alike(random, shape, draw)
  const written = operator === '==' && chance(random, 0.2) ? ':' : operator
  const separator = shape === 'range' ? '..' : random.pick([',', ', '])
  const right = words.map(({ quoted, text }) => (quoted ? `'${text}'` : text)).join(separator)
  return { form: operator, tokens, shape, words, text: padded(random, `${left}${written}${right}`) }
}

const padded = (random: Random, text: string): string => (chance(random, 0.05) ? ` ${text} ` : text)

const builtinDates = ['dateCreated', 'dateModified'] as const

function valuePath(random: Random, isUnary: boolean): string[] {
  const draw = random.fraction()
  if (draw < 0.05) return ['dateExpires']
  if (draw < 0.12 && !isUnary) return [random.pick([...builtinDates, 'servicePath'] as const)]
  if (draw < 0.14) return ['addr', 'x.y']
  if (draw < 0.35) return random.pick(deepPaths)
  return [random.pick([...attributeNames, ...plainNames, ...plainNames, 'none'] as const)]
}

const deepPaths = [
  ...wordsOf(
    'addr.city addr.zip addr.geo.x addr.geo.y addr.list addr.list.k addr.list.0.k addr.list.1.m addr.constructor',
  ),
  ...wordsOf(
    'rooms.city rooms.zip rooms.0.zip rooms.1 rooms.geo.x rooms.list.k tags.0 tags.3 temp.0 temp.k when.k name.length',
  ),
  ...wordsOf('addr.none addr.__proto__'),
].map(path => path.split('.')) as [string[], ...string[][]]

function metadataPath(random: Random, isUnary: boolean): string[] {
  const name = random.pick([...attributeNames, ...plainNames, 'none'] as const)
  if (!isUnary && chance(random, 0.15)) return [name, random.pick(builtinDates)]
  const metadata = random.pick(metadataNames)
  if (metadata === 'dateModified') return [name, isUnary ? 'acc' : metadata]
  if (metadata !== 'cal.date' || chance(random, 0.3)) return [name, metadata]
  return [name, metadata, ...random.pick(['year', 'tags', 'tags 0', 'none']).split(' ')]
}

/** The token in quotes where they are required, and sometimes where they are allowed. */
function writtenToken(random: Random, token: string): string {
  const isBuiltin = token.startsWith('date') || token === 'servicePath'
  return /[.:]/.test(token) || (!isBuiltin && chance(random, 0.05)) ? `'${token}'` : token
}

type DrawWord = (isFit: (value: Json) => boolean) => Word

function oneWord(random: Random, operator: Operator, draw: DrawWord): Word {
  if (operator === '~=') return { quoted: false, text: random.pick(patterns) }
  return draw(operator === '==' || operator === '!=' ? () => true : isOrdered)
}

const isOrdered = (value: Json): boolean => typeof value === 'number' || typeof value === 'string'

const patterns = wordsOf('^o n$ ^on$ [0-9]+ a|b ^long-x x-1$ ^name-1 . ^[^a] f{2} é V 😀 -[12] ^/ 2024')

/** Items of a list or ends of a range: all numbers, dates or strings; null joins strings in a list. */
function alike(random: Random, shape: 'list' | 'range', draw: DrawWord): Word[] {
  const first = draw(isOrdered)
  const kind = kindOf(first)
  const count = shape === 'range' ? 2 : random.between(2, 5)
  const words = [first]
  while (words.length < count) {
    const next = draw(isOrdered)
    words.push(kindOf(next) === kind ? next : random.pick(words as [Word]))
  }
  if (shape === 'list' && kind === 'string' && chance(random, 0.3)) words.push({ quoted: false, text: 'null' })
  if (shape === 'range' && chance(random, 0.9))
    words.sort((a, b) => rankOf(a) - rankOf(b) || (a.text < b.text ? -1 : 1))
  return words
}

const rankOf = (word: Word): number => {
  const kind = kindOf(word)
  return kind === 'number' ? Number(word.text) : kind === 'date' ? Date.parse(word.text) : 0
}

const kindOf = ({ quoted, text }: Word): 'number' | 'date' | 'string' =>
  quoted ? 'string' : isNumber(text) ? 'number' : /^\d{4}-\d\d-\d\d/.test(text) ? 'date' : 'string'

const isNumber = (text: string): boolean => /^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text)

/** A word for a value of the path, of some entity, or for any other value. */
function wordLike(
  random: Random,
  { entities }: Stock,
  language: Language,
  tokens: readonly string[],
  isFit: (value: Json) => boolean,
): Word {
  const isDate = ['when', 'cal', 'dateCreated', 'dateModified', 'dateExpires'].includes(tokens.at(-1) as string)
  for (let tries = 0; tries < 4 && entities.length > 0 && chance(random, 0.9); tries++) {
    const entity = entities[random.between(0, entities.length - 1)] as Entity
    const found = targetsOf(language, { form: '==', tokens }, entity).flatMap(value =>
      Array.isArray(value) ? (value as Json[]) : [value],
    )
    const fitting = found.filter(isFit)
    const value = fitting[random.between(0, fitting.length - 1)]
    const word = value === undefined ? undefined : wordOf(random, value, isDate)
    if (word) return word
  }
  return random.pick<() => Word>([
    () => wordOf(random, random.pick(numbers), false) as Word,
    () => wordOf(random, random.pick(strings), false) ?? { quoted: false, text: 'on' },
    () => wordOf(random, longString(random), false) as Word,
    () => ({ quoted: false, text: dateText(random, instant(random)) }),
  ])()
}

/** Later instants have no text. */
const instantMsMax = 8.64e15 - 86_400_000

/** The value as a word; undefined when the language has none for it. */
function wordOf(random: Random, value: Json, isDate: boolean): Word | undefined {
  switch (typeof value) {
    case 'number': {
      const ms = Math.round(value * 1000)
      const isInstant = isDate && ms / 1000 === value && Math.abs(ms) < instantMsMax
      if (isInstant && chance(random, 0.8)) return { quoted: false, text: dateText(random, ms) }
      return { quoted: false, text: String(value) }
    }
    case 'string': {
      // A `..` makes a range of everything, quotes or not.
      if (value === '' || /[<>"'=;()]|\.\./.test(value)) return undefined
      const isPlain =
        !/^(true|false|null)$|,|^\s|\s$/.test(value) && kindOf({ quoted: false, text: value }) === 'string'
      return { quoted: !isPlain || chance(random, 0.5), text: value }
    }
    case 'boolean':
      return { quoted: false, text: String(value) }
    default:
      return value === null ? { quoted: false, text: 'null' } : undefined
  }
}

// Geography

/** A point off the entities' grid, so that no two of them are equally far by symmetry; sometimes a point on it. */
function reference(random: Random): Position {
  const [x, y] = position(random, 0.25)
  if (chance(random, 0.3)) return [x, y]
  const moved = (n: number, most: number) => {
    const off = (2 * random.between(-60, 60) + 1) / 1024
    return Math.abs(n + off) < most ? n + off : n - off
  }
  return [moved(x, 180), moved(y, 90)]
}

function geoQuery(random: Random, stock: Stock): Geo {
  const relation = random.pick(['near', 'near', 'coveredBy', 'coveredBy', 'intersects', 'disjoint', 'equals'])
  if (relation === 'near') return near(random)
  const [geometry, place, coords] = shape(random, stock, relation === 'coveredBy')
  const unbounded = { metresMin: 0, metresMax: Number.POSITIVE_INFINITY }
  return { relation, place, georel: relation, geometry, coords: coords.map(asked).join(';'), ...unbounded }
}

const asked = (at: Position): string => latitudeFirst(at).replace(' ', '')

type GeoShape = readonly [geometry: string, place: Place, coords: readonly Position[]]

const querySizes = [1 / 64, 1 / 8, 1 / 4, 1, 1] as const

function shape(random: Random, stock: Stock, isArea: boolean): GeoShape {
  const draw = random.fraction()
  if (isArea ? draw < 0.5 : draw < 0.25) {
    const corners = boxCorners(random, querySizes)
    return ['box', { type: 'Polygon', positions: boxRing(...corners) }, corners]
  }
  if (isArea || draw < 0.5) {
    const positions = ring(random, querySizes)
    return ['polygon', { type: 'Polygon', positions }, positions]
  }
  if (draw < 0.7) {
    const positions = line(random, querySizes)
    return ['line', { type: 'LineString', positions }, positions]
  }
  const positions = [somewhere(random, stock)]
  return ['point', { type: 'Point', positions }, positions]
}

/** The location of an entity, if the drawn one has a point; otherwise any position. */
function somewhere(random: Random, { entities }: Stock): Position {
  const value = entities[random.between(0, Math.max(0, entities.length - 1))]?.attributes.get('loc')?.value
  if (typeof value !== 'object' || value === null || !('type' in value) || value.type !== 'Point')
    return position(random)
  return value.coordinates as unknown as Position
}

function near(random: Random): Geo {
  const positions = [reference(random)]
  const metres = () => random.between(0, random.pick([3000, 60_000, 300_000, 2_000_000]) * 10) / 10
  const most = sometimes(random, 0.85, metres)
  const least = most === undefined || chance(random, 0.25) ? metres() : undefined
  const words = ['near']
  if (most !== undefined) words.push(`maxDistance:${most}`)
  if (least !== undefined) words.push(`minDistance:${least}`)
  return {
    relation: 'near',
    place: { type: 'Point', positions },
    metresMin: least ?? 0,
    metresMax: most ?? Number.POSITIVE_INFINITY,
    georel: shuffled(random, words).join(';'),
    geometry: 'point',
    coords: positions.map(asked).join(';'),
  }
}
