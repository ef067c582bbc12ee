// Where an etcd is, and every knob of its driver, with what it costs.
//
// Not here: what goes over the wire (etcd-requests.ts).

import assert from 'node:assert/strict'

/** Members of one etcd, of which any may be asked. */
export interface EtcdAddress {
  readonly members: readonly string[]
  readonly secure: boolean
  readonly user: string | undefined
  readonly password: string | undefined
}

/** PEM. Without `ca` the system's authorities are trusted; `cert` and `key`, both or none, need it. */
export interface EtcdTls {
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
}

export interface EtcdOptions {
  /** How long until the outcome of a request is `unknown`. Longer waits out an election; shorter fails over sooner. */
  readonly deadlineMs: number
  /** A member that has owed answers for so long, and gives none, is asked nothing new while there are others. */
  readonly patienceMs: number
  /**
   * A connection that has not come about in so long makes room for a new one. A longer time finds a returned member
   * later; a shorter one never finds a member whose handshake takes longer.
   */
  readonly connectMs: number
  /**
   * How often keys are compacted that are older than one such time. etcd needs room for what is appended in two of
   * them; less often saves work, and keeps slow followers from missing something.
   */
  readonly compactMs: number
  /** How often the member that tells us what happens is asked for a sign of life. */
  readonly followPingMs: number
  /** A member that told us nothing for so long is left for another one, which costs whoever follows a gap. */
  readonly followSilentMs: number
  /** Pause before following again: doubled with every failure, from the first to the second. */
  readonly refollowMsMin: number
  readonly refollowMsMax: number
  /** Requests under way; more are refused at once, as `unknown`. */
  readonly requestsMax: number
  /** Bytes of their records. */
  readonly requestBytesMax: number
  /** Spreads nodes over members: a number from 0 up to but without 1. */
  readonly chance: () => number
  readonly tls: EtcdTls
}

export const etcdOptionsDefault: EtcdOptions = {
  deadlineMs: 2000,
  patienceMs: 700,
  connectMs: 2000,
  compactMs: 5000,
  followPingMs: 500,
  followSilentMs: 2000,
  refollowMsMin: 50,
  refollowMsMax: 1000,
  requestsMax: 1000,
  requestBytesMax: 64 * 1024 * 1024,
  chance: Math.random,
  tls: {},
}

const membersMax = 16

/** Defaults for what is not given; asserts that the whole makes sense. */
export function completeEtcdOptions(given: Partial<EtcdOptions>): EtcdOptions {
  const options = { ...etcdOptionsDefault, ...given }
  assert(options.deadlineMs >= 1, 'deadlineMs is too short')
  assert(options.patienceMs >= 1, 'patienceMs is too short')
  assert(options.connectMs >= 1, 'connectMs is too short')
  assert(options.compactMs >= 1, 'compactMs is too short')
  assert(
    options.followPingMs >= 1 && options.followSilentMs >= 2 * options.followPingMs,
    'followSilentMs has no room for two pings',
  )
  assert(
    options.refollowMsMin >= 1 && options.refollowMsMax >= options.refollowMsMin,
    'refollowMsMax is shorter than refollowMsMin',
  )
  assertWhole(options.tls)
  assert(options.requestsMax >= 1, 'requestsMax is too small')
  return Object.freeze(options)
}

/** Asserts that what is shown makes sense. */
export function assertWhole({ ca, cert, key }: EtcdTls): void {
  assert(!cert === !key, 'a certificate needs its key, and a key its certificate')
  assert(!cert || ca, 'a certificate needs that of the authority, too')
}

/**
 * Reads `etcd://host:port,host:port`, or `etcds://` for TLS, with `user:password@` in front if wanted, percent-encoded.
 * A string says what is wrong with it.
 */
export function parseEtcdAddress(text: string): EtcdAddress | string {
  const found = /^(etcds?):\/\/(?:([^@/]*)@)?([^@/]*)\/?$/.exec(text)
  if (!found) return 'not an address of an etcd, as etcd://host:port,host:port'
  const [, scheme, credentials, list = ''] = found
  const members = list.split(',')
  if (members.length > membersMax) return `more than ${membersMax} members`
  const wrong = members.find(member => !isHostAndPort(member))
  if (wrong !== undefined) return `not a host and a port: '${wrong}'`
  const names = credentials === undefined ? [] : decodeCredentials(credentials)
  if (!names) return 'what stands before the @ is not user:password'
  return { members, secure: scheme === 'etcds', user: names[0], password: names[1] }
}

function isHostAndPort(member: string): boolean {
  const found = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(member)
  const port = Number(found?.[1])
  return port >= 1 && port <= 65_535
}

function decodeCredentials(text: string): readonly string[] | undefined {
  const colon = text.indexOf(':')
  if (colon < 1) return undefined
  try {
    return [text.slice(0, colon), text.slice(colon + 1)].map(decodeURIComponent)
  } catch {
    return undefined
  }
}
