// Decides whether the answers to several clients of one entity fit one order of their requests: whether it is
// linearizable.
//
// The search is that of Wing and Gong, with the memory of Lowe: it takes one request after the other that may come
// next, and undoes its choice where no order follows. A request may come next if none of the others was answered before
// it was sent. A request without an answer may have taken effect at any time since it was sent, or never. A set of
// requests that was taken before, with the same state behind it, is not tried again. Requests without an answer are tried
// last: most of them are needed only where nothing else explains an answer. Of several equal ones the first is tried only,
// since it may come wherever the others may.
//
// The search is bounded: where that is not enough, it returns `undecided`, which is no proof of anything.
//
// Not here: clients (journeys/shared-entity.ts), entities with one writer (journeys/histories.ts), the log as the order
// (cluster/replication-checker.ts), entities of the simulation (cluster/replication-histories.ts).

/** The rules of one entity: its states, and the effect of each request. */
export interface Model<State, Call, Answer> {
  readonly initial: State
  /** The state after a call, and whether the answer fits. `answer` undefined: there was none, and any fits. */
  step(state: State, call: Call, answer: Answer | undefined): { readonly fits: boolean; readonly after: State }
  /** A text that differs between different states. */
  keyOf(state: State): string
}

/** A request and its answer; times are those of the clients, on one clock. */
export interface Operation<Call, Answer> {
  readonly call: Call
  readonly sentMs: number
  /** undefined: no answer, so it may take effect at any time. */
  readonly answer: Answer | undefined
  /** Infinity where there was no answer. */
  readonly answeredMs: number
}

export type Verdict<Call, Answer> =
  | { readonly kind: 'linearizable' }
  /** `stuck`: the operations that no order could reach, after the longest order that was found. */
  | { readonly kind: 'wrong'; readonly stuck: readonly Operation<Call, Answer>[] }
  | { readonly kind: 'undecided'; readonly steps: number }

/** Steps after which the search gives up: some seconds of the processor. */
const stepsMax = 2_000_000

export function checkLinearizable<State, Call, Answer>(
  model: Model<State, Call, Answer>,
  operations: readonly Operation<Call, Answer>[],
  limit = stepsMax,
): Verdict<Call, Answer> {
  return new Search(model, operations, limit).run()
}

/** An operation in the present order, with what it takes to undo it. */
interface Taken<State> {
  readonly index: number
  readonly before: State
}

class Search<State, Call, Answer> {
  private readonly model: Model<State, Call, Answer>
  /** Those with an answer first; each part in the order of sending. */
  private readonly operations: readonly Operation<Call, Answer>[]
  private readonly answered: number
  /** For each operation without an answer: the one before it with an equal call. */
  private readonly twins: readonly (number | undefined)[]
  private readonly limit: number
  private readonly isTaken: boolean[]
  private readonly order: Taken<State>[] = []
  private readonly seen = new Set<string>()
  private state: State
  /** Operations with an answer that are not in the order yet. */
  private missing: number
  private steps = 0
  private longest = -1
  private stuck: readonly Operation<Call, Answer>[] = []

  constructor(model: Model<State, Call, Answer>, operations: readonly Operation<Call, Answer>[], limit: number) {
    this.model = model
    const sorted = operations.toSorted((a, b) => a.sentMs - b.sentMs)
    const answered = sorted.filter(({ answer }) => answer !== undefined)
    this.operations = [...answered, ...sorted.filter(({ answer }) => answer === undefined)]
    this.answered = answered.length
    this.twins = twinsOf(this.operations)
    this.limit = limit
    this.isTaken = this.operations.map(() => false)
    this.state = model.initial
    this.missing = this.answered
  }

  run(): Verdict<Call, Answer> {
    let from = 0
    while (this.missing > 0) {
      if (this.steps++ > this.limit) return { kind: 'undecided', steps: this.steps }
      const next = this.nextFrom(from)
      if (next !== undefined) {
        this.take(next)
        from = 0
        continue
      }
      this.noteStuck()
      const last = this.order.pop()
      if (!last) return { kind: 'wrong', stuck: this.stuck }
      this.undo(last)
      from = last.index + 1
    }
    return { kind: 'linearizable' }
  }

