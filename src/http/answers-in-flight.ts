// A limited budget of memory for answers in progress: bytes that are read, gathered, rendered and sent for clients are
// counted.
//
// The code that has an answer in memory counts it, in this order: the lists of a shard while they read, the gathering
// of several owners' parts, the handler while it renders, the front until the system has taken the last byte. Each
// releases its count in the same turn in which the next one counts. Small answers are not counted, so they are sent
// however many large ones are in progress.
//
// Not here: how an answer is sent (uws-front, node-front), the numbers' place among metrics (observe/families).

import { type Refusal, refusals } from '../domain/refusal.js'
import type { AnswerHold, AnswerRoom } from '../ports.js'

export interface AnswerLimits {
  /** Bytes of one answer. Raising it trades memory for larger pages. */
  readonly answerBytesMax: number
  /** Bytes of all answers in progress in this process. */
  readonly answersInFlightMax: number
}

/** This many bytes of each answer are not counted. */
const uncountedBytes = 64 * 1024

/** Why an answer was not sent, or not completely. */
type AnswerFailure = 'too_large' | 'no_room' | 'stalled'

export class AnswersInFlight implements AnswerRoom {
  readonly answerBytesMax: number
  readonly bytesMax: number
  readonly tooLarge: Refusal
  bytes = 0
  readonly failures: Record<AnswerFailure, number>

  /** The limit always allows at least one answer. */
  constructor(
    { answerBytesMax, answersInFlightMax }: AnswerLimits,
    failures: Record<AnswerFailure, number> = { too_large: 0, no_room: 0, stalled: 0 },
  ) {
    this.failures = failures
    this.answerBytesMax = answerBytesMax
    this.tooLarge = refusals.answerTooLarge(answerBytesMax)
    this.bytesMax = Math.max(answerBytesMax, answersInFlightMax)
  }

  /** Counts the refusals that are about this budget, wherever they were made. */
  onRefused({ code }: Refusal): void {
    if (code === 'answerTooLarge') this.failures.too_large++
    else if (code === 'answersTooMany') this.failures.no_room++
  }

  open(): AnswerHold {
    return new Hold(this)
  }

  /** Another budget, for one answer of the largest size; its failures count here. */
  forOneMore(): AnswersInFlight {
    return new AnswersInFlight({ answerBytesMax: this.answerBytesMax, answersInFlightMax: 0 }, this.failures)
  }
}

export const unlimitedAnswers = new AnswersInFlight({
  answerBytesMax: Number.MAX_SAFE_INTEGER,
  answersInFlightMax: Number.MAX_SAFE_INTEGER,
})

class Hold implements AnswerHold {
  private bytes = 0
  private counted = 0

  constructor(private readonly all: AnswersInFlight) {}

  // [hot] Several times for each list.
  take(bytes: number): boolean {
    const wanted = this.bytes + bytes
    if (wanted > uncountedBytes) {
      const { all } = this
      const more = wanted - uncountedBytes - this.counted
      if (all.bytes + more > all.bytesMax) return false
      all.bytes += more
      this.counted += more
    }
    this.bytes = wanted
    return true
  }

  release(): void {
    this.all.bytes -= this.counted
    this.bytes = 0
    this.counted = 0
  }
}
