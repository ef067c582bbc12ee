// Every option of gossip with its cost, and the formulas that follow. bench/gossip.ts compares measurements with these.
//
// With n members, P the period, T the timeout of a ping, G the time between pings that carry news, nothing lost or
// slow:
//
//   suspicion   starts when a probe has failed, and takes at least S = suspicionPeriods * max(1, log10 n) * P, and no
//               less than `pauseMs`
//   detection   of a member that falls silent, until the first of the others reports it as dead:
//                 P * (n - 1) / n      until a member probes it: each of n - 1 does so once in n - 1 periods
//                 + T + 0.8 * (P - T)  the ping, then those of helpers
//                 + S                  suspicion, when `confirmations` others have found the same, or all there are
//                 If only the member's process has ended, its machine refuses connections, and detection takes
//                 P * (n - 1) / n
//                 + refusedPeriods * max(1, log10 n) * P, in which others mostly confirm it
//   spreading   until all have some news: P * 2 / (2 + P / G) * (m - 1) / m * (1 + 1/2 + ... + 1/(m - 1)) with
//               m = n - 1 that are left: each begins one exchange in a period, P / G more when it knows, and both send.
//               So the members that know, i, and those that do not meet (2 + P / G) * i * (m - i) / (m - 1) times in a
//               period
//   bytes       sent by a member in a second: (ping + acknowledgement) * 1000 / P + 2 * n * member * 1000 / E, with E
//               the time between exchanges, 30 s up to 32 members and by log2(n / 32) as much longer beyond
//
// The period is 300 ms and not the usual 1 s: three members on one network detect within 1.3 s that the process of one
// has ended. The worst case is three periods until the probe, and one until the other member has confirmed it. The load
// is 3.3 pings a second for each member, some 0.1 ms of CPU each.
//
// A member that is only silent may live. On a machine with ten runnable threads for each core, 0.3 s of work takes 3 s
// of time, and a collection of garbage and some other work add up to that (measured: 3.2 to 5.6 s in the first seconds
// of a node). Its death would be believed, its shards taken over, and changes under way refused. So suspicion of a
// member whose machine does not refuse connections lasts `pauseMs`. A machine that is gone, or cut off, is dead for three
// members within three periods until the probe, one for it, and those 3.6 s: 4.8 s.

import assert from 'node:assert/strict'

/**
 * The version of the messages that this build writes. A node ignores messages that it cannot read because of another
 * version, counts them, reports them to the operator, and informs the sender.
 */
export const gossipVersion = 1

/** The lowest version that this build reads, and that can read it. Raised one release after `gossipVersion`. */
export const gossipVersionLowest = 1

/**
 * Members known at once, those gone lately included. Bounds memory (500 bytes each) and an exchange (100 bytes each).
 */
export const membersMax = 2000

/**
 * A new life begins so far above the last known incarnation of its name, so late messages of an earlier life stay
 * below.
 */
export const lifeStride = 1000

/** Relayed pings in flight at once; beyond that a helper answers that it had no answer. */
export const relaysMax = 64

/** Addresses of seeds, and of dead members, that are tried in one round. */
export const seedAddressesMax = 64

/** The share of the rest of the period that helpers wait, so that their "no" arrives before it ends. */
export const helperShare = 0.8

/** Rounds of messages that this node leaves, when none was acknowledged. */
export const farewellsMax = 3

