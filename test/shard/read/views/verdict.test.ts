// The verdicts of a column on a statement: they never contradict the entity, and decide most values.

import t from 'tap'
import type { Attribute } from '../../../../src/domain/entities/entity.js'
import { holdsFor, type Operand, targetOf } from '../../../../src/domain/queries/query.js'
import type { Statement } from '../../../../src/domain/queries/query-parser.js'
import { Column, kinds, named } from '../../../../src/shard/read/views/column.js'
import {
  doubt,
  look,
  no,
  prepare,
  rowOf,
  sift,
  siftRange,
  type Verdict,
  yes,
} from '../../../../src/shard/read/views/verdict.js'
import { withAttributes } from '../../../support/entities.js'
import fc from '../../../support/properties.js'
import { attributesForStatements, statementOf, statementTexts } from '../../../support/statements.js'

const textsMax = 1024
/** As many texts as a column keeps. */
const many = Array.from({ length: textsMax }, (_, n) => `k${n}`)

/** The value that a statement compares in an entity that has, or has not, the attribute `a`. */
const targetIn = ({ path }: Statement, a: Attribute | undefined): Operand =>
  targetOf(path, withAttributes({ id: 'E', type: 'T', created: 1 }, a ? [['a', a]] : []), '/')

/** A column of the statement's targets, row by row; `before` are the earlier values of its rows. */
function columnOf(statement: Statement, targets: readonly Operand[], before: readonly Operand[]): Column {
  const column = new Column(named(statement.path), Math.max(targets.length, before.length))
  for (const [row, target] of before.entries()) column.set(row, target)
  for (const [row, target] of targets.entries()) column.set(row, target)
  return column
}

/** The verdict on each row after a sifting. */
function verdicts(found: Uint32Array, count: number, rows: number): Verdict[] {
  const all = new Array<Verdict>(rows).fill(no)
  for (const row of found.subarray(0, count)) all[rowOf(row)] = row === rowOf(row) ? yes : look
  return all
}

const isShort = (target: Operand): boolean => typeof target === 'string' && target.length <= 64

/**
 * Whether a column must know everything about a target; `isFull`: it has as many texts as it keeps, and the target is
 * none of them.
 */
const isHeld = (target: Operand, isFull: boolean): boolean =>
  typeof target === 'object' ? target === null : typeof target !== 'string' || (isShort(target) && !isFull)

const targetsOf = (statement: Statement, all: readonly (Attribute | undefined)[]): Operand[] =>
  all.map(one => targetIn(statement, one))

const attributes = fc.array(attributesForStatements, { maxLength: 12 })

t.test('a column answers yes and no only as the entity does, and always answers for values that it holds', async t => {
  const said = { [no]: 0, [yes]: 0, [look]: 0 }
  const agree = fc.property(statementTexts, attributes, attributes, fc.boolean(), (text, now, earlier, isFull) => {
    const statement = statementOf(text)
    const targets = targetsOf(statement, now)
    const before = isFull ? many : targetsOf(statement, earlier)
    const column = columnOf(statement, targets, before)
    const found = new Uint32Array(targets.length)
    const count = siftRange(prepare(statement, column), 0, targets.length, found)
    const verdict = verdicts(found, count, targets.length)
    for (const [row, target] of targets.entries()) {
      const one = verdict[row]!
      said[one]++
      if (
        one === look
          ? isHeld(target, isFull && column.kinds[row] === kinds.hashed)
          : holdsFor(statement, target) !== (one === yes)
      )
        return false
    }
    return true
  })
  fc.assert(agree, { numRuns: 4000 })
  t.ok(Math.min(...Object.values(said)) > 200, JSON.stringify(said))
})

t.test('of a text without a place a column knows whether it is there, and that it is no other', async t => {
  // Long texts: the value, and two others.
  const [there, named, other] = ['x', 'y', 'z'].map(letter => letter.repeat(65)) as [string, string, string]
  const of = (text: string): Verdict => {
    const statement = statementOf(text)
    const column = columnOf(statement, [there], [])
    const found = new Uint32Array(1)
    return verdicts(found, siftRange(prepare(statement, column), 0, 1, found), 1)[0]!
  }
  t.equal(of('a'), yes)
  t.equal(of('!a'), no)
  t.equal(of(`a==${named}`), no)
  t.equal(of(`a==${named},${other}`), no)
  t.equal(of(`a!=${named},${other}`), yes)
  t.equal(of('a==1..5'), no)
  t.equal(of('a!=1..5'), yes)
  t.equal(of('a>5'), no)
  t.equal(of(`a==${there}`), look, 'another text may have the same hash')
  t.equal(of(`a!=${there},${other}`), look)
  t.equal(of('a>b'), look)
  t.equal(of('a==a..z'), look)
  t.equal(of('a~=x'), look)
})

