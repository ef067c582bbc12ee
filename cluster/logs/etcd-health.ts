// Remembers for each member of an etcd when it last answered, and when it last failed to. So requests go to a member
// that works.

export class MemberHealth {
  private readonly answered: number[]
  private readonly troubled: number[]

  constructor(members: number) {
    this.answered = new Array<number>(members).fill(Number.NEGATIVE_INFINITY)
    this.troubled = new Array<number>(members).fill(Number.NEGATIVE_INFINITY)
  }

  noteAnswer(member: number, nowMs: number): void {
    this.answered[member] = nowMs
  }

  /** The member could not be reached, was silent, or has ended a watch. */
  noteTrouble(member: number, nowMs: number): void {
    this.troubled[member] = nowMs
  }

  /** The time of the last answer of a member. */
  answeredMs(member: number): number {
    return this.answered[member] ?? Number.NEGATIVE_INFINITY
  }

  /** The member whose last trouble is longest ago; of several, the first from `from` on. */
  best(from: number): number {
    let best = from
    for (let n = 1; n < this.troubled.length; n++) {
      const member = (from + n) % this.troubled.length
      if (this.troubledMs(member) < this.troubledMs(best)) best = member
    }
    return best
  }

  private troubledMs(member: number): number {
    return this.troubled[member] ?? Number.NEGATIVE_INFINITY
  }
}
