// Lists and batches through a whole node: the results of GET /v2/entities and op/query and their order, and the data
// after op/update and op/notify. Each test has a tenant of its own.
import t from 'tap'
import { type Answer, startLocalNode } from '../support/local-node.js'

const node = await startLocalNode(t)

let tenants = 0

type Entity = { readonly id: string; readonly type?: string } & Readonly<Record<string, unknown>>

/** An empty tenant, with functions for its requests. */
function newTenant() {
  const service = `Ctx-Service: list${++tenants}`
  const ask = (line: string, body?: unknown, headers: readonly string[] = []): Promise<Answer> =>
    node.json(line, body, [service, ...headers])
  return {
    ask,
    /** Creates entities, one after the other, from their short form. */
    async create(path: string, ...entities: readonly Entity[]): Promise<void> {
      for (const entity of entities) {
        const answer = await ask('POST /v2/entities?options=keyValues', entity, [`Ctx-ServicePath: ${path}`])
        t.equal(answer.status, 201, answer.text)
      }
    },
    /** The ids that a list finds. */
    async ids(parameters: string, headers: readonly string[] = []): Promise<string> {
      return idsOf(await ask(`GET /v2/entities?${parameters}`, undefined, headers))
    },
    query: (body: unknown, parameters = ''): Promise<Answer> => ask(`POST /v2/op/query${parameters}`, body),
    /** The answer to an op/update: its status, and the error with its text if there is one. */
    async update(actionType: string, entities: readonly unknown[], options = 'keyValues'): Promise<string> {
      const parameters = options === '' ? '' : `?options=${options}`
      const { status, text, json } = await ask(`POST /v2/op/update${parameters}`, { actionType, entities })
      if (text === '') return String(status)
      const { error, description } = json as { error: string; description: string }
      return `${status} ${error}: ${description}`
    },
    /** All stored entities, in their short form. */
    stored: async () => (await ask('GET /v2/entities?options=keyValues&limit=1000')).json as Entity[],
  }
}

/** The ids of a list; for another answer its status and text. */
const idsOf = ({ status, text, json }: Answer): string =>
  status === 200 ? (json as Entity[]).map(({ id }) => id).join(' ') : `${status} ${text}`

const stock: readonly Entity[] = [
  { id: 'R1', type: 'Room', temp: 20, floor: 1 },
  { id: 'R2', type: 'Room', temp: 25, floor: 2 },
  { id: 'H1', type: 'Hall', temp: 25, floor: 1 },
  { id: 'R1', type: 'Hall', temp: 15 },
  { id: 'bus7', type: 'Vehicle', speed: 50 },
  { id: 'R3', type: 'Room', temp: 25 },
]

t.test('the filters of a list are combined with AND', async t => {
  const tenant = newTenant()
  await tenant.create('/', ...stock)
  for (const [parameters, expected] of [
    ['', 'R1 R2 H1 R1 bus7 R3'],
    ['type=Room', 'R1 R2 R3'],
    ['type=Hall,Vehicle', 'H1 R1 bus7'],
    ['id=R3,R1', 'R1 R1 R3'],
    ['id=R1&type=Hall', 'R1'],
    ['id=R1,H1,bus7&typePattern=^[HV]', 'H1 R1 bus7'],
    ['id=R1&typePattern=Vehicle', ''],
    ['id=R.', ''],
    ['idPattern=1$', 'R1 H1 R1'],
    ['idPattern=1$&type=Room', 'R1'],
    ['idPattern=^R&typePattern=a', 'R1'],
    ['q=temp>20', 'R2 H1 R3'],
    ['q=temp>20&type=Room', 'R2 R3'],
    ['q=temp>20;floor&idPattern=^R', 'R2'],
    ['id=R1,R2,H1&q=floor==1', 'R1 H1'],
    ['id=R1&type=Room&q=floor==2', ''],
    ['type=None', ''],
  ] as const)
    t.equal(await tenant.ids(parameters), expected, parameters)
})

