// Stored entities as a reader with a grant sees them: the same as the condition says of each entity, in any order of
// paths, types and ids.

import t from 'tap'
import { AccessCondition, type GrantClause } from '../../src/domain/access/condition.js'
import { fullView, renderEntity } from '../../src/domain/entities/representation.js'
import { encodeEntity } from '../../src/encoded-entity.js'
import { seenFormsMax, seenFormsUnder } from '../../src/http/seen-forms.js'
import { entityOf } from '../support/entities.js'
import { Random } from '../support/random.js'

const rounds = 2_000
const paths = ['/a', '/a/b', '/c'] as const
const types = ['Lamp', 'Meter', 'Lampe'] as const
const ids = ['x', 'y'] as const

const clause = (parts: Partial<GrantClause>): GrantClause => ({
  paths: ['/#'],
  types: undefined,
  ids: undefined,
  attributes: ['*'],
  ...parts,
})

const grants: readonly (readonly [what: string, condition: AccessCondition])[] = [
  ['everything', new AccessCondition([clause({})])],
  ['an attribute less', new AccessCondition([clause({ attributes: ['*', '!cost'] })])],
  [
    'other attributes for each type and path',
    new AccessCondition([
      clause({ types: ['Lamp'], attributes: ['*', '!cost'] }),
      clause({ types: ['Meter'], attributes: ['name'] }),
      clause({ paths: ['/a/#'], attributes: ['place'] }),
      clause({ paths: ['/c'], types: ['Lampe'] }),
    ]),
  ],
  [
    'other attributes for an id',
    new AccessCondition([clause({ attributes: ['name'] }), clause({ ids: ['x'], attributes: ['cost'] })]),
  ],
]

for (const [what, condition] of grants)
  t.test(`under a grant of ${what}`, async t => {
    const random = Random.fromEnvironment()
    t.comment(`SEED=${random.seed}`)
    let differences = 0
    let shown = 0
    for (let round = 0; round < rounds; round++) {
      const [path, type, id] = [random.pick(paths), random.pick(types), random.pick(ids)]
      const entity = entityOf(id, type, 1, { name: 'n', cost: round, place: 'p' })
      const seen = condition.seen(entity, path)
      if (!seen) continue
      shown++
      const json = seenFormsUnder(condition).jsonOf(path, encodeEntity(entity, '')).bytes().toString()
      if (json !== renderEntity(seen, path, fullView)) differences++
    }
    t.equal(differences, 0)
    t.ok(shown > 500, `${shown} were seen`)
  })

t.test('beyond their limit the remembered ranges are forgotten, and answers stay right', async t => {
  const condition = new AccessCondition([clause({ attributes: ['*', '!cost'] }), clause({ types: ['Meter'] })])
  const entity = entityOf('x', 'Lamp', 1, { name: 'n', cost: 1 })
  const encoded = encodeEntity(entity, '')
  const expected = renderEntity(condition.seen(entity, '/p')!, '/p', fullView)
  const first = seenFormsUnder(condition)
  const isRight = (n: number): boolean =>
    seenFormsUnder(condition).jsonOf(`/p${n}`, encoded).bytes().toString() === expected
  const wrong = Array.from({ length: seenFormsMax + 1 }, (_, n) => n).filter(n => !isRight(n))
  t.strictSame(wrong, [])
  t.not(seenFormsUnder(condition), first)
})
