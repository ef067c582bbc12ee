// Correlators for requests that bring none: UUIDs that do not repeat (docs/interface/requests.md#correlator).

import t from 'tap'
import { systemChance } from '../../src/clock.js'
import { Correlators } from '../../src/http/call.js'

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const startingAt = (uuid: string) => new Correlators({ uuid: () => uuid })

t.test('a correlator is a lower-case UUID of 36 characters', async t => {
  const correlators = new Correlators(systemChance)
  for (let i = 0; i < 100; i++) t.match(correlators.next(), uuidForm)
})

t.test('no correlator comes twice', async t => {
  const correlators = new Correlators(systemChance)
  t.equal(new Set(Array.from({ length: 10_000 }, () => correlators.next())).size, 10_000)
})

t.test('the first part is that of the start, the last digits count', async t => {
  const correlators = startingAt('0b5e1a52-7f9e-4c39-9d9d-00000000000f')
  t.equal(correlators.next(), '0b5e1a52-7f9e-4c39-9d9d-000000000010')
  t.equal(correlators.next(), '0b5e1a52-7f9e-4c39-9d9d-000000000011')
})

t.test('after the last number comes the first, in twelve digits', async t => {
  const correlators = startingAt('0b5e1a52-7f9e-4c39-9d9d-fffffffffffe')
  t.equal(correlators.next(), '0b5e1a52-7f9e-4c39-9d9d-ffffffffffff')
  t.equal(correlators.next(), '0b5e1a52-7f9e-4c39-9d9d-000000000000')
})
