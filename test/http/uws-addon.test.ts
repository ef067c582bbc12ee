// The correction of the binary of uWebSockets.js: the builds that it knows, its change, and how the copy is loaded.
//
// Not here: header values in the corrected binary (front-contract).

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import t from 'tap'
import { WebSocket } from 'ws'
import { type Builds, correct, knownBuilds, loadBytes } from '../../src/http/uws-addon.js'
import { loadUws } from '../../src/http/uws-binary.js'
import { packedBuilds, packedFrom, unpack } from '../../src/http/uws-packed.js'
import { startBroker, tempDir } from '../support/broker-process.js'
import { certificate } from './front-contract.js'

const folder = new URL('bin/', import.meta.resolve('uWebSockets.js'))
const binaries = readdirSync(folder).filter(name => name.startsWith('uws_linux_'))
const read = (name: string): Buffer => readFileSync(new URL(name, folder))

const jump = Buffer.from([0x80, 0x3c, 0x1a, 0x21, 0x7d, 0x10])
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const buildsWith = (bytes: Uint8Array, at: number): Builds => new Map([[sha256(bytes), [{ at, is: 'jge' }]]])

t.test('every build of the package for Linux is known', async t => {
  t.equal(new Set(knownBuilds.keys()).size, 12)
  for (const name of binaries) t.ok(knownBuilds.has(sha256(read(name))), name)
})

t.test('on x64 two jumps become unsigned, two sizes become that of a response, and nothing else changes', async t => {
  const x64 = binaries.filter(name => name.includes('_x64_'))
  t.ok(x64.length > 0)
  for (const name of x64) {
    const original = read(name)
    const untouched = Buffer.from(original)
    const correction = correct(original)
    if (correction.kind !== 'corrected') throw new Error(`${name}: ${correction.kind}`)
    t.ok(original.equals(untouched), 'the bytes given are left as they are')
    const { bytes } = correction
    const changed: number[] = []
    for (let at = 0; at < bytes.length; at++) if (bytes[at] !== original[at]) changed.push(at)
    const [tls = 0, end = 0, beginning = 0, plain = 0] = changed
    t.equal(changed.length, 4, name)
    // cmp byte [rdx+rbx],33; jge    cmp byte [rdx-1],32; jg
    t.equal(original.toString('hex', end - 4, end + 1), '803c1a217d', name)
    t.equal(original.toString('hex', beginning - 4, beginning + 1), '807aff207f', name)
    t.strictSame([bytes[end], bytes[beginning]], [0x73, 0x77], name)
    // mov ecx,136; call
    for (const size of [tls, plain]) {
      t.equal(original.toString('hex', size - 1, size + 5), 'b988000000e8', name)
      t.equal(bytes[size], 232, name)
    }
  }
})

t.test('on arm and arm64 two sizes become that of a response, and nothing else changes', async t => {
  for (const name of binaries.filter(name => name.includes('_arm'))) {
    const original = read(name)
    const correction = correct(original)
    if (correction.kind !== 'corrected') throw new Error(`${name}: ${correction.kind}`)
    const bytes = Buffer.from(correction.bytes)
    // mov w3,136 and mov w3,232    mov r3,100 and mov r3,168
    const [from, to] = name.includes('_arm64_') ? ['03118052', '031d8052'] : ['6430a0e3', 'a830a0e3']
    const changed: number[] = []
    for (let at = 0; at < bytes.length; at++) if (bytes[at] !== original[at]) changed.push(at - (at % 4))
    t.equal(changed.length, 2, name)
    for (const at of changed) {
      t.equal(original.toString('hex', at, at + 4), from, name)
      t.equal(bytes.toString('hex', at, at + 4), to, name)
    }
  }
})

t.test('a packed build is one of the package, and on Linux one that has a correction', async t => {
  for (const [name, hash] of packedBuilds) {
    t.equal(sha256(read(`${name}.node`)), hash, name)
    if (name.startsWith('uws_linux_')) t.ok(knownBuilds.has(hash), name)
  }
  const { name, version } = JSON.parse(readFileSync(new URL('../../package.json', folder), 'utf8'))
  t.equal(packedFrom, `${name} ${version}`)
})

t.test('a packed build is unpacked byte by byte, and nothing else is', async t => {
  const [linux = '', other = ''] = packedBuilds.keys()
  const packed = pathToFileURL(`${tempDir(t)}/`)
  const pack = (name: string, bytes: Uint8Array) => {
    const params = { [constants.BROTLI_PARAM_QUALITY]: 1 }
    writeFileSync(new URL(`${name}.node.br`, packed), brotliCompressSync(bytes, { params }))
  }
  pack(linux, read(`${linux}.node`))
  t.ok(unpack(linux, packed).equals(read(`${linux}.node`)))
  pack(other, jump)
  t.throws(() => unpack(other, packed), /does not hold the build/)
  pack(other, Buffer.alloc(17 * 1024 * 1024))
  t.throws(() => unpack(other, packed), { code: 'ERR_BUFFER_TOO_LARGE' })
  t.throws(() => unpack('uws_linux_x64_137', packed), /there is no build for it/)
  t.throws(() => unpack('../../etc/passwd', packed), /there is no build for it/)
})

