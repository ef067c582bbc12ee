// Update operators. Columns of the tables: stored value, operator as sent, result; `fails` is the refusal of
// docs/interface/updates.md#operators-that-do-not-fit.

import t from 'tap'
import { applyOperator, operatorOf, startOperator } from '../../../src/domain/entities/operators.js'
import { equal, type Json, type JsonObject } from '../../../src/domain/json.js'
import { type Result, refusalText } from '../../../src/domain/refusal.js'
import fc from '../../support/properties.js'

const fails = Symbol('fails')
type Outcome = Json | undefined | typeof fails

function outcome(result: Result<Json | undefined>): Outcome {
  if (result.ok) return result.value
  return result.refusal.kind === 'InternalServerError' && /^Database Error \(.+\)$/.test(refusalText(result.refusal))
    ? fails
    : undefined
}

const apply = (sent: Json, stored: Json): Outcome => outcome(applyOperator(operatorOf(sent)!, stored))
const start = (sent: Json, on: 'creation' | 'append'): Outcome => outcome(startOperator(operatorOf(sent)!, on))

const ab = { a: 1, b: 2 }

const updates: [stored: Json, sent: Json, result: Outcome][] = [
  [10, { $inc: 2 }, 12],
  [10, { $inc: -2.5 }, 7.5],
  ['10', { $inc: 2 }, fails],
  [null, { $inc: 2 }, fails],
  [10, { $inc: '2' }, fails],
  [1.7e308, { $inc: 1.7e308 }, fails],
  [10, { $mul: 2 }, 20],
  [10, { $mul: null }, fails],
  [[10], { $mul: 2 }, fails],
  [1e200, { $mul: 1e200 }, fails],
  [0, { $mul: -1 }, 0],

  [10, { $min: 5 }, 5],
  [10, { $min: 15 }, 10],
  [10, { $min: '5' }, 10],
  ['b', { $min: 'a' }, 'a'],
  [null, { $min: 5 }, null],
  [10, { $max: 15 }, 15],
  [10, { $max: 5 }, 10],
  [10, { $max: 'a' }, 'a'],
  [null, { $max: -5 }, -5],
  [[1], { $max: false }, false],

  [[1], { $push: 2 }, [1, 2]],
  [[1], { $push: [2, 3] }, [1, [2, 3]]],
  [[1], { $push: { $each: [2, 3] } }, [1, 2, 3]],
  [[1], { $push: { $each: [] } }, [1]],
  [[1], { $push: { $each: 2 } }, fails],
  [[1], { $push: { $each: [2], $position: 0 } }, fails],
  [[1], { $push: { a: 1, $each: [2] } }, [1, { a: 1, $each: [2] }]],
  ['a', { $push: 2 }, fails],
  [{}, { $push: 2 }, fails],

  [[1], { $addToSet: 2 }, [1, 2]],
  [[1, 2], { $addToSet: 2 }, [1, 2]],
  [[1, 2], { $addToSet: '2' }, [1, 2, '2']],
  [[{ a: 1, b: 2 }], { $addToSet: { b: 2, a: 1 } }, [{ a: 1, b: 2 }]],
  [[1, 1], { $addToSet: { $each: [2, 1, 2, 3] } }, [1, 1, 2, 3]],
  [[1], { $addToSet: { $each: 'x' } }, fails],
  [null, { $addToSet: 2 }, fails],

  [[1, 2, 1], { $pull: 1 }, [2]],
  [[1, 2], { $pull: 3 }, [1, 2]],
  [[[1], 1], { $pull: [1] }, [1]],
  [[ab, { a: 1 }, { a: 2 }, 'a'], { $pull: { a: 1 } }, [{ a: 2 }, 'a']],
  [[ab, { a: 1 }], { $pull: { b: 2, a: 1 } }, [{ a: 1 }]],
  [[{ a: { x: 1, y: 2 } }, { a: { x: 1 } }], { $pull: { a: { x: 1 } } }, [{ a: { x: 1, y: 2 } }]],
  [1, { $pull: 1 }, fails],

  [[1, 2, 3, 1], { $pullAll: [1, 3, 9] }, [2]],
  [[{ a: 1, b: 2 }, 1], { $pullAll: [{ b: 2, a: 1 }] }, [1]],
  [[{ a: 1, b: 2 }], { $pullAll: [{ a: 1 }] }, [{ a: 1, b: 2 }]],
  [[1], { $pullAll: 1 }, fails],
  [1, { $pullAll: [1] }, fails],

  [ab, { $set: { b: 3, c: 4 } }, { a: 1, b: 3, c: 4 }],
  [ab, { $set: {} }, ab],
  [{}, { $set: { 'a.b': 1 } }, { 'a.b': 1 }],
  [{ a: { x: 1 } }, { $set: { a: { y: 2 } } }, { a: { y: 2 } }],
  ['a', { $set: { b: 3 } }, fails],
  [[1], { $set: { b: 3 } }, fails],
  [null, { $set: {} }, fails],
  [ab, { $set: 5 }, 5],
  ['a', { $set: [1] }, [1]],
  [ab, { $set: null }, null],

  [ab, { $unset: { a: 0, z: 0 } }, { b: 2 }],
  [ab, { $unset: 'a' }, ab],
  [ab, { $unset: ['a'] }, ab],
  ['a', { $unset: { a: 1 } }, 'a'],

  [ab, { $set: { c: 3 }, $unset: { a: 1 } }, { b: 2, c: 3 }],
  [ab, { $unset: { a: 1 }, $set: { c: 3 } }, { b: 2, c: 3 }],
  [ab, { $set: { a: 3 }, $unset: { a: 1 } }, fails],
  [ab, { $set: { c: 3 }, $unset: 1 }, { a: 1, b: 2, c: 3 }],
  [ab, { $set: 5, $unset: { a: 1 } }, fails],
  [ab, { $set: 5, $unset: 1 }, 5],
  ['a', { $set: { c: 3 }, $unset: { a: 1 } }, fails],
]

