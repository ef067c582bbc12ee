// Packages that only tests need and that stay apart from the project's own, in folders with a lock file of their own:
// installed when they are missing. Where they cannot be installed, the tests that need them are skipped, and say so.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from './project.js'

/** Installs the packages of a folder of the project; gives the reason why they are not there, or false. */
export function lackingPackages(folder: string): string | false {
  try {
    execFileSync(join(root, 'test/support/install-packages.sh'), [join(root, folder)], { stdio: 'pipe' })
    return false
  } catch (error) {
    return `packages of ${folder} cannot be installed: ${String((error as Error).message).trim()}`
  }
}
