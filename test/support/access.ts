// Access files for tests.

import { type AccessFile, parseAccessFile } from '../../src/domain/access/access-file.js'
import type { AccessAction } from '../../src/domain/access/access-rule.js'
import { type Grant, grantOf } from '../../src/domain/access/grant.js'
import { type Principal, principalOf } from '../../src/domain/access/principal.js'
import type { JsonObject } from '../../src/domain/json.js'
import { type Result, refusalText } from '../../src/domain/refusal.js'

/** The value of a result that must not be a refusal. */
export function demand<T>(result: Result<T>): T {
  if (result.ok) return result.value
  throw new Error(refusalText(result.refusal))
}

/** A file that must be accepted. */
export const accessFile = (members: JsonObject): AccessFile => demand(parseAccessFile(JSON.stringify(members)))

/** The hash of no key that exists: 64 digits that end in a number. */
export const hashOf = (number: number): string => number.toString(16).padStart(64, '0')

/** A file of one key `tester` with one role of these rules. */
export const fileOfRules = (rules: readonly JsonObject[]): AccessFile =>
  accessFile({ keys: [{ name: 'tester', sha256: hashOf(1), roles: ['role'] }], roles: { role: rules } })

export const tester = (file: AccessFile): Principal => principalOf(file, { proof: 'key', name: 'tester' })!

/** The grants of rules in a tenant. */
export function grantsOf(rules: readonly JsonObject[], tenant: string): (action: AccessAction) => Grant {
  const file = fileOfRules(rules)
  return action => grantOf(file, tester(file), tenant, action)
}