t.test('operators change the stored value by the rules of the interface', async t => {
  for (const [stored, sent, result] of updates)
    t.strictSame(apply(sent, stored), result, `${JSON.stringify(stored)} ${JSON.stringify(sent)}`)
})

const starts: [sent: Json, creation: Outcome, append: Outcome][] = [
  [{ $inc: 4 }, 4, 4],
  [{ $inc: 'x' }, fails, fails],
  [{ $mul: 4 }, 0, 0],
  [{ $mul: -4 }, 0, 0],
  [{ $mul: [] }, fails, fails],
  [{ $min: 4 }, 0, 4],
  [{ $min: -4 }, -4, -4],
  [{ $min: 'x' }, 0, 'x'],
  [{ $max: 4 }, 4, 4],
  [{ $max: -4 }, 0, -4],
  [{ $max: 'x' }, 'x', 'x'],
  [{ $push: 4 }, [4], [4]],
  [{ $push: { $each: [4, 4] } }, [4, 4], [4, 4]],
  [{ $push: { $each: 4 } }, fails, fails],
  [{ $addToSet: 4 }, [4], [4]],
  [{ $addToSet: { $each: [4, 5, 4] } }, [4, 5], [4, 5]],
  [{ $set: { a: 1 } }, { a: 1 }, { a: 1 }],
  [{ $set: 4 }, 4, 4],
  [{ $set: [4] }, [4], [4]],
  [{ $set: { a: 1 }, $unset: { b: 1 } }, { a: 1 }, { a: 1 }],
  [{ $set: { a: 1 }, $unset: { a: 1 } }, fails, fails],
  [{ $unset: { a: 1 } }, undefined, undefined],
  [{ $pull: 4 }, undefined, undefined],
  [{ $pullAll: [4] }, undefined, undefined],
  [{ $pullAll: 4 }, undefined, undefined],
]

t.test('operators on an attribute that does not exist start from their base', async t => {
  for (const [sent, creation, append] of starts) {
    const [whenCreated, whenAppended] = [start(sent, 'creation'), start(sent, 'append')]
    t.strictSame(whenCreated, creation, `creation ${JSON.stringify(sent)}`)
    t.strictSame(whenAppended, append, `append ${JSON.stringify(sent)}`)
  }
})

t.test('a value is an operator by its first key', async t => {
  t.strictSame(operatorOf({ $inc: 1, $mul: 2, x: 3 }), { name: '$inc', argument: 1 })
  t.strictSame(operatorOf({ $unset: 1, x: 3, $set: 2 }), { name: '$set', argument: 2, unset: 1 })
  t.strictSame(operatorOf({ $push: 1, $set: 2, $unset: 3 }), { name: '$push', argument: 1 })
  const ordinary: Json[] = [null, 1, 'a', true, [], ['$inc'], {}, { x: 1, $inc: 1 }, { $position: 1 }, { $each: [1] }]
  for (const value of [...ordinary, { constructor: 1 }, JSON.parse('{"__proto__":{"$inc":1}}') as Json])
    t.equal(operatorOf(value), undefined, JSON.stringify(value))
})

