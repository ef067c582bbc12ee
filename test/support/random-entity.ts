// Random entities. They have few identities, so that changes meet. Under each name come values of all kinds, most of
// them of the kind that the name is for: long strings with equal beginnings, numbers that are often equal, names that
// are traps.
//
// Everything is drawn from one Random, so a seed gives the same story. Times lie on a grid that the journey knows: an
// entity expires half a minute past a full minute, or has expired already (`expiryOf`). Coordinates are multiples of
// 1/64 degree (reference-geo).
//
// Not here: their changes (random-change).

import type { Random } from './random.js'
import type { GivenAttribute, GivenMetadata, Json, Named, Target } from './reference-entities.js'
import type { Position } from './reference-geo.js'

type Choices<T> = [T, ...T[]]

/** Choices that have no blanks. */
export const wordsOf = (text: string) => text.split(' ') as Choices<string>

export const paths = ['/', '/', '/a', '/a', '/a/b', '/ab'] as const
export const types = ['Room', 'Room', 'Hall', 'Vehicle', 'RoomX'] as const
export const stems = ['room', 'Room', 'urn:hall:', 'x.', 'xy'] as const

export const chance = (random: Random, share: number): boolean => random.fraction() < share

/** A value with the probability `share`, otherwise undefined. */
export const sometimes = <T>(random: Random, share: number, draw: () => T): T | undefined =>
  chance(random, share) ? draw() : undefined

export const several = <T>(random: Random, least: number, most: number, draw: () => T): T[] =>
  Array.from({ length: random.between(least, most) }, draw)

export function identity(random: Random, idsPerStem: number): Target {
  return {
    path: random.pick(paths),
    id: `${random.pick(stems)}${random.between(1, idsPerStem)}`,
    type: random.pick(types),
  }
}

// Values

/**
 * Short strings that look like values of other kinds, and some beyond ASCII whose order by bytes and by code units
 * differs.
 */
export const strings: Choices<string> = [
  ...wordsOf('on off a b ab Z é 😀 😁 ～ ﬀ a😀 a～ 21 -3 true null 2024-05-01 /a a,b a..b'),
  'x y',
  '',
]
const atFullPrecision = wordsOf('16777216 16777217 9007199254740991 1714521600 1714521600.5 1714521601 0.1 1e-9')
/** Some differ only at full precision. */
export const numbers = [...wordsOf('0 1 2 2.5 21 21.5 -3 -0.5 1e6'), ...atFullPrecision].map(Number) as Choices<number>

const number = (random: Random): number =>
  chance(random, 0.6) ? random.pick(numbers) : random.between(-5000, 5000) / 100

/** Long strings with equal beginnings, the worst case for comparison by beginning or by hash. */
export const longString = (random: Random): string =>
  `long-${'x'.repeat(random.pick([30, 250]))}-${random.between(1, 40)}`

const uniqueString = (random: Random): string => `name-${random.between(1, 2 ** 31)}-${longString(random)}`

const string = (random: Random): string =>
  random.pick([() => random.pick(strings), () => random.pick(strings), () => longString(random)])()

export const scalar = (random: Random): Json =>
  random.pick<() => Json>([() => number(random), () => string(random), () => random.pick([true, false]), () => null])()

/** Milliseconds: full days, full seconds, and some between; around the time in which the stories play. */
export const dayMs = 86_400_000
export const storyBeginsMs = Date.UTC(2024, 4, 1)

export function instant(random: Random): number {
  const ms = storyBeginsMs + random.between(-20, 20) * dayMs
  return ms + random.pick([0, 3_600_000, 3_600_500, random.between(0, dayMs)])
}

/** One of the texts of an instant (docs/interface/entities.md#dates). */
export function dateText(random: Random, ms: number): string {
  const full = new Date(ms).toISOString()
  const inZone = new Date(ms + 2 * 3_600_000).toISOString().replace('Z', '+02:00')
  const forms: [string, ...string[]] = [full, full, inZone]
  if (ms % 1000 === 0) forms.push(`${full.slice(0, 19)}Z`, full.slice(0, 19))
  if (ms % dayMs === 0) forms.push(full.slice(0, 10))
  return random.pick(forms)
}

const list = (random: Random): Json => {
  const items = several(random, 0, 4, () => scalar(random))
  return chance(random, 0.1) ? [...items, several(random, 0, 2, () => scalar(random))] : items
}

