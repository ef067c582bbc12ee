// A simulation of discrete events: an agenda of what happens when, and stations that take work in the order of its
// arrival.
//
// Simulated time passes from one event to the next one, so a run needs no clock and is the same each time.
//
// Not here: what happens at which station (cluster-model.ts).

import assert from 'node:assert/strict'

/** Events in the order of their times; of two at one time, the earlier one first. */
export class Agenda {
  nowMs = 0
  private readonly heap: { readonly atMs: number; readonly number: number; readonly run: () => void }[] = []
  private number = 0

  at(atMs: number, run: () => void): void {
    const { heap } = this
    const event = { atMs, number: this.number++, run }
    let place = heap.length
    for (let above = (place - 1) >> 1; place > 0 && isBefore(event, heap[above]!); above = (place - 1) >> 1) {
      heap[place] = heap[above]!
      place = above
    }
    heap[place] = event
  }

  runUntil(endMs: number): void {
    while (this.heap.length > 0 && this.heap[0]!.atMs <= endMs) {
      const { atMs, run } = this.next()
      assert(atMs >= this.nowMs, 'time runs backwards')
      this.nowMs = atMs
      run()
    }
    this.nowMs = endMs
  }

  private next() {
    const { heap } = this
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let place = 0
    for (;;) {
      let below = 2 * place + 1
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++
      if (below >= heap.length || !isBefore(heap[below]!, last)) break
      heap[place] = heap[below]!
      place = below
    }
    heap[place] = last
    return first
  }
}

interface Timed {
  readonly atMs: number
  readonly number: number
}

const isBefore = (one: Timed, other: Timed): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.number < other.number)

/** Processors, or a disk, that take work in the order of its arrival. */
export class Station {
  busyMs = 0
  private readonly agenda: Agenda
  private readonly freeMs: number[]

  constructor(agenda: Agenda, places: number) {
    this.agenda = agenda
    this.freeMs = Array(places).fill(0)
  }

  /** Runs `done` when work that takes this long is done. */
  work(ms: number, done?: () => void): void {
    const place = this.freeMs.indexOf(Math.min(...this.freeMs))
    const endMs = Math.max(this.agenda.nowMs, this.freeMs[place]!) + ms
    this.freeMs[place] = endMs
    this.busyMs += ms
    if (done) this.agenda.at(endMs, done)
  }

  get places(): number {
    return this.freeMs.length
  }
}
