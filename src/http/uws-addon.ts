// Makes and loads a corrected copy of the binary of uWebSockets.js.
//
// The parser removes white space from both ends of a header value, and treats each `char` below 33 as white space. On
// x64 `char` is signed, so it removes the bytes from 0x80 on as well: `Ctx-Service: seca\x80` would select the tenant
// `seca`. Upstream's source has the same comparison, so a newer build would not help. Under Linux on arm and arm64
// `char` is unsigned, and the builds need no correction.
//
// The correction replaces the two conditional jumps after these comparisons by unsigned ones (`jge` by `jae`, `jg` by
// `ja`), and nothing else. A build has these loops once, for plain and for TLS connections. The licence of
// uWebSockets.js (Apache 2.0) permits the change and demands this notice. The builds for macOS and Windows stay
// uncorrected: macOS may end a process that maps changed pages of a signed file, Windows does not delete a loaded file.
//
// Not here: the case without a corrected copy (uws-binary.ts), the builds inside an installed program (uws-packed.ts).

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from './uws-packed.js'

/** A conditional jump after a signed comparison: its offset in the file, and its opcode. */
interface SignedJump {
  readonly at: number
  readonly is: keyof typeof opcodes
}

/** The bytes of the signed jump, and of the unsigned one that replaces it. */
const opcodes = {
  jge: { signed: 0x7d, unsigned: 0x73 },
  jg: { signed: 0x7f, unsigned: 0x77 },
} as const

/** The jumps to change in each known build, by its SHA-256; none where `char` is unsigned. */
export type Builds = ReadonlyMap<string, readonly SignedJump[]>

/** The loops at the end and at the beginning of a value. */
const loops = (end: number, beginning: number): readonly SignedJump[] => [
  { at: end, is: 'jge' },
  { at: beginning, is: 'jg' },
]

/** The builds of uws-pack 20.0.8 for Linux. */
export const knownBuilds: Builds = new Map([
  // x64, for the module versions 108, 115, 120 and 127 of Node.js
  ['b67b3254b1acea464bd6f7b58403c260567c31924abeb6a508a9acdc17a40ce9', loops(0xf2152, 0xf216c)],
  ['6f8d96d761a64beddb060f1f7f0e617dd293ed127ec1d57507aa561a0083171e', loops(0xf2242, 0xf225c)],
  ['fcb1172837abd2a2dd130f6c6502f18e9b562a5d88bcc3bcdca5e6e710278080', loops(0xf2482, 0xf249c)],
  ['8cabc918bbf9a07323e54f89a33882491080b2eb35df0607f473ccdb1f3c31af', loops(0xf2522, 0xf253c)],
  // arm64
  ['a6820f6e868b615a0c616d9d77270b34893d05f2a7053046403a568697b8befc', []],
  ['c0e29fc143b46b584f3debec7910014ec228198fc1f17aaeacd1de7991bd3769', []],
  ['a855e3b7cc0db70ec503e296d50e91d2435db679bc3bd5433d7dae30e93c9b3c', []],
  ['d4c4f8b2c28c5f6544b49e36d91b0beee238a5b90a07904a947f77061c8b814d', []],
  // arm
  ['a42c7e5ed3e65aa6a2c243613ef8b1cac7057ee6291a129f921dea4f6661e34e', []],
  ['b02d5bc5ab08f040b6b9b818c3eb92806611f77a4dc2439a8f14cac827d498be', []],
  ['814b5e63337d5072a85276d5279824b4f9817f8008fcff1f4a4345e2f2c30444', []],
  ['0e1d4024b629a1fe17ec76cde8fe7e320101eb8bdcf7b2c4086933932e3cea23', []],
])

/** Corrected bytes to load, or the reason to load the package's own file: it is right, or it cannot be corrected. */
export type Correction =
  | { readonly kind: 'corrected'; readonly bytes: Uint8Array }
  | { readonly kind: 'right' }
  | { readonly kind: 'impossible'; readonly reason: string }

/** Corrects a build; `original` stays unchanged. */
export function correct(original: Uint8Array, builds: Builds = knownBuilds): Correction {
  const hash = sha256(original)
  const jumps = builds.get(hash)
  if (!jumps) return { kind: 'impossible', reason: `no correction is known for the build with SHA-256 ${hash}` }
  if (jumps.length === 0) return { kind: 'right' }
  const bytes = new Uint8Array(original)
  for (const { at, is } of jumps) {
    const { signed, unsigned } = opcodes[is]
    if (bytes[at] !== signed) return { kind: 'impossible', reason: `the byte at ${at} is ${bytes[at]}, not ${signed}` }
    bytes[at] = unsigned
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
