// Every knob of the library, with what it costs, and the limits of the protocol, which are the same on all nodes.

import assert from 'node:assert/strict'

/**
 * The protocol versions that this build speaks, both included: each side of a stream says its own in its first frame.
 */
export const protocolVersions = { lowest: 2, highest: 2 } as const

const mib = 1024 * 1024

/** Asks in one frame: enough to make a frame cheap, few enough that the first ones need not wait for the last. */
export const asksPerFrameMax = 64

export const answersPerFrameMax = 256

/** A frame takes no further ask or answer when it has so many bytes of them. Also the longest part of a reply. */
export const frameBytesMax = mib / 4

/** Bytes of a request. It goes in one piece, so that everything behind it waits as long as that takes. */
export const requestBytesMax = 32 * mib

/** Bytes of a reply. It goes in parts between the others: a page of a thousand entities of 30 KB passes. */
export const replyBytesMax = 64 * mib

/** Bytes of a message: a frame with asks up to the limit and one of the largest after them, and as many answers. */
export const messageBytesMax = requestBytesMax + 4 * frameBytesMax + 64 * 1024

/**
 * Bytes that a stream may hold before it asks to wait: enough to keep the wire busy, few enough to take back what
 * waits.
 */
export const bufferBytesMax = mib

/** How often at most a node is complained about in the log, and told so itself. */
export const complaintMs = 60_000

/** Bytes of a name, an incarnation, or another short text. */
export const nameLengthMax = 256

/** Characters of a reason for the end of a stream that goes to the other side. */
export const reasonLengthMax = 200

/** Bytes of a call's message, and of its reply: gossip, no more. */
export const callBytesMax = 64 * 1024

/**
 * Calls under way here, in both directions: many times what gossip of hundreds of nodes needs. Each costs
 * `callBytesMax`.
 */
export const callsMax = 1024

/** Calls under way on one connection; further ones are refused, or wait in the other process's library. */
export const callsPerConnectionMax = 32

/**
 * Connections kept for calls, one for each address; the longest unused makes room. Each costs a socket on both sides.
 */
export const callConnectionsMax = 256

/** A connection that no call has used for so long is closed. */
export const callIdleMs = 60_000

/** How long a call of another process may stay here without a reply. Callers wait for a few seconds. */
export const callServedMsMax = 10_000

export interface AskOptions {
  /** How long a node waits for another one's reply. Keep it below the client's own timeout. */
  readonly askDeadlineMs: number
  /** Asks to one node without an outcome; also those of one node that run here. More costs memory on both. */
  readonly inFlightMax: number
  /** Bytes of their requests. */
  readonly inFlightBytesMax: number
  /** Bytes of replies to one node that may wait to be sent. */
  readonly answersBytesMax: number
  /** How often each side of a stream asks the other for a sign of life. */
  readonly pingMs: number
  /** A node not heard of for so long counts as down: a few `pingMs`, so that one late frame means nothing. */
  readonly silentMs: number
  /** A stream that is silent for so long is given up for a new one. */
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

/** Defaults for what is not given; asserts that the whole makes sense. */
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

/** The pause before the next dial after `failures` in a row: at least half of what is due, so that no node hurries. */
export function redialMs(failures: number, options: AskOptions): number {
  const dueMs = Math.min(options.redialMsMin * 2 ** Math.min(failures, 30), options.redialMsMax)
  return dueMs * (0.5 + options.chance() / 2)
}
