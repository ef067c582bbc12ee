// The table of numbered items behaves as a Map does, in any sequence of additions and removals.

import t from 'tap'
import { ByNumber } from '../../../cluster/asks/waiting.js'
import { Random } from '../../support/random.js'

const seeds = 20
const steps = 5_000

t.test('finds entries that were added and not removed', async t => {
  for (let seed = 1; seed <= seeds; seed++) {
    const random = new Random(seed)
    const table = new ByNumber<{ readonly number: number }>()
    const map = new Map<number, { readonly number: number }>()
    // Around 2^31 a bitwise operation takes numbers for negative ones.
    let number = seed % 2 === 0 ? 0 : 2 ** 31 - 1_000
    const keptMax = random.between(1, 400)
    for (let step = 0; step < steps; step++) {
      number += random.between(1, 3)
      const item = { number }
      table.add(item)
      map.set(item.number, item)
      while (map.size > keptMax) {
        // Mostly the oldest, as answers come in order; the rest stay for long.
        const known = [...map.keys()]
        const taken = random.between(0, 9) > 0 ? known[0]! : known[random.between(0, known.length - 1)]!
        if (!table.delete(taken)) t.fail(`seed ${seed}: ${taken} was there`)
        map.delete(taken)
      }
    }
    t.equal(table.size, map.size, `seed ${seed}: as many`)
    const wrong = [...map].filter(([key, item]) => table.get(key) !== item)
    t.strictSame(wrong, [], `seed ${seed}: all are found`)
    const gone = Array.from({ length: 100 }, (_, at) => number + 1 + at)
    t.notOk(
      gone.some(key => table.get(key) ?? table.delete(key)),
      `seed ${seed}: what is not there is not found`,
    )
  }
})

t.test('the rest of a run of neighbours is found when one in its midst goes', async t => {
  const table = new ByNumber<{ readonly number: number }>()
  // All hash to the same place, but the last one of each four to the next.
  const numbers = Array.from({ length: 16 }, (_, at) => at * 4096 + (at % 4 === 3 ? 1 : 0))
  for (const number of numbers) table.add({ number })
  for (const [at, number] of numbers.entries()) {
    t.ok(table.delete(number))
    t.strictSame(
      numbers.filter(one => table.get(one)),
      numbers.slice(at + 1),
    )
  }
})
