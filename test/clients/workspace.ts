// The workspace of clients that others have written: installed when they are missing, and reached from here.
//
// They are AGPL and live beside this file with a package.json and a lock file of their own. Where they cannot be
// installed, the tests that need them are skipped, and say so.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { lackingPackages } from '../support/packages.js'
import { root } from '../support/project.js'

const workspace = join(root, 'test/clients')

/** Why the clients are not there, or false. */
export const lacking: string | false = lackingPackages('test/clients')

/** Loads a client. Of its type nothing is known: whoever loads it says what part of it is used. */
export const load: (name: string) => unknown = createRequire(join(workspace, 'package.json'))
