// The wall clock of another node, measured by the round trips of its link.
//
// The origin of a wall clock is the time that it showed when our monotonic clock showed zero. Our own origin changes
// only when our wall clock is set. We wrote a frame at e and read its echo at r, by our monotonic clock. The other node
// wrote the echo in between, when its wall clock showed w. So its origin lies between w - r and w - e, whatever the
// network did. Of the last round trips the shortest one counts, since its range is the narrowest (D. Mills, RFC 5905).
//
// Not here: what follows from a difference (clock-state.ts).

/** A range that contains the origin of another node's wall clock. */
export interface OriginRange {
  readonly earliestMs: number
  readonly latestMs: number
}

/**
 * Round trips that are kept. Each ping gives one: they are those of the last 2 s. More of them find a shorter round
 * trip, and notice later that the other clock was set.
 */
export const roundTripsMax = 8

export class PeerOrigin {
  private ranges: readonly OriginRange[] = []

  /**
   * Notes an echo, read at `nowMs`, of our frame of `echoMs`: the other node wrote it when its clock showed `wallMs`.
   */
  learn(echoMs: number, wallMs: number, nowMs: number): void {
    if (echoMs > nowMs) return
    const range = { earliestMs: wallMs - nowMs, latestMs: wallMs - echoMs }
    this.ranges = [...this.ranges, range].slice(-roundTripsMax)
  }

  /** The other node is another process from now on, perhaps on another machine. */
  forget(): void {
    this.ranges = []
  }

  /** The narrowest range of the last round trips; undefined: there was none. */
  get range(): OriginRange | undefined {
    let best: OriginRange | undefined
    for (const one of this.ranges) if (!best || widthOf(one) <= widthOf(best)) best = one
    return best
  }
}

const widthOf = ({ earliestMs, latestMs }: OriginRange): number => latestMs - earliestMs
