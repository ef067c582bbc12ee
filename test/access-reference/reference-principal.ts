// The principal of a request, according to docs/interface/access.md#who-asks: the plain reading of an access file and
// of the headers of a request. Only keys and `anonymous`; tokens and certificates are not the subject of this
// reference.
//
// Not here: what the principal may do (reference-grant).

import { type AccessFile, hashOf } from './random-access-file.js'

export interface Asking {
  /** Of `anonymous` nothing is shown; a key may have that name in no file. */
  readonly kind: 'key' | 'anonymous'
  readonly name: string
}

export interface RolesOfAsking extends Asking {
  readonly roles: readonly string[]
}

export type Recognized = { readonly principal: RolesOfAsking } | { readonly status: 400 | 401 }

/** docs/interface/access.md#showing-a-proof */
export function recognize(file: AccessFile, headers: Readonly<Record<string, string>>, nowMs: number): Recognized {
  const shown = new Set<string | undefined>()
  for (const [name, text] of Object.entries(headers)) {
    if (name === 'Authorization') shown.add(/^Bearer (.+)$/.exec(text)?.[1])
    if (name === 'X-Auth-Token' || name === 'X-Api-Key') shown.add(text)
  }
  const [proof] = shown
  if (shown.size > 1) return { status: 400 }
  if (shown.size === 0) return anonymousOf(file)
  const key = proof === undefined ? undefined : file.keys.find(({ sha256 }) => sha256 === hashOf(proof))
  if (!key || (key.expires !== undefined && Date.parse(key.expires) <= nowMs)) return { status: 401 }
  return { principal: { kind: 'key', name: key.name, roles: key.roles } }
}

/** docs/interface/access.md#who-asks: without the member, or with an empty list, there is no such principal. */
function anonymousOf({ anonymous = [] }: AccessFile): Recognized {
  if (anonymous.length === 0) return { status: 401 }
  return { principal: { kind: 'anonymous', name: 'anonymous', roles: anonymous } }
}

/**
 * The roles that a principal has now, which it had shown itself as earlier: its proof may have ended, its rules count
 * (docs/interface/access.md#subscriptions). Undefined if the file does not have it any more.
 */
export function rolesNow(file: AccessFile, { kind, name }: Asking): readonly string[] | undefined {
  if (kind === 'anonymous') return file.anonymous?.length ? file.anonymous : undefined
  return file.keys.find(key => key.name === name)?.roles
}
