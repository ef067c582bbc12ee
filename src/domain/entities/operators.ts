// Update operators: a value like `{"$inc": 1}` describes how to change the stored value.
//
// Only the first key makes a value an operator. Later keys are ignored, but `$set` and `$unset` may be combined.
// "First" means the order of the parsed object, where keys that look like array indexes come first.
//
// Operators never change their arguments; results may share parts with them. Every resulting number is finite.
//
// Not here: types and metadata of the attribute, and the definition of a change (update.ts).
import { canonical, compare, equal, isArray, isObject, type Json, type JsonObject } from '../json.js'
import { accepted, type Result, refusals, refused } from '../refusal.js'

export type OperatorName =
  | '$inc'
  | '$mul'
  | '$min'
  | '$max'
  | '$push'
  | '$addToSet'
  | '$pull'
  | '$pullAll'
  | '$set'
  | '$unset'

export interface UpdateOperator {
  readonly name: OperatorName
  readonly argument: Json
  /** The argument of `$unset` when the name is `$set` and the value has both. */
  readonly unset?: Json
}

/**
 * The operator in a value of a request, or undefined for ordinary data (docs/interface/updates.md#update-operators).
 */
// [hot] Runs once per attribute value of a request; scalars and arrays return at the first line.
export function operatorOf(value: Json): UpdateOperator | undefined {
  if (!isObject(value)) return undefined
  const name = firstKeyOf(value)
  if (name === undefined || !isOperatorName(name)) return undefined
  const argument = value[name]!
  if (name === '$set' && Object.hasOwn(value, '$unset')) return { name, argument, unset: value.$unset! }
  if (name === '$unset' && Object.hasOwn(value, '$set')) return { name: '$set', argument: value.$set!, unset: argument }
  return { name, argument }
}

/** Applies the operator to the stored value of an existing attribute (docs/interface/updates.md#update-operators). */
export function applyOperator(operator: UpdateOperator, stored: Json): Result<Json> {
  if (operator.unset !== undefined) return setAndUnset(operator.argument, operator.unset, stored)
  return apply[operator.name](operator.argument, stored)
}

/**
 * The value of an attribute that does not exist yet; undefined when it is not to be created
 * (docs/interface/updates.md#operators-on-new-attributes). `creation`: the entity is created or replaced. `append`: it
 * is a new attribute of an existing entity.
 */
export function startOperator(operator: UpdateOperator, on: 'creation' | 'append'): Result<Json | undefined> {
  switch (operator.name) {
    case '$inc':
    case '$mul':
      return applyOperator(operator, 0)
    case '$min':
    case '$max':
      return on === 'creation' ? applyOperator(operator, 0) : accepted(operator.argument)
    case '$push':
    case '$addToSet':
      return applyOperator(operator, [])
    case '$set':
      return applyOperator(operator, {})
    case '$unset':
    case '$pull':
    case '$pullAll':
      return accepted(undefined)
  }
}

const apply = {
  $inc: (argument, stored) => calculated('$inc', argument, stored, (a, b) => a + b),
  $mul: (argument, stored) => calculated('$mul', argument, stored, (a, b) => a * b),
  $min: (argument, stored) => accepted(compare(argument, stored) < 0 ? argument : stored),
  $max: (argument, stored) => accepted(compare(argument, stored) > 0 ? argument : stored),
  $push,
  $addToSet,
  $pull,
  $pullAll,
  $set,
  $unset: (argument, stored) => accepted(without(stored, argument)),
} as const satisfies Record<OperatorName, (argument: Json, stored: Json) => Result<Json>>

function isOperatorName(key: string): key is OperatorName {
  return Object.hasOwn(apply, key)
}

function firstKeyOf(value: JsonObject): string | undefined {
  for (const key in value) return key
  return undefined
}

const storedMisfit = (name: OperatorName, needed: string) => refused(refusals.operatorStored(name, needed))
const argumentMisfit = (name: OperatorName, needed: string) => refused(refusals.operatorArgument(name, needed))

