// The service paths of a tenant as long as they are few: what spares a read by id without a path from asking everybody.
//
// Tenants are as many as clients make up, and most have one path. So one path is kept as it is, several in a set, and of many, or of long ones,
// no more is known than that.

import { fewPathsLengthMax, fewPathsMax } from './limits.js'
import { ownText } from './recent.js'

/** null: they are many. */
export type FewPaths = string | ReadonlySet<string> | null

/** The paths of a tenant with one more; `known` is undefined where none was. */
export function withPath(known: FewPaths | undefined, path: string): FewPaths {
  if (known === null || known === path) return known
  if (known === undefined) return path.length > fewPathsLengthMax ? null : ownText(path)
  if (typeof known !== 'string' && known.has(path)) return known
  const paths = new Set(typeof known === 'string' ? [known] : known).add(ownText(path))
  let length = 0
  for (const one of paths) length += one.length
  return paths.size > fewPathsMax || length > fewPathsLengthMax ? null : paths
}

/** The paths; undefined: they are many. */
export function listed(known: FewPaths): ReadonlySet<string> | undefined {
  if (known === null) return undefined
  return typeof known === 'string' ? new Set([known]) : known
}
