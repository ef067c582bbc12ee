// The workspace of clients that others have written: installed when they are missing, and loaded from here.
//
// They are AGPL and live beside this file with a package.json and a lock file of their own. Where they cannot be
// installed, the tests that need them are skipped, with the reason.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { lackingPackages } from '../support/packages.js'
import { root } from '../support/project.js'

const workspace = join(root, 'test/clients')

/** The reason why the clients are missing, or false. */
export const lacking: string | false = lackingPackages('test/clients')

/** Loads a client. Nothing is known of its type: the caller declares the part that it uses. */
export const load: (name: string) => unknown = createRequire(join(workspace, 'package.json'))
