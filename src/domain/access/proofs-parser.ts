// The members of the access file about who asks: keys, issuers of tokens, certificates
// (docs/interface/access.md#who-asks).
//
// A key is in the file as its hash only. Nothing here compares a key: the code that receives it does, in constant time.

import { parseDateTime } from '../date-time.js'
import type { Json } from '../json.js'
import { parseReceiverUrl } from '../subscriptions/receiver-url.js'
import {
  accessCertificatesMax,
  accessIssuersMax,
  accessKeysMax,
  accessNameLengthMax,
  accessTextLengthMax,
  algorithmsMax,
  mappedRolesMax,
  rolesOfPrincipalMax,
} from './access-limits.js'
import {
  type FileParser,
  type FileResult,
  faulty,
  filledListOf,
  listOf,
  mapOf,
  objectOf,
  orElse,
  orNone,
  parsed,
  refine,
  required,
  secretOf,
  textOf,
  wordOf,
} from './file-parsers.js'

/** An API key. */
export interface AccessKey {
  /** The name of its principal. Keys may share one, if they have the same roles. */
  readonly name: string
  /** The SHA-256 of the key, 64 lower-case hexadecimal digits. */
  readonly sha256: string
  readonly roles: readonly string[]
  /** The instant from which on it is not accepted; undefined: it is always accepted. */
  readonly expiresMs: number | undefined
}

/** Algorithms of signatures. All of them are asymmetric. */
export const tokenAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const

export type TokenAlgorithm = (typeof tokenAlgorithms)[number]

/** Where the public keys of an issuer are. */
export type IssuerKeys =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'file'; readonly path: string }

/** An issuer of tokens. */
export interface TokenIssuer {
  readonly issuer: string
  readonly audience: string
  readonly keys: IssuerKeys
  /** Never empty. */
  readonly algorithms: readonly TokenAlgorithm[]
  /** The claim with the name of the principal. */
  readonly subject: string
  readonly roles: RoleMapping
  /** The claim with the tenants to which tokens are narrowed; undefined: they are not. */
  readonly tenantsClaim: string | undefined
}

/** How the claims of a token become roles. */
export interface RoleMapping {
  /** The claim with values of the map; undefined: every token has the default roles. */
  readonly claim: string | undefined
  /** The role of each value. */
  readonly map: ReadonlyMap<string, string>
  /** The roles of a token whose claim has no value of the map. */
  readonly byDefault: readonly string[]
}

/** A certificate that a client shows. */
export interface ClientCertificate {
  /** Its subject in the form of RFC 2253, or one of its other names as `URI:` or `DNS:` and the name. */
  readonly subject: string
  readonly roles: readonly string[]
}

const name = textOf({
  said: `a name of at most ${accessNameLengthMax} characters`,
  lengthMax: accessNameLengthMax,
  read: text => (text.trim() === text ? text : undefined),
})

/** The name of a role, where it is defined and where it is used. */
export const roleName: FileParser<string> = name

export const roleNames: FileParser<readonly string[]> = refine(listOf(roleName, rolesOfPrincipalMax), names =>
  parsed([...new Set(names)]),
)

/** The principal without a proof has this name, so no key may have it. */
export const anonymousName = 'anonymous'

const keyName: FileParser<string> = refine(name, text =>
  text === anonymousName
    ? faulty(`may not be ${anonymousName}: clients that show nothing have this name`)
    : parsed(text),
)

const hash = secretOf({
  said: 'the SHA-256 of the key (64 hexadecimal digits), never the key itself',
  lengthMax: 64,
  read: text => (/^[0-9A-Fa-f]{64}$/.test(text) ? text.toLowerCase() : undefined),
})

const expiry: FileParser<number> = json => {
  const ms = typeof json === 'string' ? parseDateTime(json) : undefined
  return ms === undefined ? faulty('must be a date as 2027-01-01T00:00:00Z') : parsed(ms)
}

const key: FileParser<AccessKey> = refine(
  objectOf({
    name: required(keyName),
    sha256: required(hash),
    roles: required(roleNames),
    expires: orNone(expiry),
  }),
  ({ name, sha256, roles, expires }) => parsed({ name, sha256, roles, expiresMs: expires }),
)

/** The member `keys`. A hash is there once, and keys of one name have the same roles. */
export const keys: FileParser<readonly AccessKey[]> = refine(listOf(key, accessKeysMax), checkKeys)

function checkKeys(all: readonly AccessKey[]): FileResult<readonly AccessKey[]> {
  const hashes = new Set<string>()
  const rolesOf = new Map<string, readonly string[]>()
  for (const [at, { name, sha256, roles }] of all.entries()) {
    if (hashes.has(sha256)) return faulty('is the hash of another key as well', at, 'sha256')
    hashes.add(sha256)
    const known = rolesOf.get(name)
    if (known && !isSameSet(known, roles))
      return faulty(`another key of the name ${JSON.stringify(name)} has other roles`, at, 'roles')
    rolesOf.set(name, roles)
  }
  return parsed(all)
}