t.test('a page is cut from the matches, and the count ignores the page', async t => {
  const tenant = newTenant()
  await tenant.create('/', ...stock)
  for (const [parameters, expected, count] of [
    ['limit=2', 'R1 R2', 6],
    ['limit=2&offset=4', 'bus7 R3', 6],
    ['limit=0', '', 6],
    ['offset=6', '', 6],
    ['offset=600', '', 6],
    ['type=Room&limit=1&offset=1', 'R2', 3],
    ['type=Room&limit=0', '', 3],
    ['type=Room&offset=3', '', 3],
    ['q=temp>=20&limit=2&offset=1', 'R2 H1', 4],
    ['q=temp>=20&limit=0', '', 4],
    ['q=temp>=20&offset=9', '', 4],
    ['id=R1,R2&limit=1&offset=1', 'R2', 3],
    ['id=R1,R2&limit=0', '', 3],
    ['id=R1,R2&offset=3', '', 3],
    ['idPattern=^R&limit=001&offset=02', 'R1', 4],
    ['orderBy=!id&limit=2&offset=1', 'R3 R2', 6],
    ['orderBy=id&limit=0', '', 6],
    ['orderBy=id&offset=6', '', 6],
    ['type=None', '', 0],
  ] as const) {
    const answer = await tenant.ask(`GET /v2/entities?options=count&${parameters}`)
    t.equal(idsOf(answer), expected, parameters)
    t.equal(answer.headers['ctx-total-count'], String(count), parameters)
  }
  t.notOk('ctx-total-count' in (await tenant.ask('GET /v2/entities')).headers, 'counted only on demand')
})

t.test('a list is ordered by its keys, and then by creation', async t => {
  const tenant = newTenant()
  await tenant.create('/', ...stock)
  for (const [parameters, expected] of [
    ['orderBy=temp', 'bus7 R1 R1 R2 H1 R3'],
    ['orderBy=!temp', 'R2 H1 R3 R1 R1 bus7'],
    ['orderBy=temp,!id', 'bus7 R1 R1 R3 R2 H1'],
    ['orderBy=type,id', 'H1 R1 R1 R2 R3 bus7'],
    ['orderBy=none', 'R1 R2 H1 R1 bus7 R3'],
    ['orderBy=!temp&id=R3,H1,R2', 'R2 H1 R3'],
    ['orderBy=temp&type=Room&limit=2&offset=1', 'R2 R3'],
  ] as const) {
    t.equal(await tenant.ids(parameters), expected, parameters)
  }
})

t.test('near finds by distance, in order of creation, or nearest first on request', async t => {
  const tenant = newTenant()
  const at = (value: string) => ({ at: { type: 'geo:point', value } })
  for (const [id, place] of [
    ['far', '0, 0.3'],
    ['close', '0, 0.1'],
    ['mid', '0, 0.2'],
    ['away', '0, 9'],
  ] as const)
    t.equal((await tenant.ask('POST /v2/entities', { id, type: 'T', ...at(place) })).status, 201)
  await tenant.create('/', { id: 'nowhere', type: 'T' })
  const near = 'georel=near;maxDistance:50000&geometry=point&coords=0,0'
  t.equal(await tenant.ids(near), 'far close mid')
  t.equal(await tenant.ids(`${near}&orderBy=geo:distance`), 'close mid far')
  t.equal(await tenant.ids(`${near}&orderBy=geo:distance&limit=1&offset=1`), 'mid')
  t.equal(await tenant.ids(`${near}&orderBy=geo:distance&id=far,mid`), 'mid far')
  const expression = { georel: 'near;minDistance:20000;maxDistance:50000', geometry: 'point', coords: '0,0' }
  t.equal(idsOf(await tenant.query({ expression }, '?orderBy=geo:distance')), 'mid far')
})

