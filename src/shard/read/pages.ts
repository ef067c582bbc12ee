// The answer of a list once its first entities are known: the entities of the page. When several owners answer
// together, it has the keys for merging their parts (ListKeys in messages).
//
// Keys are columns of numbers, not objects, because a deep page has a key for every entity before it. A key takes 14
// bytes and some 0.3 us from here to the merge, and its sort values. A deep offset therefore costs every owner and the
// network.
//
// Entities are read a few at a time, up to the bytes of an answer (docs/operations/answers.md), in turns of the event
// loop.
//
// Not here: which entities are meant and in what order (lists, views/search, scans), the merge (broker/gather).

import type { Json } from '../../domain/json.js'
import { refusals } from '../../domain/refusal.js'
import type { EntityPosition, ListKeys, ListRequest, ShardReply } from '../../messages/messages.js'
import type { AnswerHold, Clock } from '../../ports.js'
import type { MatchPage, SortValues } from './matches.js'

/**
 * The reply to a list, with the encoded entities of the first places. Undefined ones were deleted, and are left out.
 */
export function pageReply(
  part: ListRequest['part'],
  page: MatchPage<EntityPosition>,
  encodedEntities: readonly (Buffer | undefined)[],
): ShardReply {
  if (part === 'keys') return keysReply(page)
  const { places, values, total } = page
  if (part === undefined) {
    if (encodedEntities.length < places.length) return { kind: 'large' }
    const entities = places.flatMap(({ path }, index) => {
      const encoded = encodedEntities[index]
      return encoded ? [{ path, encoded }] : []
    })
    return { kind: 'listed', entities, total }
  }
  const keys = new KeyColumns()
  const there: Buffer[] = []
  for (let index = 0; index < places.length; index++) {
    const encoded = encodedEntities[index]
    if (!encoded && index < encodedEntities.length) continue
    keys.add(places[index]!, values[index])
    if (encoded) there.push(encoded)
  }
  return keys.reply(total, there)
}

/** The reply to a list of which only the keys are wanted. */
export function keysReply({ places, values, total }: MatchPage<EntityPosition>): ShardReply {
  const keys = new KeyColumns()
  for (let index = 0; index < places.length; index++) keys.add(places[index]!, values[index])
  return keys.reply(total)
}

/**
 * Bytes of the keys of one owner. Beyond, a page is refused as too deep: after four million entities in order of
 * creation, or a million by a usual text.
 */
const keyBytesMax = 64 * 1024 * 1024
const keyBytes = 14
/** Entities whose keys fit, without values. */
export const keysMax = Math.floor(keyBytesMax / keyBytes)
/** The size of a value without the characters of a text. */
const valueBytes = 8

export class KeyColumns {
  private readonly created: number[] = []
  private readonly shards: number[] = []
  private readonly rangeOf: number[] = []
  private readonly values: (readonly Json[])[] = []
  private readonly ranges: (readonly [path: string, type: string])[] = []
  private readonly indexes = new Map<string, number>()
  private lastRange = -1
  private bytes = 0

  // [hot] Once per entity before a deep page.
  /** Adds the key of the next entity, unless there are too many. */
  add({ created, shard, path, type }: EntityPosition, values: SortValues | undefined): void {
    if (this.bytes > keyBytesMax) return
    this.created.push(created)
    this.shards.push(shard)
    this.rangeOf.push(this.range(path, type))
    this.bytes += keyBytes
    if (!values) return
    this.values.push(values.map(value => value ?? null))
    for (const value of values) this.bytes += valueBytes + (typeof value === 'string' ? value.length : 0)
  }

  /** All keys as a reply, or the refusal if there are too many. */
  reply(total: number, encodedEntities?: readonly Buffer[]): ShardReply {
    if (this.bytes > keyBytesMax) return { kind: 'refused', refusal: refusals.pageTooDeep }
    const created = new Float64Array(this.created)
    const shards = new Uint16Array(this.shards)
    const rangeOf = new Uint32Array(this.rangeOf)
    const { ranges, values } = this
    return { kind: 'part', keys: { created, shards, rangeOf, ranges, values }, encodedEntities, total }
  }

  private range(path: string, type: string): number {
    // As a rule all have the path and type of the one before.
    const last = this.ranges[this.lastRange]
    if (last && last[0] === path && last[1] === type) return this.lastRange
    this.lastRange = this.rangeIndex(path, type)
    return this.lastRange
  }

