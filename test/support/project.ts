// The places of the project's files, for tests that look at the project from outside.
//
// Tests run as compiled files below dist/, scripts may run from anywhere. So the root is found by going up to
// package.json, never by counting folders or by the current directory.
//
// ORRERY_MAIN names another program to test, for instance an installed package or an older release.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder with the project's package.json. */
export const root = upTo('package.json', dirname(fileURLToPath(import.meta.url)))

/** The built program. */
export const main = resolve(process.env.ORRERY_MAIN ?? join(root, 'dist/program/main.js'))

/** The TypeScript files below a folder of the project, by their path, with their text. */
export const sourcesIn = (folder: string): [string, string][] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map(path => `${folder}/${path.replaceAll('\\', '/')}`)
    .filter(path => /\.tsx?$/.test(path) && !path.endsWith('.d.ts') && !path.includes('/node_modules/'))
    .map(path => [path, readFileSync(join(root, path), 'utf8')])

function upTo(name: string, from: string): string {
  if (existsSync(join(from, name))) return from
  if (dirname(from) === from) throw new Error(`no ${name} above this file`)
  return upTo(name, dirname(from))
}