t.test('an unknown build is not corrected, and its hash is reported', async t => {
  t.match(correct(jump), { kind: 'impossible', reason: new RegExp(sha256(jump)) })
})

t.test('a build with another byte at the place of a jump is not corrected', async t => {
  t.match(correct(jump, buildsWith(jump, 4)), { kind: 'corrected', bytes: { 4: 0x73 } })
  t.match(correct(jump, buildsWith(jump, 3)), { kind: 'impossible', reason: 'the byte at 3 is 33, not 125' })
  t.match(correct(jump, buildsWith(jump, 6)), { kind: 'impossible', reason: 'the byte at 6 is undefined, not 125' })
})

t.test('the copy lies in a folder and a file of its owner alone, and is gone after loading', async t => {
  const parent = tempDir(t)
  const seen = loadBytes(jump, parent, file => {
    t.equal(statSync(dirname(file)).mode & 0o777, 0o700)
    t.equal(statSync(file).mode & 0o777, 0o600)
    t.ok(readFileSync(file).equals(jump))
    return file
  })
  t.notOk(existsSync(String(seen)))
  t.strictSame(readdirSync(parent), [])
})

t.test('a copy that cannot be loaded is gone as well', async t => {
  const parent = tempDir(t)
  t.throws(() => loadBytes(jump, parent), /uws\.node/)
  t.strictSame(readdirSync(parent), [])
})

const foreign = { headers: { 'Ctx-Service': 'seca\x80' } }

for (const workers of ['1', '2'])
  t.test(`the processes of a broker load the corrected copy, workers: ${workers}`, async t => {
    const { baseUrl } = await startBroker(t, { args: ['-workers', workers] })
    const ask = async () => (await fetch(`${baseUrl}/v2/entities`, foreign)).status
    t.strictSame(await Promise.all(Array.from({ length: 12 }, ask)), Array(12).fill(400))
  })

t.test(
  'where the copy cannot be written the broker warns once, and serves',
  { skip: process.arch !== 'x64' },
  async t => {
    const broker = await startBroker(t, { env: { TMPDIR: '/nowhere/at/all' }, args: ['-logLevel', 'INFO'] })
    t.equal((await fetch(`${broker.baseUrl}/v2/entities`, foreign)).status, 200, 'as the warning says')
    const lines = (broker.stdout + broker.stderr).split('\n').filter(line => line.includes('uWebSockets.js'))
    t.equal(lines.filter(line => /cuts bytes outside ASCII off .*ENOENT.*\/nowhere\/at\/all/.test(line)).length, 1)
    t.notOk(lines.some(line => line.includes('corrected)')))
  },
)

/** In the state of a response, this bit asks to close the connection. */
const closeBit = 0x10

/** Takes blocks of about the size that the binary frees when it shrinks a response to a WebSocket, and fills them. */
const useFreedMemory = (): Buffer[] =>
  Array.from({ length: 300 }, (_, at) => Buffer.allocUnsafeSlow(64 + 8 * (at % 4)).fill(closeBit))

for (const isTls of [false, true])
  t.test(`memory that is used while a WebSocket opens does not close it, ${isTls ? 'with TLS' : 'plain'}`, async t => {
    const { uws } = await loadUws()
    const { keyFile, certFile } = certificate(t)
    const app = isTls
      ? uws.SSLApp({ key_file_name: keyFile, cert_file_name: certFile, ssl_ciphers: 'DEFAULT' })
      : uws.App()
    t.teardown(() => app.close())
    const used: Buffer[] = []
    app.ws('/*', {
      upgrade: (response, request, context) => {
        const key = request.getHeader('sec-websocket-key')
        response.onAborted(() => {})
        setImmediate(() =>
          response.cork(() => {
            response.upgrade({}, key, '', '', context)
            used.push(...useFreedMemory())
          }),
        )
      },
      message: (socket, message) => {
        socket.send(message)
      },
    })
    const port = await new Promise<number>(resolve =>
      app.listen('127.0.0.1', 0, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, socket => {
        if (socket) resolve(uws.us_socket_local_port(socket))
      }),
    )
    for (let at = 0; at < 20; at++) {
      const client = new WebSocket(`${isTls ? 'wss' : 'ws'}://127.0.0.1:${port}/`, { rejectUnauthorized: false })
      await once(client, 'open')
      client.send('hello')
      const [answer] = await Promise.race([once(client, 'message'), once(client, 'close')])
      t.equal(String(answer), 'hello')
      client.terminate()
    }
  })
