// What waits for one connection of a reader (docs/interface/live.md#slow-readers).
//
//   up to 256 KB   every event waits
//   above          of each entity only the newest state waits; `coalesced` says how many events were folded
//   above 4 MB     the reader is too slow, and its connection is closed
//
// Not here: the frames of a transport, and how fast it takes them.

import type { EventForm } from '../../domain/streams/watch.js'
import { type ChangeTexts, folded, type StreamEvent } from './stream-event.js'

/** Characters that wait until events are folded, and until the reader is too slow. */
export const foldedFrom = 256 * 1024
export const waitingMax = 4 * 1024 * 1024
/** Characters that are taken at once. */
const takenMax = 64 * 1024

interface Item {
  readonly event: StreamEvent
  readonly text: string
}

export interface QueueParts {
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
  private folded = 0

  constructor(private readonly parts: QueueParts) {}

  /** Characters that wait. */
  get length(): number {
    return this.characters
  }

  get isEmpty(): boolean {
    return this.items.size === 0 && this.folded === 0
  }

  /** Adds an event of a watch. False: too much waits, even with folded events. */
  push(event: StreamEvent, watch: string, form: EventForm): boolean {
    if (this.isFolding && event.change) this.fold(event, watch, form)
    else this.add(`\0${this.numbers++}`, event, watch)
    if (!this.isFolding && this.characters > foldedFrom) this.beginFolding(watch, form)
    return this.characters <= waitingMax
  }

  /** Adds a text that is not folded. */
  pushText(text: string): void {
    this.items.set(`\0${this.numbers++}`, { event: plain, text })
    this.characters += text.length
  }

  /** The next texts, up to some 64 KB; undefined: nothing waits. */
  take(): string | undefined {
    if (this.isEmpty) return undefined
    let taken = ''
    if (this.folded > 0) {
      taken = this.parts.frame({ kind: 'coalesced', cursor: undefined, data: `{"count":${this.folded}}` }, '')
      this.folded = 0
    }
    for (const [key, { text }] of this.items) {
      if (taken.length > 0 && taken.length + text.length > takenMax) break
      taken += text
      this.items.delete(key)
      this.characters -= text.length
    }
    if (this.items.size === 0) this.isFolding = false
    return taken
  }

  private add(key: string, event: StreamEvent, watch: string): void {
    const text = this.parts.frame(event, watch)
    this.items.set(key, { event, text })
    this.characters += text.length
  }

  private beginFolding(watch: string, form: EventForm): void {
    this.isFolding = true
    const { items } = this
    this.items = new Map()
    this.characters = 0
    for (const [key, item] of items) {
      if (item.event.change) this.fold(item.event, watch, form)
      else {
        this.items.set(key, item)
        this.characters += item.text.length
      }
    }
  }

  /** The newest state of an entity waits where it comes in the order of changes: behind the others. */
  private fold(event: StreamEvent, watch: string, form: EventForm): void {
    const change = event.change!
    const key = `${watch}\0${change.key}`
    const earlier = this.items.get(key)
    if (!earlier) return this.add(key, event, watch)
    this.items.delete(key)
    this.characters -= earlier.text.length
    this.folded++
    this.parts.onFolded(1)
    const both = folded(earlier.event.change!, change)
    const text = both === change ? event : this.parts.texts.textOf(both, form)
    this.add(key, { ...event, ...text, change: both }, watch)
  }
}

const plain: StreamEvent = { kind: 'bookmark', cursor: undefined, data: '' }
