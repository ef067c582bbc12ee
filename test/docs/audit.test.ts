// docs/operations/audit.md has every request that is logged, every member of a line in its order, and the parameters that
// are kept of a query.

import t from 'tap'
import { auditedAs } from '../../src/domain/access/audited.js'
import { type RequestNeed, routeNeeds } from '../../src/domain/access/route-needs.js'
import { auditLine, keptParameters } from '../../src/observe/audit/audit-line.js'
import { codesIn, readPage, rowsOf, sectionOf } from '../support/markdown.js'

const page = readPage('docs/operations/audit.md')

t.test('the page has every request that is logged whatever its answer is', async t => {
  const wanted: string[] = []
  for (const [path, needs] of Object.entries(routeNeeds))
    for (const [method, need] of Object.entries(needs) as [string, RequestNeed][]) {
      const as = auditedAs(need, method)
      if (as !== 'other') wanted.push(`${method} ${path}: ${as}`)
    }
  const listed = rowsOf(sectionOf(page, 'What is logged')).flatMap(([paths, methods, as]) =>
    codesIn(paths!).flatMap(path => codesIn(methods!).map(method => `${method} ${path}: ${as}`)),
  )
  t.strictSame(listed.sort(), wanted.sort())
})

t.test('the page has every member in its order', async t => {
  const line = auditLine(
    {
      ...{
        principal: { proof: 'token', issuer: 'i', name: 'n', claimed: [] },
        shown: 'token',
        address: 'a',
        peer: 'b',
      },
      ...{ method: 'POST', path: '/', query: 'type=T', tenant: '', servicePath: '/', status: 201, correlator: 'c' },
      ...{ entities: 1, id: 'i', isMessage: true },
    },
    0,
    true,
  )
  const members = Object.keys(JSON.parse(line))
  t.strictSame(
    rowsOf(sectionOf(page, 'A line')).map(([name]) => codesIn(name!)[0]),
    members,
  )
  const [example = ''] = /```json\n([\s\S]*?)```/.exec(sectionOf(page, 'A line'))?.slice(1) ?? []
  t.strictSame(
    Object.keys(JSON.parse(example)),
    members.filter(name => name !== 'via'),
  )
})

t.test('the page has the parameters that are kept', async t => {
  const [row] = rowsOf(sectionOf(page, 'A line')).filter(([name]) => name === '`query`')
  t.strictSame(codesIn(row![1]!), [...keptParameters])
})
