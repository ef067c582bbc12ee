// The binaries of uWebSockets.js inside an installed package, and the code that unpacks one.
//
// The package of uWebSockets.js has the binaries of all systems, 133 MB. A clone has it as a development dependency.
// `npm pack` compresses the builds of the table below into dist/uws (deploy/pack-uws.mjs), so an installation has 14 MB
// and no such package. If the folder is there, nothing else is loaded: a package of that name next to ours may belong
// to another program. `unpack` returns only bytes whose SHA-256 is in the table.
//
// Not here: correcting and loading the bytes (uws-addon.ts), the case without a build (open-front.ts).

import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'

/** The package from which the builds are. */
export const packedFrom = 'uws-pack 20.0.8'

/** SHA-256 of each packed build, by its name: the platforms of README, module versions of Node.js 20 and 22. */
export const packedBuilds: ReadonlyMap<string, string> = new Map([
  ['uws_linux_x64_115', '6f8d96d761a64beddb060f1f7f0e617dd293ed127ec1d57507aa561a0083171e'],
  ['uws_linux_x64_127', '8cabc918bbf9a07323e54f89a33882491080b2eb35df0607f473ccdb1f3c31af'],
  ['uws_linux_arm64_115', 'c0e29fc143b46b584f3debec7910014ec228198fc1f17aaeacd1de7991bd3769'],
  ['uws_linux_arm64_127', 'd4c4f8b2c28c5f6544b49e36d91b0beee238a5b90a07904a947f77061c8b814d'],
  ['uws_darwin_x64_115', '1f2a5c73d9dc3066d39b675b73f2c50eddbc4f270d292a6126ddfe3757c54cf9'],
  ['uws_darwin_x64_127', 'afd992dc1ca1e33cdc7ce0c72a60baf236e590a257fcecbbbce7bc1a35451387'],
  ['uws_darwin_arm64_115', '5d523bccbe80d3d8fa59422ff81801b8179212b9a8a5da28bff6926a95a65701'],
  ['uws_darwin_arm64_127', 'abbeea53d48e21c01808203e9f9835728f2cea720d2e5b154837ee3045b513be'],
])

/** The folder of `npm pack`: dist/uws. */
const packedFolder = new URL('../../uws/', import.meta.url)

/** Whether this program contains its builds. A clone does not. */
export const isPacked = (folder = packedFolder): boolean => existsSync(folder)

/** No build is larger. */
const buildBytesMax = 16 * 1024 * 1024

/** Returns the build of this name. Throws if it is not in the table, or if its bytes do not match the table. */
export function unpack(name: string, folder = packedFolder): Buffer {
  const expected = packedBuilds.get(name)
  if (expected === undefined) throw new Error(noBuild)
  const packed = readFileSync(new URL(`${name}.node.br`, folder))
  const bytes = brotliDecompressSync(packed, { maxOutputLength: buildBytesMax })
  if (sha256(bytes) !== expected) throw new Error(`${name}.node.br does not hold the build that it should`)
  return bytes
}

/** The error on a platform or a version of Node.js that upstream, or `npm pack`, leaves out. */
export const noBuild = 'there is no build for it'

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
