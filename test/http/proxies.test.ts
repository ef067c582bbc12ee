// The snippets of docs/operations/http-servers.md work as documented: nginx and HAProxy in front of a broker.

import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { freePort, startBroker, tempDir } from '../support/broker-process.js'
import { root } from '../support/project.js'

const document = readFileSync(join(root, 'docs/operations/http-servers.md'), 'utf8')

/** The code blocks of a language, in their order, with other ports in place of those of the document. */
function snippets(language: string, ports: ReadonlyMap<number, number>): string[] {
  const blocks = [...document.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g'))].map(([, text]) => text!)
  return blocks.map(text => text.replace(/\b(1026|1027|808\d)\b/g, port => String(ports.get(Number(port)) ?? port)))
}

const lacks = (program: string): string | false =>
  spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0 && `${program} is not installed`

/** Starts a program that stays in the foreground, and ends it with the test. */
function start(t: Test, program: string, args: readonly string[]): void {
  const child = spawn(program, args, { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
}

/** The first answer that is not the proxy's refusal for a broker that it has not found yet. */
async function answered(url: string): Promise<Response> {
  for (const untilMs = performance.now() + 10_000; ; await pause(20)) {
    const response = await fetch(url).catch(() => undefined)
    if (response && response.status < 500) return response
    if (performance.now() > untilMs) throw new Error(`no answer at ${url}: ${response?.status}`)
  }
}

async function brokerWithPorts(t: Test) {
  const [port, http1Port, first, second, third] = await Promise.all(Array.from({ length: 5 }, freePort))
  await startBroker(t, { port: port!, args: ['-http1Port', String(http1Port)] })
  return new Map([1026, 1027, 8080, 8081, 8082].map((of, at) => [of, [port, http1Port, first, second, third][at]!]))
}

/** Creates an entity and reads it back through a proxy. */
async function use(t: Test, url: string, id: string): Promise<void> {
  t.equal((await answered(`${url}/version`)).status, 200)
  const created = await fetch(`${url}/v2/entities`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ id, type: 'Room', note: { value: 'x'.repeat(3000) } }),
  })
  t.equal(created.status, 201)
  const read = await fetch(`${url}/v2/entities/${id}?attrs=${'longName,'.repeat(300)}note&options=keyValues`)
  t.match(await read.json(), { id, note: /^x{3000}$/ })
}

/** A tenant or a path with a byte outside ASCII does not reach the broker. */
async function refuse(t: Test, url: string): Promise<void> {
  for (const name of ['Ctx-Service', 'Ctx-ServicePath', 'Fiware-Service', 'Fiware-ServicePath'])
    for (const value of ['\xe9', 'seca\x80', '\xffseca', '/a\x80']) {
      const { status } = await fetch(`${url}/version`, { headers: { [name]: value } })
      t.equal(status, 400, `${name}: ${encodeURIComponent(value)}`)
    }
  for (const headers of [{ 'Ctx-Service': 'seca', 'Ctx-ServicePath': '/a,/b' }, { 'Ctx-ServicePath': '/a, /b' }])
    t.equal((await fetch(`${url}/v2/entities`, { headers })).status, 200)
}

t.test('nginx, with kept connections and as it is by default', { skip: lacks('nginx') }, async t => {
  const ports = await brokerWithPorts(t)
  const folder = tempDir(t)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${folder}/${name};`)
  const http = [`access_log off;`, ...paths, ...snippets('nginx', ports)].join('\n')
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, `daemon off;\npid ${folder}/pid;\nerror_log ${folder}/errors;\nevents {}\nhttp {\n${http}\n}\n`)
  start(t, 'nginx', ['-p', folder, '-c', file])
  await use(t, `http://127.0.0.1:${ports.get(8080)}`, 'kept')
  await use(t, `http://127.0.0.1:${ports.get(8081)}`, 'byDefault')
  await refuse(t, `http://127.0.0.1:${ports.get(8080)}`)
})

t.test('HAProxy, with a health check', { skip: lacks('haproxy') }, async t => {
  const ports = await brokerWithPorts(t)
  const file = join(tempDir(t), 'haproxy.cfg')
  writeFileSync(file, snippets('haproxy', ports).join('\n'))
  start(t, 'haproxy', ['-db', '-f', file])
  await use(t, `http://127.0.0.1:${ports.get(8082)}`, 'checked')
  await refuse(t, `http://127.0.0.1:${ports.get(8082)}`)
})
