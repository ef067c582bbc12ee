// docs/interface/access.md has the limits, the actions and the members of the code.

import t from 'tap'
import * as limits from '../../src/domain/access/access-limits.js'
import { accessActions } from '../../src/domain/access/access-rule.js'
import { tokenAlgorithms } from '../../src/domain/access/proofs-parser.js'
import { writeKinds } from '../../src/domain/access/writing.js'
import { codesIn, readPage, rowsOf, sectionOf } from '../support/markdown.js'

const page = readPage('docs/interface/access.md')
const partOf = (heading: string): string[][] => rowsOf(page.split(`\n### ${heading}\n`)[1]?.split(/\n##+ /)[0] ?? '')
const units: Readonly<Record<string, number>> = { MB: 1024 * 1024 }

t.test('the page has all limits with their numbers', async t => {
  const listed = rowsOf(sectionOf(page, 'Limits')).map(([name, value]) => {
    const [digits = '', unit = ''] = value!.split(' ')
    return [codesIn(name!)[0], Number(digits.replaceAll(',', '')) * (units[unit] ?? 1)]
  })
  t.strictSame(Object.fromEntries(listed), { ...limits })
})

t.test('the page has all actions in their order', async t => {
  t.strictSame(
    partOf('Actions').map(([action]) => codesIn(action!)[0]),
    [...accessActions, '*'],
  )
})

t.test('the page has all algorithms', async t => {
  const [row] = partOf('Issuers').filter(([name]) => name === '`algorithms`')
  t.strictSame(codesIn(row![2]!), tokenAlgorithms)
})

t.test('each kind of write needs what the page says', async t => {
  const listed = rowsOf(sectionOf(page, 'Writes')).map(([, needs, attributes]) => [
    codesIn(needs!),
    attributes!.startsWith('all') ? 'all' : 'named',
  ])
  const { notifyDeletion, ...others } = writeKinds
  t.strictSame(
    listed,
    Object.values(others).map(({ actions, means }) => [[...actions], means]),
  )
  t.strictSame(notifyDeletion, { actions: ['notify'], means: 'all' })
})
