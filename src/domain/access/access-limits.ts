// Limits of the access file, of what a token may bring, and of requests under access control
// (docs/interface/access.md#limits).
//
// The operator writes the file. So the limits are wide: they bound what a file costs, and do not get in the way of one
// that makes sense. A file beyond a limit is refused as a whole.

/** UTF-16 units of the file: at most 0.2 s to read. */
export const accessFileLengthMax = 32 * 1024 * 1024

/** Levels of nesting in the file; a complete one has six. */
export const accessFileDepthMax = 20

/** API keys, each some 0.5 KB in memory. */
export const accessKeysMax = 100_000

/** Issuers of tokens. */
export const accessIssuersMax = 100

/** Client certificates. */
export const accessCertificatesMax = 100_000

/** Roles. */
export const accessRolesMax = 10_000

/** Rules of one role. */
export const rulesOfRoleMax = 100

/**
 * Roles of one key, of one certificate, of `anonymous`, and of the default of an issuer. Further roles of a token are
 * ignored.
 */
export const rolesOfPrincipalMax = 100

/** Tenants of one rule. */
export const tenantsOfRuleMax = 10_000

/** Service paths of one rule. */
export const pathsOfRuleMax = 100

/** Types of one rule. */
export const typesOfRuleMax = 1_000

/** Ids and patterns of ids of one rule. */
export const idsOfRuleMax = 1_000

/** Names of attributes of one rule. */
export const attributesOfRuleMax = 1_000

/** Patterns of ids in the whole file. One takes some 0.1 ms to compile. */
export const accessPatternsMax = 1_000

/** Their steps together. Each entity that a principal reads may be compared with all patterns of its rules. */
export const accessPatternStepsMax = 20_000

/** Algorithms of one issuer: as many as there are. */
export const algorithmsMax = 10

/** Values of a claim that an issuer maps to roles. */
export const mappedRolesMax = 10_000

/** Characters of the name of a key, a role, a subject, or a claim. */
export const accessNameLengthMax = 256

/** Characters of an issuer, an audience, a URL or a path of a file, or the subject of a certificate. */
export const accessTextLengthMax = 2_048

/** Tenants with quotas. */
export const quotasMax = 10_000

/** Patterns of each list of `egress`. */
export const egressPatternsMax = 1_000

/** Values of a claim of a token that are examined; further values are ignored. */
export const claimValuesMax = 1_000

/**
 * Comparisons of rules that a request may need for its filters, or for its writes without types: some 10 ms. Beyond, it
 * is refused. There are some 5 for each rule, unless long lists of a rule or of the request overlap with other rules.
 */
export const ruleComparisonsMax = 300_000

/** Bytes of bodies of requests that are kept while their tokens are being verified. Beyond, a request is refused. */
export const heldBodyBytesMax = 64 * 1024 * 1024
