// Parses a watch, from the parameters of a URL or from the members of a message (docs/interface/live.md#filters,
// docs/interface/live.md#options).
//
// Both become the same parts first. Filters are checked in the order and with the texts of lists
// (docs/interface/queries.md#lists); `entities` and `expression` of a message with those of subscriptions
// (docs/interface/subscriptions.md#subject).
//
// Not here: the tenant and the service path, which may be in headers (http/streams.ts).

import type { View } from '../entities/representation.js'
import { isArray, isInteger, type Json, type JsonObject } from '../json.js'
import { compileSelection } from '../queries/selection.js'
import { accepted, allOf, type GeoQuerySource, type Refusal, type Result, refusals, refused } from '../refusal.js'
import { parseNames, parseSubjectEntities } from '../subscriptions/payload-fields.js'
import {
  type AlterationType,
  type Expression,
  type ExpressionSource,
  isAlterationType,
  type SubjectEntity,
} from '../subscriptions/subscription.js'
import { expressionOf, parseExpression } from '../subscriptions/subscription-parser.js'
import { allAlterations, type FilterSource, filterWith } from './change-filter.js'
import { parseCursor } from './cursor.js'
import { gatherMsMax, minIntervalMsMax, type Watch, watchEntitiesMax } from './watch.js'

/** The tenant and path of a watch, from headers or parameters. */
export interface WatchScope {
  readonly tenant: string
  readonly servicePath: string
}

/** The parts of a watch as they were given; undefined: not given. */
interface Given {
  readonly ids: readonly string[] | undefined
  readonly types: readonly string[] | undefined
  readonly idPattern: string | undefined
  readonly typePattern: string | undefined
  /** In the form of subscriptions, instead of the four above. */
  readonly entities: readonly SubjectEntity[] | undefined
  readonly expression: ExpressionSource
  readonly attrs: readonly string[] | undefined
  readonly metadata: readonly string[] | undefined
  readonly options: ReadonlySet<string>
  readonly alterationTypes: readonly string[] | undefined
  readonly conditionAttrs: readonly string[] | undefined
  readonly minInterval: number | undefined
  readonly gather: number | undefined
  readonly from: string | undefined
}

/** Words of `options` that a stream knows (docs/interface/live.md#options). */
export const streamOptions = ['normalized', 'keyValues', 'onlyChangedAttrs', 'sysAttrs', 'snapshot', 'leave'] as const

const knownOptions: ReadonlySet<string> = new Set(streamOptions)

/** The watch that parameters of a URL describe. `options`: their words, of which all are known to some operation. */
export function watchOfParameters(
  scope: WatchScope,
  values: ReadonlyMap<string, string>,
  options: ReadonlySet<string>,
): Result<Watch> {
  const list = (name: string): readonly string[] | undefined => values.get(name)?.split(',')
  const times = allOf({
    minInterval: () => wholeNumber(values.get('minInterval'), refusals.minInterval(minIntervalMsMax)),
    gather: () => wholeNumber(values.get('gather'), refusals.gather(gatherMsMax)),
  })
  if (!times.ok) return times
  const { q, mq, georel, geometry, coords } = Object.fromEntries(values) as Readonly<Record<string, string | undefined>>
  return watchOf(
    scope,
    {
      ids: list('id'),
      types: list('type'),
      idPattern: values.get('idPattern'),
      typePattern: values.get('typePattern'),
      entities: undefined,
      expression: defined({ q, mq, georel, geometry, coords }),
      attrs: list('attrs'),
      metadata: list('metadata'),
      options,
      alterationTypes: list('alterationTypes'),
      conditionAttrs: list('conditionAttrs'),
      ...times.value,
      from: values.get('from'),
    },
    'url',
  )
}

/** The watch that the members of a message describe. */
export function watchOfMessage(scope: WatchScope, message: JsonObject): Result<Watch> {
  const given = allOf<Given>({
    // `id` is the name of the watch; `entities` select by id.
    ids: () => accepted(undefined),
    types: () => textsOf(message, 'type'),
    idPattern: () => textOf(message, 'idPattern'),
    typePattern: () => textOf(message, 'typePattern'),
    entities: () => entitiesOf(message.entities),
    expression: () => expressionIn(message),
    attrs: () => textsOf(message, 'attrs'),
    metadata: () => textsOf(message, 'metadata'),
    options: () => optionsOf(message),
    alterationTypes: () => textsOf(message, 'alterationTypes'),
    conditionAttrs: () => textsOf(message, 'conditionAttrs'),
    minInterval: () => numberOf(message.minInterval, refusals.minInterval(minIntervalMsMax)),
    gather: () => numberOf(message.gather, refusals.gather(gatherMsMax)),
    from: () => textOf(message, 'from'),
  })
  return given.ok ? watchOf(scope, given.value, 'payload') : given
}