t.test('a list covers the service paths of its header', async t => {
  const tenant = newTenant()
  await tenant.create('/', { id: 'root', type: 'T' })
  await tenant.create('/a', { id: 'a', type: 'T' }, { id: 'same', type: 'T' })
  await tenant.create('/a/b', { id: 'ab', type: 'T' })
  await tenant.create('/c', { id: 'c', type: 'T' }, { id: 'same', type: 'T' })
  await tenant.create('/a', { id: 'late', type: 'T' })
  for (const [paths, expected] of [
    ['', 'root a same ab c same late'],
    ['/#', 'root a same ab c same late'],
    ['/', 'root'],
    ['/a', 'a same late'],
    ['/a/#', 'a same ab late'],
    ['/c,/a', 'a same c same late'],
    ['/a/#, /a/b', 'a same ab late'],
    ['/c/#,/', 'root c same'],
    ['/none', ''],
  ] as const) {
    const headers = paths === '' ? [] : [`Ctx-ServicePath: ${paths}`]
    t.equal(await tenant.ids('', headers), expected, paths)
    t.equal(idsOf(await tenant.ask('POST /v2/op/query', { entities: [] }, headers)), expected, `query ${paths}`)
  }
  t.equal(await tenant.ids('id=same,ab', ['Ctx-ServicePath: /c,/a/b']), 'ab same')
  t.equal(await tenant.ids('orderBy=servicePath,!id&limit=3'), 'root same late')
})

t.test('op/query finds the entities of any of its selectors', async t => {
  const tenant = newTenant()
  await tenant.create('/', ...stock)
  for (const [body, expected] of [
    [{ entities: [] }, 'R1 R2 H1 R1 bus7 R3'],
    [{ attrs: [] }, 'R1 R2 H1 R1 bus7 R3'],
    [{ entities: [{ id: 'R3' }, { id: 'R1' }] }, 'R1 R1 R3'],
    [{ entities: [{ id: 'R1' }, { id: 'R1', type: 'Room' }] }, 'R1 R1'],
    [{ entities: [{ id: 'R1', type: 'Hall' }, { id: 'R3' }] }, 'R1 R3'],
    [
      {
        entities: [
          { id: 'R1', type: 'Hall' },
          { idPattern: '.*', type: 'Vehicle' },
        ],
      },
      'R1 bus7',
    ],
    [
      {
        entities: [
          { idPattern: '^R', typePattern: 'oo' },
          { id: 'bus7', typePattern: '^Veh' },
        ],
      },
      'R1 R2 bus7 R3',
    ],
    [{ entities: [{ idPattern: '^R' }], expression: { q: 'temp>20' } }, 'R2 R3'],
    [{ expression: { q: 'temp>20', foo: 'ignored' } }, 'R2 H1 R3'],
    [{ attributes: ['speed', 'floor'] }, 'R1 R2 H1 bus7'],
    [{ attributes: ['floor'], entities: [{ id: 'R1' }] }, 'R1'],
    [{ entities: [{ id: 'none' }] }, ''],
  ] as const)
    t.equal(idsOf(await tenant.query(body)), expected, JSON.stringify(body))

  const page = await tenant.query({ expression: { q: 'temp' } }, '?options=count&orderBy=!temp,id&limit=2&q=speed')
  t.equal(idsOf(page), 'H1 R2', 'other parameters are ignored')
  t.equal(page.headers['ctx-total-count'], '5')
})

t.test('op/query shows the parts that attrs, attributes and metadata name', async t => {
  const tenant = newTenant()
  const metadata = { m: { type: 'Number', value: 1 }, n: { type: 'Number', value: 2 } }
  const a = { type: 'Number', value: 1, metadata }
  await tenant.ask('POST /v2/entities', { id: 'E', type: 'T', a, b: { type: 'Number', value: 2 } })
  const bare = { type: 'Number', value: 2, metadata: {} }
  for (const [body, parameters, expected] of [
    [{ attrs: ['b', 'none'] }, '', [{ id: 'E', type: 'T', b: bare }]],
    [{ attrs: ['none'] }, '', [{ id: 'E', type: 'T' }]],
    [{ attributes: ['b', 'none'] }, '', [{ id: 'E', type: 'T', b: bare }]],
    [{ attrs: ['a'], metadata: ['n'] }, '', [{ id: 'E', type: 'T', a: { ...a, metadata: { n: metadata.n } } }]],
    [{ attrs: ['a'], metadata: ['*'] }, '', [{ id: 'E', type: 'T', a }]],
    [{ attrs: ['b', 'a'] }, '?options=values', [[2, 1]]],
    [{ attrs: ['b', 'a'] }, '?options=keyValues', [{ id: 'E', type: 'T', b: 2, a: 1 }]],
    [{ attrs: ['servicePath'] }, '?options=keyValues', [{ id: 'E', type: 'T', servicePath: '/' }]],
  ] as const)
    t.strictSame((await tenant.query(body, parameters)).json, expected, `${JSON.stringify(body)} ${parameters}`)
})

