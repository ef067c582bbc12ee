// Random subscriptions about the entities of a reference, and how they are sent. Names, values and patterns come from
// the same few as the entities and queries (random-entity, random-query), so that many are shared and often match.
//
// Not here: bodies whose every field is drawn (random-subscription), the expected effects of subscriptions
// (reference-subscriptions).

import type { Random } from './random.js'
import {
  attributeNames,
  chance,
  identity,
  plainNames,
  several,
  shuffled,
  sometimes,
  stems,
  types,
  wordsOf,
} from './random-entity.js'
import { nextQuery, type Stock } from './random-query.js'
import type { Query, Statement } from './reference-query.js'
import type { AlterationType, Element, Subscription } from './reference-subscriptions.js'

/** The id of the subscription that is created as number n. */
export const subscriptionId = (n: number): string => n.toString(16).padStart(24, '0')

/** The expressions that subscriptions choose from; equal ones are shared. */
export interface Expressions {
  readonly q: readonly (readonly Statement[])[]
  readonly mq: readonly (readonly Statement[])[]
  readonly geo: readonly NonNullable<Query['geo']>[]
}

/** This number of expressions of each kind about the entities. */
export function someExpressions(random: Random, stock: Stock, count: number): Expressions {
  const drawn = {
    q: new Set<readonly Statement[]>(),
    mq: new Set<readonly Statement[]>(),
    geo: new Set<NonNullable<Query['geo']>>(),
  }
  while (drawn.q.size < count || drawn.mq.size < count || drawn.geo.size < count) {
    const { q, mq, geo } = nextQuery(random, stock)
    if (q && drawn.q.size < count) drawn.q.add(q)
    if (mq && drawn.mq.size < count) drawn.mq.add(mq)
    if (geo && drawn.geo.size < count) drawn.geo.add(geo)
  }
  return { q: [...drawn.q], mq: [...drawn.mq, ...eventStatements.map(one => [one])], geo: [...drawn.geo] }
}

const statement = (text: string, form: Statement['form'], tokens: string, word?: string): Statement => ({
  form,
  tokens: tokens.split(' '),
  shape: 'one',
  words: word === undefined ? [] : [{ quoted: false, text: word }],
  text,
})

/** About metadata that only an event has. */
export const eventStatements = plainNames.flatMap(name => [
  statement(`${name}.actionType==update`, '==', `${name} actionType`, 'update'),
  statement(`${name}.actionType!=append`, '!=', `${name} actionType`, 'append'),
  statement(`${name}.previousValue`, 'exists', `${name} previousValue`),
  statement(`!${name}.previousValue`, 'missing', `${name} previousValue`),
  statement(`${name}.previousValue>2`, '>', `${name} previousValue`, '2'),
]) as [Statement, ...Statement[]]

export function nextSubscription(
  random: Random,
  expressions: Expressions,
  id: string,
  idsPerStem: number,
  nowMs: number,
): Subscription {
  const names = [...attributeNames, 'loc', 'dateExpires', 'none'] as [string, ...string[]]
  const someNames = (most: number) => [...new Set(several(random, 1, most, () => random.pick(names)))]
  const of = <T>(all: readonly T[]): T => all[random.between(0, all.length - 1)] as T
  const lists = random.pick([
    () => ({ sentAttrs: [], exceptAttrs: [] }),
    () => ({ sentAttrs: [...someNames(3), ...builtins.filter(() => chance(random, 0.15))], exceptAttrs: [] }),
    () => ({ sentAttrs: [], exceptAttrs: someNames(5) }),
  ])()
  const q = sometimes(random, 0.5, () => of(expressions.q))
  const mq = sometimes(random, 0.15, () => of(expressions.mq))
  const geo = sometimes(random, 0.1, () => of(expressions.geo))
  const expiresMs = sometimes(random, 0.1, () => nowMs + random.between(-60, 600) * 1000)
  return {
    id,
    path: random.pick(['/#', '/#', '/#', '/', '/a', '/a/#', '/a/b', '/ab/#']),
    status: random.pick(['active', 'active', 'active', 'active', 'oneshot', 'inactive']),
    throttlingSeconds: random.pick([0, 0, 1, 60]),
    elements: several(random, 1, random.pick([1, 1, 1, 3]), () => element(random, idsPerStem)),
    attrs: chance(random, 0.5) ? [] : someNames(3),
    alterationTypes: chance(random, 0.5) ? [] : shuffled(random, alterationTypes).slice(0, random.between(1, 4)),
    notifyOnMetadataChange: chance(random, 0.7),
    onlyChangedAttrs: chance(random, 0.3),
    propagateDeletes: chance(random, 0.2),
    ...lists,
    ...(q && { q }),
    ...(mq && { mq }),
    ...(geo && { geo }),
    ...(expiresMs !== undefined && { expiresMs }),
  }
}

const builtins = ['alterationType', 'dateModified', 'dateCreated', 'servicePath', '*'] as const

const alterationTypes = wordsOf('entityCreate entityChange entityUpdate entityDelete') as AlterationType[]

function element(random: Random, idsPerStem: number): Element {
  const stem = random.pick(stems)
  const idPattern = () =>
    random.pick([
      '.*',
      '.*',
      '.*',
      `^${stem}`,
      `^${stem}${random.between(1, idsPerStem)}$`,
      `^${stem}[${random.between(1, 9)}-9]`,
      `${random.between(0, 9)}$`,
      `[0-${random.between(1, 9)}]$`,
      '^(room|x\\.)',
      `oo?m${random.between(1, idsPerStem)}`,
    ])
  return {
    ...(chance(random, 0.3) ? { id: identity(random, idsPerStem).id } : { idPattern: idPattern() }),
    ...random.pick([
      () => ({}),
      () => ({ type: random.pick(types) }),
      () => ({ type: random.pick(types) }),
      () => ({ typePattern: random.pick(['^Room', 'l$|^V', 'o{2}', '.']) }),
    ])(),
  }
}

/** The body of the POST that creates the subscription. */
export function bodyOf(subscription: Subscription): string {
  const { q, mq, geo, attrs, alterationTypes, notifyOnMetadataChange, elements, sentAttrs, exceptAttrs } = subscription
  const textOf = (statements: readonly Statement[] | undefined) => statements?.map(({ text }) => text).join(';')
  const expression = {
    q: textOf(q),
    mq: textOf(mq),
    georel: geo?.georel,
    geometry: geo?.geometry,
    coords: geo?.coords,
  }
  const isGiven = q || mq || geo
  const condition = { attrs, alterationTypes, notifyOnMetadataChange, ...(isGiven && { expression }) }
  const { onlyChangedAttrs, propagateDeletes, status, expiresMs, throttlingSeconds } = subscription
  return JSON.stringify({
    subject: { entities: elements, condition },
    notification: {
      http: { url: 'http://localhost:1/' },
      onlyChangedAttrs,
      propagateDeletes,
      ...(exceptAttrs.length > 0 ? { exceptAttrs } : { attrs: sentAttrs }),
    },
    status,
    throttling: throttlingSeconds,
    expires: expiresMs === undefined ? undefined : new Date(expiresMs).toISOString(),
  })
}
