// Cross-origin requests, over both servers: off, one origin, several, all of them; answers, refusals, preflights and
// wrong verbs (docs/interface/requests.md#methods, docs/interface/browsers.md#pages-from-other-origins-cors). And the
// vocabulary of answers where it is fixed.

import t from 'tap'
import { type Answer, httpServers, startLocalNode } from '../support/local-node.js'

const exposed = 'Ctx-Correlator, Ctx-Total-Count, Location'
const origin = 'Origin: https://a.example'

/** The cross-origin headers of an answer. */
const corsOf = ({ headers }: Answer): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => name.startsWith('access-control-'))
      .map(([name, value]) => [name.replace('access-control-', ''), value]),
  )

const none = {}

for (const server of httpServers)
  t.test(`over ${server}`, async t => {
    t.test('without a configured origin there are no headers, and OPTIONS is a wrong verb', async t => {
      const node = await startLocalNode(t, { server })
      t.same(corsOf(await node.ask('GET /v2', [origin])), none)
      const options = await node.ask('OPTIONS /v2/entities', [origin])
      t.match(options, { status: 405, headers: { allow: 'POST, GET' } })
      t.same(corsOf(options), none)
    })

    t.test('one origin', async t => {
      const node = await startLocalNode(t, { server, cors: { origins: ['https://a.example'], maxAgeS: 600 } })
      const matching = { 'allow-origin': 'https://a.example', 'expose-headers': exposed }

      t.test('it sees answers and refusals', async t => {
        t.same(corsOf(await node.ask('GET /v2', [origin])), matching)
        t.same(corsOf(await node.ask('GET /version', [origin])), matching)
        t.same(corsOf(await node.ask('GET /v2/entities/nobody', [origin])), matching)
        t.same(corsOf(await node.ask('GET /v2/entities?limit=x', [origin])), matching)
        t.same(corsOf(await node.ask('GET /v2/entities', [origin, 'Fiware-Service: a'])), {
          ...matching,
          'expose-headers': 'Fiware-Correlator, Fiware-Total-Count, Location',
        })
      })

      t.test('others, and requests without one, do not', async t => {
        for (const headers of [[], ['Origin: https://a.example.org'], ['Origin: HTTPS://A.EXAMPLE']]) {
          t.same(corsOf(await node.ask('GET /v2', headers)), none)
          const preflight = await node.ask('OPTIONS /v2', headers)
          t.match(preflight, { status: 200, text: '', headers: { 'content-type': undefined } })
          t.same(corsOf(preflight), none)
        }
      })

      t.test('administration is not spoken of', async t => {
        t.same(corsOf(await node.ask('GET /statistics', [origin])), none)
        t.equal((await node.ask('OPTIONS /admin/log', [origin])).status, 405)
        t.equal((await node.ask('OPTIONS /v2/nowhere', [origin])).status, 400)
      })

      t.test('the answer to a wrong verb names OPTIONS, and nothing else', async t => {
        const wrong = await node.ask('DELETE /v2/entities', [origin])
        t.match(wrong, { status: 405, headers: { allow: 'POST, GET, OPTIONS' } })
        t.same(corsOf(wrong), none)
        t.equal((await node.ask('DELETE /version', [origin])).headers.allow, 'GET')
      })

      const own = 'X-Forwarded-For, X-Real-IP, X-Auth-Token, Authorization'
      for (const [path, methods] of [
        ['/v2', 'GET, OPTIONS'],
        ['/v2/entities', 'GET, POST, OPTIONS'],
        ['/v2/entities/E', 'GET, DELETE, OPTIONS'],
        ['/v2/entities/E/attrs', 'GET, PATCH, POST, PUT, OPTIONS'],
        ['/v2/entities/E/attrs/A', 'GET, PUT, DELETE, OPTIONS'],
        ['/v2/entities/E/attrs/A/value', 'GET, PUT, OPTIONS'],
        ['/v2/types/T', 'GET, OPTIONS'],
        ['/v2/subscriptions', 'GET, POST, OPTIONS'],
        ['/v2/subscriptions/S', 'GET, DELETE, PATCH, OPTIONS'],
        ['/v2/op/update', 'POST, OPTIONS'],
        ['/version', 'GET, OPTIONS'],
      ] as const)
        t.test(`a preflight of ${path} gets ${methods}`, async t => {
          const preflight = await node.ask(`OPTIONS ${path}`, [origin])
          t.match(preflight, { status: 200, text: '', headers: { 'content-type': undefined } })
          t.same(corsOf(preflight), {
            ...matching,
            'allow-methods': methods,
            'allow-headers': `Content-Type, Ctx-Service, Ctx-Servicepath, Ngsiv2-AttrsFormat, Ctx-Correlator, ${own}`,
            'max-age': '600',
          })
        })

      t.test('a preflight that announces headers of the other vocabulary gets these', async t => {
        const asked = 'Access-Control-Request-Headers: content-type,fiware-service'
        t.match(corsOf(await node.ask('OPTIONS /v2', [origin, asked])), { 'allow-headers': /, Fiware-Service, / })
      })
    })

    t.test('several origins: the answer names the one that asks, and that it varies with it', async t => {
      const origins = ['https://a.example', 'http://localhost:8080']
      const node = await startLocalNode(t, { server, cors: { origins, maxAgeS: 600 } })
      for (const one of origins) {
        const answer = await node.ask('GET /v2', [`Origin: ${one}`])
        t.match(corsOf(answer), { 'allow-origin': one, 'expose-headers': exposed })
        t.equal(answer.headers.vary, 'Origin')
        const preflight = await node.ask('OPTIONS /v2/entities', [`Origin: ${one}`])
        t.match(corsOf(preflight), { 'allow-origin': one, 'allow-methods': 'GET, POST, OPTIONS', 'max-age': '600' })
        t.equal(preflight.headers.vary, 'Origin')
      }
      const strangers = [
        'https://a.example,http://localhost:8080',
        'https://b.example',
        'null',
        'https://a.example:443',
      ]
      for (const one of strangers) {
        const answer = await node.ask('GET /v2', [`Origin: ${one}`])
        t.same(corsOf(answer), none, one)
        t.equal(answer.headers.vary, 'Origin', 'a cache must not give this answer to a page that may see it')
      }
      t.equal((await node.ask('GET /v2')).headers.vary, 'Origin')
      t.equal((await node.ask('GET /statistics', [origin])).headers.vary, undefined)
    })

    t.test('all origins', async t => {
      const node = await startLocalNode(t, { server, cors: { origins: 'all', maxAgeS: -1 } })
      t.equal((await node.ask('GET /v2', [origin])).headers.vary, undefined, 'the same answer for everybody')
      t.match(corsOf(await node.ask('GET /v2', [origin])), { 'allow-origin': '*' })
      t.match(corsOf(await node.ask('OPTIONS /v2', [origin])), { 'allow-origin': '*', 'max-age': '-1' })
      t.same(corsOf(await node.ask('GET /v2')), none)
    })

    t.test('HEAD is a wrong verb', async t => {
      const node = await startLocalNode(t, { server })
      t.match(await node.ask('HEAD /v2/entities'), { status: 405, headers: { allow: 'POST, GET' } })
    })

    t.test('where the vocabulary is fixed every answer speaks it', async t => {
      const node = await startLocalNode(t, { server, vocabulary: 'Fiware' })
      const { headers } = await node.ask('GET /v2/entities?options=count', [
        'Fiware-Correlator: c1',
        'Fiware-Service: a',
      ])
      t.match(headers, { 'fiware-correlator': 'c1', 'fiware-total-count': '0', 'ctx-correlator': undefined })
    })
  })