const existing = 'one or more of the attributes in the request already exist: '

const whole: Entity = { id: 'E', type: 'T', a: 1, b: 2 }

t.test('every action has the effect of the single operation', async t => {
  for (const [action, entities, answer, stored] of [
    ['append', [{ id: 'E', type: 'T', a: 9, c: 3 }], '204', [{ id: 'E', type: 'T', a: 9, b: 2, c: 3 }]],
    ['append', [{ id: 'E', type: 'T' }], '204', [{ id: 'E', type: 'T', a: 1, b: 2 }]],
    ['append', [{ id: 'F', type: 'U', x: 1 }], '204', [whole, { id: 'F', type: 'U', x: 1 }]],
    ['appendStrict', [{ id: 'E', type: 'T', c: 3 }], '204', [{ id: 'E', type: 'T', a: 1, b: 2, c: 3 }]],
    ['appendStrict', [{ id: 'F', type: 'U', x: 1 }], '204', [whole, { id: 'F', type: 'U', x: 1 }]],
    [
      'APPEND_STRICT',
      [{ id: 'E', type: 'T', a: 9, c: 3 }],
      `422 PartialUpdate: ${existing}E/T - [ a ]`,
      [{ id: 'E', type: 'T', a: 1, b: 2, c: 3 }],
    ],
    ['appendStrict', [{ id: 'E', a: 9, b: 9 }], `422 Unprocessable: ${existing}E - [ a, b ]`, [whole]],
    ['update', [{ id: 'E', type: 'T', a: 9 }], '204', [{ id: 'E', type: 'T', a: 9, b: 2 }]],
    [
      'update',
      [
        { id: 'E', type: 'T', a: 9, x: 1 },
        { id: 'F', type: 'T', a: 1 },
      ],
      '422 PartialUpdate: do not exist: E/T - [ x ], F/T [entity itself]',
      [{ id: 'E', type: 'T', a: 9, b: 2 }],
    ],
    ['update', [{ id: 'E', type: 'T', x: 1 }], '422 Unprocessable: do not exist: E/T - [ x ]', [whole]],
    [
      'update',
      [
        { id: 'F', type: 'T', a: 1 },
        { id: 'G', a: 1 },
      ],
      '404 NotFound: do not exist: F/T - [entity itself], G [entity itself]',
      [whole],
    ],
    ['replace', [{ id: 'E', type: 'T', c: 3 }], '204', [{ id: 'E', type: 'T', c: 3 }]],
    ['REPLACE', [{ id: 'F', type: 'T', c: 3 }], '404 NotFound: do not exist: F/T - [entity itself]', [whole]],
    ['delete', [{ id: 'E', type: 'T', a: null }], '204', [{ id: 'E', type: 'T', b: 2 }]],
    ['delete', [{ id: 'E', b: { value: null } }], '204', [{ id: 'E', type: 'T', a: 1 }]],
    ['delete', [{ id: 'E', type: 'T' }], '204', []],
    [
      'delete',
      [{ id: 'E', type: 'T', a: 0, x: 0 }],
      '422 PartialUpdate: do not exist: E/T - [ x ]',
      [{ id: 'E', type: 'T', b: 2 }],
    ],
    ['delete', [{ id: 'F' }, { id: 'E' }], '422 PartialUpdate: do not exist: F - [entity itself]', []],
  ] as const) {
    const tenant = newTenant()
    await tenant.create('/', whole)
    const name = `${action} ${JSON.stringify(entities)}`
    t.equal(await tenant.update(action, entities), answer, name)
    t.strictSame(await tenant.stored(), stored, name)
  }
})

