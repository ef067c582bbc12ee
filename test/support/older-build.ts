// An older build of the program, from its archive: for tests in which two builds talk to each other.
//
// test/support/pack-older.sh makes the archive. It contains the program and none of its packages: those of this project
// serve both builds. So an older build works as long as its packages stay; a test that lacks one fails, and names it.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Teardown, tempDir } from './broker-process.js'
import { root } from './project.js'

const archive = join(root, 'test/fixtures/older-build.tgz')
const packages = join(root, 'node_modules')

export interface OlderBuild {
  readonly main: string
  readonly commit: string
}

/** Unpacks the older build for the duration of a test. Throws if a package is missing that the build needs. */
export function unpackOlderBuild(t: Teardown): OlderBuild {
  const folder = tempDir(t)
  execFileSync('tar', ['-xzf', archive, '-C', folder])
  symlinkSync(packages, join(folder, 'node_modules'), 'junction')
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  const missing = Object.keys(dependencies).filter(name => !existsSync(join(packages, name, 'package.json')))
  const commit = readFileSync(join(folder, 'COMMIT'), 'utf8').trim()
  const advice = 'pack a newer build with test/support/pack-older.sh'
  assert(
    missing.length === 0,
    `the older build ${commit} needs packages that are gone: ${missing.join(', ')}; ${advice}`,
  )
  return { main: join(folder, 'dist/src/main.js'), commit }
}
