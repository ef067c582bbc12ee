// A copy of the built program as it looks where some packages could not be installed.
//
// The compiled files are copied, because Node resolves packages from the real path of a file. node_modules is a folder
// of links to the project's packages, without the ones left out. The remaining packages find their dependencies at
// their own real paths.

import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Teardown, tempDir } from './broker-process.js'
import { main, root } from './project.js'

/** The main.js of a copy whose node_modules lacks `packages`. */
export function withoutPackages(t: Teardown, packages: readonly string[]): string {
  const copy = tempDir(t)
  for (const folder of ['proto', 'package.json'])
    if (existsSync(join(root, folder))) cpSync(join(root, folder), join(copy, folder), { recursive: true })
  cpSync(dirname(main), join(copy, 'dist/program'), { recursive: true })
  for (const name of installed(join(root, 'node_modules')).filter(name => !packages.includes(name))) {
    const link = join(copy, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), link, 'junction')
  }
  return join(copy, 'dist/program', basename(main))
}

function installed(folder: string): string[] {
  return readdirSync(folder)
    .filter(name => !name.startsWith('.'))
    .flatMap(name => (name.startsWith('@') ? readdirSync(join(folder, name)).map(one => `${name}/${one}`) : [name]))
}
