// The binary of uWebSockets.js: how it is loaded, and what of it is used.
//
// The process loads a corrected copy of the binary where a correction of this build is known. An installed program
// unpacks the binary that it carries. A clone has the package of uWebSockets.js: if the copy fails there, the process
// loads the package's own binary, and the log warns of the consequence.
//
// Not here: what is done with it (uws-front.ts), which build it is and why (its head), the correction (uws-addon.ts),
// the binaries that an installed program carries (uws-packed.ts).

import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { existsSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { setHeadLimit } from './front.js'
import { correct, loadBytes } from './uws-addon.js'
import { isPacked, noBuild, packedFrom, unpack } from './uws-packed.js'

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

/** The package, loaded. */
export interface LoadedUws {
  readonly uws: Uws
  /** Which build of which package it is, for the log. */
  readonly build: string
  /** Why the binary is the package's own although it needs a correction; undefined: header values are right. */
  readonly uncorrected: string | undefined
}

let loading: Promise<LoadedUws> | undefined

/** Loads it, once; fails with UwsMissing. */
export function loadUws(): Promise<LoadedUws> {
  loading ??= load()
  return loading
}

async function load(): Promise<LoadedUws> {
  setHeadLimit()
  try {
    const binary = `uws_${process.platform}_${process.arch}_${process.versions.modules}`
    const { addon, from, corrected, uncorrected } = isPacked() ? loadPacked(binary) : await loadFromPackage(binary)
    const uws = addon as Uws
    uws._cfg('silent') // No `uWebSockets` header.
    return { uws, build: `uWebSockets.js (${from}, ${binary}${corrected ? ', corrected' : ''})`, uncorrected }
  } catch (cause) {
    const platform = `${process.platform} ${process.arch}, Node.js ${process.version}`
    throw new UwsMissing(`uWebSockets.js cannot be loaded on this machine (${platform}: ${lastLine(cause)})`, { cause })
  }
}

/** What was loaded, and which package it is from. */
interface Loaded {
  readonly addon: unknown
  readonly from: string
  readonly corrected: boolean
  readonly uncorrected: string | undefined
}

function loadPacked(binary: string): Loaded {
  const bytes = unpack(binary)
  const correction = correct(bytes)
  const addon = loadBytes(correction.kind === 'corrected' ? correction.bytes : bytes, tmpdir())
  const uncorrected = correction.kind === 'impossible' ? correction.reason : undefined
  return { addon, from: packedFrom, corrected: correction.kind === 'corrected', uncorrected }
}

async function loadFromPackage(binary: string): Promise<Loaded> {
  const entry = import.meta.resolve('uWebSockets.js')
  const file = new URL(`bin/${binary}.node`, entry)
  if (!existsSync(file)) throw new Error(noBuild)
  const { name, version } = JSON.parse(readFileSync(new URL('../package.json', entry), 'utf8')) as Manifest
  const copy = loadCorrected(file)
  const addon = copy.addon ?? (await import('uWebSockets.js'))
  return { addon, from: `${name} ${version}`, corrected: copy.addon !== undefined, uncorrected: copy.reason }
}

/**
 * The corrected copy, or the reason why it cannot be loaded; neither where the package's own one needs no correction.
 */
function loadCorrected(binary: URL): { addon?: unknown; reason?: string } {
  try {
    const correction = correct(readFileSync(binary))
    if (correction.kind === 'impossible') return { reason: correction.reason }
    return correction.kind === 'corrected' ? { addon: loadBytes(correction.bytes, tmpdir()) } : {}
  } catch (error) {
    return { reason: lastLine(error) }
  }
}

const lastLine = (error: unknown): string => (error as Error).message.trimEnd().split('\n').at(-1)!

interface Manifest {
  readonly name: string
  readonly version: string
}
