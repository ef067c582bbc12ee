// The workspace of clients that others have written: installed when they are missing, and loaded from here.
//
// They are AGPL and live beside this file with a package.json and a lock file of their own. Where they cannot be
// installed, the tests that need them are skipped, with the reason.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { lackingPackages } from '../support/packages.js'
import { root } from '../support/project.js'

const workspace = join(root, 'test/clients')

/** The reason why the clients are missing, or false. */
export const lacking: string | false = lackingPackages('test/clients')

const require = createRequire(join(workspace, 'package.json'))

/** Loads a client. Nothing is known of its type: the caller declares the part that it uses. */
export const load: (name: string) => unknown = require

/** The same for one that is an ES module. */
export const loadModule = (name: string): Promise<unknown> => import(pathToFileURL(require.resolve(name)).href)
