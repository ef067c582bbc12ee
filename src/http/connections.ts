// Limits of an HTTP front: the number of connections, the time for requests to arrive, and the time for clients to read
// answers (docs/operations/connections.md).
//
// A connection counts as waiting before a request, and until the whole request has come. At the limit the connection
// that has waited longest is closed, so that clients that send slowly or not at all cannot block others. A connection
// that waits for its answer keeps its place.
//
// Not here: how each front observes its connections (uws-front, node-front).

import type { DropReason } from '../ports.js'

/** Line and headers of a request must have come within this time. */
export const headMsMax = 10_000
/** A body must bring `bodyBytesPerS` in each window of this length, or end: a stalled network may recover in it. */
export const bodyWindowMs = 10_000
export const bodyBytesPerS = 1024

/** Connections of operators at a time, at `-adminPort`: those of clients are not counted there. */
export const adminConnectionsMax = 100

const checkIntervalMs = 1000

export type OnDropped = (reason: DropReason) => void

export interface ConnectionLimits {
  readonly connectionsMax: number
  /** 0: no limit. */
  readonly connectionsPerAddressMax: number
  readonly onDropped?: OnDropped | undefined
}

export interface WaitingConnection {
  close(): void
}

export class Admission {
  /** In the order in which they began to wait. */
  private readonly waiting = new Set<WaitingConnection>()
  private readonly byAddress = new Map<string, number>()
  readonly dropped: OnDropped

  constructor(private readonly limits: ConnectionLimits) {
    this.dropped = limits.onDropped ?? (() => {})
  }

  get countsAddresses(): boolean {
    return this.limits.connectionsPerAddressMax > 0
  }

  /**
   * Whether one more connection may come to `others`. It may close the one that has waited longest. After `true` call
   * `enter`.
   */
  admits(others: number, address: string): boolean {
    const { connectionsMax, connectionsPerAddressMax } = this.limits
    if (this.countsAddresses && (this.byAddress.get(address) ?? 0) >= connectionsPerAddressMax) {
      this.dropped('address')
      return false
    }
    return others < connectionsMax || this.makeRoom()
  }

  /** Closes the connection that has waited longest; false: none waits. */
  private makeRoom(): boolean {
    const [longest] = this.waiting
    this.dropped(longest ? 'room' : 'full')
    if (!longest) return false
    this.waiting.delete(longest)
    longest.close()
    return true
  }

  enter(address: string): void {
    if (this.countsAddresses) this.byAddress.set(address, (this.byAddress.get(address) ?? 0) + 1)
  }

  leave(address: string): void {
    const left = (this.byAddress.get(address) ?? 0) - 1
    if (left > 0) this.byAddress.set(address, left)
    else this.byAddress.delete(address)
  }

  waits(connection: WaitingConnection): void {
    this.waiting.delete(connection)
    this.waiting.add(connection)
  }

  waitsNoMore(connection: WaitingConnection): void {
    this.waiting.delete(connection)
  }
}

export interface ArrivingBody {
  /** The number of bytes received. It may count more than the body, as long as it grows with it. */
  bytesCome(): number
  /** Called each second while the body is fast enough. */
  goesOn(): void
  close(): void
}

interface Window {
  startedMs: number
  bytesBefore: number
}

export class BodyPace {
  private readonly windows = new Map<ArrivingBody, Window>()
  private timer: NodeJS.Timeout | undefined
  private checkedMs = 0

  constructor(private readonly dropped: OnDropped) {}

  add(body: ArrivingBody): void {
    if (this.windows.has(body)) return
    this.windows.set(body, { startedMs: performance.now(), bytesBefore: body.bytesCome() })
    if (this.timer) return
    this.checkedMs = performance.now()
    this.timer = setInterval(() => this.check(), checkIntervalMs).unref()
  }

  delete(body: ArrivingBody): void {
    if (!this.windows.delete(body) || this.windows.size > 0) return
    clearInterval(this.timer)
    this.timer = undefined
  }

  private check(): void {
    const nowMs = performance.now()
    // When this process itself was late, received bytes may still be unread, so that time does not count against
    // clients.
    const lateMs = Math.max(0, nowMs - this.checkedMs - 2 * checkIntervalMs)
    this.checkedMs = nowMs
    for (const [body, window] of this.windows) {
      if (lateMs > 0) window.startedMs += lateMs + checkIntervalMs
      const bytes = body.bytesCome()
      if (nowMs - window.startedMs < bodyWindowMs) {
        body.goesOn()
      } else if (bytes - window.bytesBefore < (bodyBytesPerS * bodyWindowMs) / 1000) {
        this.delete(body)
        this.dropped('body')
        body.close()
      } else {
        window.startedMs = nowMs
        window.bytesBefore = bytes
        body.goesOn()
      }
    }
  }
}

/** An answer that the system has not completely taken. */
export interface SlowAnswer {
  /** Bytes that the system has taken; NaN: it is not its turn yet. */
  taken(): number
  retry(): void
  giveUp(): void
}

export const answerStallMsDefault = 30_000

/** The same for a reader of events (docs/interface/live.md#slow-readers). */
export const eventsStallMsDefault = 60_000

/** Checks per stall time, so that a stall is noticed soon after it, and the longest pause between two checks. */
const looksPerStall = 8
const lookMsMax = 1_000

interface Watched {
  taken: number
  sinceMs: number
}

/**
 * Checks the answers that are being sent, and closes the connection of a client that reads no byte of its answer for
 * `stallMs`. Otherwise a client that asks for much and reads nothing would hold the memory forever. Nothing runs while
 * no answer waits.
 */
export class StallWatch {
  private readonly watched = new Map<SlowAnswer, Watched>()
  private timer: NodeJS.Timeout | undefined

  constructor(
    private readonly stallMs: number,
    private readonly onStall: () => void,
  ) {}

  add(answer: SlowAnswer): void {
    this.watched.set(answer, { taken: answer.taken(), sinceMs: performance.now() })
    this.timer ??= setInterval(() => this.look(), Math.min(lookMsMax, this.stallMs / looksPerStall)).unref()
  }

  /** Called when the answer has been sent, or its client is gone. */
  remove(answer: SlowAnswer): void {
    this.watched.delete(answer)
    if (this.watched.size > 0 || !this.timer) return
    clearInterval(this.timer)
    this.timer = undefined
  }

  private look(): void {
    const nowMs = performance.now()
    for (const [answer, watched] of [...this.watched]) {
      const taken = answer.taken()
      if (!(taken <= watched.taken)) {
        watched.taken = taken
        watched.sinceMs = nowMs
      }
      if (nowMs - watched.sinceMs < this.stallMs) answer.retry()
      else {
        this.remove(answer)
        this.onStall()
        answer.giveUp()
      }
    }
  }
}

/** Whether 4 or 16 bytes, as uWebSockets.js returns addresses, are an IPv4 address, perhaps mapped to IPv6. */
export function isIPv4(address: Uint8Array): boolean {
  return address.length === 4 || address.every((byte, i) => i >= 12 || byte === (i < 10 ? 0 : 255))
}

/** The address as text, an IPv4 one always in dotted form. */
export function addressText(address: Uint8Array): string {
  if (isIPv4(address)) return address.subarray(-4).join('.')
  const groups: string[] = []
  for (let i = 0; i < address.length; i += 2) groups.push(((address[i]! << 8) | address[i + 1]!).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
