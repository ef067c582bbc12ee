// The Simple Query Language: parses the text of a `q` or `mq` to statements (docs/interface/queries.md,
// docs/interface/errors.md#queries).
//
// The language has no brackets: a query is a list of statements, all of which must hold. Each is parsed with a few
// splits and scans, in the order of docs/interface/queries.md#simple-query-language: `;` first, then the operator, the
// path, the right side. Nothing recurses, and every scan goes forward only, so time is linear in the text.
//
// Values get their kinds here, dates become epoch seconds, lists become sets, and patterns are compiled.
//
// Not here: testing statements on an entity (query.ts), the check for an empty parameter
// (docs/interface/requests.md#url-parameters), HTML escapes (docs/interface/errors.md#form).

import { parseDateTime } from '../date-time.js'
import { hasForbiddenCharacters } from '../json.js'
import { patternStepsMax, queryPatternsMax, queryStatementsMax, queryTextLengthMax } from '../limits.js'
import { accepted, type QueryOperator, type QueryValueKind, type Result, refusals, refused } from '../refusal.js'
import { charactersMax, compilePattern, type Pattern } from './pattern.js'

/** `q` tests values of attributes, `mq` their metadata (docs/interface/queries.md#paths). */
export type QueryLanguage = 'q' | 'mq'

/** A `q` or an `mq`: every statement must hold. */
export interface Query {
  readonly language: QueryLanguage
  readonly statements: readonly Statement[]
}

/** One statement. All must hold, independently of each other, so an index may answer any of them. */
export type Statement =
  | { readonly operator: 'Exists' | 'NotExists'; readonly path: Path }
  | { readonly operator: 'Equals' | 'Differs'; readonly path: Path; readonly right: Choice }
  | { readonly operator: OrderOperator; readonly path: Path; readonly right: Bound }
  | PatternStatement

export interface PatternStatement {
  readonly operator: 'MatchPattern'
  readonly path: Path
  readonly right: Pattern
  /** The limit of characters that it tests in one entity. The patterns of a query share the work. */
  readonly charactersMax: number
}

export type OrderOperator = 'GreaterThan' | 'GreaterThanOrEqual' | 'LessThan' | 'LessThanOrEqual'

/** A value to compare with. Dates are numbers: epoch seconds with fractions (docs/interface/queries.md#values). */
export type Scalar = null | boolean | number | string

/** A value that has an order. It is compared only with values of its own kind. */
export type Bound = number | string

/** The right side of `==` and `!=`. Both ends of a range are of one kind and included. */
export type Choice =
  | { readonly kind: 'value'; readonly value: Scalar }
  | { readonly kind: 'list'; readonly items: ReadonlySet<Scalar> }
  | { readonly kind: 'range'; readonly from: Bound; readonly to: Bound }

/** The value that a statement tests (docs/interface/queries.md#paths). */
export interface Path {
  readonly attribute: string
  /** The metadata of the attribute: always present in `mq`, never in `q`. */
  readonly metadata: string | undefined
  /** Keys from the value inwards. */
  readonly steps: readonly Step[]
  /**
   * Set when the statement tests a builtin attribute of the entity (`q`) or builtin metadata of the attribute (`mq`).
   */
  readonly builtin: Builtin | undefined
}

/** A key of an object. `index` is its number if it is written like an array index, else -1. */
export interface Step {
  readonly key: string
  readonly index: number
}

/**
 * `dateExpires` is not one of them: it is stored like any attribute (docs/interface/entities.md#builtin-attributes).
 */
export type Builtin = 'dateCreated' | 'dateModified' | 'servicePath'

/**
 * The statements of a text (docs/interface/queries.md#simple-query-language); each refusal has the text of
 * docs/interface/errors.md#queries.
 */
