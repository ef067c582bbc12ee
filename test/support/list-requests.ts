// Random lists over random entities, with so few values that lists and entities often meet.

import type { Json } from '../../src/domain/json.js'
import type { SelectionSource, SelectorSource } from '../../src/domain/queries/selection.js'
import type { ListRequest } from '../../src/messages/messages.js'
import type { CountedRange } from '../../src/shard/read/entity-place.js'
import { attribute, type Placed, withAttributes } from './entities.js'
import fc from './properties.js'
import { orderOf, selectionOf } from './selections.js'
import { attributesForStatements, statementTexts } from './statements.js'

const paths = ['/', '/a', '/a/b', '/c'] as const
const types = ['A', 'B', 'C'] as const

const places: fc.Arbitrary<Json> = fc.constantFrom<Json>('41.4, 2.1', '41.41, 2.11', '0, 180', '-1, -179.99')
const location = fc.oneof(
  places.map(value => attribute(value, 'geo:point')),
  fc.constant(attribute(['41, 2', '42, 3'], 'geo:line')),
)

const anEntity = fc.record({
  path: fc.constantFrom(...paths),
  type: fc.constantFrom(...types),
  id: fc.nat(25).map(n => `E${n}`),
  a: attributesForStatements,
  b: fc.option(fc.constantFrom<Json>(1, 2, 'x', null, [3, 1]), { nil: undefined }),
  at: fc.option(location, { nil: undefined }),
})

/** Entities of several paths and types, no two of one id, type and path, created one after the other. */
export const placedEntities: fc.Arbitrary<Placed[]> = fc
  .uniqueArray(anEntity, { maxLength: 40, size: 'max', selector: ({ path, type, id }) => `${path} ${type} ${id}` })
  .map(all =>
    all.map(({ path, id, type, a, b, at }, n) => {
      const attributes = Object.entries({ a, b: b === undefined ? undefined : attribute(b), at })
      return {
        path,
        entity: withAttributes(
          { id, type, created: 1000 * 2048 + n },
          attributes.flatMap(([name, one]) => (one ? [[name, one] as const] : [])),
        ),
      }
    }),
  )

const optional = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(one, { nil: undefined, freq: 2 })

const idChoices = [{ ids: ['E1', 'E2', 'E3'] }, { idPattern: '^E1' }, { idPattern: '[02468]$' }, {}] as const
const typeChoices = [{ types: ['A'] }, { types: ['A', 'C'] }, { typePattern: '[BC]' }, {}] as const
const selector: fc.Arbitrary<SelectorSource> = fc
  .tuple(fc.constantFrom(...idChoices), fc.constantFrom(...typeChoices))
  .map(([id, type]) => ({ ...id, ...type }))

const geo = fc.constantFrom(
  { georel: 'near;maxDistance:2000', geometry: 'point', coords: '41.4,2.1' },
  { georel: 'near;minDistance:500', geometry: 'point', coords: '41.4,2.1' },
  { georel: 'near;maxDistance:200000', geometry: 'point', coords: '0,-180' },
  { georel: 'coveredBy', geometry: 'box', coords: '41,2;41.405,3' },
  { georel: 'intersects', geometry: 'line', coords: '41,3;42,2' },
  { georel: 'disjoint', geometry: 'box', coords: '41,2;41.405,3' },
)

const statements = fc
  .array(
    fc.oneof({ weight: 3, arbitrary: statementTexts }, fc.constantFrom('b>1', '!b', 'servicePath==/a', 'b==1,2')),
    {
      minLength: 1,
      maxLength: 2,
    },
  )
  .map(all => all.join(';'))

const source: fc.Arbitrary<Omit<SelectionSource, 'from'>> = fc.record({
  selectors: fc.array(selector, { maxLength: 2 }),
  q: optional(statements),
  geo: optional(geo),
  anyAttribute: fc.option(fc.constant(['b', 'none']), { nil: undefined, freq: 5 }),
})

const orders = [
  '',
  'a',
  '!a,b',
  'id',
  'b,!id',
  'type,servicePath',
  'dateCreated',
  '!dateModified',
  'geo:distance',
  'none',
]

export const listRequests: fc.Arbitrary<ListRequest> = fc
  .record({
    paths: fc.constantFrom(['/#'], ['/'], ['/a/#'], ['/c', '/a'], ['/a', '/a/b', '/']),
    source,
    order: fc.constantFrom(...orders),
    offset: fc.constantFrom(0, 0, 0, 2, 10),
    limit: fc.constantFrom(0, 1, 5, 20, 100),
  })
  .map(({ source, order, ...rest }) => ({
    kind: 'list',
    tenant: 't',
    selection: selectionOf(source),
    order: orderOf(order),
    ...rest,
  }))

/** The types in the paths of entities, each with the given count. */
export function rangesOf(all: readonly Placed[], count: number): CountedRange[] {
  const names = new Map(all.map(({ path, entity }) => [`${path} ${entity.type}`, { path, type: entity.type, count }]))
  return [...names.values()]
}