t.test('an entity that occurs several times in a batch sees its earlier items', async t => {
  const tenant = newTenant()
  const e = { id: 'E', type: 'T' }
  t.equal(
    await tenant.update('append', [
      { ...e, a: 1 },
      { id: 'F', type: 'T' },
      { ...e, b: 1 },
      { ...e, a: 2 },
    ]),
    '204',
  )
  t.strictSame(await tenant.stored(), [
    { ...e, a: 2, b: 1 },
    { id: 'F', type: 'T' },
  ])
  t.equal(
    await tenant.update('appendStrict', [
      { ...e, c: 1 },
      { ...e, c: 2 },
    ]),
    `422 PartialUpdate: ${existing}E/T - [ c ]`,
  )
  t.equal(
    await tenant.update('delete', [{ ...e, a: null }, { ...e, c: null }, e, e]),
    '422 PartialUpdate: do not exist: E/T - [entity itself]',
  )
  t.strictSame(await tenant.stored(), [{ id: 'F', type: 'T' }])
})

t.test('an entity without type is the only one of its id, or else a new Thing', async t => {
  const tenant = newTenant()
  await tenant.create(
    '/',
    { id: 'one', type: 'T', a: 1 },
    { id: 'two', type: 'T', a: 1 },
    { id: 'two', type: 'U', a: 1 },
  )
  t.equal(
    await tenant.update('append', [
      { id: 'one', a: 2 },
      { id: 'new', a: 3 },
    ]),
    '204',
  )
  t.equal(
    await tenant.update('append', [
      { id: 'two', a: 9 },
      { id: 'one', a: 4 },
    ]),
    '409 TooManyResults: More than one matching entity. Please refine your query',
  )
  t.strictSame(await tenant.stored(), [
    { id: 'one', type: 'T', a: 4 },
    { id: 'two', type: 'T', a: 1 },
    { id: 'two', type: 'U', a: 1 },
    { id: 'new', type: 'Thing', a: 3 },
  ])
})

t.test('a batch with one wrong entity stores nothing', async t => {
  const tenant = newTenant()
  const wrong = [
    { id: 'E', type: 'T', a: 1 },
    { id: 'F', type: '' },
  ]
  t.equal(await tenant.update('append', wrong), '400 BadRequest: entity type length: 0, min length supported: 1')
  t.match(await tenant.update('append', [{ id: 'E' }, { idPattern: 'F' }]), '501 NotImplemented: NotImplemented')
  t.strictSame(await tenant.stored(), [])
})

t.test('a failure of another kind decides, and the other entities are stored', async t => {
  const tenant = newTenant()
  await tenant.create('/', { id: 'E', type: 'T', a: 'text' })
  const inc = { value: { $inc: 1 }, type: 'Number' }
  const items = [
    { id: 'E', type: 'T', a: inc },
    { id: 'F', type: 'T', b: { value: 1, type: 'Number' } },
  ]
  t.match(await tenant.update('append', items, ''), /^500 InternalServerError: Database Error/)
  t.strictSame(await tenant.stored(), [
    { id: 'E', type: 'T', a: 'text' },
    { id: 'F', type: 'T', b: 1 },
  ])
})

t.test('a long batch is stored in the order of its payload', async t => {
  const tenant = newTenant()
  const many = Array.from({ length: 300 }, (_, n) => ({ id: `E${n}`, type: 'T', n }))
  t.equal(await tenant.update('append', many), '204')
  t.strictSame(await tenant.stored(), many)
  const answer = await tenant.ask('GET /v2/entities?options=count&q=n>=100&orderBy=!n&limit=2&offset=198')
  t.equal(idsOf(answer), 'E101 E100')
  t.equal(answer.headers['ctx-total-count'], '200')
  t.equal(
    await tenant.update(
      'delete',
      many.map(({ id, type }) => ({ id, type })),
    ),
    '204',
  )
  t.strictSame(await tenant.stored(), [])
})

t.test('a batch acts on one service path', async t => {
  const tenant = newTenant()
  const batch = { actionType: 'append', entities: [{ id: 'E', type: 'T' }] }
  t.equal((await tenant.ask('POST /v2/op/update', batch, ['Ctx-ServicePath: /a'])).status, 204)
  t.equal(await tenant.ids('', ['Ctx-ServicePath: /a']), 'E')
  t.equal(await tenant.update('update', [{ id: 'E' }]), '404 NotFound: do not exist: E - [entity itself]')
  for (const paths of ['/a,/b', '/#'])
    t.equal((await tenant.ask('POST /v2/op/update', batch, [`Ctx-ServicePath: ${paths}`])).status, 400, paths)
})

