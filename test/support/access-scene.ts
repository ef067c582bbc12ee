// An access file on disk for tests: principals with keys, a role for each of them, and the headers that show who they
// are.

import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyHash, newKey } from '../../src/access/keys.js'
import type { JsonObject } from '../../src/domain/json.js'
import { type Teardown, tempDir } from './broker-process.js'

/** Everything, in all tenants. */
export const everything: readonly JsonObject[] = [{ actions: ['*'], tenants: ['*'] }]

/** The rules of each principal, by its name. `anonymous` is a principal without a key. */
export type RulesByName = Readonly<Record<string, readonly JsonObject[]>>

export class AccessScene {
  readonly path: string
  private readonly keys = new Map<string, string>()

  constructor(
    t: Teardown,
    rules: RulesByName,
    private members: JsonObject = {},
  ) {
    this.path = join(tempDir(t), 'access.json')
    this.write(rules, members)
  }

  /** Replaces the file. Principals keep their keys. `members`: further members of the file. */
  write(rules: RulesByName, members: JsonObject = this.members): void {
    this.members = members
    const names = Object.keys(rules).filter(name => name !== 'anonymous')
    const file = {
      ...(rules.anonymous && { anonymous: ['anonymous'] }),
      keys: names.map(name => ({ name, sha256: keyHash(this.keyOf(name)), roles: [name] })),
      roles: rules,
      ...members,
    }
    writeFileSync(`${this.path}.new`, JSON.stringify(file))
    renameSync(`${this.path}.new`, this.path)
  }

  /** The key of a principal. */
  keyOf(name: string): string {
    const known = this.keys.get(name)
    if (known !== undefined) return known
    const key = newKey()
    this.keys.set(name, key)
    return key
  }

  /** A header line that shows who asks; none for `anonymous`. */
  as(name: string): readonly string[] {
    return name === 'anonymous' ? [] : [`Authorization: Bearer ${this.keyOf(name)}`]
  }
}