  private rangeIndex(path: string, type: string): number {
    const name = `${path}\0${type}`
    const known = this.indexes.get(name)
    if (known !== undefined) return known
    const index = this.ranges.push([path, type]) - 1
    this.indexes.set(name, index)
    return index
  }
}

/** The positions in the keys of a list. */
export const positionsOf = ({ created, shards, rangeOf, ranges }: ListKeys): EntityPosition[] =>
  Array.from(created, (created, at): EntityPosition => {
    const [path, type] = ranges[rangeOf[at]!]!
    return { created, shard: shards[at]!, path, type }
  })

/** Reads the encoded entities at `count` places of the page from `from` on; undefined for deleted ones. */
export type ReadSome = (from: number, count: number) => readonly (Buffer | undefined)[]

/**
 * Rows of a step at most: most have less than 1 KB, some 16 MB. Steps begin with one, and double while rows are small.
 */
const stepRowsMax = 32
/** A step of this many bytes was large enough. */
const stepBytes = 128 * 1024

/**
 * The encoded entities of a page. The size of an entity is known only after reading it. So each step reads some, and
 * the reader stops at the first one that does not fit: the result is always the first entities of the page.
 */
export class PageEntities {
  /** The encoded entities at the first places. */
  readonly encodedEntities: (Buffer | undefined)[] = []
  bytes = 0
  private readonly bytesMax: number
  private next = 0
  private rows = 1

  /** `needed`: so many are read, whatever their size. */
  constructor(
    private readonly count: number,
    bytesMax: number | undefined,
    private readonly read: ReadSome,
    private readonly needed = 0,
  ) {
    this.bytesMax = bytesMax ?? Number.POSITIVE_INFINITY
  }

  /** Reads some more; false: all were read, or as many as fit. */
  step(): boolean {
    const { encodedEntities, next, count } = this
    if (next >= count) return false
    const some = this.read(next, Math.min(this.rows, count - next))
    this.next += some.length
    const before = this.bytes
    for (const encoded of some) {
      const bytes = this.bytes + (encoded?.length ?? 0)
      if (bytes > this.bytesMax && encodedEntities.length >= this.needed) {
        this.next = count
        return false
      }
      this.bytes = bytes
      encodedEntities.push(encoded)
    }
    this.rows = this.bytes - before > stepBytes ? Math.ceil(this.rows / 2) : Math.min(2 * this.rows, stepRowsMax)
    return this.next < count
  }

  all(): readonly (Buffer | undefined)[] {
    while (this.step());
    return this.encodedEntities
  }

  /** Reads all in turns of the event loop; undefined: memory has no room for them. */
  async inTurns(turns: Turns, hold: AnswerHold): Promise<readonly (Buffer | undefined)[] | undefined> {
    let counted = 0
    for (let hasMore = true; hasMore; ) {
      if (turns.isOver) await turns.next()
      hasMore = this.step()
      const more = this.bytes - counted
      if (!hold.take(more)) return undefined
      turns.note(more)
      counted = this.bytes
    }
    return this.encodedEntities
  }
}

/** Bytes read in one turn of the event loop: some 1 ms. */
export const turnBytesMax = 512 * 1024
/** Smaller steps are not counted. */
const countedBytes = 64 * 1024

/**
 * Turns of the event loop for long reads. One read continues per turn, and all get equally many turns. If each took its
 * step in every turn, a hundred would block the loop a hundred times as long. A read that begins in a turn in which
 * much was read waits, too.
 */
export class Turns {
  private readonly waiting: (() => void)[] = []
  private bytes = 0

  constructor(private readonly clock: Pick<Clock, 'endOfTick'>) {}

  /** Whether enough was read in this turn. */
  get isOver(): boolean {
    return this.bytes > turnBytesMax
  }

  note(bytes: number): void {
    if (bytes < countedBytes) return
    if (this.bytes === 0 && this.waiting.length === 0) this.clock.endOfTick(() => this.go())
    this.bytes += bytes
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    return new Promise(resolve => {
      if (this.bytes === 0 && this.waiting.length === 0) this.clock.endOfTick(() => this.go())
      this.waiting.push(resolve)
    })
  }

  private go(): void {
    this.bytes = 0
    const first = this.waiting.shift()
    if (this.waiting.length > 0) this.clock.endOfTick(() => this.go())
    first?.()
  }
}