t.test('op/notify appends its entities', async t => {
  const tenant = newTenant()
  const one = (value: number) => ({ type: 'Number', value })
  const notify = (data: readonly unknown[], ...headers: string[]) =>
    tenant.ask('POST /v2/op/notify', { subscriptionId: 'unknown', data }, headers)
  const first = await notify([
    { id: 'E', type: 'T', a: one(1), b: one(1) },
    { id: 'F', x: one(1) },
  ])
  t.match(first, { status: 200, text: '' })
  const second = [
    { id: 'E', type: 'T', a: one(2), c: one(2) },
    { id: 'F', x: one(2) },
  ]
  t.equal((await notify(second, 'Ngsiv2-AttrsFormat: normalized')).status, 200)
  const stored = [
    { id: 'E', type: 'T', a: 2, b: 1, c: 2 },
    { id: 'F', type: 'Thing', x: 2 },
  ]
  t.strictSame(await tenant.stored(), stored)
  for (const [format, text] of [
    ['keyValues', 'attribute render format /keyValues/ not supported for notifications'],
    ['custom', 'attribute render format /custom/ not supported for notifications'],
    ['values', 'invalid render format for notifications'],
  ] as const)
    t.match(await notify([{ id: 'G' }], `Ngsiv2-AttrsFormat: ${format}`), {
      status: 400,
      json: { error: 'BadRequest', description: text },
    })
  t.strictSame(await tenant.stored(), stored)
  t.equal(
    (
      await notify([
        { id: 'E', type: 'T', a: { value: { $inc: 1 } } },
        { id: 'G', x: one(1) },
      ])
    ).status,
    200,
  )
  t.equal((await notify([{ id: 'P' }], 'Ctx-ServicePath: /p')).status, 200)
  t.equal(await tenant.ids('', ['Ctx-ServicePath: /p']), 'P')
})

t.test('op/notify deletes entities that were deleted at the source of the notification', async t => {
  const tenant = newTenant()
  const notify = (data: readonly unknown[], ...headers: string[]) =>
    tenant.ask('POST /v2/op/notify', { subscriptionId: 'unknown', data }, headers)
  for (const path of ['/', '/p']) await notify([{ id: 'E', type: 'T' }, { id: 'F' }], `Ctx-ServicePath: ${path}`)
  const gone = [{ id: 'E', type: 'T', a: { type: 'Number', value: 1, metadata: {} } }, { id: 'F' }, { id: 'X' }]
  t.match(await notify(gone, 'Ctx-Alteration: entityDelete', 'Ctx-ServicePath: /p'), { status: 200, text: '' })
  t.equal(await tenant.ids('', ['Ctx-ServicePath: /p']), '', 'also when one of them is unknown')
  t.equal(await tenant.ids('', ['Ctx-ServicePath: /']), 'E F', 'in one path only')
  t.equal((await notify([{ id: 'E', type: 'U' }], 'Fiware-Alteration: entityDelete')).status, 200)
  t.equal(await tenant.ids(''), 'E F', 'of one type only')
  const both = ['Fiware-Alteration: entityDelete', 'Ctx-Alteration: entityChange']
  t.equal((await notify([{ id: 'G' }], ...both)).status, 200)
  t.equal(await tenant.ids(''), 'E F G', 'of two vocabularies ours counts')
  t.match(await notify([{ id: 'E', type: 'T' }], 'Ctx-Alteration: gone'), {
    status: 400,
    json: {
      error: 'BadRequest',
      description:
        'invalid alteration type for notifications, accepted values: entityCreate, entityChange, entityUpdate, entityDelete',
    },
  })
  t.equal((await notify([{ id: 'E', type: 'T' }], 'Fiware-Alteration: entityDelete')).status, 200)
  t.equal(await tenant.ids(''), 'F G')
})
