// The checks of all logs of a node. A loss in one of several stops the node, as a loss in its only one does: its shards
// rely on the register and on each other, and the right log may have everything.
//
// Each log is asked by itself, so one that does not answer delays nothing in the others.
//
// Not here: the check of one log (log-check.ts).

import { logOf } from '../logs/divided-log.js'
import type { LogCheck, MissingRecords, OnChecked } from './log-check.js'

export class LogChecks {
  constructor(private readonly checks: readonly LogCheck[]) {}

  start(): void {
    for (const check of this.checks) check.start()
  }

  close(): void {
    for (const check of this.checks) check.close()
  }

  // [hot] Once per request.
  /** Whether something is missing in any log. */
  get isLost(): boolean {
    for (const check of this.checks) if (check.isLost) return true
    return false
  }

  /** The losses of all logs; undefined: as far as is known, the engines have everything. */
  get loss(): MissingRecords | undefined {
    const losses = this.checks.flatMap(({ loss }) => loss ?? [])
    if (losses.length === 0) return undefined
    return {
      isNameless: losses.some(({ isNameless }) => isNameless),
      shards: losses.flatMap(({ shards }) => shards).sort((a, b) => a - b),
    }
  }

  /** Whether the log of a shard was checked once, and nothing is missing in any log. */
  isWhole(shard: number): boolean {
    return logOf(this.checks, shard).hasChecked && !this.isLost
  }

  /** Asks the log of a shard from now on, and calls back once. */
  checkFirst(shard: number, onChecked: OnChecked): void {
    logOf(this.checks, shard).checkFirst(isWhole => onChecked(isWhole && !this.isLost))
  }

  /** Checks all logs at once, since something was noticed. */
  check(): void {
    for (const check of this.checks) check.check()
  }
}