export function parseQuery(text: string, language: QueryLanguage): Result<Query> {
  if (text.length > queryTextLengthMax) return refused(refusals.queryTooLong(language, text.length, queryTextLengthMax))
  const body = text.endsWith(';') ? text.slice(0, -1) : text
  if (body === '') return refused(refusals.queryEmpty)
  const items = body.split(';')
  if (items.length > queryStatementsMax)
    return refused(refusals.statementsTooMany(language, items.length, queryStatementsMax))
  const statements: Statement[] = []
  let patterns = 0
  let steps = 0
  for (const item of items) {
    const statement = parseStatement(item, language)
    if (!statement.ok) return statement
    if (statement.value.operator === 'MatchPattern') {
      if (++patterns > queryPatternsMax) return refused(refusals.queryPatternsTooMany(language, queryPatternsMax))
      steps += statement.value.right.steps
      if (steps > patternStepsMax) return refused(refusals.queryPatternsTooLarge(language, patternStepsMax))
    }
    statements.push(statement.value)
  }
  return accepted({ language, statements: patterns > 1 ? sharing(statements, charactersMax(steps)) : statements })
}

const sharing = (statements: readonly Statement[], charactersMax: number): readonly Statement[] =>
  statements.map(statement => (statement.operator === 'MatchPattern' ? { ...statement, charactersMax } : statement))

/** The same query, with a limit of characters that its patterns test in an entity. */
export function lookingAt(query: Query, charactersMax: number): Query {
  const isMore = (one: Statement): one is PatternStatement =>
    one.operator === 'MatchPattern' && one.charactersMax > charactersMax
  if (!query.statements.some(isMore)) return query
  return { ...query, statements: query.statements.map(one => (isMore(one) ? { ...one, charactersMax } : one)) }
}

function parseStatement(item: string, language: QueryLanguage): Result<Statement> {
  if (item === '') return refused(refusals.statementEmpty)
  const text = strip(item)
  if (text === '') return refused(refusals.statementBlank)
  const found = findOperator(text)
  if (!found) return parseUnary(text, language)

  const left = strip(text.slice(0, found.at))
  const right = strip(text.slice(found.end))
  if (left === '') return refused(refusals.statementWithoutLeft)
  if (right === '') return refused(refusals.statementWithoutRight)
  const path = parsePath(left, language, 'binary')
  if (!path.ok) return path
  return parseBinary(path.value, found.operator, right)
}

function parseUnary(text: string, language: QueryLanguage): Result<Statement> {
  const isNegated = text.startsWith('!')
  const name = isNegated ? strip(text.slice(1)) : text
  if (name === '') return refused(refusals.statementWithoutRight)
  const path = parsePath(name, language, 'unary')
  return path.ok ? accepted({ operator: isNegated ? 'NotExists' : 'Exists', path: path.value }) : path
}

type BinaryOperator = Exclude<QueryOperator, 'Exists' | 'NotExists'>

const twoCharacters: ReadonlyMap<string, BinaryOperator> = new Map<string, BinaryOperator>([
  ['==', 'Equals'],
  ['!=', 'Differs'],
  ['>=', 'GreaterThanOrEqual'],
  ['<=', 'LessThanOrEqual'],
  ['~=', 'MatchPattern'],
])

const oneCharacter: ReadonlyMap<string, BinaryOperator> = new Map<string, BinaryOperator>([
  [':', 'Equals'],
  ['>', 'GreaterThan'],
  ['<', 'LessThan'],
])

/** The first operator from the left outside single quotes (docs/interface/queries.md#simple-query-language, rule 2). */
function findOperator(text: string): { operator: BinaryOperator; at: number; end: number } | undefined {
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (character === "'") isQuoted = !isQuoted
    if (isQuoted) continue
    const long = text[at + 1] === '=' ? twoCharacters.get(`${character}=`) : undefined
    if (long) return { operator: long, at, end: at + 2 }
    const short = oneCharacter.get(character)
    if (short) return { operator: short, at, end: at + 1 }
  }
  return undefined
}

