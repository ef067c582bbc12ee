// The events that wait for one connection of a reader (docs/interface/live.md#slow-readers).
//
//   up to 256 KB   every event waits
//   above          of each entity only the newest state waits; `coalesced` says how many events were folded
//   above 4 MB     the reader is too slow, and its connection is closed
//
// A folded event comes later than it would have come. With `onlyChangedAttrs` a cursor in between would be behind
// changes that only the folded event shows, so those that are folded have none.
//
// Not here: the frames of a transport, and how fast it takes them.

import type { EventForm } from '../../domain/streams/watch.js'
import { type ChangeTexts, folded, type ReadChange, type StreamEvent } from './stream-event.js'

/** Characters that wait until events are folded, and until the reader is too slow. */
export const foldedFrom = 256 * 1024
export const waitingMax = 4 * 1024 * 1024
/** Characters that wait for all readers of a process. Beyond them, readers whose events are folded are too slow. */
export const waitingTogetherMax = 256 * 1024 * 1024
/** The cost of an item besides its text, in characters: otherwise a client could fill the memory with short answers. */
export const itemCharacters = 100
/** Characters that are taken at once. */
const takenMax = 64 * 1024

interface Item {
  readonly text: string
  /** undefined: a text that cannot be folded. */
  readonly change: FoldedEvent | undefined
}

/** An event about a change, and the watch that reads it. */
interface FoldedEvent {
  readonly event: StreamEvent
  readonly read: ReadChange
  readonly watch: string
  readonly form: EventForm
}

/** The characters that wait for all readers of a process. */
export class WaitingBudget {
  characters = 0

  constructor(private readonly max = waitingTogetherMax) {}

  get isFull(): boolean {
    return this.characters > this.max
  }
}

export interface QueueParts {
  readonly budget: WaitingBudget
  /** The text of an event on the wire. `watch`: the watch that reads it. */
  readonly frame: (event: StreamEvent, watch: string) => string
  readonly texts: ChangeTexts
  /** Called with the number of events that were folded. */
  readonly onFolded: (count: number) => void
}

export class ReaderQueue {
  /** In the order of sending. The key of an event that may be folded identifies its watch and entity. */
  private items = new Map<string, Item>()
  private characters = 0
  private numbers = 0
  private isFolding = false
  /** Of each watch, the number of events that were folded since its last `coalesced`. */
  private readonly folded = new Map<string, number>()

  constructor(private readonly parts: QueueParts) {}

  /** Characters that wait, with what their items take. */
  get length(): number {
    return this.characters
  }

  get isEmpty(): boolean {
    return this.items.size === 0
  }

  /** Adds an event of a watch. */
  push(event: StreamEvent, watch: string, form: EventForm): void {
    if (event.kind === 'bookmark' && form.onlyChangedAttrs && !this.isEmpty) return
    const change = event.change && { event, read: event.change, watch, form }
    if (this.isFolding && change) this.fold(change)
    else this.add(this.ownKey(), this.parts.frame(event, watch), change)
    if (!this.isFolding && this.characters > foldedFrom) this.beginFolding()
  }

  /** Adds a text that is not an event, and is not folded. */
  pushText(text: string): void {
    this.add(this.ownKey(), text, undefined)
  }

  /** The next texts, up to some 64 KB; undefined: nothing waits. */
  take(): readonly string[] | undefined {
    if (this.isEmpty) return undefined
    const taken: string[] = []
    let length = 0
    for (const [key, { text, change }] of this.items) {
      if (length > 0 && length + text.length > takenMax) break
      if (change) this.pushFoldedCount(change.watch, taken)
      taken.push(text)
      length += text.length
      this.items.delete(key)
      this.count(-weightOf(text))
    }
    if (this.items.size === 0) this.isFolding = false
    return taken
  }

  /** Before an event of a watch: how many were folded since the last one. */
  private pushFoldedCount(watch: string, taken: string[]): void {
    const count = this.folded.get(watch)
    if (count === undefined) return
    this.folded.delete(watch)
    taken.push(this.parts.frame({ kind: 'coalesced', cursor: undefined, data: `{"count":${count}}` }, watch))
  }

  /** Drops everything: the connection has ended. */
  clear(): void {
    this.count(-this.characters)
    this.items.clear()
    this.folded.clear()
  }

  /** False: too much waits, even with folded events. */
  get hasRoom(): boolean {
    return this.characters <= (this.parts.budget.isFull ? foldedFrom : waitingMax)
  }

  private count(change: number): void {
    this.characters += change
    this.parts.budget.characters += change
  }

  /** The key of an item that is not folded. */
  private ownKey(): string {
    return `\0${this.numbers++}`
  }

  private add(key: string, text: string, change: FoldedEvent | undefined): void {
    this.items.set(key, { text, change })
    this.count(weightOf(text))
  }

  private beginFolding(): void {
    this.isFolding = true
    const { items } = this
    this.items = new Map()
    this.count(-this.characters)
    for (const [key, { text, change }] of items)
      if (change) this.fold(change)
      else this.add(key, text, undefined)
  }

  /** The newest state of an entity waits where it comes in the order of changes: behind the others. */
  private fold(change: FoldedEvent): void {
    const { read, watch, form } = change
    const event = form.onlyChangedAttrs ? { ...change.event, cursor: undefined } : change.event
    const { frame, texts, onFolded } = this.parts
    const key = `${watch}\0${read.key}`
    const earlier = this.items.get(key)
    if (!earlier?.change) return this.add(key, frame(event, watch), change)
    this.items.delete(key)
    this.count(-weightOf(earlier.text))
    this.folded.set(watch, (this.folded.get(watch) ?? 0) + 1)
    onFolded(1)
    const both = folded(earlier.change.read, read)
    const shown = both === read ? event : { ...event, ...texts.textOf(both, form), change: both }
    this.add(key, frame(shown, watch), { ...change, event: shown, read: both })
  }
}

const weightOf = (text: string): number => text.length + itemCharacters
