// Which registrations a request is forwarded to (subscriptions.md §13.1), and where that is.
//
// One that has expired is passed over, and one whose provider speaks the first version of the interface: those are kept and shown, but not
// asked. What `status` says has no effect.
//
// Not here: how a query or an update is split and put together again (forwarded-query.ts, forwarded-update.ts).

import type { Registration } from './registration.js'

/** The two kinds of requests that are forwarded. */
export type Forwarded = 'query' | 'update'

/** Whether a registration is there for requests of a kind now. Its path, entities and attributes are looked at besides. */
export function isOpenTo({ provider, expiresMs }: Registration, kind: Forwarded, nowMs: number): boolean {
  const { supportedForwardingMode: mode, legacyForwarding } = provider
  return (mode === 'all' || mode === kind) && !legacyForwarding && (expiresMs === undefined || expiresMs > nowMs)
}

/** What stands between a URL without a path and the operation (`-fwdPathless`). */
export type Pathless = 'plain' | 'slash' | 'v2'

const pathlessPrefix = { plain: '', slash: '/', v2: '/v2' } as const satisfies Record<Pathless, string>

const withoutPath = /^(https?:\/\/[^/]+)\/?$/

/** Where a provider is asked: its URL, and the operation behind it. */
export function operationUrl(providerUrl: string, kind: Forwarded, pathless: Pathless): string {
  const origin = withoutPath.exec(providerUrl)?.[1]
  const base = origin === undefined ? providerUrl.replace(/\/$/, '') : origin + pathlessPrefix[pathless]
  return `${base}/op/${kind}`
}

/** Suffixes that a correlator gets on its way, one for each hop (operations.md §8.5). */
const suffix = /;\s*(?:cbfwd|cbnotif)=/g

/** Suffixes with which a request is neither forwarded nor notified of any more: it goes in a circle (subscriptions.md §13.5). */
const hopsMax = 10

/** A correlator with fewer characters has not made so many hops. */
const loopedLengthMin = hopsMax * ';cbfwd=1'.length

// [hot] Once per request: nearly all correlators are too short.
/** Whether a correlator tells that its request goes in a circle (subscriptions.md §13.5). */
export const isLooped = (correlator: string): boolean =>
  correlator.length >= loopedLengthMin && (correlator.match(suffix)?.length ?? 0) >= hopsMax
