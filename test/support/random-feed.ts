// Random watches of a live feed about the entities of a reference, and how they are requested: as parameters of a URL,
// or as a message of a WebSocket.
//
// Not here: what a watch reports (reference-watch), random entities and queries (random-entity, random-query).

import type { Random } from './random.js'
import { attributeNames, chance, identity, shuffled, sometimes, stems, types, wordsOf } from './random-entity.js'
import { nextQuery, type Stock } from './random-query.js'
import type { JsonObject } from './reference-entities.js'
import type { Query, Selector, Statement } from './reference-query.js'
import type { AlterationType } from './reference-subscriptions.js'
import { isListed, type Watch } from './reference-watch.js'

export interface WatchWishes {
  /** Several selectors, which only a message can have. */
  readonly several?: boolean
  /** The highest `minInterval`. */
  readonly intervalMsMax?: number
}

const alterationTypes = wordsOf('entityCreate entityChange entityUpdate entityDelete') as AlterationType[]

/** A watch. If it has an expression, some of the entities fit it, as long as there are any. */
export function nextWatch(random: Random, stock: Stock, wishes: WatchWishes = {}): Watch {
  const names = [...attributeNames, 'loc'] as [string, ...string[]]
  const someNames = (most: number) => shuffled(random, names).slice(0, random.between(1, most))
  const attrs = sometimes(random, 0.3, () => [...someNames(5), ...(chance(random, 0.2) ? ['*'] : [])])
  const metadata = sometimes(random, 0.15, () => shuffled(random, ['acc', 'unit', 'cal', '*']).slice(0, 2))
  const onlyChangedAttrs = chance(random, 0.2)
  const plain: Watch = {
    path: random.pick(['/#', '/#', '/#', '/a', '/a/#', '/']),
    selectors: selectors(random, stock, wishes.several === true),
    conditionAttrs: chance(random, 0.2) ? someNames(6) : [],
    alterationTypes: chance(random, 0.2) ? shuffled(random, alterationTypes).slice(0, random.between(1, 3)) : [],
    shown: {
      mode: random.pick(['normalized', 'keyValues']),
      ...(attrs && { attrs }),
      ...(metadata && { metadata }),
    },
    onlyChangedAttrs,
    sysAttrs: !onlyChangedAttrs && chance(random, 0.15),
    leave: chance(random, 0.5),
    snapshot: chance(random, 0.5),
    minIntervalMs: chance(random, 0.2) ? random.between(20, wishes.intervalMsMax ?? 200) : 0,
    gatherMs: chance(random, 0.3) ? random.between(1, 300) : 0,
  }
  return chance(random, 0.5) ? plain : withExpression(random, plain, stock)
}

const queriesMax = 40

/** The watch with an expression that some, and if possible not all, of its entities fit. */
function withExpression(random: Random, plain: Watch, stock: Stock): Watch {
  let best = plain
  for (let tries = 0; tries < queriesMax; tries++) {
    const { q, mq, geo } = nextQuery(random, stock)
    if (!isForeseeable(q, 0) || !isForeseeable(mq, 1)) continue
    const watch: Watch = { ...plain, ...(q && { q }), ...(mq && { mq }), ...(geo && { geo }) }
    const fitting = stock.entities.filter(entity => isListed(watch, entity) === true).length
    if (fitting > 0) best = watch
    if (fitting > 0 && fitting < stock.entities.length) return watch
  }
  return best
}

/** Whether no statement asks for a time of the broker; `at`: where its name would be. */
const isForeseeable = (statements: readonly Statement[] | undefined, at: number): boolean =>
  statements?.every(({ tokens }) => !/^date(Created|Modified|Expires)$/.test(tokens[at] ?? '')) ?? true

function selectors(random: Random, stock: Stock, several: boolean): readonly Selector[] {
  if (chance(random, 0.4)) return []
  const count = several ? random.between(1, 3) : 1
  return Array.from({ length: count }, () => selector(random, stock))
}

