// The index of registrations against a plain list of them: after any additions and removals, it finds the same
// registrations as a walk over all.

import assert from 'node:assert/strict'
import t from 'tap'
import { type Provided, ProviderIndex } from '../../../src/domain/providers/provider-index.js'
import type { Registration } from '../../../src/domain/providers/registration.js'
import fc from '../../support/properties.js'
import { registrations } from '../../support/registrations.js'

const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: registrations.map(one => ({ add: { ...one, id: one.id.slice(-1) } })) },
    { weight: 1, arbitrary: fc.constantFrom(...'0123456789abcdef').map(remove => ({ remove })) },
  ),
  { maxLength: 40 },
)
const types = fc.option(fc.uniqueArray(fc.constantFrom('T', 'U', 'V')), { nil: undefined })

const namesOf = (found: Iterable<Pick<Provided, 'registration' | 'entity'>>): string[] =>
  [...found].map(({ registration, entity }) => `${registration.id} ${JSON.stringify(entity)}`)

t.test('it finds the same registrations as a walk over all, in the same order', async () => {
  fc.assert(
    fc.property(steps, fc.constantFrom('E1', 'E2', 'E3', '__proto__'), types, (all, id, named) => {
      const index = new ProviderIndex()
      const held = new Map<string, Registration>()
      for (const step of all) {
        if ('add' in step) {
          index.add(step.add)
          held.set(step.add.id, step.add)
        } else {
          index.remove(step.remove)
          held.delete(step.remove)
        }
      }
      const inOrder = [...held.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
      const provided = inOrder.flatMap(registration =>
        registration.dataProvided.entities.map(entity => ({ registration, entity })),
      )
      const wanted: ReadonlySet<string> | undefined = named && new Set(named)
      const fits = (type: string | undefined): boolean => !wanted || type === undefined || wanted.has(type)
      assert.equal(index.size, held.size)
      assert.deepEqual(
        namesOf(index.ofTypes(wanted)).sort(),
        namesOf(provided.filter(one => fits(one.entity.type))).sort(),
      )
      const ofId = provided.filter(({ entity }) => (entity.id === undefined ? fits(entity.type) : entity.id === id))
      assert.deepEqual(namesOf(index.ofId(id, wanted)).sort(), namesOf(ofId).sort())
      const isProvided = provided.some(({ entity }) => entity.id === undefined || entity.id === id)
      assert.equal(index.mayProvide(id), isProvided)
      for (const found of [index.ofTypes(wanted), index.ofId(id, wanted)]) {
        const ids = [...found].map(({ registration }) => registration.id)
        assert.deepEqual(ids, [...ids].sort())
      }
    }),
    { numRuns: 500 },
  )
})