/** Lists without duplicates. */
const isSameSet = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every(one => b.includes(one))

const text = (said: string): FileParser<string> => textOf({ said, lengthMax: accessTextLengthMax })

const url = textOf({
  said: 'an http or https URL',
  lengthMax: accessTextLengthMax,
  read: given => {
    const scheme = parseReceiverUrl(given)?.scheme
    return scheme === 'http' || scheme === 'https' ? given : undefined
  },
})

/** A claim, by its name, or by names with dots from the outside inwards. */
const claim = textOf({
  said: 'the name of a claim',
  lengthMax: accessNameLengthMax,
  read: given => (given.split('.').includes('') ? undefined : given),
})

const claimValue = textOf({ said: 'a value of the claim', lengthMax: accessTextLengthMax })

const mapping: FileParser<RoleMapping> = refine(
  objectOf({
    claim: orNone(claim),
    map: orNone(mapOf(claimValue, roleName, mappedRolesMax)),
    default: orElse(roleNames, []),
  }),
  ({ claim, map, default: byDefault }): FileResult<RoleMapping> => {
    if (claim !== undefined && !map) return faulty('the member map is missing: it names the role of each value')
    if (claim === undefined && map) return faulty('the member claim is missing: it names the claim with the values')
    return parsed({ claim, map: map ?? new Map(), byDefault })
  },
)

const noMapping: RoleMapping = { claim: undefined, map: new Map(), byDefault: [] }

const tenantsClaim: FileParser<string> = refine(objectOf({ claim: required(claim) }), value => parsed(value.claim))

const algorithms: FileParser<readonly TokenAlgorithm[]> = filledListOf(
  wordOf(tokenAlgorithms),
  algorithmsMax,
  'it names the algorithms that are accepted',
)

const issuer: FileParser<TokenIssuer> = refine(
  objectOf({
    issuer: required(text('the issuer, as iss in its tokens')),
    audience: required(text('the audience, as aud in its tokens')),
    jwks: orNone(url),
    jwksFile: orNone(text('the path of a file')),
    algorithms: required(algorithms),
    subject: orElse(claim, 'sub'),
    roles: orElse(mapping, noMapping),
    tenants: orNone(tenantsClaim),
  }),
  ({ jwks, jwksFile, tenants, ...others }): FileResult<TokenIssuer> => {
    if (jwks !== undefined && jwksFile !== undefined) return faulty('jwks and jwksFile are both there, one is enough')
    if (jwks !== undefined) return parsed({ ...others, keys: { kind: 'url', url: jwks }, tenantsClaim: tenants })
    if (jwksFile === undefined) return faulty('the member jwks, or jwksFile, is missing')
    return parsed({ ...others, keys: { kind: 'file', path: jwksFile }, tenantsClaim: tenants })
  },
)

/** The member `issuers`. */
export const issuers: FileParser<readonly TokenIssuer[]> = refine(listOf(issuer, accessIssuersMax), all =>
  unique(all, 'issuer'),
)

// `CN=a,O=b`: types are names or numbers, a comma or a plus in a value is escaped. OpenSSL writes no blank behind a
// comma.
const subjectForm =
  /^(?:[A-Za-z][\w-]*|\d+(?:\.\d+)*)=(?:[^\\,+]|\\.)*(?:[,+](?:[A-Za-z][\w-]*|\d+(?:\.\d+)*)=(?:[^\\,+]|\\.)*)*$/
const otherNameForm = /^(?:URI|DNS):\S+$/

const subject = textOf({
  said: 'a subject as OpenSSL prints it (RFC 2253, as CN=gateway-9,O=City), or a name as URI:... or DNS:...',
  lengthMax: accessTextLengthMax,
  read: given => (subjectForm.test(given) || otherNameForm.test(given) ? given : undefined),
})

/** The member `certificates`. */
export const certificates: FileParser<readonly ClientCertificate[]> = refine(
  listOf(
    objectOf<ClientCertificate>({ subject: required(subject), roles: required(roleNames) }),
    accessCertificatesMax,
  ),
  all => unique(all, 'subject'),
)

/** The list, if no two elements have the same text in a member. */
function unique<T>(all: readonly T[], member: keyof T & string): FileResult<readonly T[]> {
  const seen = new Set<T[keyof T & string]>()
  for (const [at, one] of all.entries()) {
    if (seen.has(one[member])) return faulty('is there twice', at, member)
    seen.add(one[member])
  }
  return parsed(all)
}

/** The member `anonymous`; undefined: a client has to show a proof. An empty list counts as none. */
export const anonymous: FileParser<readonly string[] | undefined> = (json: Json) => {
  const roles = roleNames(json)
  return roles.ok && roles.value.length === 0 ? parsed(undefined) : roles
}