function selector(random: Random, { idsPerStem }: Stock): Selector {
  const id = () => identity(random, idsPerStem).id
  const ids = Array.from({ length: random.between(1, 4) }, id)
  const idPattern = random.pick(['.*', `^${random.pick(stems)}`, '[13579]$', '^(room|x\\.)', 'oo?m1', '^.r', '[12]$'])
  return {
    ...random.pick<Selector>([{}, { ids }, { idPattern }, { idPattern }]),
    ...random.pick<Selector>([
      {},
      { types: [random.pick(types)] },
      { types: ['Room', 'Hall'] },
      { typePattern: random.pick(['^Room', 'l$|^V', 'o{2}', '.']) },
    ]),
  }
}

// Requests

const textOf = (statements: readonly Statement[] | undefined) => statements?.map(({ text }) => text).join(';')

const expressionOf = ({ q, mq, geo }: Pick<Query, 'q' | 'mq' | 'geo'>) => ({
  q: textOf(q),
  mq: textOf(mq),
  georel: geo?.georel,
  geometry: geo?.geometry,
  coords: geo?.coords,
})

/** The words of `options`. */
function optionsOf(watch: Watch): readonly string[] {
  const flags = (['onlyChangedAttrs', 'sysAttrs', 'leave', 'snapshot'] as const).filter(name => watch[name])
  return watch.shown.mode === 'keyValues' ? ['keyValues', ...flags] : flags
}

/** Members that are lists in both forms. */
const listsOf = (watch: Watch) => ({
  attrs: watch.shown.attrs,
  metadata: watch.shown.metadata,
  conditionAttrs: watch.conditionAttrs.length === 0 ? undefined : watch.conditionAttrs,
  alterationTypes: watch.alterationTypes.length === 0 ? undefined : watch.alterationTypes,
  options: optionsOf(watch).length === 0 ? undefined : optionsOf(watch),
})

/** Whether the URL of a WebSocket can request the watch: without parameters it requests none. */
export const fitsUrl = (watch: Watch): boolean =>
  watch.selectors.length <= 1 && Object.keys(watchParameters(watch)).length > 0

/** The parameters of a URL, without tenant and path; decoded. */
export function watchParameters(watch: Watch): Readonly<Record<string, string>> {
  const [{ ids, idPattern, types, typePattern } = {} as Selector] = watch.selectors
  const lists = { id: ids, type: types, ...listsOf(watch) }
  const all: Record<string, string | undefined> = {
    ...Object.fromEntries(Object.entries(lists).map(([name, words]) => [name, words?.join(',')])),
    idPattern,
    typePattern,
    ...expressionOf(watch),
    minInterval: watch.minIntervalMs === 0 ? undefined : String(watch.minIntervalMs),
    gather: watch.gatherMs === 0 ? undefined : String(watch.gatherMs),
  }
  return defined(all)
}

/** The members of a message, without its name, tenant and path; `random` chooses among forms that mean the same. */
export function watchMembers(watch: Watch, random: Random): JsonObject {
  const [only = {}] = watch.selectors
  const isPlain = watch.selectors.length <= 1 && only.ids === undefined && chance(random, 0.5)
  const { idPattern, types, typePattern } = only
  const entities = watch.selectors.length === 0 ? undefined : watch.selectors.flatMap(elementsOf)
  const expression = defined(expressionOf(watch))
  const isNested = Object.keys(expression).length > 0 && chance(random, 0.5)
  return defined<JsonObject[string]>({
    ...listsOf(watch),
    ...(isPlain ? { idPattern, type: types, typePattern } : { entities }),
    ...(isNested ? { expression } : expression),
    minInterval: watch.minIntervalMs === 0 ? undefined : watch.minIntervalMs,
    gather: watch.gatherMs === 0 ? undefined : watch.gatherMs,
  })
}

/** One element for each pair of an id and a type. */
function elementsOf({ ids, idPattern = '.*', types, typePattern }: Selector): readonly JsonObject[] {
  const byId: readonly JsonObject[] = ids ? ids.map(id => ({ id })) : [{ idPattern }]
  if (types) return byId.flatMap(one => types.map(type => ({ ...one, type })))
  return typePattern === undefined ? byId : byId.map(one => ({ ...one, typePattern }))
}

const defined = <T>(members: Readonly<Record<string, T | undefined>>): Readonly<Record<string, T>> =>
  Object.fromEntries(Object.entries(members).filter((one): one is [string, T] => one[1] !== undefined))
