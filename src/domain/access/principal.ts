// Principals: the identity behind a request (docs/interface/access.md#who-asks), and the creator of a document
// (docs/interface/access.md#owners).
//
// What a proof shows is a `PrincipalSource`: plain data, which is stored with a subscription. The roles come from the
// access file, and are found again in each new one. So a new file that narrows the rights of a principal has an effect
// at once, also on its subscriptions.
//
// Not here: whether a proof is right. The code that receives it compares hashes and checks signatures.

import { isArray, isObject, type Json, type JsonObject } from '../json.js'
import { parseTenant } from '../scope.js'
import type { AccessFile } from './access-file.js'
import { accessNameLengthMax, claimValuesMax, rolesOfPrincipalMax } from './access-limits.js'
import { type AccessKey, anonymousName, type TokenIssuer } from './proofs-parser.js'

/** What a proof shows. */
export type PrincipalSource =
  | { readonly proof: 'key'; readonly name: string }
  | {
      readonly proof: 'token'
      readonly issuer: string
      readonly name: string
      /** The values of the claim of roles that the issuer maps. */
      readonly claimed: readonly string[]
      /** The tenants to which the token is narrowed; undefined: it is not. */
      readonly tenants?: readonly string[] | undefined
    }
  /** `name`: the subject that the access file has. */
  | { readonly proof: 'certificate'; readonly name: string }
  /** Nothing was shown. */
  | { readonly proof: 'none'; readonly name: string }

/** What a request has shown, whether or not it is right. `conflict`: two different proofs. */
export type ShownKind = 'nothing' | 'key' | 'token' | 'certificate' | 'conflict' | 'malformed'

/** A principal under an access file. */
export interface Principal {
  readonly source: PrincipalSource
  /** No role twice; all are in the file. */
  readonly roles: readonly string[]
  /** The only tenants in which its rules count; undefined: all. */
  readonly tenants: ReadonlySet<string> | undefined
}

/** The principal of requests that show nothing. */
export const nothingShown: PrincipalSource = { proof: 'none', name: anonymousName }

export const keyShown = ({ name }: AccessKey): PrincipalSource => ({ proof: 'key', name })

/** Whether a key is not accepted any more. */
export const isKeyExpired = ({ expiresMs }: AccessKey, nowMs: number): boolean =>
  expiresMs !== undefined && expiresMs <= nowMs

/**
 * What a certificate shows: the first of its subject and its other names (`URI:...`, `DNS:...`) that the file has;
 * undefined: it has none of them.
 */
export function certificateShown(
  { certificates }: AccessFile,
  subject: string,
  otherNames: readonly string[],
): PrincipalSource | undefined {
  const found = [subject, ...otherNames].find(name => certificates.has(name))
  return found === undefined ? undefined : { proof: 'certificate', name: found }
}

/** What the claims of a verified token show; undefined: the claim with its name is missing, or is no name. */
export function tokenShown(issuer: TokenIssuer, claims: JsonObject): PrincipalSource | undefined {
  const name = claimAt(claims, issuer.subject)
  if (typeof name !== 'string' || !isName(name)) return undefined
  const { claim, map } = issuer.roles
  const values = claim === undefined ? [] : valuesAt(claims, claim)
  const claimed = [...new Set(values.filter(value => map.has(value)))]
  const source = { proof: 'token', issuer: issuer.issuer, name, claimed } as const
  if (issuer.tenantsClaim === undefined) return source
  return { ...source, tenants: tenantsAt(claims, issuer.tenantsClaim) }
}

const isName = (text: string): boolean =>
  text !== '' && text.length <= accessNameLengthMax && !/\p{Cc}/u.test(text) && text.isWellFormed()

/**
 * The value of a claim: the one of exactly this name, or the one to which names with dots lead
 * (docs/interface/access.md#claims). Only own members count: `constructor` is no claim.
 */
function claimAt(claims: JsonObject, name: string): Json | undefined {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: Json | undefined = claims
  for (const step of name.split('.')) {
    if (!isObject(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return value
}

/** The texts of a claim: it is a text, or a list that may have other elements as well. */
function valuesAt(claims: JsonObject, name: string): readonly string[] {
  const value = claimAt(claims, name)
  if (typeof value === 'string') return [value]
  if (!isArray(value)) return []
  return value.slice(0, claimValuesMax).filter(one => typeof one === 'string')
}

/** The tenants that a claim names. An empty text alone names none: it may be a user without tenants. */
function tenantsAt(claims: JsonObject, name: string): readonly string[] {
  if (claimAt(claims, name) === '') return []
  const tenants = valuesAt(claims, name).map(parseTenant)
  return [...new Set(tenants.flatMap(tenant => (tenant.ok ? tenant.value : [])))]
}

/** The principal under a file; undefined: the file does not have its key, issuer or certificate (any more). */
export function principalOf(file: AccessFile, source: PrincipalSource): Principal | undefined {
  const roles = rolesOf(file, source)
  return roles && { source, roles, tenants: tenantsOf(file, source) }
}

function rolesOf(file: AccessFile, source: PrincipalSource): readonly string[] | undefined {
  switch (source.proof) {
    case 'key':
      return file.rolesOfKeys.get(source.name)
    case 'certificate':
      return file.certificates.get(source.name)?.roles
    case 'none':
      return file.anonymous
    case 'token': {
      const mapping = file.issuers.get(source.issuer)?.roles
      if (!mapping) return undefined
      const mapped = new Set(source.claimed.flatMap(value => mapping.map.get(value) ?? []))
      return mapped.size > 0 ? [...mapped].slice(0, rolesOfPrincipalMax) : mapping.byDefault
    }
  }
}

function tenantsOf({ issuers }: AccessFile, source: PrincipalSource): ReadonlySet<string> | undefined {
  if (source.proof !== 'token') return undefined
  // A token from before the file named the claim has no tenants.
  const isNarrowed = source.tenants !== undefined || issuers.get(source.issuer)?.tenantsClaim !== undefined
  return isNarrowed ? new Set(source.tenants) : undefined
}

/** A subscription or registration, as far as it is seen or not. */
export interface OwnedDocument {
  readonly owner?: PrincipalSource | undefined
}

/** Which documents of a tenant a reader sees, by the present file. */
export type VisibleDocuments = (reader: PrincipalSource, tenant: string) => (document: OwnedDocument) => boolean

/** Whether two proofs show one principal. Names count only within one kind of proof, and one issuer. */
export function isSamePrincipal(a: PrincipalSource, b: PrincipalSource): boolean {
  if (a.proof !== b.proof || a.name !== b.name) return false
  return a.proof !== 'token' || b.proof !== 'token' || a.issuer === b.issuer
}

/**
 * Whether a principal sees and changes a subscription or registration (docs/interface/access.md#owners). `creator`: the
 * principal that has created it; undefined: there is none, or none any more. `isAdmin`: whether the rules of the
 * principal allow `admin` for everything in the tenant.
 */
export function mayHandle(principal: Principal, creator: Principal | undefined, isAdmin: boolean): boolean {
  if (isAdmin) return true
  if (!creator) return false
  if (isSamePrincipal(principal.source, creator.source)) return true
  // It would act with the rules of the creator, so it needs all of these roles.
  return creator.roles.length > 0 && creator.roles.every(role => principal.roles.includes(role))
}
