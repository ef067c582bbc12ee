// Builds the program that users start: dist/program, from the compiled modules of dist/src and dist/cluster.
//
//   node deploy/build-program.mjs
//
// A start reads some 300 modules, and most of its time goes into finding and linking them. So esbuild joins them: each
// process and thread has one file, and what several of them need is in parts that they share. A module that is loaded
// when it is needed stays a part of its own. Packages are not joined, and nothing is minified: a stack trace names
// functions as the source does.
//
// A path that a module gives relative to itself is rewritten: to a built entry, or else to the same place as before.
// The folder is built beside its place and then renamed, and only if its files differ: a broker that runs reads parts of
// its build later. So two builds at a time are safe.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = join(root, 'dist/program')

/** The program, and what it starts in processes and threads of their own. */
const entries = [
  'dist/src/main.js',
  'dist/src/process/access-check-thread.js',
  'dist/src/process/node-thread.js',
  'dist/src/process/reader.js',
  'dist/src/process/worker.js',
  'dist/src/storage/rocks-syncer.js',
]

const ownPath = /new URL\('([^']+)', import\.meta\.url\)/g

/** The text of a compiled module, with paths that hold in the target. `path`: from the root. */
function movedText(path) {
  return readFileSync(join(root, path), 'utf8').replaceAll(ownPath, (_, named) => {
    const meant = posix.join(posix.dirname(path), named)
    // An installed program has no other module than the built ones.
    if (meant.endsWith('.js') && !entries.includes(meant)) throw new Error(`${path} starts ${meant}, which is no entry`)
    const moved = entries.includes(meant) ? `./${basename(meant)}` : posix.relative('dist/program', meant)
    return `new URL('${moved}${named.endsWith('/') ? '/' : ''}', import.meta.url)`
  })
}

const movePaths = {
  name: 'move-paths',
  setup({ onLoad }) {
    onLoad({ filter: /\/dist\/(?:src|cluster)\/.*\.js$/ }, ({ path }) => ({
      contents: movedText(relative(root, path).replaceAll('\\', '/')),
    }))
  },
}

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: entries,
  entryNames: '[name]',
  outdir: target,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  packages: 'external',
  plugins: [movePaths],
  write: false,
  logLevel: 'warning',
})
if (isBuilt()) utimesSync(target, new Date(), new Date())
else replace()

/** Whether the folder has just these files. */
function isBuilt() {
  if (!existsSync(target) || readdirSync(target).length !== outputFiles.length) return false
  return outputFiles.every(({ path, contents }) => existsSync(path) && readFileSync(path).equals(contents))
}

function replace() {
  const fresh = `${target}.${process.pid}`
  rmSync(fresh, { recursive: true, force: true })
  mkdirSync(fresh)
  for (const { path, contents } of outputFiles) writeFileSync(join(fresh, basename(path)), contents)
  rmSync(target, { recursive: true, force: true })
  try {
    renameSync(fresh, target)
  } catch (error) {
    // Another build was faster.
    rmSync(fresh, { recursive: true })
    if (!isBuilt()) throw error
  }
}
