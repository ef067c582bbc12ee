// The files of the console over both servers: their headers, their forms, and that nothing else is served.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import { readConsole } from '../../src/process/compose/console.js'
import { tempDir } from '../support/broker-process.js'
import { builtConsole, consoleFolder } from '../support/built-console.js'
import { errorsOnly, httpServers, startLocalNode } from '../support/local-node.js'
import { writeTileArchive } from '../support/tile-archive.js'
import { Wire } from './wire.js'

const files = builtConsole()
const script = files.find(path => path.endsWith('/main.js')) as string

for (const server of httpServers)
  t.test(`over ${server}`, async t => {
    const node = await startLocalNode(t, { server })

    t.test('the page names files that are all there, and needs nothing else', async t => {
      const { status, headers, text } = await node.ask('GET /console/', ['Accept: text/html'])
      t.match(
        { status, headers },
        { status: 200, headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' } },
      )
      t.notMatch(text, /<script>|<style|\bstyle=|\bon[a-z]+=|importmap|https?:/i)
      t.ok(files.length > 20, `${files.length} files`)
      for (const path of files) t.equal((await node.ask(`GET /console/${path}`)).status, 200, path)
    })

    t.test('the policy lets nothing come from elsewhere, and no frame show it', async t => {
      for (const path of ['', script]) {
        const { headers } = await node.ask(`GET /console/${path}`)
        t.match(headers, { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
        const policy = headers['content-security-policy'] ?? ''
        t.match(policy, /^default-src 'self'; script-src 'self'; style-src 'self';.* frame-ancestors 'none'$/)
        t.notMatch(policy, /unsafe|https?:|\*/)
      }
    })

    t.test('a file of a build is kept for ever, the page is asked for each time', async t => {
      const file = await node.ask(`GET /console/${script}`)
      t.equal(file.headers['cache-control'], 'public, max-age=31536000, immutable')
      t.equal(file.headers['content-type'], 'text/javascript; charset=utf-8')
      const { headers } = await node.ask('GET /console/')
      for (const tag of [headers.etag, `W/${headers.etag}`, `"x", ${headers.etag}`, '*']) {
        const again = await node.ask('GET /console/', [`If-None-Match: ${tag}`])
        t.match(again, { status: 304, text: '', headers: { etag: headers.etag } }, tag ?? '')
      }
      t.equal((await node.ask('GET /console/', ['If-None-Match: "x"'])).status, 200)
    })

    t.test('a client gets the form that it accepts', async t => {
      const plain = readFileSync(join(consoleFolder, script), 'utf8')
      const forms = [
        ['br, gzip', 'br', brotliDecompressSync],
        ['gzip', 'gzip', gunzipSync],
        ['identity', undefined, (bytes: Buffer) => bytes],
      ] as const
      for (const [accepted, coding, decode] of forms) {
        const wire = await Wire.to(node.port)
        await wire.request(`GET /console/${script}`, [`Accept-Encoding: ${accepted}`], Buffer.alloc(0))
        const { headers, body } = await wire.answer()
        wire.leave()
        t.match(headers, { vary: 'Accept-Encoding' })
        t.equal(headers['content-encoding'], coding)
        t.equal(decode(Buffer.from(body, 'latin1')).toString(), plain, accepted)
      }
    })

    t.test('HEAD is GET without the body', async t => {
      const get = await node.ask(`GET /console/${script}`)
      const head = await node.ask(`HEAD /console/${script}`)
      t.match(head, {
        status: 200,
        text: '',
        headers: { etag: get.headers.etag, 'content-length': get.headers['content-length'] },
      })
    })

    t.test('/console leads to /console/, and other methods are refused', async t => {
      t.match(await node.ask('GET /console'), { status: 308, headers: { location: 'console/' }, text: '' })
      t.match(await node.ask('DELETE /console/'), { status: 405, headers: { allow: 'GET, HEAD' } })
    })

    t.test('only names of the build are served, whatever a path does', async t => {
      const paths = [
        'x/y.js',
        '../package.json',
        '%2e%2e/package.json',
        `${files[0]}/../../../src/main.js`,
        'x/../../src/main.js',
        '..%2f..%2fpackage.json',
        'a/b/c.js',
        'x/__proto__',
        'index.html.br',
      ]
      for (const path of paths) {
        const { status, text } = await node.ask(`GET /console/${path}`)
        t.ok(status === 404 || status === 400, `${status} ${path}`)
        t.notMatch(text, 'import')
      }
      t.match(await node.ask('GET /console/x/y.js'), {
        status: 404,
        json: { error: 'NotFound', description: 'there is no such file of the console' },
      })
    })
  })

t.test('with the URL of a tile server the policy allows pictures of its origin, and nothing else changes', async t => {
  const url = 'https://tiles.example:8443/{z}/{x}/{y}.png?key=a'
  const plain = await startLocalNode(t)
  const node = await startLocalNode(t, { consoleTiles: { kind: 'server', url, origin: 'https://tiles.example:8443' } })
  const [usual = '', policy = ''] = await Promise.all(
    [plain, node].map(async one => (await one.ask('GET /console/')).headers['content-security-policy']),
  )
  t.equal(policy, usual.replace("img-src 'self' data:", "img-src 'self' data: https://tiles.example:8443"))
  t.match(await node.ask('GET /console/settings/map.json'), {
    status: 200,
    json: { tiles: 'server', url },
    headers: { 'cache-control': 'no-cache' },
  })
  t.match(await plain.ask('GET /console/settings/map.json'), { status: 200, json: { tiles: 'none' } })
})

t.test('an archive of tiles is served by parts, under a name of its content', async t => {
  const file = writeTileArchive(tempDir(t))
  const bytes = readFileSync(file)
  for (const server of httpServers) {
    const node = await startLocalNode(t, { server, consoleTiles: { kind: 'archive', file } })
    const { json } = await node.ask('GET /console/settings/map.json')
    const { file: path } = json as { readonly file: string }
    t.match(path, /^tiles\/[0-9a-f]{16}\.pmtiles$/)
    const wire = await Wire.to(node.port)
    await wire.request(`GET /console/${path}`, ['Range: bytes=8-16383', 'Accept-Encoding: br'], Buffer.alloc(0))
    const { status, headers, body } = await wire.answer()
    wire.leave()
    t.match(headers, {
      'content-range': `bytes 8-${bytes.length - 1}/${bytes.length}`,
      'content-type': 'application/octet-stream',
      'cache-control': 'public, max-age=31536000, immutable',
    })
    t.equal(status, 206)
    t.same(Buffer.from(body, 'latin1'), bytes.subarray(8), 'to the end of the file, uncompressed')
    const wrong = ['bytes=0-', 'bytes=-5', 'bytes=5-4', `bytes=${bytes.length}-${bytes.length}`, 'bytes=0-1,3-4', 'x']
    for (const range of wrong)
      t.match(
        await node.ask(`GET /console/${path}`, [`Range: ${range}`]),
        { status: 400, json: { error: 'BadRequest' } },
        range,
      )
    t.match(await node.ask(`GET /console/${path}`), { status: 400 }, 'the whole file')
    t.match(await node.ask('GET /console/tiles/map.pmtiles', ['Range: bytes=0-1']), { status: 404 }, 'another name')
    t.match(await node.ask(`HEAD /console/${path}`), { status: 405, headers: { allow: 'GET' } })
  }
})

t.test('with -noConsole there are no such paths', async t => {
  const node = await startLocalNode(t, { hasConsole: false })
  for (const path of ['/console', '/console/', `/console/${script}`])
    t.match(await node.ask(`GET ${path}`), { status: 400, json: { error: 'BadRequest' } }, path)
})

t.test('a console that was not built is answered 404 with the reason, and the log has it once', async t => {
  const lines: string[] = []
  const { logger } = errorsOnly()
  t.equal(readConsole({ ...logger, info: line => lines.push(line) }, tempDir(t)), undefined)
  t.strictSame(lines, ['The console was not built (npm run build): /console/ is answered 404'])
})

t.test('a folder with too much in it is not read to its end', async t => {
  const folder = tempDir(t)
  mkdirSync(join(folder, 'build'))
  writeFileSync(join(folder, 'index.html'), '')
  writeFileSync(join(folder, 'build/large.js'), Buffer.alloc(17 * 1024 * 1024))
  const lines: string[] = []
  const { logger } = errorsOnly()
  t.equal(readConsole({ ...logger, warn: line => lines.push(line) }, folder), undefined)
  t.match(lines, [/more than 1000 files or 16777216 bytes/])
})