  /** The first operation, from a place on, that may come next and leads to a place where the search was not yet. */
  private nextFrom(from: number): number | undefined {
    const { operations, isTaken, model, state } = this
    const untilMs = this.firstAnswerMs()
    for (let index = from; index < operations.length; index++) {
      const { call, answer, sentMs } = operations[index]!
      if (sentMs > untilMs) {
        if (index >= this.answered) return undefined
        index = this.answered - 1
        continue
      }
      const twin = this.twins[index]
      if (isTaken[index] || (twin !== undefined && !isTaken[twin])) continue
      const { fits, after } = model.step(state, call, answer)
      if (fits && this.isNew(index, after)) return index
    }
    return undefined
  }

  /** The earliest answer of an operation that is left: no operation that was sent later comes next. */
  private firstAnswerMs(): number {
    let firstMs = Number.POSITIVE_INFINITY
    for (let index = 0; index < this.answered; index++) {
      const { sentMs, answeredMs } = this.operations[index]!
      if (sentMs > firstMs) break
      if (!this.isTaken[index] && answeredMs < firstMs) firstMs = answeredMs
    }
    return firstMs
  }

  private isNew(index: number, after: State): boolean {
    const { isTaken } = this
    isTaken[index] = true
    const key = `${this.takenKey()} ${this.model.keyOf(after)}`
    isTaken[index] = false
    if (this.seen.has(key)) return false
    this.seen.add(key)
    return true
  }

  /** The set of taken operations: all before the first that is left, and some behind it. */
  private takenKey(): string {
    const first = this.isTaken.indexOf(false)
    if (first < 0) return 'all'
    const more: number[] = []
    for (let index = first + 1; index < this.isTaken.length; index++) if (this.isTaken[index]) more.push(index)
    return `${first} ${more}`
  }

  private take(index: number): void {
    const { call, answer } = this.operations[index]!
    this.order.push({ index, before: this.state })
    this.isTaken[index] = true
    if (answer !== undefined) this.missing--
    this.state = this.model.step(this.state, call, answer).after
  }

  private undo({ index, before }: Taken<State>): void {
    this.isTaken[index] = false
    if (this.operations[index]!.answer !== undefined) this.missing++
    this.state = before
  }

  private noteStuck(): void {
    if (this.order.length <= this.longest) return
    this.longest = this.order.length
    const untilMs = this.firstAnswerMs()
    this.stuck = this.operations.filter(
      ({ sentMs, answer }, index) => !this.isTaken[index] && sentMs <= untilMs && answer !== undefined,
    )
  }
}

function twinsOf<Call, Answer>(operations: readonly Operation<Call, Answer>[]): (number | undefined)[] {
  const latest = new Map<string, number>()
  return operations.map(({ call, answer }, index) => {
    if (answer !== undefined) return undefined
    const key = JSON.stringify(call)
    const twin = latest.get(key)
    latest.set(key, index)
    return twin
  })
}

// A counter with a register beside it

/** An entity: a number that clients raise, and a text that they replace. */
export interface CounterState {
  readonly n: number
  readonly text: string
}

export type CounterCall =
  | { readonly kind: 'read' }
  /** Raises the number by one. */
  | { readonly kind: 'raise' }
  | { readonly kind: 'write'; readonly text: string }

/** The state that a read has shown; for a change: it is done. */
export type CounterAnswer = CounterState | 'done'

export const counterModel = (initial: CounterState): Model<CounterState, CounterCall, CounterAnswer> => ({
  initial,
  step: (state, call, answer) => {
    if (call.kind === 'raise') return { fits: true, after: { ...state, n: state.n + 1 } }
    if (call.kind === 'write') return { fits: true, after: { ...state, text: call.text } }
    const fits = typeof answer !== 'object' || (answer.n === state.n && answer.text === state.text)
    return { fits, after: state }
  },
  keyOf: ({ n, text }) => `${n} ${text}`,
})
