// Macros alone. The tables are in test/cases/custom-notifications.ts; here they are read without a notification around
// them.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a macro looks like that

import t from 'tap'
import type { Json } from '../../../src/domain/json.js'
import { MacroFiller } from '../../../src/domain/subscriptions/macros.js'
import fc from '../../support/properties.js'

const enough = 1_000_000

const fillerOf = (values: Readonly<Record<string, Json>>, lengthMax = enough): MacroFiller =>
  new MacroFiller(name => (Object.hasOwn(values, name) ? values[name] : undefined), lengthMax)

/** Names, and values that look like macros and pieces of them. */
const name = fc.string({ unit: fc.constantFrom('a', 'b', '$', '{', ' ', '.') })
const piece = fc.string({ unit: fc.constantFrom('a', 'b', '$', '{', '}', '${a}', '${b}', '%') })
/** Text between macros, in which no macro begins. */
const literal = fc.string({ unit: fc.constantFrom('a', '{', '}', ' ', '"', '\\', 'é') })

t.test('an inserted value is never scanned again', async t => {
  fc.assert(
    fc.property(fc.array(fc.tuple(literal, name, piece)), literal, (parts, end) => {
      const values = Object.fromEntries(parts.map(([, name, value]) => [name, value]))
      const template = parts.map(([before, name]) => `${before}\${${name}}`).join('') + end
      const expected = parts.map(([before, name]) => before + values[name]).join('') + end
      t.equal(fillerOf(values).text(template), expected)
      t.strictSame(fillerOf(values).json([`-${template}`]), [`-${expected}`])
    }),
  )
})

t.test('a macro that is the whole string gives the value itself', async t => {
  fc.assert(
    fc.property(name, fc.jsonValue(), (name, value) => {
      t.strictSame(fillerOf({ [name]: value as Json }).json({ k: `\${${name}}` }), { k: value })
    }),
  )
})

t.test('keys of a template are ordinary data', async t => {
  const template = JSON.parse('{"__proto__":"${a}","constructor":{"x":"${a}"}}')
  t.equal(JSON.stringify(fillerOf({ a: 1 }).json(template)), '{"__proto__":1,"constructor":{"x":1}}')
})

t.test('a template that repeats a long value is given up, long before it is filled in', async t => {
  const long = 'x'.repeat(100_000)
  const values = { text: long, deep: { list: Array.from({ length: 100 }, () => [long.slice(0, 1000)]) } }
  const template = '${text} ${deep} '.repeat(100_000)
  for (const fill of [
    (filler: MacroFiller) => filler.text(template),
    (filler: MacroFiller) => filler.json([template]),
    (filler: MacroFiller) => filler.json(Array.from({ length: 100_000 }, () => '${text}')),
    (filler: MacroFiller) => filler.json(Array.from({ length: 100_000 }, () => '${deep}')),
    (filler: MacroFiller) => filler.identifier(template),
  ]) {
    const filler = fillerOf(values)
    fill(filler)
    t.equal(filler.isExceeded, true)
  }
})

t.test('results may together be as long as the limit, and no longer', async t => {
  for (const [lengthMax, isExceeded] of [
    [12, false],
    [11, true],
  ] as const) {
    const filler = fillerOf({ a: '1234' }, lengthMax)
    filler.text('x${a}y')
    filler.json('${a}')
    filler.text('zz')
    t.equal(filler.isExceeded, isExceeded)
  }
})
