// The heap against sorting.

import t from 'tap'
import { Heap } from '../../../src/shard/turn/heap.js'
import fc from '../../support/properties.js'

/** Numbers are pushed; the words remove the first one, or replace it by 4. */
const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 9 }) },
    fc.constantFrom('pop' as const, 'replace' as const),
  ),
  { maxLength: 60 },
)

const upwards = (a: number, b: number): number => a - b

t.test('the first element is at the top, after any additions and removals', async () => {
  fc.assert(
    fc.property(
      steps,
      fc.constantFrom(upwards, (a: number, b: number) => b - a),
      (taken, compare) => {
        const heap = new Heap(compare)
        let model: number[] = []
        for (const step of taken) {
          model.sort(compare)
          if (step === 'pop') {
            if (heap.pop() !== model[0]) return false
            model = model.slice(1)
          } else if (typeof step === 'number') {
            heap.push(step)
            model.push(step)
          } else if (model.length > 0) {
            heap.replaceTop(4)
            model[0] = 4
          }
          model.sort(compare)
          if (heap.top !== model[0] || heap.size !== model.length) return false
        }
        return [...heap.all()].sort(compare).join() === model.join()
      },
    ),
  )
})

t.test('taken away one by one, all come in order', async () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 })), items => {
      const heap = new Heap(upwards)
      for (const item of items) heap.push(item)
      const taken: (number | undefined)[] = []
      while (heap.size > 0) taken.push(heap.pop())
      return taken.join() === items.sort(upwards).join()
    }),
  )
})

t.test('an empty heap has no first', async t => {
  const heap = new Heap(upwards)
  t.equal(heap.top, undefined)
  t.equal(heap.pop(), undefined)
  t.equal(heap.size, 0)
})
