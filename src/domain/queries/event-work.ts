// What regular expressions may cost for one event: steps times characters, so that it does not depend on how fast the machine is.
//
// A tenant's subscriptions are bounded when they are created, so that no event needs more (pattern-account.ts). Subscriptions that were stored
// before there was a bound may exceed it. Then an event runs patterns until its work is used up; what is left does not match.
//
// Not here: patterns of requests, which have limits of their own (limits.ts).

import { eventWorkMax } from '../limits.js'
import type { Pattern } from './pattern.js'

/** A test costs something, however short the text. */
export const charactersPerTest = 10

/** The least cost of a character where there may be many texts, in an array: a comparison of each. */
const comparisonCost = 0.1

/** What it costs to test the pattern once on a text of this length. */
export const testWork = (pattern: Pattern, length: number): number => pattern.cost * (length + charactersPerTest)

/** The same of a test of attribute values, of which an array has many. */
export const valueWork = ({ cost }: Pattern, length: number): number =>
  Math.max(cost, comparisonCost) * (length + charactersPerTest)

/** What an event may still cost. One for all events of a process: no two are on their way together. */
export class EventWork {
  private left = eventWorkMax
  /** Whether a test was left out. */
  isExceeded = false

  /** Another event begins. */
  begin(): void {
    this.left = eventWorkMax
    this.isExceeded = false
  }

  /** Whether a test may be made that costs so much. */
  spend(work: number): boolean {
    if (work > this.left) {
      this.isExceeded = true
      return false
    }
    this.left -= work
    return true
  }
}