const address = (random: Random): Json => {
  const members: [string, () => Json][] = [
    ['city', () => random.pick(['Vigo', 'Lugo', 'Bonn', ''])],
    ['zip', () => scalar(random)],
    ['geo', () => ({ x: number(random), y: scalar(random) })],
    ['x.y', () => scalar(random)],
    [
      'list',
      () => several(random, 0, 3, () => ({ k: scalar(random), ...(chance(random, 0.3) && { m: list(random) }) })),
    ],
    ['constructor', () => scalar(random)],
  ]
  return Object.fromEntries(members.filter(() => chance(random, 0.6)).map(([key, draw]) => [key, draw()]))
}

const object = { k: 1 } as const

export const given = (value: Json, type?: string): GivenAttribute => (type === undefined ? { value } : { value, type })

const dated = (random: Random): GivenAttribute => {
  const value = chance(random, 0.95) ? dateText(random, instant(random)) : null
  return given(value, random.pick(['DateTime', 'DateTime', 'ISO8601']))
}

/** The kind of each name. Objects are equal where the order of `orderBy` has to be certain (reference-query). */
const kinds: Readonly<Record<string, (random: Random) => GivenAttribute>> = {
  temp: random => given(number(random), random.pick([undefined, 'Celsius'])),
  seq: random => given(random.between(0, 2 ** 31)),
  status: random => given(string(random)),
  name: random => given(uniqueString(random)),
  when: dated,
  flag: random => given(random.pick([true, false])),
  addr: random => given(address(random)),
  rooms: random => given(several(random, 0, 3, () => address(random))),
  tags: random => given(list(random)),
}

export const plainNames = ['temp', 'seq', 'status', 'name', 'when', 'flag'] as const
const mixedNames = ['a.b', 'a:b', 'odd$name', '__proto__', 'constructor', 'rare'] as const
const builtinNames = ['dateModified', 'dateCreated', 'servicePath'] as const
export const attributeNames = [...plainNames, 'addr', 'rooms', 'tags', ...mixedNames] as const

const isPlain = (name: string): boolean => (plainNames as readonly string[]).includes(name)

export function attributeOf(random: Random, name: string): GivenAttribute {
  const kind = kinds[name]
  if (Object.hasOwn(kinds, name) && kind && chance(random, 0.8)) return kind(random)
  return random.pick<() => GivenAttribute>([
    () => given(scalar(random)),
    () => given(scalar(random), 'Any'),
    () => dated(random),
    () =>
      given(isPlain(name) ? several(random, 0, 3, () => random.pick<Json>([scalar(random), object])) : list(random)),
    () => given(isPlain(name) ? object : address(random)),
    () => given('(a<b;"c")', 'TextUnrestricted'),
    () => ({}),
  ])()
}

const metadataKinds: Readonly<Record<string, (random: Random) => GivenMetadata>> = {
  acc: random => ({ value: chance(random, 0.8) ? number(random) : scalar(random) }),
  unit: random => ({ value: random.pick(['C', 'F', '', 'long']), type: 'Text' }),
  cal: dated,
  'cal.date': random => ({ value: { year: random.between(2020, 2024), tags: list(random) } }),
  dateModified: random => ({ value: scalar(random) }),
}

export const metadataNames = Object.keys(metadataKinds) as [string, ...string[]]

const someMetadata = (random: Random): Named<GivenMetadata> => {
  const names = metadataNames.filter(() => chance(random, 0.3))
  return names.map(name => [name, metadataKinds[name]!(random)] as const)
}

export const withMetadata = (random: Random, attribute: GivenAttribute): GivenAttribute =>
  chance(random, 0.3) ? { ...attribute, metadata: someMetadata(random) } : attribute

// Locations

/** A point of a grid: corners meet corners and lie on edges. Some lie at the edge of the map. */
export function position(random: Random, atEdges = 0.08): Position {
  const grid = random.pick([1 / 8, 1 / 64])
  const edge = random.fraction() / atEdges
  if (edge < 0.6) return [random.pick([1, -1]) * (180 - random.between(1, 40) / 64), random.between(-8, 8) / 8]
  if (edge < 1) return [random.between(-170, 170), random.pick([90, 89.5, -89.5, -90])]
  return [-3 + random.between(0, 1 / grid) * grid, 41 + random.between(0, 1 / grid) * grid]
}

/** The outlines of polygons, before they are moved and enlarged. None crosses or touches itself. */
const outlines = [
  '0,0 2,0 2,1 0,1 0,0',
  '0,0 1,0 1,1 0,1 0,0',
  '0,0 3,1 1,2 0,0',
  '0,0 2,0 2,1 1,1 1,2 0,2 0,0',
  '0,0 4,2 0,4 1,2 0,0',
] as const

