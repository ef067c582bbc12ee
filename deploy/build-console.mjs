// Builds the console: dist/console from the compiled files of src/console, the files beside them, and preact.
//
//   node deploy/build-console.mjs
//
// All files of a build lie below one folder, whose name is the hash of their content, so a browser may keep them for
// ever and never mixes two builds. The page dist/console/index.html names that folder. There is no bundler: the modules
// are those of the compiler, and names of packages in their imports become paths of copies below `vendor`. So the page
// needs no import map, which its policy would have to allow. Each file is there three times: plain, with brotli, with gzip.
//
// The folder is built beside its place and then renamed. Two builds at a time are safe: they have the same content.

import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiled = join(root, 'dist/src/console')
const sources = join(root, 'src/console')
const target = join(root, 'dist/console')

/** The packages that the modules may import, each with its file, and with the copy of it. */
const packages = new Map([
  ['preact', ['preact/dist/preact.mjs', 'vendor/preact.js']],
  ['preact/hooks', ['preact/hooks/dist/hooks.mjs', 'vendor/hooks.js']],
  ['preact/jsx-runtime', ['preact/jsx-runtime/dist/jsxRuntime.mjs', 'vendor/jsx-runtime.js']],
])

const files = new Map()
for (const path of readdirSync(compiled, { recursive: true, encoding: 'utf8' }))
  if (path.endsWith('.js') && isThere(join(sources, path)))
    files.set(path, linked(path, readFileSync(join(compiled, path), 'utf8')))
for (const [file, copy] of packages.values())
  files.set(copy, linked(copy, readFileSync(join(root, 'node_modules', file), 'utf8')))
files.set('vendor/LICENSES.txt', readFileSync(join(root, 'node_modules/preact/LICENSE'), 'utf8'))
files.set('console.css', readFileSync(join(sources, 'console.css'), 'utf8'))
// The document of the interface, for the view in which a person types requests.
files.set('openapi.json', readFileSync(join(root, 'docs/interface/openapi.json'), 'utf8'))
files.set('icon.svg', readFileSync(join(sources, 'icon.svg'), 'utf8'))

const hash = createHash('sha256')
for (const [path, text] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) hash.update(`${path}\0${text}\0`)
const build = hash.digest('hex').slice(0, 16)

const modules = [...files.keys()].filter(path => path.endsWith('.js')).sort()
const page = readFileSync(join(sources, 'index.html'), 'utf8')
  .replaceAll('BUILD/', `${build}/`)
  .replace('<!-- modules -->', modules.map(path => `<link rel="modulepreload" href="${build}/${path}">`).join('\n'))

const beside = `${target}.${process.pid}`
rmSync(beside, { recursive: true, force: true })
write('index.html', page)
for (const [path, text] of files) write(`${build}/${path}`, text)
rmSync(target, { recursive: true, force: true })
try {
  renameSync(beside, target)
} catch (error) {
  // Another build has put the same there meanwhile.
  rmSync(beside, { recursive: true, force: true })
  if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
}

/** A compiled file whose source has gone is not part of the build. */
function isThere(path) {
  const siblings = readdirSync(dirname(path), { encoding: 'utf8' })
  const name = posix.basename(path, '.js')
  return siblings.includes(`${name}.ts`) || siblings.includes(`${name}.tsx`)
}

/** The text of a module, with relative paths instead of names of packages. */
function linked(path, text) {
  const plain = text.replace(/^\/\/# sourceMappingURL=.*$/m, '')
  return plain.replace(/(\bfrom\s*|\bimport\s*)(["'])([^."'][^"']*)\2/g, (_whole, before, quote, name) => {
    const [, copy] = packages.get(name) ?? []
    if (copy === undefined) throw new Error(`${path} imports ${name}, which is not among the packages of the console`)
    const to = posix.relative(posix.dirname(path), copy)
    return `${before}${quote}${to.startsWith('.') ? to : `./${to}`}${quote}`
  })
}

function write(path, text) {
  const file = join(beside, path)
  const bytes = Buffer.from(text)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, bytes)
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }))
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
}
