// The installation by a user: `npm pack` of a clone that is not built, `npm install` of the archive into an empty
// folder, and a start from there.
//
// No script of a package runs, and the folder has no compiler, no test and no package of uWebSockets.js, because the
// program contains its builds. npm asks its registry for packages that are not in its cache. Where npm cannot reach the
// registry, the test is skipped.
//
// The clone is a copy of this checkout with its compiled files, and one source file that is newer. So `npm pack` must
// compile, but the test does not pay for compiling everything.

import { execFile, execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { packedBuilds } from '../src/http/uws-packed.js'
import { type BrokerOptions, plainly, startBroker, tempDir } from './support/broker-process.js'
import { HttpClient } from './support/http-client.js'
import { root } from './support/project.js'

/** The output of `tsc -b src`. */
const compiled = ['dist/src', 'dist/src.tsbuildinfo', 'dist/cluster', 'dist/cluster.tsbuildinfo']

/** The file that is newer than the build, and its additional text: of comments, a build keeps only such ones. */
const newer = 'cluster/index'
const addition = '/*! Newer than the build. */'

/** The largest size of an installation, in MB as `du` counts them (docs/operations/install.md#size). */
const installedMbMax = 130

const unreachable = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|ECONNRESET/

const run = async (cwd: string, words: readonly string[]): Promise<string> =>
  (await promisify(execFile)(...plainly(words), { cwd, maxBuffer: 16 * 1024 * 1024 })).stdout

t.setTimeout(600_000)

t.test('the packed program installs without scripts, is small, and serves', async t => {
  const clone = copyOfClone(t)
  await run(clone, ['npm', 'pack', '--silent'])
  const archive = join(clone, readdirSync(clone).find(name => name.endsWith('.tgz'))!)
  t.notOk(readdirSync(join(clone, 'dist')).includes('uws'), 'what was packed for the archive alone is gone')

  const folder = tempDir(t)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const options = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  try {
    await run(folder, ['npm', 'install', ...options, archive])
  } catch (error) {
    const { stderr } = error as { stderr?: string }
    if (!unreachable.test(stderr ?? '')) throw error
    return t.pass('npm install', { skip: `npm cannot reach its registry: ${stderr}` })
  }

  const mb = Number.parseInt(execFileSync('du', ['-sm', folder], { encoding: 'utf8' }), 10)
  t.ok(mb > 0 && mb <= installedMbMax, `${mb} MB`)
  const packages = readdirSync(join(folder, 'node_modules'))
  for (const name of ['uWebSockets.js', 'typescript', 'tap']) t.notOk(packages.includes(name), name)

  const program = join(folder, 'node_modules/@orrery-broker/orrery')
  const built = readdirSync(join(program, 'dist/program'))
    .filter(name => name.endsWith('.js'))
    .map(name => readFileSync(join(program, 'dist/program', name), 'utf8'))
  t.ok(
    built.some(text => text.includes(addition)),
    '`npm pack` has compiled',
  )
  t.ok(readFileSync(join(program, 'dist/uws/LICENSES.txt'), 'utf8').includes('Apache License'))
  t.ok(readFileSync(join(program, 'dist/console/index.html'), 'utf8').includes('main.js'), 'the console is built')
  t.strictSame(readdirSync(join(program, 'dist')).sort(), ['console', 'program', 'uws'], 'and nothing is there twice')
  t.equal(await run(folder, ['node_modules/.bin/orrery', 'version']), `orrery ${versionOf(program)}\n`)
  const main = join(program, 'dist/program/main.js')
  const hasBuild = packedBuilds.has(`uws_${process.platform}_${process.arch}_${process.versions.modules}`)
  await Promise.all([
    serves(t, main, hasBuild, {}),
    serves(t, main, false, { args: ['-httpServer', 'node'] }),
    serves(t, main, false, { env: { TMPDIR: '/nowhere' } }),
  ])
})

/** The program keeps an entity, on uWebSockets.js or on Node's own server, and ends well. */
async function serves(t: Test, main: string, onUws: boolean, { args = [], env = {} }: BrokerOptions): Promise<void> {
  const broker = await startBroker(t, { main, args: [...args, '-logLevel', 'INFO'], env, readyWaitMs: 40_000 })
  const client = new HttpClient(broker.baseUrl)
  t.equal((await client.send('POST', '/v2/entities', { id: 'Room1', type: 'Room' })).status, 201)
  t.strictSame((await client.get('/v2/entities/Room1')).json, { id: 'Room1', type: 'Room' })
  t.equal((await client.get('/console/')).status, 200)
  client.close()
  broker.signal('SIGTERM')
  const exit = await broker.exitWithin(20_000)
  t.match(exit, { code: 0, stderr: '' })
  // Checked here, because the log may print it after the ready line.
  t.equal(/serving with uWebSockets\.js/.test(exit.stdout), onUws, exit.stdout)
}

/**
 * A copy of the files that a clone has, the packages that `npm install` gives it, and a build that is older than one of
 * the files.
 */
function copyOfClone(t: Test): string {
  const clone = tempDir(t)
  for (const name of [...filesOf(root), ...compiled])
    cpSync(join(root, name), join(clone, name), { recursive: true, preserveTimestamps: true })
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'), 'junction')
  appendFileSync(join(clone, `${newer}.ts`), `${addition}\n`)
  return clone
}

/** Everything except the folders of tests, packages and builds. */
function filesOf(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true })
  const files = entries.filter(entry => entry.isFile() && !/^\.|\.tgz$/.test(entry.name)).map(entry => entry.name)
  return ['src', 'cluster', 'proto', 'deploy', 'docs', ...files]
}

function versionOf(program: string): string {
  return (JSON.parse(readFileSync(join(program, 'package.json'), 'utf8')) as { version: string }).version
}
