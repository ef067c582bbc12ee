// Cursors: each comes back from its text, and no other text is one.

import t from 'tap'
import { cursorLengthMax, parseCursor, renderCursor } from '../../../src/domain/streams/cursor.js'
import fc from '../../support/properties.js'

t.test('a cursor comes back from its text, which is short', async t => {
  const rings = fc.stringMatching(/^[0-9a-z]{1,16}$/)
  fc.assert(
    fc.property(rings, fc.maxSafeNat(), (some, tick) => {
      const text = renderCursor({ rings: some, tick })
      t.ok(text.length <= cursorLengthMax)
      t.same(parseCursor(text), { rings: some, tick })
    }),
  )
})

t.test('other texts are no cursors', async t => {
  for (const text of ['', '1', '1.a', '1.a.', '2.a.b', '1.A.b', '1.a.b.c', `1.a.${'z'.repeat(11)}`, 'x'.repeat(1_000)])
    t.equal(parseCursor(text), undefined, text)
})
