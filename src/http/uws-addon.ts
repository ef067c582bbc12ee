// Makes and loads a corrected copy of the binary of uWebSockets.js. The binary has two faults, and so has upstream's
// source.
//
// Header values: the parser removes white space from both ends of a value, and treats each `char` below 33 as white
// space. On x64 `char` is signed, so it removes the bytes from 0x80 on as well: `Ctx-Service: seca\x80` would select the
// tenant `seca`. Under Linux on arm and arm64 `char` is unsigned. The correction replaces the two conditional jumps
// after these comparisons by unsigned ones (`jge` by `jae`, `jg` by `ja`). A build has these loops once, for plain and
// for TLS connections.
//
// WebSockets: when a response becomes a WebSocket, the binary shrinks its memory with `realloc`, from the size of a
// response to the size of a WebSocket. At the end of `cork` the binary reads from the freed part whether to close the
// connection. If that part is in use again, the binary may close the new WebSocket. The correction replaces the size of
// a WebSocket by the size of a response, once for plain connections and once for TLS. So nothing is freed.
//
// Nothing else is changed. The licence of uWebSockets.js (Apache 2.0) permits the changes and demands this notice. The
// builds for macOS and Windows stay uncorrected: macOS may end a process that maps changed pages of a signed file,
// Windows does not delete a loaded file.
//
// Not here: the case without a corrected copy (uws-binary.ts), the builds inside an installed program (uws-packed.ts).

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from './uws-packed.js'

/** A byte to change: its offset in the file, and its kind. */
interface Change {
  readonly at: number
  readonly is: keyof typeof changedBytes
}

/** The bytes in the package's builds, and in the corrected copy. */
const changedBytes = {
  /** The opcodes of a signed and of an unsigned jump. */
  jge: { original: 0x7d, corrected: 0x73 },
  jg: { original: 0x7f, corrected: 0x77 },
  /** The sizes of a WebSocket and of a response: 136 and 232 bytes, on arm 100 and 168. */
  sizeOnX64: { original: 136, corrected: 232 },
  sizeOnArm: { original: 100, corrected: 168 },
  /** The same two sizes on arm64, where an instruction holds them three bits further left: their upper byte. */
  sizeOnArm64: { original: 0x11, corrected: 0x1d },
} as const

/** The changes of each known build, by its SHA-256. */
export type Builds = ReadonlyMap<string, readonly Change[]>

const sizes = (is: Change['is'], tls: number, plain: number): readonly Change[] => [
  { at: tls, is },
  { at: plain, is },
]

/** The loops at the end and at the beginning of a value, and the sizes of WebSockets with TLS and without. */
const x64 = (end: number, beginning: number, tls: number, plain: number): readonly Change[] => [
  { at: end, is: 'jge' },
  { at: beginning, is: 'jg' },
  ...sizes('sizeOnX64', tls, plain),
]
const arm64 = (tls: number, plain: number): readonly Change[] => sizes('sizeOnArm64', tls, plain)
const arm = (tls: number, plain: number): readonly Change[] => sizes('sizeOnArm', tls, plain)

/** The builds of uws-pack 20.0.8 for Linux: for the module versions 108, 115, 120 and 127 of Node.js. */
export const knownBuilds: Builds = new Map([
  ['b67b3254b1acea464bd6f7b58403c260567c31924abeb6a508a9acdc17a40ce9', x64(0xf2152, 0xf216c, 0xe9747, 0xfef78)],
  ['6f8d96d761a64beddb060f1f7f0e617dd293ed127ec1d57507aa561a0083171e', x64(0xf2242, 0xf225c, 0xe9827, 0xff128)],
  ['fcb1172837abd2a2dd130f6c6502f18e9b562a5d88bcc3bcdca5e6e710278080', x64(0xf2482, 0xf249c, 0xe9a47, 0xff458)],
  ['8cabc918bbf9a07323e54f89a33882491080b2eb35df0607f473ccdb1f3c31af', x64(0xf2522, 0xf253c, 0xe9ad7, 0xff588)],
  ['a6820f6e868b615a0c616d9d77270b34893d05f2a7053046403a568697b8befc', arm64(0xe4e89, 0xf90b9)],
  ['c0e29fc143b46b584f3debec7910014ec228198fc1f17aaeacd1de7991bd3769', arm64(0xe4f19, 0xf9245)],
  ['a855e3b7cc0db70ec503e296d50e91d2435db679bc3bd5433d7dae30e93c9b3c', arm64(0xe539d, 0xf9905)],
  ['d4c4f8b2c28c5f6544b49e36d91b0beee238a5b90a07904a947f77061c8b814d', arm64(0xe5491, 0xf9a55)],
  ['a42c7e5ed3e65aa6a2c243613ef8b1cac7057ee6291a129f921dea4f6661e34e', arm(0xb8924, 0xcde38)],
  ['b02d5bc5ab08f040b6b9b818c3eb92806611f77a4dc2439a8f14cac827d498be', arm(0xb893c, 0xcdf00)],
  ['814b5e63337d5072a85276d5279824b4f9817f8008fcff1f4a4345e2f2c30444', arm(0xb8b44, 0xce258)],
  ['0e1d4024b629a1fe17ec76cde8fe7e320101eb8bdcf7b2c4086933932e3cea23', arm(0xb8c5c, 0xce408)],
])

/** Corrected bytes to load, or the reason why there are none. */
export type Correction =
  | { readonly kind: 'corrected'; readonly bytes: Uint8Array }
  | { readonly kind: 'impossible'; readonly reason: string }

/** Corrects a build; `given` stays unchanged. */
export function correct(given: Uint8Array, builds: Builds = knownBuilds): Correction {
  const hash = sha256(given)
  const changes = builds.get(hash)
  if (!changes) return { kind: 'impossible', reason: `no correction is known for the build with SHA-256 ${hash}` }
  const bytes = new Uint8Array(given)
  for (const { at, is } of changes) {
    const { original, corrected } = changedBytes[is]
    if (bytes[at] !== original)
      return { kind: 'impossible', reason: `the byte at ${at} is ${bytes[at]}, not ${original}` }
    bytes[at] = corrected
  }
  return { kind: 'corrected', bytes }
}

/**
 * Loads an addon from its bytes, through a file in a new folder below `parent`, which is removed before this returns.
 * Only the owner can open the folder, and writing fails if the file exists. So no other user can replace the file.
 */
export function loadBytes(bytes: Uint8Array, parent: string, load: (file: string) => unknown = loadAddon): unknown {
  const folder = mkdtempSync(join(parent, 'orrery-uws-')) // Its mode is 0700.
  try {
    const file = join(folder, 'uws.node')
    writeFileSync(file, bytes, { flag: 'wx', mode: 0o600 })
    return load(file)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function loadAddon(file: string): unknown {
  const addon: { exports: unknown } = { exports: {} }
  process.dlopen(addon, file)
  return addon.exports
}
