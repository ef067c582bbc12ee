// Turns of those who write to one output: a write begins when the one before has ended. Otherwise a pipe that is almost
// full could take the first half of a line of the log, then a line of the audit log, then the rest.
//
// Each writer waits for at most one turn, so the list is short.

export class OutputTurns {
  private isTaken = false
  private readonly waiting: (() => void)[] = []

  /** Calls `write` when it may begin, perhaps at once. */
  take(write: () => void): void {
    if (this.isTaken) {
      this.waiting.push(write)
      return
    }
    this.isTaken = true
    write()
  }

  /** The write has ended. */
  release(): void {
    const next = this.waiting.shift()
    if (next) next()
    else this.isTaken = false
  }
}

/** Those of standard output in this thread. */
export const standardOutputTurns = new OutputTurns()
