// The built console, for tests: `npm test` builds it, and a test that runs alone builds it when it is missing.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './project.js'

export const consoleFolder = join(root, 'dist/console')

/** The path of each file that the page loads, below `/console/`. */
export function builtConsole(): readonly string[] {
  const page = join(consoleFolder, 'index.html')
  if (!existsSync(page)) execFileSync(process.execPath, [join(root, 'deploy/build-console.mjs')])
  return [...readFileSync(page, 'utf8').matchAll(/(?:href|src)="([^"]+)"/g)].map(([, path]) => path as string)
}