// A quote is forbidden too, except around a whole token.
const forbiddenInPath = /[<>"=;()]/

function parsePath(text: string, language: QueryLanguage, arity: 'unary' | 'binary'): Result<Path> {
  if (forbiddenInPath.test(text)) return refused(refusals.charactersInQueryPath(language))
  const tokens = parseTokens(text)
  if (!tokens) return refused(refusals.charactersInFilter)
  const [attribute = '', ...rest] = tokens
  if (language === 'q') {
    if (tokens.includes('')) return refused(refusals.queryPathEmptyName)
    const builtin = arity === 'binary' && rest.length === 0 ? builtinsOfEntity.get(attribute) : undefined
    return accepted({ attribute, metadata: undefined, steps: rest.map(stepOf), builtin })
  }
  const [metadata = '', ...keys] = rest
  if (attribute === '') return refused(refusals.metadataFilterWithoutAttribute)
  if (metadata === '')
    return refused(arity === 'unary' ? refusals.metadataFilterUnary : refusals.metadataFilterWithoutMetadata)
  if (keys.includes('')) return refused(refusals.queryPathEmptyName)
  const builtin = keys.length === 0 ? builtinsOfAttribute.get(metadata) : undefined
  return accepted({ attribute, metadata, steps: keys.map(stepOf), builtin })
}

const builtinsOfAttribute: ReadonlyMap<string, Builtin> = new Map<string, Builtin>([
  ['dateCreated', 'dateCreated'],
  ['dateModified', 'dateModified'],
])

const builtinsOfEntity: ReadonlyMap<string, Builtin> = new Map([...builtinsOfAttribute, ['servicePath', 'servicePath']])

/** The tokens between the dots of a path, without their quotes; undefined when quotes do not enclose a whole token. */
function parseTokens(text: string): string[] | undefined {
  const tokens: string[] = []
  let at = 0
  while (true) {
    const isQuoted = text[at] === "'"
    const from = isQuoted ? at + 1 : at
    let end = text.indexOf(isQuoted ? "'" : '.', from)
    if (end < 0) {
      if (isQuoted) return undefined
      end = text.length
    }
    const token = text.slice(from, end)
    if (isQuoted ? token === '' : token.includes("'")) return undefined
    tokens.push(token)
    at = isQuoted ? end + 1 : end
    if (at === text.length) return tokens
    if (text[at] !== '.') return undefined
    at++
  }
}

const indexSyntax = /^(?:0|[1-9][0-9]{0,8})$/

const stepOf = (text: string): Step => ({
  key: text.length < pieceLengthMin ? text : asPropertyName(text),
  index: indexSyntax.test(text) ? Number(text) : -1,
})

/** V8 copies shorter parts of a text. */
const pieceLengthMin = 13

/**
 * Returns the text as V8 stores property names. For any other text, V8 first searches among those: 25 us for 8,000
 * characters.
 */
function asPropertyName(text: string): string {
  const names: Record<string, true> = Object.create(null)
  names[text] = true
  return Object.keys(names)[0]!
}

function parseBinary(path: Path, operator: BinaryOperator, text: string): Result<Statement> {
  switch (operator) {
    case 'MatchPattern': {
      if (hasForbiddenCharacters(text)) return refused(refusals.charactersInFilter)
      const right = compilePattern(text)
      if (!right) return refused(refusals.filterPattern(text))
      return accepted({ operator, path, right, charactersMax: charactersMax(right.steps) })
    }
    case 'Equals':
    case 'Differs': {
      const right = parseChoice(text)
      return right.ok ? accepted({ operator, path, right: right.value }) : right
    }
    default: {
      const right = parseBound(text, operator)
      return right.ok ? accepted({ operator, path, right: right.value }) : right
    }
  }
}

function parseBound(text: string, operator: OrderOperator): Result<Bound> {
  if (text.includes('..')) return refused(refusals.rangeOperator)
  if (splitList(text).length > 1) return refused(refusals.listOperator)
  const value = parseValue(text)
  if (!value.ok) return value
  return hasOrder(value.value) ? accepted(value.value.value) : refused(refusals.valueKind(value.value.kind, operator))
}

function parseChoice(text: string): Result<Choice> {
  const dots = text.indexOf('..')
  if (dots >= 0) return parseRange(strip(text.slice(0, dots)), strip(text.slice(dots + 2)))
  const items = splitList(text)
  if (items.length > 1) return parseList(items)
  const value = parseValue(text)
  return value.ok ? accepted({ kind: 'value', value: value.value.value }) : value
}

function parseRange(fromText: string, toText: string): Result<Choice> {
  if (fromText === '' || toText === '') return refused(refusals.rangeEmptyEnd)
  const from = parseValue(fromText)
  if (!from.ok) return from
  if (!hasOrder(from.value)) return refused(refusals.rangeFromKind)
  const to = parseValue(toText)
  if (!to.ok) return to
  if (!hasOrder(to.value)) return refused(refusals.rangeToKind)
  if (from.value.kind !== to.value.kind) return refused(refusals.rangeMixed)
  return accepted({ kind: 'range', from: from.value.value, to: to.value.value })
}

/**
 * All items are numbers, or all are dates, or all are strings and nulls (docs/interface/queries.md#operators "List
 * rules").
 */
function parseList(texts: readonly string[]): Result<Choice> {
  const items = new Set<Scalar>()
  let kind: QueryValueKind | undefined
  for (const text of texts) {
    const item = strip(text)
    if (item === '') return refused(refusals.listEmptyItem)
    const value = parseValue(item)
    if (!value.ok) return value
    const itemKind = value.value.kind === 'Null' ? 'String' : value.value.kind
    if (itemKind === 'Bool' || (kind !== undefined && itemKind !== kind)) return refused(refusals.listItemKind)
    kind = itemKind
    items.add(value.value.value)
  }
  return accepted({ kind: 'list', items })
}

/** The parts between the commas outside quotes. */
function splitList(text: string): string[] {
  const items: string[] = []
  let isQuoted = false
  let from = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "'") isQuoted = !isQuoted
    else if (text[at] === ',' && !isQuoted) {
      items.push(text.slice(from, at))
      from = at + 1
    }
  }
  items.push(text.slice(from))
  return items
}

