// docs/interface/limits.md, "Every limit", has the numbers of the code.
//
// The page must have all of src/domain/limits.ts, all limits of delivery, and all options with the name of a limit. It
// names some other constants: each must be in the file that the page names, with this number.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type OptionName, options } from '../../src/config/options.js'
import { limitsByDefault } from '../../src/deliver/limits.js'
import * as domainLimits from '../../src/domain/limits.js'
import { codesIn, readPage, rowsOf, sectionOf } from '../support/markdown.js'
import { root } from '../support/project.js'

const section = sectionOf(readPage('docs/interface/limits.md'), 'Every limit')
const partOf = (heading: string): string[][] => {
  const rows = rowsOf(section.split(`\n### ${heading}\n`)[1]?.split('\n### ')[0] ?? '')
  return rows.map(([name, ...others]) => [codesIn(name!)[0]!, ...others])
}

const units: Readonly<Record<string, number>> = { KB: 1024, MB: 1024 * 1024 }

/** A number as the page writes it: `1,000`, `16 MB`. */
function numberOf(text: string | undefined): number {
  const [digits = '', unit] = (text ?? '').split(' ')
  return Number(digits.replaceAll(',', '')) * (unit === undefined ? 1 : (units[unit] ?? Number.NaN))
}

const valuesIn = (rows: string[][]): Record<string, number> =>
  Object.fromEntries(rows.map(([name, value]) => [name, numberOf(value)]))

const sorted = (names: Iterable<string>): string[] => [...names].sort()

t.test('the page has all constants of src/domain/limits.ts with their numbers', async t => {
  const { valuesMax, ...wanted } = domainLimits
  const { valuesMax: formula, ...listed } = valuesIn(
    ['Requests and entities', 'Queries and patterns', 'Subscriptions and registrations'].flatMap(partOf),
  )
  t.strictSame(listed, wanted)
  t.ok(formula !== undefined, 'valuesMax is listed')
  t.equal(valuesMax(1024 * 1024), (1024 * 1024) / 8, 'one value for 8 bytes')
})

t.test('and the limits of delivery', async t => {
  t.strictSame(valuesIn(partOf('Delivery')), limitsByDefault)
})

t.test('and all options that are limits, with their defaults', async t => {
  const isLimit = /max|size|limit|timeout|deadline|rows|memory|reserve|descendants/i
  const wanted = Object.entries(options)
    .filter(([name, { effect, kind }]) => isLimit.test(name) && effect === 'now' && kind !== options.ipv4.kind)
    .map(([name]) => `-${name}`)
  const rows = partOf('Options')
  t.strictSame(sorted(rows.map(([name]) => name!)), sorted(wanted))
  for (const [name, value] of rows) t.equal(numberOf(value), options[name!.slice(1) as OptionName].byDefault, `${name}`)
})

t.test('other constants are in the file that the page names', async t => {
  const rows = partOf('Other constants')
  t.ok(rows.length > 20, `${rows.length} constants`)
  for (const [name, value, where] of rows)
    t.equal(
      constantIn(readFileSync(join(root, codesIn(where!)[0]!), 'utf8'), name!),
      numberOf(value),
      `${name} in ${where}`,
    )
})

/**
 * An exported number, or a member of an exported object, from the text of a source. The modules are too large to
 * import.
 */
function constantIn(source: string, name: string): number {
  const [constant, member] = name.split('.')
  const [, behind = ''] = source.split(new RegExp(`^export const ${constant}\\b[^=\\n]*=`, 'm'))
  const text = member === undefined ? behind : (behind.split(new RegExp(`\\b${member}:`))[1] ?? '')
  const [product = ''] = /^ *[\d_]+(?: \* [\d_]+)*/.exec(text) ?? []
  return product === '' ? Number.NaN : product.split('*').reduce((all, one) => all * Number(one.replaceAll('_', '')), 1)
}
