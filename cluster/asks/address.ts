// Addresses of processes (`unix:/path` or `host:port`, and without gRPC `socket:/path`), and how to listen there.
//
// Operators and other nodes give addresses, and may give any text. A text that is no address must not reach a library:
// it could take the text for a scheme of its own.
//
// A process that was killed leaves the file of its unix socket behind. It is removed only if no process answers there.
// Two processes that start at once on one path could both find none: the starter gives each a path of its own.

import { chmodSync, rmSync, statSync } from 'node:fs'
import { connect, isIPv4, type Server, type Socket } from 'node:net'
import type { Stream, StreamListener } from '../ports.js'

/** Characters of an address: a host name has 253, a path of a socket fewer. */
const addressLengthMax = 300

const form = /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,253})):([0-9]{1,5})$/

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** Host and port of an address; undefined when it has none. Brackets around IPv6 are removed. */
export function hostPort(address: string): HostPort | undefined {
  const found = address.length > addressLengthMax ? null : form.exec(address)
  const host = found?.[1] ?? found?.[2]
  const port = Number(found?.[3])
  return host === undefined || port > 65_535 ? undefined : { host, port }
}

export function isAddress(address: string): boolean {
  const path = socketPath(address)
  return path === undefined ? (hostPort(address)?.port ?? 0) > 0 : isPath(path)
}

export const isBareAddress = (address: string): boolean => isPath(barePath(address) ?? '')

const isPath = (path: string): boolean => path.startsWith('/') && path.length <= addressLengthMax

/** Whether only processes of this machine can connect there. */
export function isLocal(address: string): boolean {
  if (socketPath(address) !== undefined) return true
  const host = hostPort(address)?.host
  if (host === undefined) return false
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/** The reason why a text that is no address cannot be dialed. */
export const notAnAddress = (address: string): string => `not an address: ${JSON.stringify(address.slice(0, 100))}`

export function nowhere(address: string, listener: StreamListener): Stream {
  const closing = setImmediate(() => listener.onClosed(notAnAddress(address)))
  return { send: () => true, close: () => clearImmediate(closing) }
}

/** Bytes of a path that every system takes; some systems cut longer ones off silently. */
const pathBytesMax = 103

/** The path of an address `unix:/path`; undefined when it is of another kind. */
export function socketPath(address: string): string | undefined {
  return address.startsWith('unix:') ? address.slice('unix:'.length) : undefined
}

/** The path of an address `socket:/path` (socket-transport.ts); undefined when it is of another kind. */
export function barePath(address: string): string | undefined {
  return address.startsWith('socket:') ? address.slice('socket:'.length) : undefined
}

/**
 * Makes a path free for listening. Fails when a living process listens there already, or when no socket can be there.
 */
export async function clearSocket(path: string): Promise<void> {
  if (!path.startsWith('/')) throw new Error(`the path of a unix socket begins with a slash: ${path}`)
  if (Buffer.byteLength(path) > pathBytesMax) {
    throw new Error(`the path of a unix socket may have ${pathBytesMax} bytes: ${path}`)
  }
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) return
  if (!stats.isSocket()) throw new Error(`another file than a socket is at ${path}`)
  if (await answers(path)) throw new Error(`another process listens on ${path}`)
  rmSync(path, { force: true })
}

export function protectSocket(path: string): void {
  chmodSync(path, 0o600)
}

/**
 * Whether a process accepts connections there. Any failure but a refused connection or a missing file counts as a
 * process.
 */
function answers(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', error => {
      const { code } = error as NodeJS.ErrnoException
      resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT')
    })
  })
}

/** How long streams and connections may take to end by themselves. */
export const closeMs = 500

/** Listens at a place, as `address` names it. Fails with a sentence for the operator. */
export function begin(listener: Server, address: string, place: object): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once('error', error =>
      reject(new Error(`cannot listen on ${address}: ${error.message}`, { cause: error })),
    )
    listener.listen({ ...place, exclusive: true }, resolve)
  })
}

/** Accepts no more connections, calls `onClosing`, and resolves when all have ended. Slow ones are cut off. */
export function end(listener: Server, sockets: ReadonlySet<Socket>, onClosing = (): void => {}): Promise<void> {
  return new Promise(resolve => {
    const impatient = setTimeout(() => {
      for (const socket of sockets) socket.destroy()
    }, closeMs)
    listener.close(() => {
      clearTimeout(impatient)
      resolve()
    })
    onClosing()
  })
}
