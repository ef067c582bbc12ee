// GET /v2/access: the principal of a request and the actions that its rules allow, on both servers; and requests of
// each action, which have to agree with it.

import t from 'tap'
import { accessActions } from '../../src/domain/access/access-rule.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { httpServers, LocalNode, startLocalNode } from '../support/local-node.js'

const rules = {
  root: everything,
  ofTenant: [{ actions: ['*'], tenants: ['city'] }],
  north: [{ actions: ['read', 'create', 'subscribe'], tenants: ['city'], paths: ['/north/#'] }],
  lamps: [{ actions: ['read', 'update', 'stream'], tenants: ['city'], types: ['Lamp'] }],
  nobody: [],
}

interface OwnAccess {
  readonly principal?: { readonly name: string; readonly proof: string }
  readonly tenant: string
  readonly servicePath: string
  readonly allowed: readonly string[]
  readonly narrowed: readonly string[]
}

const without = (...left: readonly string[]): string[] => accessActions.filter(action => !left.includes(action))

for (const server of httpServers) {
  t.test(`a client is told what its rules allow, over ${server}`, async t => {
    const scene = new AccessScene(t, rules)
    const node = await startLocalNode(t, { server, accessFile: scene.path })
    const ask = async (name: string, path: string | undefined, tenant = 'city'): Promise<OwnAccess> => {
      const headers = [...scene.as(name), `Ctx-Service: ${tenant}`, ...(path ? [`Ctx-ServicePath: ${path}`] : [])]
      const { status, json } = await node.ask('GET /v2/access', headers)
      t.equal(status, 200)
      return json as OwnAccess
    }
    const cases: readonly [name: string, path: string | undefined, allowed: string[], narrowed: string[]][] = [
      ['root', '/a', [...accessActions], []],
      ['ofTenant', undefined, without('metrics'), ['admin']],
      ['north', undefined, ['read', 'subscribe'], ['read', 'subscribe']],
      ['north', '/north/#', ['read', 'create', 'subscribe'], []],
      ['north', '/north,/south', ['read', 'create', 'subscribe'], ['read']],
      ['north', '/south,/north', ['read'], ['read']],
      ['north', '/south', [], []],
      ['lamps', '/any', ['read', 'update', 'stream'], ['read', 'update', 'stream']],
      ['nobody', undefined, [], []],
    ]
    for (const [name, path, allowed, narrowed] of cases) {
      const principal = { name, proof: 'key' }
      const wanted = { principal, tenant: 'city', servicePath: path ?? '/#', allowed, narrowed }
      t.strictSame(await ask(name, path), wanted, `${name} in ${path}`)
    }
    t.strictSame((await ask('ofTenant', undefined, 'other')).allowed, [])
    t.strictSame((await node.ask('GET /v2/access')).status, 401, 'a stranger learns nothing')
    t.equal((await node.ask('GET /v2/access', [...scene.as('root'), 'Ctx-Service: a/b'])).status, 400)
    t.equal((await node.json('POST /v2/access', {}, scene.as('root'))).status, 405)
  })

  t.test(`requests agree with the answer, over ${server}`, async t => {
    const scene = new AccessScene(t, { ...rules, anonymous: rules.north })
    const node = await startLocalNode(t, { server, accessFile: scene.path })
    const requests: readonly [action: string, line: string, body?: unknown][] = [
      ['read', 'GET /v2/entities'],
      ['create', 'POST /v2/entities', {}],
      ['update', 'PATCH /v2/entities/none/attrs', {}],
      ['delete', 'DELETE /v2/entities/none'],
      ['subscribe', 'GET /v2/subscriptions'],
      ['register', 'GET /v2/registrations'],
      ['notify', 'POST /v2/op/notify', {}],
      ['metrics', 'GET /metrics'],
      ['admin', 'GET /admin/log'],
    ]
    for (const name of [...Object.keys(rules), 'anonymous'])
      for (const path of ['/', '/north', '/north/a', '/south']) {
        const headers = [...scene.as(name), 'Ctx-Service: city', `Ctx-ServicePath: ${path}`]
        const { principal, allowed, narrowed } = (await node.ask('GET /v2/access', headers)).json as OwnAccess
        t.strictSame(principal, { name, proof: name === 'anonymous' ? 'none' : 'key' })
        const offered = allowed.filter(action => action !== 'admin' || !narrowed.includes(action))
        for (const [action, line, body] of requests) {
          const { status } = await (body ? node.json(line, body, headers) : node.ask(line, headers))
          t.equal(status !== 403, offered.includes(action), `${line} of ${name} in ${path}: ${status}`)
        }
      }
  })

  t.test(`without access control everything is allowed, over ${server}`, async t => {
    const node = await startLocalNode(t, { server, admin: { port: 0, host: '127.0.0.1' } })
    const { status, json } = await node.ask('GET /v2/access', ['Ctx-Service: city', 'Ctx-ServicePath: /a/#'])
    const wanted = { tenant: 'city', servicePath: '/a/#', allowed: [...accessActions], narrowed: ['admin'] }
    t.strictSame([status, json], [200, wanted], 'at the port of clients without the paths for operators')
    t.equal((await new LocalNode(node.running!.adminPort!).ask('GET /v2/access')).status, 404)
    const only = await startLocalNode(t, { server })
    t.strictSame(((await only.ask('GET /v2/access')).json as OwnAccess).narrowed, [])
  })
}