type Value =
  | OrderedValue
  | { readonly kind: 'Bool'; readonly value: boolean }
  | { readonly kind: 'Null'; readonly value: null }

type OrderedValue =
  | { readonly kind: 'Number' | 'Date'; readonly value: number }
  | { readonly kind: 'String'; readonly value: string }

const hasOrder = (value: Value): value is OrderedValue => value.kind !== 'Bool' && value.kind !== 'Null'

const numberSyntax = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/

/** The kind of a value, tried in the order of docs/interface/queries.md#values. */
function parseValue(text: string): Result<Value> {
  if (text.startsWith("'")) return parseForcedString(text)
  if (numberSyntax.test(text)) return accepted({ kind: 'Number', value: Number(text) })
  const ms = parseDateTime(text)
  if (ms !== undefined) return accepted({ kind: 'Date', value: epochSeconds(ms) })
  if (text === 'true' || text === 'false') return accepted({ kind: 'Bool', value: text === 'true' })
  if (text === 'null') return accepted({ kind: 'Null', value: null })
  return asString(text)
}

function parseForcedString(text: string): Result<Value> {
  if (text.length < 2 || !text.endsWith("'")) return refused(refusals.forcedStringUnclosed)
  const inner = text.slice(1, -1)
  return inner.includes("'") ? refused(refusals.forcedStringQuote) : asString(inner)
}

function asString(text: string): Result<Value> {
  return hasForbiddenCharacters(text) ? refused(refusals.charactersInFilter) : accepted({ kind: 'String', value: text })
}

/**
 * An instant in the form in which dates are compared: seconds since 1970, the nearest number to the decimal fraction
 * (docs/interface/queries.md#values).
 */
export const epochSeconds = (ms: number): number => ms / 1000

const blanks = new Set(' \t\r\n')

/** The text without blanks around it. Only blanks of a keyboard: other white space may belong to a value. */
function strip(text: string): string {
  let from = 0
  let end = text.length
  while (from < end && blanks.has(text[from]!)) from++
  while (end > from && blanks.has(text[end - 1]!)) end--
  return text.slice(from, end)
}
