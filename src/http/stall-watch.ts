// Answers that are being sent, looked at now and then: a client that takes no byte of its answer for a while is given up.
//
// Otherwise whoever asks for much and reads nothing holds its memory for ever. Nothing runs while no answer waits.

/** An answer that the system has not taken to its end. */
export interface SlowAnswer {
  /** Bytes that the system has taken; NaN: it is not its turn yet. */
  taken(): number
  /** Tries to go on. */
  retry(): void
  /** Closes the connection. */
  giveUp(): void
}

/** A client that takes no byte for so long is closed. */
export const answerStallMsDefault = 30_000

/** Looks per stall, so that it is noticed not much later, and the pause between them at most. */
const looksPerStall = 8
const lookMsMax = 1_000

interface Watched {
  taken: number
  sinceMs: number
}

export class StallWatch {
  private readonly stallMs: number
  private readonly onStall: () => void
  private readonly watched = new Map<SlowAnswer, Watched>()
  private timer: NodeJS.Timeout | undefined

  constructor(stallMs: number, onStall: () => void) {
    this.stallMs = stallMs
    this.onStall = onStall
  }

  add(answer: SlowAnswer): void {
    this.watched.set(answer, { taken: answer.taken(), sinceMs: performance.now() })
    this.timer ??= setInterval(() => this.look(), Math.min(lookMsMax, this.stallMs / looksPerStall)).unref()
  }

  /** It has been sent, or its client has gone. */
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
