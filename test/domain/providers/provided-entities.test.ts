// Entities as providers answer them: what makes sense is taken, whatever else they send.

import fc from 'fast-check'
import t from 'tap'
import { renderEntity } from '../../../src/domain/entities/representation.js'
import type { Json } from '../../../src/domain/json.js'
import { readProvidedEntities } from '../../../src/domain/providers/provided-entities.js'

const read = (json: Json) => readProvidedEntities(json, 'Thing')
const view = { mode: 'normalized', attrs: undefined, metadata: undefined } as const
const shown = (json: Json) => read(json)?.map(entity => JSON.parse(renderEntity(entity, '/', view)))

t.test('an answer is an array of normalized entities', async t => {
  const entity = {
    id: 'E',
    type: 'T',
    a: { type: 'Number', value: 1, metadata: { m: { type: 'Text', value: 'x' } } },
    b: { type: 'StructuredValue', value: { x: [null, true] }, metadata: {} },
  }
  t.strictSame(shown([entity, { id: 'F', type: 'T' }]), [entity, { id: 'F', type: 'T' }])
  t.strictSame(shown([]), [])
  for (const json of [null, 1, 'x', {}, { id: 'E' }]) t.equal(read(json), undefined)
})

t.test('types that are not told are those of creation', async t => {
  t.strictSame(shown([{ id: 'E', a: { value: 1 }, b: { value: 'x', metadata: { m: { value: null } } } }]), [
    {
      id: 'E',
      type: 'Thing',
      a: { type: 'Number', value: 1, metadata: {} },
      b: { type: 'Text', value: 'x', metadata: { m: { type: 'None', value: null } } },
    },
  ])
})

const deep = (levels: number): Json => (levels === 0 ? 1 : [deep(levels - 1)])

t.test('what could not be an entity here is left out, and the rest counts', async t => {
  const good = { id: 'E', type: 'T', a: { type: 'Number', value: 1, metadata: {} } }
  const bad: readonly Json[] = [
    null,
    1,
    'E',
    [],
    {},
    { id: 1 },
    { id: '' },
    { id: 'a b' },
    { id: 'E', type: null },
    { id: 'x'.repeat(257) },
  ]
  t.strictSame(shown([...bad, good, ...bad]), [good])
  const members: Record<string, Json> = {
    'a b': { value: 1 },
    ['x'.repeat(257)]: { value: 1 },
    bare: 1,
    empty: null,
    list: [],
    valueless: { type: 'Number' },
    badType: { type: 1, value: 1 },
    infinite: { type: 'Number', value: JSON.parse('1e999') },
    infiniteWithin: { type: 'X', value: { x: [JSON.parse('-1e999')] } },
    tooDeep: { type: 'X', value: deep(60) },
  }
  t.strictSame(shown([{ ...good, ...members }]), [good])
  const metadata = {
    ok: { type: 'Text', value: 'x' },
    'a b': { value: 1 },
    bare: 1,
    infinite: { value: JSON.parse('1e999') },
  }
  t.strictSame(shown([{ ...good, a: { ...good.a, metadata } }]), [
    { ...good, a: { ...good.a, metadata: { ok: metadata.ok } } },
  ])
})

t.test('when such an entity was made and changed is not told', async t => {
  const [entity] = read([{ id: 'E', type: 'T', a: { value: 1 } }])!
  const attrs = ['*', 'dateCreated', 'dateModified', 'a']
  const withBuiltins = { mode: 'normalized', attrs, metadata: ['*', 'dateCreated', 'dateModified'] } as const
  t.strictSame(JSON.parse(renderEntity(entity!, '/', withBuiltins)), {
    id: 'E',
    type: 'T',
    a: { type: 'Number', value: 1, metadata: {} },
  })
  const named = { mode: 'keyValues', attrs: ['dateCreated', 'dateModified'], metadata: undefined } as const
  t.strictSame(JSON.parse(renderEntity(entity!, '/', named)), { id: 'E', type: 'T' })
})

t.test('whatever is answered, what is taken can be rendered as JSON', async () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue(), { maxLength: 4 }), fc.jsonValue(), (items, value) => {
      const some = [...items, { id: 'E', x: { value }, y: { value: 1, metadata: value } }] as Json
      for (const entity of read(some) ?? []) JSON.parse(renderEntity(entity, '/', view))
    }),
  )
})
