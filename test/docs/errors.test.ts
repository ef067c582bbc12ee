// docs/interface/errors.md lists every refusal: its status, its name and its text.
//
// The rules themselves make the texts, with the names of facts in angle brackets. The test compares both directions:
// refusals without a row, and rows without a refusal.

import t from 'tap'
import type { RefusalKind, Rule } from '../../src/domain/refusal-kind.js'
import { type RefusalCode, refusalRules } from '../../src/domain/refusal-rules.js'
import { ambiguousBody } from '../../src/http/front.js'
import { statusOf } from '../../src/http/reply.js'
import { codesIn, readPage, rowsOf, sectionOf } from '../support/markdown.js'

const page = readPage('docs/interface/errors.md')

/** Sample facts, by code, where the facts are not texts. A code with several kinds has a row for each of them. */
const left = [{ entity: '<entity>', names: ['<name>', '…'] }]
const providers = [{ url: '<url>', status: '<status>' }]
const samples: Partial<Record<RefusalCode, readonly unknown[]>> = {
  attributesExist: ['', '<entity>', ['<name>', '…']],
  attributesMissing: ['', '<entity>', ['<name>', '…']],
  batch: [
    '',
    'missing',
    [
      { entity: '<entity>', names: ['<name>', '…'] },
      { entity: '<entity>', names: null },
    ],
  ],
  batchUnknown: ['', ['<entity>'], '<count>', ['<reason>'], 'none'],
  partlyForwarded: [left],
  partlyForwardedAndRefused: [left, providers],
  entityRefusedByProviders: [providers],
  noRoom: [12 * 1024 * 1024, 64 * 1024 * 1024],
}
const kindsOf: Partial<Record<RefusalCode, readonly RefusalKind[]>> = {
  attributesExist: ['Unprocessable', 'PartialUpdate'],
  attributesMissing: ['Unprocessable', 'PartialUpdate'],
  batch: ['NotFound', 'Unprocessable', 'PartialUpdate'],
  batchUnknown: ['Unavailable', 'InternalServerError'],
}
/** Codes that no answer has: faults of files, and the wrapper of a text from another build. */
const unlisted: ReadonlySet<string> = new Set<RefusalCode>(['accessFile', 'badLine', 'unknownCode'])

/** Names of facts in the page, where they differ from those in the code. */
const shownFacts: Readonly<Record<string, string>> = { source: 'url', prefix: '' }

function textOf(code: RefusalCode, { names, text }: Rule): string {
  const facts = samples[code] ?? names.map(name => shownFacts[name] ?? `<${name}>`)
  return (text as (...facts: unknown[]) => string)(...facts)
}

const errorName = (kind: RefusalKind): string => (kind === 'PartlyForwarded' ? 'PartialUpdate' : kind)

t.test('docs/interface/errors.md has every refusal with its status, name and text, and nothing else', async t => {
  const { error, description } = JSON.parse(ambiguousBody) as { error: RefusalKind; description: string }
  // This refusal is made before there is a request, so the rules do not have it.
  const wanted = new Set([`${statusOf[error]} ${error}: ${description}`])
  for (const [code, rule] of Object.entries<Rule>(refusalRules)) {
    if (unlisted.has(code)) continue
    const kinds = rule.kind === undefined ? kindsOf[code as RefusalCode] : [rule.kind]
    t.ok(kinds, `the kinds of ${code} are known`)
    for (const kind of kinds ?? [])
      wanted.add(`${statusOf[kind]} ${errorName(kind)}: ${textOf(code as RefusalCode, rule)}`)
  }
  const rows = rowsOf(sectionOf(page, 'Every refusal'))
  const listed = new Set(rows.map(([status, name, text]) => `${status} ${codesIn(name!)[0]}: ${codesIn(text!)[0]}`))
  t.ok(wanted.size > 200, `${wanted.size} refusals`)
  t.strictSame(
    [...wanted].filter(one => !listed.has(one)),
    [],
    'refusals without a row',
  )
  t.strictSame(
    [...listed].filter(one => !wanted.has(one)),
    [],
    'rows without a refusal',
  )
  t.strictSame(
    rows.filter(([, , , when]) => !when),
    [],
    'rows that do not say when',
  )
})

t.test('it has every name of an error with its statuses', async t => {
  const wanted = new Map<string, number[]>()
  for (const [kind, status] of Object.entries(statusOf)) {
    const name = errorName(kind as RefusalKind)
    wanted.set(name, [...(wanted.get(name) ?? []), status].sort())
  }
  const listed = rowsOf(sectionOf(page, 'Names')).map(([statuses, name]) => [
    codesIn(name!)[0],
    statuses!.split(', ').map(Number),
  ])
  t.strictSame(new Map(listed as [string, number[]][]), wanted)
})
