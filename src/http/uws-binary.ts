// Loads the binary of uWebSockets.js, and declares the parts that are used.
//
// The process loads a corrected copy of the binary where a correction of this build is known. An installed program
// unpacks the binary inside it. A clone has the package of uWebSockets.js: if the copy fails there, the process loads
// the package's own binary, and the log warns of the consequences.
//
// Not here: its use (uws-front.ts), the choice of the build (its head), the correction (uws-addon.ts), the binaries
// inside an installed program (uws-packed.ts).

import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { existsSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { setHeadLimit } from './front.js'
import { correct, loadBytes } from './uws-addon.js'
import { isPacked, noBuild, packedFrom, unpack } from './uws-packed.js'

/** The binary is missing, or there is none for this platform. */
export class UwsMissing extends Error {}

/** The exports of the package; its own types lack some of them. */
type OnListen = (socket: us_listen_socket | false) => void
export type App = Omit<TemplatedApp, 'listen'> & {
  listen(port: number, options: number, onListen: OnListen): void
  listen(host: string, port: number, options: number, onListen: OnListen): void
  /** A number that identifies this application in `addChildAppDescriptor`. */
  getDescriptor(): number
  /** From now on the other application serves the connections that this one accepts. */
  addChildAppDescriptor(descriptor: number): void
  removeChildAppDescriptor(descriptor: number): void
}
export interface Uws {
  App(): App
  SSLApp(options: { key_file_name: string; cert_file_name: string; ssl_ciphers: string }): App
  us_listen_socket_close(socket: us_listen_socket): void
  us_socket_local_port(socket: us_listen_socket): number
  LIBUS_LISTEN_EXCLUSIVE_PORT: number
  SHARED_COMPRESSOR: number
  _cfg(key: string): void
}

/** The package, loaded. */
export interface LoadedUws {
  readonly uws: Uws
  /** The build and its package, for the log. */
  readonly build: string
  /** Why the package's own binary was loaded and not a corrected copy; undefined: the copy was. */
  readonly uncorrected: string | undefined
}

let loading: Promise<LoadedUws> | undefined

/** Loads the binary, once. Fails with UwsMissing. */
export function loadUws(): Promise<LoadedUws> {
  loading ??= load()
  return loading
}

async function load(): Promise<LoadedUws> {
  setHeadLimit()
  try {
    const binary = `uws_${process.platform}_${process.arch}_${process.versions.modules}`
    const { addon, from, uncorrected } = isPacked() ? loadPacked(binary) : await loadFromPackage(binary)
    const uws = addon as Uws
    uws._cfg('silent') // No `uWebSockets` header.
    return {
      uws,
      build: `uWebSockets.js (${from}, ${binary}${uncorrected === undefined ? ', corrected' : ''})`,
      uncorrected,
    }
  } catch (cause) {
    const platform = `${process.platform} ${process.arch}, Node.js ${process.version}`
    throw new UwsMissing(`uWebSockets.js cannot be loaded on this machine (${platform}: ${lastLine(cause)})`, { cause })
  }
}

/** The loaded addon, and its package. */
interface Loaded {
  readonly addon: unknown
  readonly from: string
  readonly uncorrected: string | undefined
}

function loadPacked(binary: string): Loaded {
  const bytes = unpack(binary)
  const correction = correct(bytes)
  if (correction.kind === 'corrected')
    return { addon: loadBytes(correction.bytes, tmpdir()), from: packedFrom, uncorrected: undefined }
  return { addon: loadBytes(bytes, tmpdir()), from: packedFrom, uncorrected: correction.reason }
}

async function loadFromPackage(binary: string): Promise<Loaded> {
  const entry = import.meta.resolve('uWebSockets.js')
  const file = new URL(`bin/${binary}.node`, entry)
  if (!existsSync(file)) throw new Error(noBuild)
  const { name, version } = JSON.parse(readFileSync(new URL('../package.json', entry), 'utf8')) as Manifest
  const copy = loadCorrected(file)
  const addon = copy.addon ?? (await import('uWebSockets.js'))
  return { addon, from: `${name} ${version}`, uncorrected: copy.reason }
}

/** Loads the corrected copy, or returns the reason why that failed. */
function loadCorrected(binary: URL): { addon?: unknown; reason?: string } {
  try {
    const correction = correct(readFileSync(binary))
    if (correction.kind === 'impossible') return { reason: correction.reason }
    return { addon: loadBytes(correction.bytes, tmpdir()) }
  } catch (error) {
    return { reason: lastLine(error) }
  }
}

const lastLine = (error: unknown): string => (error as Error).message.trimEnd().split('\n').at(-1)!

interface Manifest {
  readonly name: string
  readonly version: string
}