function calculated(
  name: '$inc' | '$mul',
  argument: Json,
  stored: Json,
  calculate: (stored: number, argument: number) => number,
): Result<Json> {
  if (typeof argument !== 'number') return argumentMisfit(name, 'a number')
  if (typeof stored !== 'number') return storedMisfit(name, 'a number')
  const n = calculate(stored, argument)
  if (!Number.isFinite(n)) return refused(refusals.operatorRange(name))
  return accepted(n === 0 ? 0 : n) // no negative zero
}

function $push(argument: Json, stored: Json): Result<Json> {
  if (!isArray(stored)) return storedMisfit('$push', 'an array')
  const added = addedBy('$push', argument)
  return added.ok ? accepted([...stored, ...added.value]) : added
}

function $addToSet(argument: Json, stored: Json): Result<Json> {
  if (!isArray(stored)) return storedMisfit('$addToSet', 'an array')
  const added = addedBy('$addToSet', argument)
  if (!added.ok) return added
  if (added.value.length === 1) {
    const element = added.value[0]!
    return accepted(stored.some(known => equal(known, element)) ? stored : [...stored, element])
  }
  // One look-up per element instead of a search through the array: both can be long.
  const known = new Set(stored.map(canonical))
  const result = [...stored]
  for (const element of added.value) {
    const key = canonical(element)
    if (known.has(key)) continue
    known.add(key)
    result.push(element)
  }
  return accepted(result)
}

/** The elements that an argument adds: the argument itself, or the items of `{"$each": [..]}`. */
function addedBy(name: '$push' | '$addToSet', argument: Json): Result<readonly Json[]> {
  if (!isObject(argument) || firstKeyOf(argument) !== '$each') return accepted([argument])
  // `$position` and similar keys belong to later releases. Ignoring them would store elements in the wrong place.
  if (Object.keys(argument).length > 1) return refused(refusals.operatorEach(name))
  const items = argument.$each
  return isArray(items) ? accepted(items) : refused(refusals.operatorEachKind(name))
}

function $pull(argument: Json, stored: Json): Result<Json> {
  if (!isArray(stored)) return storedMisfit('$pull', 'an array')
  if (!isObject(argument)) return accepted(stored.filter(element => !equal(element, argument)))
  const wanted = Object.entries(argument)
  const matches = (element: Json): boolean =>
    isObject(element) && wanted.every(([key, value]) => Object.hasOwn(element, key) && equal(element[key]!, value))
  return accepted(stored.filter(element => !matches(element)))
}

function $pullAll(argument: Json, stored: Json): Result<Json> {
  if (!isArray(argument)) return argumentMisfit('$pullAll', 'an array')
  if (!isArray(stored)) return storedMisfit('$pullAll', 'an array')
  const pulled = new Set(argument.map(canonical))
  return accepted(stored.filter(element => !pulled.has(canonical(element))))
}

function $set(argument: Json, stored: Json): Result<Json> {
  if (!isObject(argument)) return accepted(argument)
  return isObject(stored) ? accepted({ ...stored, ...argument }) : storedMisfit('$set', 'an object')
}

function setAndUnset(set: Json, unset: Json, stored: Json): Result<Json> {
  if (isObject(unset)) {
    if (!isObject(set)) return refused(refusals.operatorSetKind)
    const twice = Object.keys(unset).find(key => Object.hasOwn(set, key))
    if (twice !== undefined) return refused(refusals.operatorKeyTwice(twice))
  }
  const result = $set(set, stored)
  return result.ok ? accepted(without(result.value, unset)) : result
}

/** The value without the keys of `unset`. If either is not an object, the value is unchanged. */
function without(value: Json, unset: Json): Json {
  if (!isObject(value) || !isObject(unset)) return value
  return Object.fromEntries(Object.entries(value).filter(([key]) => !Object.hasOwn(unset, key)))
}
