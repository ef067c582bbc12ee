// Receivers for tests of the notifier: real ones on ports of their own, that answer, stall, reset or send nonsense, as
// the test chooses.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttp, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createPlain, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

export interface Received {
  readonly method: string
  readonly path: string
  /** Names and values in turn, as received. */
  readonly headers: readonly string[]
  readonly body: string
}

export interface Receiver {
  readonly url: string
  readonly port: number
  readonly received: Received[]
  /** Connections accepted so far. */
  readonly connections: number
  /** Connections open now. */
  readonly open: number
  close(): Promise<void>
}

type Answer = (request: Received, response: ServerResponse, raw: IncomingMessage) => void

const noContent: Answer = (_request, response) => {
  response.writeHead(204).end()
}

/** An HTTP receiver; by default it answers 204. With `tls`, an HTTPS one. */
export async function httpReceiver(
  t: Test,
  answer: Answer = noContent,
  tls?: Certificate,
  port = 0,
): Promise<Receiver> {
  const received: Received[] = []
  const onRequest: RequestListener = (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url: path = '', rawHeaders: headers } = request
      const one = { method, path, headers, body: Buffer.concat(chunks).toString() }
      received.push(one)
      answer(one, response, request)
    })
  }
  const server = tls ? createHttps({ key: tls.key, cert: tls.cert }, onRequest) : createHttp(onRequest)
  return listen(t, server, tls ? 'https' : 'http', received, port)
}

/** A receiver that gets bare sockets. */
export async function plainReceiver(t: Test, onSocket: (socket: Socket) => void): Promise<Receiver> {
  return listen(t, createPlain(onSocket), 'http', [])
}

async function listen(
  t: Test,
  server: Server,
  protocol: string,
  received: Received[],
  wantedPort = 0,
): Promise<Receiver> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', socket => {
    connections++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(wantedPort, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    if (!server.listening) return
    await new Promise(resolve => server.close(resolve))
  }
  t.teardown(close)
  return {
    url: `${protocol}://127.0.0.1:${port}`,
    port,
    received,
    get connections() {
      return connections
    },
    get open() {
      return sockets.size
    },
    close,
  }
}

export interface Certificate {
  readonly key: Buffer
  readonly cert: Buffer
  readonly certFile: string
  readonly keyFile: string
}

/** A self-signed certificate for the given names (`IP:127.0.0.1`, `DNS:localhost`). */
export function certificateFor(t: Test, names: string): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const subject = ['-days', '2', '-subj', '/CN=test', '-addext', `subjectAltName=${names}`]
  const files = ['-keyout', keyFile, '-out', certFile]
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, ...files], { stdio: 'ignore' })
  return { key: readFileSync(keyFile), cert: readFileSync(certFile), certFile, keyFile }
}

/** Resolves as soon as `isSo` returns true, which is checked every few milliseconds; fails after ten seconds. */
export async function until(isSo: () => boolean, what = 'what was waited for'): Promise<void> {
  for (const untilMs = performance.now() + 10_000; !isSo(); ) {
    if (performance.now() > untilMs) throw new Error(`${what} did not happen`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}
