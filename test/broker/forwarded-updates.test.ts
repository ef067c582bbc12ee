// Which part of a refused update may be forwarded: the code and the facts of the refusal decide.

import t from 'tap'
import { missingOf } from '../../src/broker/forwarded-updates.js'
import type { WantedAttribute } from '../../src/domain/entities/entity.js'
import { refusals } from '../../src/domain/refusal.js'
import { allRefusals } from '../support/refusals.js'

const attribute: WantedAttribute = { type: 'Number', value: 1, metadata: undefined }
const wanted = new Map(['a', 'b,', ',c', 'do'].map(name => [name, attribute]))

t.test('all attributes that a refusal names as missing may be forwarded, with any names', async t => {
  const refusal = refusals.attributesMissing('PartialUpdate', 'E[1]/T', ['b,', ',c'])
  t.strictSame([...(missingOf(refusal, wanted)?.keys() ?? [])], ['b,', ',c'])
})

t.test('everything may be forwarded of an entity or a single attribute that is not here', async t => {
  for (const refusal of [refusals.entityNotFound, refusals.attributeNotFound])
    t.equal(missingOf(refusal, wanted), wanted, refusal.code)
})

t.test('a refusal of any other code decides alone', async t => {
  const codes = ['entityNotFound', 'attributeNotFound', 'attributesMissing']
  for (const refusal of allRefusals)
    if (!codes.includes(refusal.code)) t.equal(missingOf(refusal, wanted), undefined, refusal.code)
})
