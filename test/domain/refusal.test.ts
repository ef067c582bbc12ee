// Refusals as values: their code and facts, and the text that is made of them.

import t from 'tap'
import { type Refusal, refusals, refusalText } from '../../src/domain/refusal.js'
import type { Rule } from '../../src/domain/refusal-kind.js'
import { type RefusalCode, refusalRules } from '../../src/domain/refusal-rules.js'
import { refusalTexts } from '../cases/refusal-texts.js'
import { refusalLike } from '../support/refusals.js'

const rules = Object.entries<Rule>(refusalRules) as [RefusalCode, Rule][]

t.test('each code has the kind and, to the letter, the text of the interface', async t => {
  for (const [code] of rules) {
    const [kind, text, ...facts] = refusalTexts[code]
    const refusal = refusalLike(code, facts)
    t.match(refusal, { kind, code })
    t.equal(refusalText(refusal), text, code)
  }
})

t.test('the facts of a refusal are members of their own', async t => {
  t.strictSame(refusals.attributesMissing('PartialUpdate', 'E/T', ['a', 'b,']), {
    kind: 'PartialUpdate',
    code: 'attributesMissing',
    entity: 'E/T',
    missing: ['a', 'b,'],
  })
})

t.test('no fact has the name of something that every refusal has', async t => {
  for (const [code, { kind, names }] of rules) {
    const free = kind === undefined ? names.slice(1) : names
    t.notOk(
      free.some(name => ['kind', 'code', 'description'].includes(name)),
      code,
    )
  }
})

t.test('a refusal without facts is one value, made once', async t => {
  t.equal(refusals.entityNotFound, refusals.entityNotFound)
})

t.test('a refusal names ten unknown items of a batch, and the outcome of the others if there are any', async t => {
  const unknown = (count: number, others: 'none' | 'done' | Refusal) =>
    refusalText(
      refusals.batchUnknown(
        'InternalServerError',
        Array.from({ length: count }, (_, n) => `E${n}`),
        20,
        ['disk'],
        others,
      ),
    )
  t.equal(unknown(1, 'none'), 'the outcome is unknown for 1 of 20 entities (E0): disk')
  t.equal(unknown(1, 'done'), 'the outcome is unknown for 1 of 20 entities (E0): disk; the others were done')
  t.match(unknown(12, 'none'), '(E0, E1, E2, E3, E4, E5, E6, E7, E8, E9 and 2 more): disk')
})

t.test('a geographical query and a location name their source', async t => {
  t.equal(refusalText(refusals.coordsRange('payload')), 'error parsing geo-query fields: invalid coordinates')
  t.equal(refusalText(refusals.coordsRange('url')), 'Invalid query: invalid coordinates')
  t.match(refusalText(refusals.legacyBoxCount('')), /^error parsing location attribute: geo:box/)
  t.match(refusalText(refusals.legacyBoxCount(' for existing attribute')), / attribute for existing attribute: geo:box/)
})
