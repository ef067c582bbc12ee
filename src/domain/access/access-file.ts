// The access file: who may do what (docs/interface/access.md#the-file). And its parser.
//
//   text -> readAccessJson -> document -> accessFileOf -> AccessFile
//
// A file is refused as a whole, with the line, the place and the reason of the first fault. The parts are read one by
// one first, then what they say about each other: each named role has to be defined.
//
// Not here: rules (access-rule.ts), keys, issuers and certificates (proofs-parser.ts), decisions (grant.ts).

import { compilePattern } from '../queries/pattern.js'
import { accepted, type Result, refusals, refused } from '../refusal.js'
import { parseEgressPattern } from '../subscriptions/receiver-url.js'
import { type AccessDocument, type AccessPlace, describeFault, readAccessJson } from './access-document.js'
import {
  accessPatternStepsMax,
  accessPatternsMax,
  accessRolesMax,
  accessTextLengthMax,
  egressPatternsMax,
  rulesOfRoleMax,
} from './access-limits.js'
import { type AccessRule, parseRule } from './access-rule.js'
import {
  type FileFault,
  type FileParser,
  faulty,
  filledListOf,
  listOf,
  mapOf,
  objectOf,
  orElse,
  orNone,
  textOf,
} from './file-parsers.js'
import {
  type AccessKey,
  anonymous,
  type ClientCertificate,
  certificates,
  issuers,
  keys,
  roleName,
  type TokenIssuer,
} from './proofs-parser.js'
import { type Quotas, quotas } from './quotas.js'

/** A file without faults. Immutable. */
export interface AccessFile {
  /** The roles of clients that show nothing; undefined: they have to show something. */
  readonly anonymous: readonly string[] | undefined
  /** By their hash. */
  readonly keys: ReadonlyMap<string, AccessKey>
  /** The roles of each name of a key. */
  readonly rolesOfKeys: ReadonlyMap<string, readonly string[]>
  /** By their name in tokens. */
  readonly issuers: ReadonlyMap<string, TokenIssuer>
  /** By their subject, in the order of the file. */
  readonly certificates: ReadonlyMap<string, ClientCertificate>
  /** Every role that any part of the file names is here. */
  readonly roles: ReadonlyMap<string, readonly AccessRule[]>
  readonly quotas: Quotas
  /** Where messages may go; undefined: the file does not say. */
  readonly egress: AccessEgress | undefined
}

/** Patterns of destinations. */
export interface AccessEgress {
  /** Empty: everything but link-local addresses. */
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

/** The access file with this text, or a refusal (`accessFile`) for the first fault. */
export function parseAccessFile(text: string): Result<AccessFile> {
  const document = readAccessJson(text)
  return document.ok ? accessFileOf(document.value) : document
}

/** The access file in a document of another syntax. */
export function accessFileOf({ value, lineOf }: AccessDocument): Result<AccessFile> {
  const refuse = ({ place, problem }: FileFault): Result<never> =>
    refused(refusals.accessFile(describeFault(lineOf(place), place, problem)))
  const members = parseMembers(value)
  if (!members.ok) return refuse(members.fault)
  const fault = undefinedRole(members.value) ?? costlyPattern(members.value.roles)
  return fault ? refuse(fault) : accepted(fileOf(members.value))
}

/** The members as they are in the file. */
interface AccessMembers {
  readonly anonymous: readonly string[] | undefined
  readonly keys: readonly AccessKey[]
  readonly issuers: readonly TokenIssuer[]
  readonly certificates: readonly ClientCertificate[]
  readonly roles: ReadonlyMap<string, readonly AccessRule[]>
  readonly quotas: Quotas
  readonly egress: AccessEgress | undefined
}

const destination = textOf({
  said: 'a host, host:port, an address or a network',
  lengthMax: accessTextLengthMax,
  read: text => (parseEgressPattern(text) ? text : undefined),
})

const egress: FileParser<AccessEgress> = objectOf<AccessEgress>({
  allow: orElse(
    filledListOf(destination, egressPatternsMax, 'leave it out for everything but link-local addresses'),
    [],
  ),
  deny: orElse(listOf(destination, egressPatternsMax), []),
})

const parseMembers: FileParser<AccessMembers> = objectOf<AccessMembers>({
  anonymous: orNone(anonymous),
  keys: orElse(keys, []),
  issuers: orElse(issuers, []),
  certificates: orElse(certificates, []),
  roles: orElse<AccessMembers['roles']>(mapOf(roleName, listOf(parseRule, rulesOfRoleMax), accessRolesMax), new Map()),
  quotas: orElse<Quotas>(quotas, new Map()),
  egress: orNone(egress),
})

function fileOf({ keys, issuers, certificates, ...others }: AccessMembers): AccessFile {
  return {
    ...others,
    keys: new Map(keys.map(one => [one.sha256, one])),
    rolesOfKeys: new Map(keys.map(({ name, roles }) => [name, roles])),
    issuers: new Map(issuers.map(one => [one.issuer, one])),
    certificates: new Map(certificates.map(one => [one.subject, one])),
  }
}

/** The first place that names a role which is not defined. */
function undefinedRole({ anonymous, keys, issuers, certificates, roles }: AccessMembers): FileFault | undefined {
  const faultOf = (names: readonly string[], ...place: (string | number)[]): FileFault | undefined => {
    const unknown = names.find(name => !roles.has(name))
    if (unknown === undefined) return undefined
    return faulty(`names the role ${JSON.stringify(unknown)}, which is not in roles`, ...place).fault
  }
  for (const [at, { roles: names }] of keys.entries()) {
    const fault = faultOf(names, 'keys', at, 'roles')
    if (fault) return fault
  }
  for (const [at, { roles: names }] of certificates.entries()) {
    const fault = faultOf(names, 'certificates', at, 'roles')
    if (fault) return fault
  }
  for (const [at, { roles: mapping }] of issuers.entries()) {
    const fault =
      faultOf([...mapping.map.values()], 'issuers', at, 'roles', 'map') ??
      faultOf(mapping.byDefault, 'issuers', at, 'roles', 'default')
    if (fault) return fault
  }
  return faultOf(anonymous ?? [], 'anonymous')
}

/** The first pattern beyond the limits of the whole file. */
function costlyPattern(roles: AccessMembers['roles']): FileFault | undefined {
  let count = 0
  let steps = 0
  for (const { pattern, place } of patternsOf(roles)) {
    count++
    steps += compilePattern(pattern)!.steps
    if (count > accessPatternsMax)
      return faulty(`is one pattern too many: a file may have ${accessPatternsMax}`, ...place).fault
    if (steps > accessPatternStepsMax)
      return faulty(`is too large: all patterns may have ${accessPatternStepsMax} steps together`, ...place).fault
  }
  return undefined
}

function* patternsOf(roles: AccessMembers['roles']): Generator<{ pattern: string; place: AccessPlace }> {
  for (const [role, rules] of roles)
    for (const [at, { ids = [] }] of rules.entries())
      for (const [index, id] of ids.entries())
        if (typeof id !== 'string') yield { pattern: id.pattern, place: ['roles', role, at, 'ids', index] }
}