function watchOf(scope: WatchScope, given: Given, source: GeoQuerySource): Result<Watch> {
  const { ids, types, idPattern, typePattern, options, minInterval = 0, gather = 0 } = given
  if (ids && idPattern !== undefined) return refused(refusals.idAndIdPattern)
  if (types && typePattern !== undefined) return refused(refusals.typeAndTypePattern)
  for (const word of options) if (!knownOptions.has(word)) return refused(refusals.options)
  if (given.entities && (ids ?? types ?? idPattern ?? typePattern) !== undefined)
    return refused(refusals.watchEntitiesTwice)
  const compiled = compiledExpression(given, source)
  if (!compiled.ok) return compiled
  const entities = given.entities ?? product(given)
  if (entities.length > watchEntitiesMax)
    return refused(refusals.tooMany('entities', entities.length, watchEntitiesMax))
  const unknown = given.alterationTypes?.find(name => !isAlterationType(name))
  if (unknown !== undefined) return refused(refusals.alterationType(unknown))
  if (minInterval > minIntervalMsMax) return refused(refusals.minInterval(minIntervalMsMax))
  if (gather > gatherMsMax) return refused(refusals.gather(gatherMsMax))
  const from = given.from === undefined ? undefined : parseCursor(given.from)
  if (given.from !== undefined && !from) return refused(refusals.cursor)
  const filter: FilterSource = {
    ...scope,
    entities,
    attrs: [...new Set(given.conditionAttrs)],
    expression: given.expression,
    alterationTypes: given.alterationTypes ? [...new Set(given.alterationTypes as AlterationType[])] : allAlterations,
    leaves: options.has('leave'),
  }
  return accepted({
    source: filter,
    filter: filterWith('', filter, compiled.value),
    form: { view: viewOf(given), onlyChangedAttrs: options.has('onlyChangedAttrs') },
    minIntervalMs: minInterval,
    gatherMs: gather,
    hasSnapshot: options.has('snapshot'),
    from,
  })
}

/** A parameter of digits; undefined: not given. */
function wholeNumber(text: string | undefined, refusal: Refusal): Result<number | undefined> {
  if (text === undefined) return accepted(undefined)
  return /^\d{1,16}$/.test(text) ? accepted(Number(text)) : refused(refusal)
}

/** Compiles the expression, after a check of the patterns for ids and types. */
function compiledExpression(given: Given, from: GeoQuerySource): Result<Expression> {
  const { ids, types, idPattern, typePattern, expression } = given
  const { q, mq, ...geo } = expression
  const selection = compileSelection({ selectors: [{ ids, types, idPattern, typePattern }], q, mq, geo, from })
  return selection.ok ? expressionOf({ ...expression }) : selection
}

/** One subject for each pair of an id and a type. */
function product({ ids, types, idPattern = '.*', typePattern }: Given): readonly SubjectEntity[] {
  const byId: readonly SubjectEntity[] = ids ? [...new Set(ids)].map(id => ({ id })) : [{ idPattern }]
  if (!types) return typePattern === undefined ? byId : byId.map(one => ({ ...one, typePattern }))
  const each = [...new Set(types)]
  // The number of pairs is checked by the caller, so no more than one too many is made.
  const most = Math.ceil((watchEntitiesMax + 1) / each.length)
  return byId.slice(0, most).flatMap(one => each.map(type => ({ ...one, type })))
}

/** `sysAttrs` adds the builtin times to the attributes that are shown. */
function viewOf({ options, attrs, metadata }: Given): View {
  const shown = options.has('sysAttrs') ? [...(attrs ?? ['*']), 'dateCreated', 'dateModified'] : attrs
  return { mode: options.has('keyValues') ? 'keyValues' : 'normalized', attrs: shown, metadata }
}

// Members of a message

function textOf(message: JsonObject, name: string): Result<string | undefined> {
  const json = message[name]
  if (json === undefined) return accepted(undefined)
  if (typeof json !== 'string') return refused(refusals.fieldNotString(name))
  return json === '' ? refused(refusals.fieldEmpty(name)) : accepted(json)
}

/** A list of texts, or one text with commas as in a URL. */
function textsOf(message: JsonObject, name: string): Result<readonly string[] | undefined> {
  const json = message[name]
  if (json === undefined) return accepted(undefined)
  if (typeof json === 'string') return json === '' ? refused(refusals.fieldEmpty(name)) : accepted(json.split(','))
  if (!isArray(json)) return refused(refusals.listNotArray(name))
  const names = parseNames(message, name)
  return names.ok && names.value.length === 0 ? accepted(undefined) : names
}

function numberOf(json: Json | undefined, refusal: Refusal): Result<number | undefined> {
  if (json === undefined) return accepted(undefined)
  return isInteger(json) && json >= 0 ? accepted(json) : refused(refusal)
}

function optionsOf(message: JsonObject): Result<ReadonlySet<string>> {
  const words = textsOf(message, 'options')
  return words.ok ? accepted(new Set(words.value)) : words
}

function entitiesOf(json: Json | undefined): Result<readonly SubjectEntity[] | undefined> {
  if (json === undefined) return accepted(undefined)
  if (isArray(json) && json.length === 0) return refused(refusals.fieldEmpty('subject entities'))
  return parseSubjectEntities(json)
}

const expressionNames = ['q', 'mq', 'georel', 'geometry', 'coords'] as const

/** The expression of a message: its member `expression`, or the members of that at the top. */
function expressionIn(message: JsonObject): Result<ExpressionSource> {
  const { expression } = message
  if (expression !== undefined) {
    if (expressionNames.some(name => message[name] !== undefined)) return refused(refusals.watchExpressionTwice)
    const parsed = parseExpression(expression)
    return parsed.ok ? accepted(parsed.value.source) : parsed
  }
  const found: Record<string, string> = {}
  for (const name of expressionNames) {
    const text = textOf(message, name)
    if (!text.ok) return text
    if (text.value !== undefined) found[name] = text.value
  }
  return accepted(found)
}

/** The members that are not undefined. */
const defined = (members: Readonly<Record<string, string | undefined>>): ExpressionSource =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