t.test('keys with a meaning to the language are ordinary keys', async t => {
  const stored = JSON.parse('{"__proto__":1,"a":2}') as Json
  t.equal(JSON.stringify(apply({ $unset: { a: 1 } }, stored)), '{"__proto__":1}')
  t.equal(JSON.stringify(apply({ $unset: {} }, stored)), '{"__proto__":1,"a":2}')
  t.equal(
    JSON.stringify(apply(JSON.parse('{"$set":{"__proto__":{"x":3}}}') as Json, { a: 2 })),
    '{"a":2,"__proto__":{"x":3}}',
  )
  t.strictSame(apply({ $pull: { constructor: 1 } }, [{}]), [{}])
})

// Values with few distinct parts, so that elements and keys meet.
const scalar = fc.constantFrom<Json>(null, true, 0, 1, 2.5, -3, '', 'a')
const object = fc.dictionary(fc.constantFrom('a', 'b', 'c'), scalar, { maxKeys: 3, noNullPrototype: true })
const element = fc.oneof(scalar, object as fc.Arbitrary<Json>, fc.array(scalar, { maxLength: 2 }) as fc.Arbitrary<Json>)
const array = fc.array(element, { maxLength: 6 })
const number = fc.double({ min: -1e6, max: 1e6, noNaN: true })

t.test('$inc and $mul calculate', async () => {
  fc.assert(fc.property(number, number, (a, b) => apply({ $inc: b }, a) === a + b && apply({ $mul: b }, a) === a * b))
})

t.test('$min and $max keep one of both, and together they keep both', async () => {
  fc.assert(
    fc.property(element, element, (a, b) => {
      const kept = [apply({ $min: b }, a) as Json, apply({ $max: b }, a) as Json] as const
      return (equal(kept[0], a) && equal(kept[1], b)) || (equal(kept[0], b) && equal(kept[1], a))
    }),
  )
})

t.test('$push with $each is concatenation', async () => {
  fc.assert(fc.property(array, array, (a, b) => equal(apply({ $push: { $each: b } }, a) as Json, a.concat(b))))
})

t.test('$addToSet adds item after item, unless it is there', async () => {
  fc.assert(
    fc.property(array, array, (a, b) => {
      const model = [...a]
      for (const item of b) if (!model.some(known => equal(known, item))) model.push(item)
      return equal(apply({ $addToSet: { $each: b } }, a) as Json, model)
    }),
  )
})

t.test('$pull removes matching elements, $pullAll those that equal an item', async () => {
  const isPlain = (value: Json): value is JsonObject =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  fc.assert(
    fc.property(array, element, array, (a, wanted, items) => {
      const matches = (value: Json): boolean =>
        isPlain(wanted) ? isPlain(value) && equal({ ...value, ...wanted }, value) : equal(value, wanted)
      const pulled = a.filter(value => !matches(value))
      const pulledAll = a.filter(value => !items.some(item => equal(item, value)))
      return (
        equal(apply({ $pull: wanted }, a) as Json, pulled) && equal(apply({ $pullAll: items }, a) as Json, pulledAll)
      )
    }),
  )
})

t.test('$set and $unset act on keys like assignment and deletion', async () => {
  fc.assert(
    fc.property(object, object, object, (stored, set, unset) => {
      const model: Record<string, Json> = { ...stored }
      for (const key of Object.keys(set)) model[key] = set[key]!
      const both = { ...model }
      for (const key of Object.keys(unset)) delete both[key]
      const clash = Object.keys(unset).some(key => key in set)
      const together = apply({ $set: set, $unset: unset }, stored)
      return (
        equal(apply({ $set: set }, stored) as Json, model) &&
        (clash ? together === fails : equal(together as Json, both))
      )
    }),
  )
})

t.test('no operator changes the values it is given', async () => {
  const names = ['$inc', '$mul', '$min', '$max', '$push', '$addToSet', '$pull', '$pullAll', '$set', '$unset']
  const any = fc.oneof(element, array as fc.Arbitrary<Json>)
  const argument = fc.oneof(
    any,
    array.map((items): Json => ({ $each: items })),
  )
  fc.assert(
    fc.property(fc.constantFrom(...names), argument, any, any, (name, given, unset, stored) => {
      const sent: Json = name === '$set' ? { $set: given, $unset: unset } : { [name]: given }
      const before = JSON.stringify([sent, stored])
      apply(sent, stored)
      start(sent, 'creation')
      return JSON.stringify([sent, stored]) === before
    }),
  )
})
