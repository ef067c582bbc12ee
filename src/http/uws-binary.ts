// The binary of uWebSockets.js: how it is loaded, and what of it is used.
//
// Not here: what is done with it (uws-front.ts), which build it is and why (its head).

import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { readFileSync } from 'node:fs'
import { setHeadLimit } from './front.js'

/** The binary is not there, or not for this platform. */
export class UwsMissing extends Error {}

/** What the package exports; its own types lack some of it. */
type OnListen = (socket: us_listen_socket | false) => void
export type App = Omit<TemplatedApp, 'listen'> & {
  listen(port: number, options: number, onListen: OnListen): void
  listen(host: string, port: number, options: number, onListen: OnListen): void
  /** Names this application to `addChildAppDescriptor`. */
  getDescriptor(): number
  /** From now on what this application accepts is served by the other one. */
  addChildAppDescriptor(descriptor: number): void
  removeChildAppDescriptor(descriptor: number): void
}
export interface Uws {
  App(): App
  SSLApp(options: { key_file_name: string; cert_file_name: string; ssl_ciphers: string }): App
  us_listen_socket_close(socket: us_listen_socket): void
  us_socket_local_port(socket: us_listen_socket): number
  LIBUS_LISTEN_EXCLUSIVE_PORT: number
  _cfg(key: string): void
}

/** Loads it; fails with UwsMissing. */
export async function loadUws(): Promise<Uws> {
  setHeadLimit()
  try {
    const uws = (await import('uWebSockets.js')) as unknown as Uws
    uws._cfg('silent') // No `uWebSockets` header.
    return uws
  } catch (cause) {
    const platform = `${process.platform} ${process.arch}, Node.js ${process.version}`
    const [reason] = (cause as Error).message
      .split('\n')
      .filter(line => line !== '')
      .slice(-1)
    throw new UwsMissing(`uWebSockets.js cannot be loaded on this machine (${platform}: ${reason})`, { cause })
  }
}

/** Which build of which package has been loaded, for the log. */
export function loadedUws(): string {
  const binary = `uws_${process.platform}_${process.arch}_${process.versions.modules}`
  const manifest = new URL('../package.json', import.meta.resolve('uWebSockets.js'))
  const { name, version } = JSON.parse(readFileSync(manifest, 'utf8')) as { name: string; version: string }
  return `uWebSockets.js (${name} ${version}, ${binary})`
}
