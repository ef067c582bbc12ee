// Every option of asks with its cost, and the limits of the protocol, which are the same on all nodes.

import assert from 'node:assert/strict'

/**
 * The protocol versions that this build speaks, both included: each side of a stream sends its own in its first frame.
 */
export const protocolVersions = { lowest: 2, highest: 2 } as const

const mib = 1024 * 1024

/** Asks in one frame: enough to make a frame cheap, few enough that the first ones need not wait for the last. */
export const asksPerFrameMax = 64

export const answersPerFrameMax = 256

/** A frame takes no further ask or answer when it has so many bytes of them. Also the longest part of a reply. */
export const frameBytesMax = mib / 4

/** Bytes of a request. A request travels in one piece, so everything behind it waits until it is sent. */
export const requestBytesMax = 32 * mib

/** Bytes of a reply. A long reply travels in parts between the others. A page of a thousand entities of 30 KB fits. */
export const replyBytesMax = 64 * mib

/** Bytes of a message: a frame with asks up to the limit and one of the largest after them, and as many answers. */
export const messageBytesMax = requestBytesMax + 4 * frameBytesMax + 64 * 1024

/**
 * Bytes that a stream may hold before it asks its user to wait. Enough to keep the connection busy, few enough that
 * most of the waiting messages can still be taken back.
 */
export const bufferBytesMax = mib

/** The shortest time between two complaints about one node, in the log and to that node. */
export const complaintMs = 60_000

/** Bytes of a name, an incarnation, or another short text. */
export const nameLengthMax = 256

/** Characters of the reason that the other side receives when a stream ends. */
export const reasonLengthMax = 200

/** Bytes of a call's message, and of its reply. Only gossip uses calls. */
export const callBytesMax = 64 * 1024

/**
 * Calls in flight here, in both directions: many times what gossip of hundreds of nodes needs. Each costs
 * `callBytesMax`.
 */
export const callsMax = 1024

/** Calls in flight on one connection. Further ones are refused, or wait in the other process's library. */
export const callsPerConnectionMax = 32

/**
 * Connections kept for calls, one for each address. At the limit the least recently used one is closed. Each costs a
 * socket on both sides.
 */
export const callConnectionsMax = 256

/** A connection that no call has used for so long is closed. */
export const callIdleMs = 60_000

/** How long a call of another process may stay here without a reply. Callers wait for a few seconds. */
export const callServedMsMax = 10_000

export interface AskOptions {
  /** How long a node waits for another one's reply. Keep it below the client's own timeout. */
  readonly askDeadlineMs: number
  /** Asks to one node without an outcome, and likewise asks of one node that run here. More costs memory on both. */
  readonly inFlightMax: number
  /** Bytes of their requests. */
  readonly inFlightBytesMax: number
  /** Bytes of replies to one node that may wait to be sent. */
  readonly answersBytesMax: number
  /** How often each side of a stream pings the other. */
  readonly pingMs: number
  /**
   * A node that has been silent for so long counts as down. Several `pingMs`, so that one late frame does not matter.
   */
  readonly silentMs: number
  /** A stream that has been silent for so long is abandoned for a new one. */
  readonly abandonMs: number
  /** Pause before a lost stream is dialed again: doubled with every failure, from the first to the second. */
  readonly redialMsMin: number
  readonly redialMsMax: number
  /** Spreads redials: a number from 0 up to but without 1. */
  readonly chance: () => number
}

export const askOptionsDefault: AskOptions = {
  askDeadlineMs: 2000,
  inFlightMax: 10_000,
  inFlightBytesMax: 64 * mib,
  answersBytesMax: 128 * mib,
  pingMs: 250,
  silentMs: 1000,
  abandonMs: 5000,
  redialMsMin: 50,
  redialMsMax: 1000,
  chance: Math.random,
}

/** Fills in defaults, and asserts that the options fit together. */
export function completeOptions(given: Partial<AskOptions>): AskOptions {
  const options = { ...askOptionsDefault, ...given }
  assert(options.askDeadlineMs >= 1, 'askDeadlineMs is too short')
  assert(options.inFlightMax >= 1, 'inFlightMax is too small')
  assert(options.inFlightBytesMax >= requestBytesMax, 'inFlightBytesMax has no room for one request')
  assert(options.answersBytesMax >= replyBytesMax, 'answersBytesMax has no room for one reply')
  assert(options.pingMs >= 1 && options.silentMs >= 2 * options.pingMs, 'silentMs has no room for two pings')
  assert(options.abandonMs >= options.silentMs, 'abandonMs is shorter than silentMs')
  assert(
    options.redialMsMin >= 1 && options.redialMsMax >= options.redialMsMin,
    'redialMsMax is shorter than redialMsMin',
  )
  return Object.freeze(options)
}

/**
 * The pause before the next dial after `failures` in a row: at least half of the full pause, so that no node hurries.
 */
export function redialMs(failures: number, options: AskOptions): number {
  const dueMs = Math.min(options.redialMsMin * 2 ** Math.min(failures, 30), options.redialMsMax)
  return dueMs * (0.5 + options.chance() / 2)
}
