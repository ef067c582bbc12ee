// Whose turn it is: everybody once in each round, in an order of this node's own that changes from round to round.
//
// So nobody is probed twice while another one waits, and who falls silent is probed by somebody at any time: the orders of different
// nodes have nothing to do with each other. Who comes in the midst of a round has its turn in what is left of it.
//
// Not here: what happens in a turn (membership.ts).

export class Rounds {
  private readonly chance: () => number
  private order: string[] = []
  /** Those before it have had their turn in this round. */
  private position = 0

  /** `chance`: from 0 up to but without 1. */
  constructor(chance: () => number) {
    this.chance = chance
  }

  /** Lets a name take part, if it does not yet. */
  add(name: string): void {
    if (this.order.includes(name)) return
    const place = this.position + Math.floor(this.chance() * (this.order.length - this.position + 1))
    this.order.splice(place, 0, name)
  }

  /** The next one for whom `find` finds something; those for whom it does not are out. */
  next<T>(find: (name: string) => T | undefined): T | undefined {
    for (let left = this.order.length; left > 0; left--) {
      if (this.position >= this.order.length) this.begin()
      const found = find(this.order[this.position]!)
      if (found !== undefined) {
        this.position++
        return found
      }
      this.order.splice(this.position, 1)
    }
    return undefined
  }

  private begin(): void {
    this.order = pickSome(this.order, this.order.length, this.chance)
    this.position = 0
  }
}

/** Some of them, as many as there are at most, in an order of chance. */
export function pickSome<T>(all: readonly T[], count: number, chance: () => number): T[] {
  const left = [...all]
  const picked: T[] = []
  while (picked.length < count && left.length > 0) {
    const place = Math.floor(chance() * left.length)
    picked.push(left[place]!)
    left[place] = left.at(-1)!
    left.pop()
  }
  return picked
}
