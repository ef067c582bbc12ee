// Work that is done once at the end of the tick, however often it was asked for in between: the connections of readers
// send all that one tick brings them at once.

import type { Clock } from '../../ports.js'

export interface TickTask {
  atEndOfTick(): void
}

export class EndOfTick {
  private tasks = new Set<TickTask>()

  constructor(private readonly clock: Pick<Clock, 'endOfTick'>) {}

  // [hot] Once per event and reader.
  add(task: TickTask): void {
    if (this.tasks.size === 0) this.clock.endOfTick(() => this.run())
    this.tasks.add(task)
  }

  /** Tasks that are added meanwhile run in the next tick. */
  private run(): void {
    const { tasks } = this
    this.tasks = new Set()
    for (const task of tasks) task.atEndOfTick()
  }
}
