// The promises of `deploy/`: its files name options that exist, its certificates let nodes in, and the image's health
// check distinguishes a broker that lives from one that does not.

import { execFile, execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { options } from '../../src/config/options.js'
import { packedBuilds } from '../../src/http/uws-packed.js'
import { freePort, startBroker, tempDir } from '../support/broker-process.js'
import { root } from '../support/project.js'

const folder = join(root, 'deploy')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file =>
  statSync(join(folder, file)).isFile(),
)
const textOf = (file: string): string => readFileSync(join(folder, file), 'utf8')

/** Exit status of the image's health check in a container with this environment. */
const healthCheck = (env: Readonly<Record<string, string>>): Promise<number> =>
  new Promise(resolve => {
    const check = execFile(process.execPath, [join(folder, 'health-check.mjs')], { env })
    check.on('exit', code => resolve(code ?? -1))
  })

t.test('every variable in deploy/ is that of an option', t => {
  const known = new Set(Object.values(options).map(({ env }) => `CTX_${env}`))
  let count = 0
  for (const file of files)
    for (const [name] of textOf(file).matchAll(/\bCTX_[A-Z0-9_]+\b/g)) {
      count++
      t.ok(known.has(name), `${file}: ${name}`)
    }
  t.ok(count > 30)
  t.end()
})

t.test('the image, the compositions and the unit serve tenants', t => {
  for (const file of [
    'Dockerfile',
    'compose.yaml',
    'environment.example',
    'kubernetes/orrery.yaml',
    'kubernetes/single-node.yaml',
  ])
    t.match(textOf(file), /CTX_MULTI_SERVICE.{0,12}TRUE/, file)
  t.notMatch(textOf('kubernetes/orrery.yaml') + textOf('compose.yaml'), /CTX_CLUSTER_INSECURE/)
  t.end()
})

t.test('the image has one Node.js, and a build of the fast server is packed for it on both platforms', t => {
  const majors = new Set([...textOf('Dockerfile').matchAll(/^FROM node:(\d+)-/gm)].map(([, major]) => major))
  t.strictSame([...majors], ['22'])
  for (const platform of ['x64', 'arm64']) t.ok(packedBuilds.has(`uws_linux_${platform}_127`), platform)
  t.end()
})

t.test('all files that the build of the image copies exist, and go to the builder', t => {
  const allowed = textOf('Dockerfile.dockerignore')
    .split('\n')
    .flatMap(line => (line.startsWith('!') ? [line.slice(1)] : []))
  const copies = [...textOf('Dockerfile').matchAll(/^COPY (?!--from)(.+)$/gm)]
  const copied = copies.flatMap(([, words = '']) => words.split(' ').slice(0, -1))
  t.ok(copied.length > 5)
  for (const path of copied) t.ok(existsSync(join(root, path)) && allowed.includes(path), path)
  t.end()
})

t.test('the unit starts the program where npm installs it', t => {
  const { name, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly bin: { readonly orrery: string }
  }
  const command = `/usr/bin/node /opt/orrery/node_modules/${name}/${bin.orrery}`
  t.ok(textOf('orrery.service').includes(`\nExecStart=${command}\n`), command)
  t.end()
})

t.test('`npm start` passes signals on: no shell stays between npm and the program', t => {
  const { bin, scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly bin: { readonly orrery: string }
    readonly scripts: { readonly start: string }
  }
  t.equal(scripts.start, `exec node ${bin.orrery}`)
  t.end()
})

t.test('certificates for etcd and for the nodes come from two authorities, and only the owner reads the keys', t => {
  const made = join(tempDir(t), 'certificates')
  execFileSync(join(folder, 'certificates.sh'), [made, 'etcd1', '10.0.0.1'])
  const certificate = (name: string): X509Certificate => new X509Certificate(readFileSync(join(made, `${name}.pem`)))
  const [etcds, nodes] = [certificate('ca'), certificate('cluster-ca')]
  for (const name of ['etcd', 'node']) t.ok(certificate(name).verify(etcds.publicKey), name)
  t.ok(certificate('cluster').verify(nodes.publicKey))
  t.notOk(certificate('cluster').verify(etcds.publicKey))
  t.ok(certificate('etcd').checkHost('etcd1'))
  t.ok(certificate('etcd').checkIP('10.0.0.1'))
  for (const name of ['ca', 'etcd', 'node', 'cluster-ca', 'cluster'])
    t.equal(statSync(join(made, `${name}.key`)).mode & 0o077, 0, name)
  const before = certificate('cluster').fingerprint256
  execFileSync(join(folder, 'certificates.sh'), [made, 'etcd1'])
  t.equal(certificate('cluster').fingerprint256, before, 'what is there stays')
  t.end()
})

t.test('the health check finds the broker over HTTP, over TLS and at the port for liveness', async t => {
  const made = join(tempDir(t), 'certificates')
  execFileSync(join(folder, 'certificates.sh'), [made, 'etcd1'])
  const pem = (name: string): string => join(made, name)
  const livePort = await freePort()
  const plain = await startBroker(t)
  const tls = await startBroker(t, {
    env: { CTX_HTTPS: 'TRUE', CTX_HTTPS_KEYFILE: pem('etcd.key'), CTX_HTTPS_CERTFILE: pem('etcd.pem') },
    args: ['-livePort', String(livePort)],
  })
  t.equal(await healthCheck({ CTX_PORT: String(plain.port) }), 0)
  t.equal(await healthCheck({ CTX_PORT: String(tls.port), CTX_HTTPS: 'TRUE' }), 0)
  t.equal(await healthCheck({ CTX_PORT: String(tls.port), CTX_HTTPS: 'true', CTX_LIVE_PORT: String(livePort) }), 0)
  t.equal(await healthCheck({ CTX_PORT: String(tls.port) }), 1, 'plain HTTP to a port with TLS')
  t.equal(await healthCheck({ CTX_PORT: String(await freePort()) }), 1, 'nothing listens there')
})