export interface GossipOptions {
  /** P: how often each member probes another one. Half of it costs twice the messages and halves every time above. */
  readonly periodMs: number
  /**
   * T: how long an acknowledgement may take, several round trips and pauses. A shorter time asks helpers in vain more
   * often.
   */
  readonly pingTimeoutMs: number
  /** How many others ping a silent member. More find ways around a bad path, and cost two messages each. */
  readonly helpers: number
  /**
   * A node that may be slow itself multiplies period and timeout by up to so much + 1: fewer false alarms, later
   * detection.
   */
  readonly healthMax: number
  /** Least periods of suspicion, for each factor of ten in members. More forgives longer pauses, and detects later. */
  readonly suspicionPeriods: number
  /**
   * The same while the machine of the member refuses this node's connections. Some firewalls refuse as well: behind
   * such a cut a living member has only so long to refute the suspicion.
   */
  readonly refusedPeriods: number
  /**
   * Suspicion lasts so long at least, unless the machine of the member refuses this node's connections. More forgives
   * longer pauses of living processes, and detects later that a machine is gone.
   */
  readonly pauseMs: number
  /**
   * Suspicion that no other node confirms lasts so many times as long: the suspecting node may be the one that is cut
   * off.
   */
  readonly suspicionFactorMax: number
  /** After confirmations by so many others, suspicion is as short as it can be. */
  readonly confirmations: number
  /**
   * How often each member sends a rumour, times ln(members + 1): with fewer, some learn of it only in the next
   * exchange.
   */
  readonly transmissions: number
  /**
   * G: how often a node with news pings another member in addition. Free at rest. A suspect learns of it so much
   * sooner.
   */
  readonly spreadMs: number
  /** Bytes of rumours in a message, and again of its sender's suspects: none at rest, many while many members fail. */
  readonly rumoursBytesMax: number
  /**
   * How often a member exchanges all it knows with another, up to 32 members; with more, less often. Repairs missed
   * rumours.
   */
  readonly exchangeMs: number
  /** How long the answer may take: the first question to a seed includes making a connection. */
  readonly exchangeTimeoutMs: number
  /** How long members that are gone are remembered: longer than any rumour about them may travel. */
  readonly forgetMs: number
  /**
   * Pause before seeds and dead members are tried again: doubled from the first to the second while alone, else to
   * `exchangeMs`.
   */
  readonly seekMsMin: number
  readonly seekMsMax: number
  /** How many members learn at once that this node leaves. */
  readonly farewells: number
}

export const gossipOptionsDefault: GossipOptions = {
  periodMs: 300,
  pingTimeoutMs: 150,
  helpers: 3,
  healthMax: 8,
  suspicionPeriods: 4,
  refusedPeriods: 1,
  pauseMs: 3600,
  suspicionFactorMax: 6,
  confirmations: 3,
  transmissions: 4,
  spreadMs: 100,
  rumoursBytesMax: 1400,
  exchangeMs: 30_000,
  exchangeTimeoutMs: 2000,
  forgetMs: 600_000,
  seekMsMin: 500,
  seekMsMax: 5000,
  farewells: 4,
}

/** Fills in defaults, and asserts that the options fit together. */
export function completeGossipOptions(given: Partial<GossipOptions>): GossipOptions {
  const options = { ...gossipOptionsDefault, ...given }
  assert(options.pingTimeoutMs >= 1 && options.periodMs > options.pingTimeoutMs, 'periodMs has no room for helpers')
  assert(options.helpers >= 0 && options.confirmations >= 0 && options.healthMax >= 0, 'a number of gossip is negative')
  assert(options.suspicionPeriods >= 1 && options.suspicionFactorMax >= 1, 'suspicion is shorter than a probe')
  assert(options.pauseMs >= 0, 'pauseMs is no time')
  assert(options.refusedPeriods > 0, 'a refused connection would be a death')
  assert(options.transmissions >= 1 && options.spreadMs >= 1 && options.farewells >= 1, 'no rumour would be sent')
  assert(options.exchangeMs >= options.periodMs && options.rumoursBytesMax >= 0, 'exchangeMs is shorter than periodMs')
  assert(options.forgetMs >= options.exchangeMs, 'forgetMs is shorter than exchangeMs')
  assert(options.seekMsMin >= 1 && options.seekMsMax >= options.seekMsMin, 'seekMsMax is shorter than seekMsMin')
  return Object.freeze(options)
}

/**
 * How long a member is suspected, among `members`, when so many others have confirmed it (Lifeguard, IV-B).
 * `isRefused`: its machine refuses connections to its address.
 */
export function suspicionMs(options: GossipOptions, members: number, confirmed: number, isRefused = false): number {
  const periods = isRefused ? options.refusedPeriods : options.suspicionPeriods
  const pauseMs = isRefused ? 0 : options.pauseMs
  const leastMs = periods * Math.max(1, Math.log10(Math.max(1, members))) * options.periodMs
  // Besides the suspecting and the suspected member, so many may confirm it.
  const needed = Math.min(options.confirmations, members - 2)
  if (needed < 1 || confirmed >= needed) return Math.max(pauseMs, leastMs)
  const share = Math.log(confirmed + 1) / Math.log(needed + 1)
  return Math.max(pauseMs, leastMs * (options.suspicionFactorMax - (options.suspicionFactorMax - 1) * share))
}

export function transmissionsMax(options: GossipOptions, members: number): number {
  return options.transmissions * Math.ceil(Math.log(members + 1))
}

/** E: how often a node exchanges all it knows with one other. */
export function exchangeEveryMs(options: GossipOptions, members: number): number {
  return options.exchangeMs * (1 + Math.max(0, Math.log2(members / 32)))
}
