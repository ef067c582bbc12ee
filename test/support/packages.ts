// Packages that only tests need, apart from the project's own, in folders with their own lock file. Missing ones are
// installed. Where that is not possible, the tests that need them are skipped, with the reason.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from './project.js'

/** Installs the packages of a folder of the project; returns the reason why they are missing, or false. */
export function lackingPackages(folder: string): string | false {
  try {
    execFileSync(join(root, 'test/support/install-packages.sh'), [join(root, folder)], { stdio: 'pipe' })
    return false
  } catch (error) {
    return `packages of ${folder} cannot be installed: ${String((error as Error).message).trim()}`
  }
}
