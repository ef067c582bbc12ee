// The runner of `npm test`: after any outcome of one file it runs the others, and counts all failures.

import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { tempDir } from './broker-process.js'
import { root } from './project.js'

const runner = join(root, 'dist/test/support/run-tests.js')
const tap = pathToFileURL(
  createRequire(import.meta.url)
    .resolve('tap')
    .replace('/commonjs/', '/esm/'),
).href

const begin = `import t from ${JSON.stringify(tap)}\n`
const passes = `${begin}t.test('fine', async t => t.ok(true))`
const skips = `${begin}t.test('not here', { skip: 'no reason' }, async () => {})\n${passes.slice(begin.length)}`

interface End {
  readonly code: number
  readonly out: string
  readonly last: string
}

/** Runs files with these texts, in this order. */
function run(t: Test, texts: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<End> {
  const folder = tempDir(t)
  const files = texts.map((text, n) => {
    const file = join(folder, `${n}.mjs`)
    writeFileSync(file, text)
    return file
  })
  return new Promise(resolve =>
    execFile(process.execPath, [runner, ...files], { env: { ...process.env, CI: '', ...env } }, (error, out) =>
      resolve({ code: error ? Number(error.code) : 0, out, last: out.trimEnd().split('\n').at(-1)! }),
    ),
  )
}

t.test('all files pass', async t => {
  t.match(await run(t, [passes, passes, passes]), { code: 0, last: '3 passed, 0 failed' })
})

t.test('a file that hangs, fails, ends with a code or has no test is one failure, and the others run', async t => {
  const hangs = `${begin}t.setTimeout(500)\nt.test('hangs', async () => { setInterval(() => {}, 100); await new Promise(() => {}) })`
  const fails = `${begin}t.test('wrong', async t => t.ok(false))`
  const { code, out, last } = await run(t, [hangs, fails, 'process.exit(3)', '', passes, passes])
  t.match({ code, last }, { code: 1, last: '2 passed, 4 failed' })
  t.match(out, /FAILED: .*0\.mjs > hangs > timeout!/)
  t.match(out, /FAILED: .*2\.mjs: it ended with 3/)
  t.match(out, /FAILED: .*3\.mjs: it ran no test/)
})

t.test('a skipped test is counted, and is a failure with CI=true', async t => {
  t.match(await run(t, [skips]), { code: 0, last: '1 passed, 0 failed, 1 skipped' })
  t.match(await run(t, [skips], { CI: 'true' }), { code: 1, last: '1 passed, 0 failed, 1 skipped' })
})
