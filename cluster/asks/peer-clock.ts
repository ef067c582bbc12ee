// What another node's clock shows at most: the way to tell that a deadline on that clock may have come.
//
// When we wrote a frame at r, and the other side wrote its echo later, at a on its own clock, then its clock showed a at a moment
// when ours showed r or more. So at our n it shows a + (n - r) at most, but for the drift of both clocks; how long the frames were
// under way, or waited in a buffer while somebody was stopped, can only make that bound larger, and a deadline seem nearer. Of several bounds the
// smallest holds (F. Cristian, "Probabilistic clock synchronization", 1989).
//
// A frame that was written later than the bound allows proves it wrong, as when this machine, clock and all, was suspended: then
// nothing is known until the next echo.

/** How fast two clocks may move apart. Kernels slew a clock by 0.0005 at most. */
const driftMax = 0.001

/** Rounding of clocks, in milliseconds. */
const roundingMs = 0.001

export class PeerClock {
  /** At `ownMs` of our clock or later the other showed `peerMs`. */
  private peerMs = Number.POSITIVE_INFINITY
  private ownMs = 0

  /** What the other clock shows at most when ours shows `nowMs`; infinity as long as nothing is known. */
  latestMs(nowMs: number): number {
    return this.peerMs + (nowMs - this.ownMs) * (1 + driftMax)
  }

  /** Takes note of a frame read at `nowMs` that the other side wrote at `sentMs`; whether the bound still stands. */
  observe(sentMs: number, nowMs: number): boolean {
    if (sentMs <= this.latestMs(nowMs) + roundingMs) return true
    this.peerMs = Number.POSITIVE_INFINITY
    return false
  }

  /** Takes note of an echo, read at `nowMs`: the other side wrote it at `sentMs` after it had read our frame of `echoMs`. */
  learn(echoMs: number, sentMs: number, nowMs: number): void {
    if (echoMs > nowMs || sentMs + (nowMs - echoMs) * (1 + driftMax) > this.latestMs(nowMs)) return
    this.peerMs = sentMs
    this.ownMs = echoMs
  }
}