export function ring(random: Random, sizes: readonly [number, ...number[]]): readonly Position[] {
  const size = random.pick(sizes)
  const [x, y] = insideMap(position(random), 4 * size)
  const outline = random
    .pick(outlines)
    .split(' ')
    .map((corner): Position => {
      const [dx, dy] = corner.split(',').map(Number) as [number, number]
      return [x + dx * size, y + dy * size]
    })
  const turned = chance(random, 0.5) ? outline : [...outline].reverse()
  const corners = turned.slice(1)
  const first = random.between(0, corners.length - 1)
  const begun = [...corners.slice(first), ...corners.slice(0, first)]
  return [...begun, begun[0]!]
}

/** The position, moved so that a shape of so many degrees fits. */
const insideMap = ([x, y]: Position, extent: number): Position => [Math.min(x, 180 - extent), Math.min(y, 90 - extent)]

export function line(random: Random, steps: readonly [number, ...number[]]): readonly Position[] {
  const size = random.pick(steps)
  const [x, y] = insideMap(position(random), 2 * size)
  const way = several(random, 1, 3, () => [random.between(0, 2) * size, random.between(0, 2) * size] as const)
  return [[x, y], ...way.map(([dx, dy]): Position => [x + dx, y + dy])]
}

const sizes = [1 / 64, 1 / 8, 1 / 4] as const
export const latitudeFirst = ([x, y]: Position): string => `${y}, ${x}`

export function location(random: Random): GivenAttribute {
  const geoJson = (type: string, coordinates: unknown): GivenAttribute =>
    given({ type, coordinates } as Json, 'geo:json')
  const point = () => geoJson('Point', position(random))
  const drawn = random.pick<() => GivenAttribute>([
    point,
    point,
    point,
    () => given(latitudeFirst(position(random)), 'geo:point'),
    () => given(latitudeFirst(position(random)), 'geo:point'),
    () => given({ type: 'Feature', properties: {}, geometry: point().value as Json }, 'geo:json'),
    () =>
      geoJson(
        'MultiPoint',
        several(random, 1, 3, () => position(random)),
      ),
    () => geoJson('LineString', line(random, sizes)),
    () => given(line(random, sizes).map(latitudeFirst), 'geo:line'),
    () => geoJson('Polygon', [ring(random, sizes)]),
    () => given(ring(random, sizes).map(latitudeFirst), 'geo:polygon'),
    () => given(boxCorners(random, sizes).map(latitudeFirst), 'geo:box'),
    () => given(null, random.pick(['geo:json', 'geo:point'])),
  ])()
  const ignored = random.fraction()
  if (ignored < 0.05) return { ...drawn, metadata: [['ignoreType', { value: true }]] }
  return ignored < 0.07 ? { ...drawn, metadata: [['ignoreType', { value: 'true' }]] } : drawn
}

export function boxCorners(random: Random, sizes: readonly [number, ...number[]]): [Position, Position] {
  const size = random.pick(sizes)
  const [x, y] = insideMap(position(random), 2 * size)
  const corners: [Position, Position] = [
    [x, y + size],
    [x + 2 * size, y],
  ]
  return chance(random, 0.5) ? corners : [corners[1], corners[0]]
}

// Entities

/** The time at which an entity expires: in the next minutes, much later, or at once. */
export function expiryOf(random: Random, nowMs: number): GivenAttribute {
  const halfMinute = Math.ceil(nowMs / 60_000) * 60_000 + 30_000
  const ms = random.pick([
    halfMinute + random.between(0, 3) * 60_000,
    halfMinute + random.between(1, 20) * dayMs,
    nowMs - random.between(1, 1000) * 1000,
  ])
  return given(dateText(random, ms), 'DateTime')
}

/** A share of all names, each with an attribute. */
export function someAttributes(random: Random, share: number, nowMs: number): Named<GivenAttribute> {
  const chosen = attributeNames.filter(name => chance(random, name === 'rare' ? share / 20 : share))
  const named = chosen.map(name => [name, withMetadata(random, attributeOf(random, name))] as [string, GivenAttribute])
  if (chance(random, 2.5 * share)) named.push(['loc', location(random)])
  if (chance(random, share / 8)) named.push(['spot', location(random)])
  if (chance(random, share / 30)) named.push([random.pick(builtinNames), given(scalar(random))])
  if (chance(random, share / 12)) named.push(['dateExpires', expiryOf(random, nowMs)])
  return shuffled(random, named)
}

/** At least one attribute. */
export function anyAttributes(random: Random, share: number, nowMs: number): Named<GivenAttribute> {
  const named = someAttributes(random, share, nowMs)
  return named.length > 0 ? named : [['temp', given(number(random))]]
}

export function shuffled<T>(random: Random, all: readonly T[]): T[] {
  const keyed = all.map(one => ({ one, key: random.fraction() }))
  return keyed.sort((a, b) => a.key - b.key).map(({ one }) => one)
}
