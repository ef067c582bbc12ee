// Limits of proofs, of the keys of issuers, of quotas, and of access files in YAML (docs/interface/access.md#limits).
//
// Any client may send tokens, so these bound the memory and the work that strangers cause.

/** Characters of a key or token in a header. */
export const proofLengthMax = 16 * 1024

/** Verified tokens that are remembered, some 1 KB each. */
export const rememberedTokensMax = 10_000

/** Keys, and as many tokens, that are found by their text without a hash; a power of two. */
export const recentProofsMax = 1_024

/** Characters of such a key or token: all of them together have 8 MB at most. */
export const recentProofLengthMax = 4_096

/** Tokens whose signatures are being verified: at most 0.2 s of work. Raising it trades latency for fewer 503s. */
export const verificationsMax = 1_000

/** Tokens that wait until the keys of their issuer have been fetched. They do not delay other issuers. */
export const tokensWaitingMax = 1_000

/** Keys that are tried for a token that does not name its key. */
export const keysOfTokenMax = 10

/** How long a token is accepted after `exp` and before `nbf`, since clocks differ. */
export const tokenLeewayS = 60

/** For an unknown `kid` the keys of an issuer are fetched again at most once in this time. */
export const keysAgainMs = 30_000

/** Time between two regular fetches. A key that the issuer has withdrawn is accepted for at most this time. */
export const keysRefreshMs = 600_000

/** Names of withdrawn keys that are remembered for one issuer. */
export const withdrawnKeysMax = 200

/** How long one fetch may take. */
export const keysTimeoutMs = 5_000

/** Bytes of the keys of one issuer. */
export const jwksBytesMax = 256 * 1024

/** Keys of one issuer. */
export const jwksKeysMax = 100

/** Characters of an access file in YAML. Reading it blocks the broker for up to 0.7 s. */
export const accessYamlLengthMax = 1024 * 1024

/** Values in a file in YAML, with each alias counted as what it stands for. */
export const accessYamlValuesMax = 500_000

/** Names in all grants that are remembered. Raising it costs some 200 bytes each. */
export const rememberedNamesMax = 200_000

/** Tenants whose rates are in memory, some 200 bytes each; up to twice as many for a moment. */
export const rateBucketsMax = 10_000

/** Tenants whose quotas are reported and counted separately: up to 18 series each. */
export const quotaTenantsCountedMax = 1_000
