// `GET /` over both servers: JSON for clients, a page for browsers, and other requests to this path.

import { createHash } from 'node:crypto'
import t from 'tap'
import { version } from '../../src/config/config.js'
import { likesHtml } from '../../src/http/request.js'
import { httpServers, startLocalNode } from '../support/local-node.js'

const browser = 'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

for (const server of httpServers)
  t.test(`over ${server}`, async t => {
    const node = await startLocalNode(t, { server })

    t.test('clients get JSON with name, version and links that lead somewhere', async t => {
      for (const headers of [[], ['Accept: */*'], ['Accept: application/json']]) {
        const answer = await node.ask('GET /', headers)
        t.match(answer, { status: 200, headers: { 'content-type': 'application/json', vary: 'Accept' } })
        t.match(answer.json, { name: 'Orrery', version, links: { interface: '/v2', metrics: '/metrics' } })
      }
      const { links } = (await node.ask('GET /')).json as { links: Record<string, string> }
      for (const path of Object.values(links).filter(one => one.startsWith('/')))
        t.equal((await node.ask(`GET ${path}`)).status, 200, path)
    })

    t.test('browsers get a page that loads nothing and runs nothing', async t => {
      const { status, headers, text } = await node.ask('GET /', [browser])
      t.match({ status, headers }, { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } })
      t.match(headers, { vary: 'Accept', 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
      t.match(text, `Orrery ${version}`)
      t.notMatch(text, /<script|<link|<img|<iframe|\bsrc=|\bon[a-z]+=|@import|url\(/i)
      const policy = headers['content-security-policy'] ?? ''
      t.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; .*frame-ancestors 'none'$/)
      const style = /<style>(.*?)<\/style>/s.exec(text)?.[1] ?? ''
      t.match(policy, createHash('sha256').update(style).digest('base64'), 'its style is allowed by its hash')
    })

    t.test('HEAD has the same headers without the body, and the connection goes on', async t => {
      const { headers: ofGet, text } = await node.ask('GET /', [browser])
      const { status, headers, text: ofHead } = await node.ask('HEAD /', [browser])
      t.same([status, ofHead], [200, ''])
      t.equal(headers['content-length'], String(Buffer.byteLength(text)))
      t.equal(headers['content-type'], ofGet['content-type'])
    })

    t.test('every other verb is a 405 with Allow', async t => {
      for (const verb of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const answer = await node.ask(`${verb} /`)
        t.match(answer, { status: 405, headers: { allow: 'GET, HEAD' }, json: { error: 'MethodNotAlowed' } }, verb)
      }
      t.match(await node.json('POST /', { a: 1 }), { status: 405, headers: { allow: 'GET, HEAD' } })
    })

    t.test('an unavailable form is a 406, and no tenant is needed', async t => {
      t.equal((await node.ask('GET /', ['Accept: image/png'])).status, 406)
      t.equal((await node.ask('GET /', ['Accept: text/plain'])).status, 406)
      t.equal((await node.ask('GET /', ['Ctx-Service: never_seen', 'Ctx-ServicePath: /a'])).status, 200)
    })

    t.test('other paths know neither HEAD nor HTML, and unknown ones stay unknown', async t => {
      t.match(await node.ask('HEAD /v2'), { status: 405, headers: { allow: 'GET' } })
      t.equal((await node.ask('GET /v2', ['Accept: text/html'])).status, 406)
      t.equal((await node.ask('GET /index.html')).status, 400)
    })
  })

const accepts: readonly (readonly [header: string, isHtml: boolean])[] = [
  ['', false],
  ['*/*', false],
  ['text/*', false],
  ['text/html', true],
  ['text/html;q=0', false],
  ['application/json, text/html', false],
  ['application/json;q=0.5, text/html;q=0.6', true],
  ['application/json, text/html;q=0.9, */*;q=0.1', false],
  ['text/html;q=x', false],
]
for (const [header, isHtml] of accepts)
  t.test(`Accept: ${header || '(none)'} asks for ${isHtml ? 'the page' : 'JSON'}`, async t => {
    t.equal(likesHtml(header), isHtml)
  })
