// Packs the builds of uWebSockets.js that an installed program carries into dist/uws; `--remove` removes that folder.
//
//   node deploy/pack-uws.mjs [--remove | NAME ...]
//
// `npm pack` runs it before and after, the Dockerfile for its own platform only (NAME is a build of the table, such as
// uws_linux_x64_127). src/http/uws-packed.ts has the table, and unpacks a build at the start. A build with another SHA-256
// than the table's ends this with an error. The licences travel with the builds.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'

const folder = new URL('../dist/uws/', import.meta.url)
rmSync(folder, { recursive: true, force: true })
const words = process.argv.slice(2)
if (words[0] !== '--remove') await pack(words)

async function pack(wanted) {
  const { packedBuilds, sha256 } = await import('../dist/src/http/uws-packed.js')
  const names = wanted.length > 0 ? wanted : [...packedBuilds.keys()]
  mkdirSync(folder, { recursive: true })
  await Promise.all(names.map(name => packBuild(name, packedBuilds.get(name), sha256)))
  copyFileSync(new URL('uws-licenses.txt', import.meta.url), new URL('LICENSES.txt', folder))
}

async function packBuild(name, expected, sha256) {
  const bytes = readFileSync(new URL(`bin/${name}.node`, import.meta.resolve('uWebSockets.js')))
  if (sha256(bytes) !== expected)
    throw new Error(`${name}.node is not the build of the table in src/http/uws-packed.ts`)
  // Quality 5: 9 takes eight times as long and saves one byte in a hundred.
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 5,
    [constants.BROTLI_PARAM_LGWIN]: 24,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  }
  writeFileSync(new URL(`${name}.node.br`, folder), await promisify(brotliCompress)(bytes, { params }))
}
