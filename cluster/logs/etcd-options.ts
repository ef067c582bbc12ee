// The address of an etcd, and every option of its driver with its cost.
//
// Not here: the requests themselves (etcd-requests.ts).

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
  /**
   * A member that has answered nothing for so long, with requests in flight, gets no new ones while there are others.
   */
  readonly patienceMs: number
  /**
   * When a member has answered nothing for so long, a request to it that may be repeated goes to another member, too. A
   * shorter time costs requests that are made twice when members are slow; a longer one holds every change up for
   * longer when a member stops.
   */
  readonly secondTryMs: number
  /** Second tries in flight; more requests wait for the member that they were sent to. */
  readonly secondTriesMax: number
  /**
   * A connection that is not established after so long makes room for a new one. A longer time finds a returned member
   * later; a shorter one never finds a member whose handshake takes longer.
   */
  readonly connectMs: number
  /**
   * How often the driver compacts keys that are older than one such time. etcd needs room for the appends of two such
   * times. A longer time saves work, and makes slow followers miss less.
   */
  readonly compactMs: number
  /** How often the member that is being followed is asked for a sign of progress. */
  readonly followPingMs: number
  /** A followed member that has been silent for so long is replaced by another one. Each follower then has a gap. */
  readonly followSilentMs: number
  /** Pause before following again: doubled with every failure, from the first to the second. */
  readonly refollowMsMin: number
  readonly refollowMsMax: number
  /** Requests in flight; more are refused at once, as `unknown`. */
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
  secondTryMs: 300,
  secondTriesMax: 16,
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

/** Fills in defaults, and asserts that the options fit together. */
export function completeEtcdOptions(given: Partial<EtcdOptions>): EtcdOptions {
  const options = { ...etcdOptionsDefault, ...given }
  assert(options.deadlineMs >= 1, 'deadlineMs is too short')
  assert(options.patienceMs >= 1, 'patienceMs is too short')
  assert(options.secondTryMs >= 1, 'secondTryMs is too short')
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

/** Asserts that the files of a TLS configuration fit together. */
export function assertWhole({ ca, cert, key }: EtcdTls): void {
  assert(!cert === !key, 'a certificate needs its key, and a key its certificate')
  assert(!cert || ca, 'a certificate needs the certificate of its authority')
}

/**
 * Reads `etcd://host:port,host:port`, or `etcds://` for TLS, with `user:password@` in front if wanted, percent-encoded.
 * Returns a string that describes the mistake if there is one.
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
  if (!names) return 'the part before the @ is not user:password'
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
