// Watches, from the parameters of a URL and from the members of a message: both mean the same, and mistakes are refused
// with the texts of lists and subscriptions.

import t from 'tap'
import type { JsonObject } from '../../../src/domain/json.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { watchOfMessage, watchOfParameters } from '../../../src/domain/streams/watch-parser.js'

const scope = { tenant: 'city', servicePath: '/#' }

function ofUrl(query: string) {
  const values = new Map(new URLSearchParams(query))
  return watchOfParameters(scope, values, new Set(values.get('options')?.split(',')))
}

const all = ['entityCreate', 'entityChange', 'entityUpdate', 'entityDelete']

for (const [query, message, expected] of [
  ['', {}, { entities: [{ idPattern: '.*' }], alterationTypes: all, leaves: false, attrs: [] }],
  ['type=Room', { type: 'Room' }, { entities: [{ idPattern: '.*', type: 'Room' }] }],
  ['type=Room', { entities: [{ idPattern: '.*', type: 'Room' }] }, { entities: [{ idPattern: '.*', type: 'Room' }] }],
  [
    'id=a,b&type=R,S',
    {
      id: 'a name',
      entities: [
        { id: 'a', type: 'R' },
        { id: 'a', type: 'S' },
        { id: 'b', type: 'R' },
        { id: 'b', type: 'S' },
      ],
    },
    {
      entities: [
        { id: 'a', type: 'R' },
        { id: 'a', type: 'S' },
        { id: 'b', type: 'R' },
        { id: 'b', type: 'S' },
      ],
    },
  ],
  [
    'idPattern=^a&typePattern=^R',
    { idPattern: '^a', typePattern: '^R' },
    { entities: [{ idPattern: '^a', typePattern: '^R' }] },
  ],
  ['q=t>1&mq=t.u==2', { expression: { q: 't>1', mq: 't.u==2' } }, { expression: { q: 't>1', mq: 't.u==2' } }],
  [
    'georel=near;maxDistance:10&geometry=point&coords=1,2',
    { georel: 'near;maxDistance:10', geometry: 'point', coords: '1,2' },
    { expression: { georel: 'near;maxDistance:10', geometry: 'point', coords: '1,2' } },
  ],
  [
    'alterationTypes=entityCreate,entityDelete&conditionAttrs=t,u&options=leave',
    { alterationTypes: ['entityCreate', 'entityDelete'], conditionAttrs: ['t', 'u'], options: ['leave'] },
    { alterationTypes: ['entityCreate', 'entityDelete'], attrs: ['t', 'u'], leaves: true },
  ],
] as readonly (readonly [string, JsonObject, object])[])
  t.test(`${query || 'nothing'}, and ${JSON.stringify(message)}`, async t => {
    for (const watch of [ofUrl(query), watchOfMessage(scope, message)]) {
      if (!watch.ok) return void t.fail(refusalText(watch.refusal))
      t.match(watch.value.source, { ...scope, ...expected })
      t.match(watch.value.filter, { tenant: 'city', servicePath: '/#', status: 'active' })
    }
  })

t.test('the form, the snapshot, the interval and the cursor', async t => {
  const plain = ofUrl('')
  t.match(plain.ok && plain.value, {
    form: { view: { mode: 'normalized', attrs: undefined, metadata: undefined }, onlyChangedAttrs: false },
    minIntervalMs: 0,
    gatherMs: 0,
    hasSnapshot: false,
    from: undefined,
  })
  const query =
    'options=keyValues,onlyChangedAttrs,sysAttrs,snapshot&attrs=t&metadata=m&minInterval=50&gather=9&from=1.a.b'
  const message = {
    options: 'keyValues,onlyChangedAttrs,sysAttrs,snapshot',
    attrs: ['t'],
    metadata: ['m'],
    minInterval: 50,
    gather: 9,
    from: '1.a.b',
  }
  for (const watch of [ofUrl(query), watchOfMessage(scope, message)])
    t.match(watch.ok && watch.value, {
      form: {
        view: { mode: 'keyValues', attrs: ['t', 'dateCreated', 'dateModified'], metadata: ['m'] },
        onlyChangedAttrs: true,
      },
      minIntervalMs: 50,
      gatherMs: 9,
      hasSnapshot: true,
      from: { rings: 'a', tick: 11 },
    })
})

t.test('mistakes of a message', async t => {
  const refused = (message: JsonObject): string => {
    const watch = watchOfMessage(scope, message)
    return watch.ok ? 'accepted' : refusalText(watch.refusal)
  }
  for (const [message, text] of [
    [{ type: 1 }, /type/],
    [{ type: '' }, /type.*empty|empty.*type/],
    [{ entities: [] }, /empty/],
    [{ entities: [{ id: 'a' }], type: 'b' }, /Incompatible parameters: entities/],
    [{ expression: { q: 'a' }, q: 'b' }, /Incompatible parameters: expression/],
    [{ expression: { q: 'a<' } }, /./],
    [{ minInterval: -1 }, /minInterval/],
    [{ minInterval: 1.5 }, /minInterval/],
    [{ gather: -1 }, /gather must be .* at most 1000/],
    [{ gather: 1_001 }, /gather must be .* at most 1000/],
    [{ options: ['values'] }, /options/],
    [{ alterationTypes: ['entityBirth'] }, /entityBirth/],
    [{ from: 'there' }, /cursor/],
    [{ type: 'a', typePattern: 'b' }, /Incompatible parameters: type/],
    [{ idPattern: '(' }, /regex/],
    [{ entities: Array.from({ length: 1_001 }, (_, n) => ({ id: `e${n}` })) }, /too many entities: 1001, at most 1000/],
  ] as const)
    t.match(refused(message as unknown as JsonObject), text, JSON.stringify(message).slice(0, 80))
})