t.test('sifting a range and sifting rows agree, for any rows and after any earlier sifting', async () => {
  const agree = fc.property(
    statementTexts,
    attributes,
    fc.boolean(),
    fc.array(fc.constantFrom<Verdict>(no, yes, look), { minLength: 12, maxLength: 12 }),
    fc.nat(12),
    fc.nat(12),
    (text, all, isFull, marks, a, b) => {
      const statement = statementOf(text)
      const targets = targetsOf(statement, all)
      const test = prepare(statement, columnOf(statement, targets, isFull ? many : []))
      const [from, to] = [Math.min(a, b, targets.length), Math.min(Math.max(a, b), targets.length)]
      const range = new Uint32Array(12)
      const verdict = verdicts(range, siftRange(test, from, to, range), targets.length)
      const rows = marks.flatMap((mark, row) =>
        mark === no || row < from || row >= to ? [] : [mark === look ? row | doubt : row],
      )
      const sifted = Uint32Array.from(rows)
      const left = [...sifted.subarray(0, sift(test, sifted, rows.length))]
      const expected = rows.flatMap(row => {
        const number = (row & ~doubt) >>> 0
        if (verdict[number] === no) return []
        return [(verdict[number] === look ? row | doubt : row) >>> 0]
      })
      return left.join() === expected.join()
    },
  )
  fc.assert(agree, { numRuns: 2000 })
})

t.test('a text that the column has learned since the statement was prepared is looked into', async t => {
  const statement = statementOf('a==new')
  const column = columnOf(statement, ['old', 'old'], [])
  const test = prepare(statement, column)
  column.set(1, 'new')
  const rows = new Uint32Array(2)
  t.strictSame(verdicts(rows, siftRange(test, 0, 2, rows), 2), [no, look])
  rows.set([0, 1])
  t.strictSame(verdicts(rows, sift(test, rows, 2), 2), [no, look])
})

t.test('a pattern that has much to do is tried on some of the texts, and the others are looked into', async t => {
  const statement = statementOf('a~=[ab]{100}c')
  const texts = Array.from({ length: textsMax }, (_, n) => `${'ab'.repeat(30)}${n}`)
  const column = columnOf(statement, texts, [])
  const found = new Uint32Array(textsMax)
  const verdict = verdicts(found, siftRange(prepare(statement, column), 0, textsMax, found), textsMax)
  const tried = verdict.indexOf(look)
  t.ok(tried > 10 && tried < textsMax, `${tried} tried`)
  t.ok(verdict.slice(0, tried).every(one => one === no))
  t.ok(verdict.slice(tried).every(one => one === look))
})

t.test('a column keeps so many texts and no more, each once', async t => {
  const column = new Column(named(statementOf('a').path), 4)
  for (const text of [...many, ...many, 'other']) column.set(0, text)
  t.strictSame(column.texts, many)
  t.equal(column.kinds[0], kinds.hashed)
  column.set(1, 'k7')
  t.equal(column.texts[column.numbers[1]!], 'k7')
})

t.test('a column made of the parts of another continues from the same state', async t => {
  const { path } = statementOf('a')
  const column = new Column(named(path), 2)
  column.set(0, 'x')
  const copy = new Column(named(path), 0, structuredClone(column.parts))
  for (const one of [column, copy]) {
    one.set(0, 'y')
    one.set(1, 'x')
  }
  t.strictSame(copy.parts, column.parts)
})

t.test('targets of one name have the same values, and others another name', async t => {
  const paths = ['a', "'a'", 'a.k', "a.'k'", "'a.k'", 'b', 'a.k.k', 'dateCreated==1', 'dateCreated']
  const names = paths.map(text => named(statementOf(text).path).name)
  const [a, quotedA, ak, quotedK, dotted] = names
  t.equal(quotedA, a)
  t.equal(quotedK, ak)
  t.not(dotted, ak)
  t.equal(new Set(names).size, paths.length - 2)
})
