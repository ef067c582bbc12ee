// The Simple Query Language: whether an entity matches a `q` or `mq` (docs/interface/queries.md).
//
// A statement finds its target, then tests whether the target, or an element of it when it is an array, satisfies the
// right side. A date (of type DateTime or ISO8601, or builtin) is compared as its epoch seconds. `!=` means "there is a
// target, and `==` does not hold".
//
// A key on an array of objects leads to several targets, one for each element that has it; they count like elements. A
// numeric key leads to one element. So each part of a value is visited at most once, however it is nested.
//
// Not here: syntax and refusals (query-parser.ts), visibility of entities, the choice of an index.

import { parseDateTime } from '../date-time.js'
import { type Entity, type EntityContent, isDateType } from '../entities/entity.js'
import { isArray, isObject, type Json } from '../json.js'
import { stampMs } from '../stamp.js'
import { charactersPerTest, type EventWork, type Pattern, valueWork } from './pattern.js'
import {
  epochSeconds,
  type Path,
  type PatternStatement,
  type Query,
  type Statement,
  type Step,
} from './query-parser.js'

// [hot] Once per entity that a list, a count or a change tests.
/** Whether the entity, at its service path, satisfies all statements. `work`: the budget of the event. */
export function matchesQuery(query: Query, entity: Entity, path: string, work?: EventWork): boolean {
  for (const statement of query.statements) if (!matchesStatement(statement, entity, path, work)) return false
  return true
}

/**
 * The statements that must hold, in any order. An index that covers some may leave the others to `matchesStatement`.
 */
export const conjuncts = (query: Query): readonly Statement[] => query.statements

/** Whether one statement holds for the entity (docs/interface/queries.md#operators). */
export const matchesStatement = (statement: Statement, entity: Entity, path: string, work?: EventWork): boolean =>
  holdsFor(statement, targetOf(statement.path, entity, path), work)

/** The value that a statement tests; undefined: there is none. */
export type Operand = Json | Several | undefined

/** Whether a statement holds for its target. */
export function holdsFor(statement: Statement, target: Operand, work?: EventWork): boolean {
  if (statement.operator === 'NotExists') return target === undefined
  if (target === undefined) return false
  if (statement.operator === 'MatchPattern') return matchesPattern(statement, target, work)
  const fits =
    target instanceof Several ? target.values.some(one => fitsAny(statement, one)) : fitsAny(statement, target)
  return statement.operator === 'Differs' ? !fits : fits
}

/** The targets of a path that runs through arrays of objects; never empty. */
export class Several {
  constructor(readonly values: readonly Json[]) {}
}

/** The value at a path in the entity, at its service path. A date is its epoch seconds. */
export function targetOf(path: Path, entity: EntityContent, servicePath: string): Operand {
  if (path.metadata === undefined && path.builtin) return builtinOf(path.builtin, entity, servicePath)
  const attribute = entity.attributes.get(path.attribute)
  if (!attribute) return undefined
  if (path.metadata === undefined) return descend(comparable(attribute.type, attribute.value), path.steps)
  if (path.builtin) return epochSeconds(path.builtin === 'dateCreated' ? attribute.createdMs : attribute.modifiedMs)
  const metadata = attribute.metadata.get(path.metadata)
  return metadata ? descend(comparable(metadata.type, metadata.value), path.steps) : undefined
}

function builtinOf(builtin: NonNullable<Path['builtin']>, entity: EntityContent, servicePath: string): Json {
  switch (builtin) {
    case 'dateCreated':
      return epochSeconds(stampMs(entity.created))
    case 'dateModified':
      return epochSeconds(entity.modifiedMs)
    case 'servicePath':
      return servicePath
  }
}

/**
 * The form in which the value is compared: a date as its epoch seconds. Other values of a date type (null) are
 * unchanged.
 */
function comparable(type: string, value: Json): Json {
  if (typeof value !== 'string' || !isDateType(type)) return value
  const ms = parseDateTime(value)
  return ms === undefined ? value : epochSeconds(ms)
}

function descend(root: Json, steps: readonly Step[]): Json | Several | undefined {
  let value: Json | undefined = root
  for (let at = 0; at < steps.length; at++) {
    const step = steps[at]!
    if (isArray(value) && step.index < 0) return spread(value, steps, at)
    value = child(value, step)
    if (value === undefined) return undefined
  }
  return value
}

/** Level by level, without recursion: the values that the steps from `at` on reach from the elements of the array. */
function spread(array: readonly Json[], steps: readonly Step[], at: number): Several | undefined {
  let level: Json[] = [array as Json]
  for (const step of steps.slice(at)) {
    const next: Json[] = []
    for (const value of level) {
      if (!isArray(value) || step.index >= 0) collect(value, step, next)
      else for (const element of value) if (isObject(element)) collect(element, step, next)
    }
    if (next.length === 0) return undefined
    level = next
  }
  return new Several(level)
}

function collect(parent: Json, step: Step, found: Json[]): void {
  const value = child(parent, step)
  if (value !== undefined) found.push(value)
}

function child(parent: Json, step: Step): Json | undefined {
  if (typeof parent !== 'object' || parent === null) return undefined
  if (isArray(parent)) return step.index < 0 ? undefined : parent[step.index]
  return Object.hasOwn(parent, step.key) ? parent[step.key] : undefined
}

/** Whether the pattern matches one of the texts that are not longer than the remaining number of characters. */
function matchesPattern(statement: PatternStatement, target: Json | Several, work: EventWork | undefined): boolean {
  const { right, charactersMax } = statement
  if (typeof target === 'string') return lengthOf(right, target) <= charactersMax && test(right, target, work)
  let charactersLeft = charactersMax
  for (const one of target instanceof Several ? target.values : [target]) {
    for (const value of isArray(one) ? one : [one]) {
      if (typeof value !== 'string') continue
      const length = lengthOf(right, value)
      if (length > charactersLeft) continue
      if (test(right, value, work)) return true
      charactersLeft -= length + charactersPerTest
    }
  }
  return false
}

/** The number of characters that the pattern tests. */
const lengthOf = ({ steps }: Pattern, { length }: string): number => (steps === 0 ? 0 : length)

const test = (pattern: Pattern, text: string, work: EventWork | undefined): boolean =>
  (!work || work.spend(valueWork(pattern, lengthOf(pattern, text)))) && pattern.test(text)

function fitsAny(statement: Exclude<Statement, PatternStatement>, target: Json): boolean {
  if (statement.operator === 'Exists') return true
  if (!isArray(target)) return fits(statement, target)
  for (const element of target) if (fits(statement, element)) return true
  return false
}

/**
 * Whether one value satisfies the right side. `!=` makes the same test as `==`; an object and an array satisfy nothing.
 */
function fits(statement: Exclude<Statement, PatternStatement>, value: Json): boolean {
  switch (statement.operator) {
    case 'Equals':
    case 'Differs': {
      const { right } = statement
      if (right.kind === 'value') return value === right.value
      if (typeof value === 'object' && value !== null) return false
      if (right.kind === 'list') return right.items.has(value)
      return typeof value === typeof right.from && value! >= right.from && value! <= right.to
    }
    case 'GreaterThan':
      return typeof value === typeof statement.right && value! > statement.right
    case 'GreaterThanOrEqual':
      return typeof value === typeof statement.right && value! >= statement.right
    case 'LessThan':
      return typeof value === typeof statement.right && value! < statement.right
    case 'LessThanOrEqual':
      return typeof value === typeof statement.right && value! <= statement.right
    default:
      return true
  }
}
