// Unix sockets as files: who may listen at a path, and that nobody else may come in.
//
// A process that was killed leaves its file behind, and nobody can listen there until it is removed. It is removed only if
// nobody answers. Two processes that start at one moment on one path could both find nobody: whoever starts them gives each its own.

import { chmodSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'

/** Bytes of a path that every system takes; longer ones are cut off silently by some. */
const pathBytesMax = 103

/** The path of an address `unix:/path`; undefined when it is of another kind. */
export function socketPath(address: string): string | undefined {
  return address.startsWith('unix:') ? address.slice('unix:'.length) : undefined
}

/** The path of an address `socket:/path`, where streams go without gRPC (socket-transport.ts); undefined when it is of another kind. */
export function barePath(address: string): string | undefined {
  return address.startsWith('socket:') ? address.slice('socket:'.length) : undefined
}

/** Makes sure that one can listen at a path. Fails when a living process does already, or when the path is none for a socket. */
export async function clearSocket(path: string): Promise<void> {
  if (!path.startsWith('/')) throw new Error(`the path of a unix socket begins with a slash: ${path}`)
  if (Buffer.byteLength(path) > pathBytesMax) {
    throw new Error(`the path of a unix socket may have ${pathBytesMax} bytes: ${path}`)
  }
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) return
  if (!stats.isSocket()) throw new Error(`there is something else than a socket at ${path}`)
  if (await answers(path)) throw new Error(`another process listens on ${path}`)
  rmSync(path, { force: true })
}

/** Lets only this user connect. */
export function protectSocket(path: string): void {
  chmodSync(path, 0o600)
}

/** Whether somebody accepts connections. What is not a plain refusal counts as somebody. */
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
