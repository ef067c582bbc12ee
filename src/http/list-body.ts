// The view that a request selects (docs/interface/representations.md), and entities as the body of an answer: a list,
// or one item that may be large. Items are rendered one after the other, some in each turn of the event loop, and their
// bytes are counted.
//
// [hot] The usual answer, an entity in its stored form, is sent without parsing or rendering. Nearly every list is
// rendered in one turn, into one buffer. A large list becomes parts: a large item is a part of its own and is not
// copied.
//
// Not here: the limit of bytes of an answer (reply).

import assert from 'node:assert/strict'
import type { Shown } from '../broker/replies.js'
import { type AttributeSet, shows } from '../domain/access/attribute-set.js'
import type { EntityInPath } from '../domain/access/condition.js'
import type { Entity } from '../domain/entities/entity.js'
import {
  attributesPieces,
  entityPieces,
  fullView,
  isFullView,
  type Mode,
  renderAttributes,
  renderEntity,
  type View,
} from '../domain/entities/representation.js'
import { type Refusal, refusals } from '../domain/refusal.js'
import { decodeEntity, encodedId, encodedJson, encodedType, isAnswer, SeenMembers } from '../encoded-entity.js'
import type { FoundEntity } from '../messages/messages.js'
import type { Reply } from './reply.js'
import { listParameter, type Parameters } from './url.js'

/** The JSON of an item. A large item may come in pieces, which are rendered when they are read. */
export type ListItem = Uint8Array | string | Iterator<string>

export interface ListItems {
  readonly length: number
  /** Renders one item. Called once for each, in order. */
  render(index: number): ListItem
  /** Bytes that must be read for that, if they are more than the rendered bytes. */
  cost?(index: number): number
  /** Bytes that stay in memory until all items are rendered. */
  readonly heldBytes?: number
}

/** Bytes rendered in one turn: up to 5 ms. */
const turnBytesMax = 256 * 1024
/** The minimum that a piece of an item counts: even an empty piece may have taken time. */
const pieceBytesMin = 4 * 1024
/** Items up to this size are joined, up to this many bytes. */
const smallBytesMax = 32 * 1024
const partBytesMax = 256 * 1024

/** Answers 200 with the items as a JSON array; `total` as in `Reply.json`. */
export function replyWithList(reply: Reply, items: ListItems, total?: number): void {
  new ListBody(reply, items, list, total).goOn()
}

export function replyWithItem(reply: Reply, item: ListItem): void {
  if (typeof item === 'string' || item instanceof Uint8Array) reply.json(item)
  else new ListBody(reply, { length: 1, render: () => item }, alone).goOn()
}

interface Brackets {
  readonly opening: Uint8Array
  readonly closing: Uint8Array
}

const list: Brackets = { opening: Buffer.from('['), closing: Buffer.from(']') }
const alone: Brackets = { opening: Buffer.alloc(0), closing: Buffer.alloc(0) }
const comma = Buffer.from(',')

class ListBody {
  private readonly total: number | undefined
  private readonly parts: Uint8Array[] = []
  private small: Uint8Array[]
  private smallBytes: number
  private bytes: number
  private next = 0
  /** The remaining pieces of the last item. */
  private pieces: Iterator<string> | undefined
  private readonly closing: Uint8Array
  private readonly hold

  constructor(
    private readonly reply: Reply,
    private readonly items: ListItems,
    { opening, closing }: Brackets,
    total?: number,
  ) {
    this.total = total
    this.hold = reply.answers.open()
    this.small = [opening]
    this.smallBytes = opening.length
    this.bytes = opening.length
    this.closing = closing
  }

  /** Renders for one turn, and answers when all items are done. */
  goOn(): void {
    const { items, reply, hold } = this
    if (this.next === 0 && items.heldBytes && !hold.take(items.heldBytes)) return this.refuse(refusals.answersTooMany)
    let turnBytes = 0
    while (this.pieces || this.next < items.length) {
      if (turnBytes > turnBytesMax) {
        setImmediate(() => this.goOn())
        return
      }
      if (this.pieces) {
        const { done, value } = this.pieces.next()
        if (done) this.pieces = undefined
        else {
          const refusal = this.add(Buffer.from(value), true)
          if (refusal) return this.refuse(refusal)
          turnBytes += Math.max(value.length, pieceBytesMin)
        }
        continue
      }
      const index = this.next++
      const item = items.render(index)
      const cost = items.cost?.(index) ?? 0
      if (index > 0) this.add(comma, true)
      if (typeof item !== 'string' && !(item instanceof Uint8Array)) {
        this.pieces = item
        turnBytes += cost
        continue
      }
      const refusal = typeof item === 'string' ? this.add(Buffer.from(item), true) : this.add(item, false)
      if (refusal) return this.refuse(refusal)
      turnBytes += Math.max(item.length, cost)
    }
    this.add(this.closing, true)
    this.closePart()
    const [only] = this.parts
    hold.release()
    reply.json(this.parts.length === 1 ? only! : this.parts, this.total)
  }

  /** `isOwn`: the bytes are not part of memory that is counted anyway. */
  private add(bytes: Uint8Array, isOwn: boolean): Refusal | undefined {
    this.bytes += bytes.length
    if (this.bytes > this.reply.answers.answerBytesMax) return this.reply.answers.tooLarge
    if (bytes.length > smallBytesMax) {
      this.closePart()
      this.parts.push(bytes)
      return !isOwn || this.hold.take(bytes.length) ? undefined : refusals.answersTooMany
    }
    this.small.push(bytes)
    this.smallBytes += bytes.length
    if (this.smallBytes < partBytesMax) return undefined
    const more = this.smallBytes
    this.closePart()
    return this.hold.take(more) ? undefined : refusals.answersTooMany
  }

  private closePart(): void {
    if (this.smallBytes === 0) return
    this.parts.push(Buffer.concat(this.small, this.smallBytes))
    this.small = []
    this.smallBytes = 0
  }

  private refuse(refusal: Refusal): void {
    this.hold.release()
    this.reply.refuse(refusal)
  }
}

/** The view of a request: its mode, and the names of its `attrs` and `metadata`. */
export function viewOf(
  options: ReadonlySet<string>,
  attrs: readonly string[] | undefined,
  metadata: readonly string[] | undefined,
): View {
  if (options.size === 0 && !attrs && !metadata) return fullView
  const mode = modes.find(word => options.has(word)) ?? 'normalized'
  return { mode, attrs: withBuiltins(options, attrs), metadata }
}

const modes: readonly Mode[] = ['keyValues', 'values', 'unique']

export const viewOfParameters = (parameters: Parameters): View =>
  viewOf(parameters.options, listParameter(parameters, 'attrs'), listParameter(parameters, 'metadata'))

/**
 * The deprecated options name a builtin attribute that `attrs` may name as well (docs/interface/requests.md#options).
 */
function withBuiltins(
  options: ReadonlySet<string>,
  named: readonly string[] | undefined,
): readonly string[] | undefined {
  const builtins = ['dateCreated', 'dateModified'].filter(name => options.has(name))
  return builtins.length === 0 ? named : [...(named ?? ['*']), ...builtins]
}

/** The entity as its reader sees it. Only covered entities are found. */
export function entityOf(shown: Shown): Entity {
  const entity = 'encoded' in shown ? decodeEntity(shown.encoded) : shown.entity
  const { seenBy } = shown
  if (!seenBy) return entity
  const seen = seenBy.seen(entity, shown.path)
  assert(seen, 'a reader finds only what it may see')
  return seen
}

/** Entities with more bytes are rendered in steps: an entity of 16 MB takes 70 ms. */
const largeBytes = 1024 * 1024

const isLarge = (shown: Shown): boolean => 'encoded' in shown && shown.encoded.length > largeBytes

export function entityItem(shown: Shown, view: View): ListItem {
  if ('encoded' in shown && isFullView(view) && isAnswer(shown.encoded)) return jsonOf(shown)
  const render = isLarge(shown) ? entityPieces : renderEntity
  return render(entityOf(shown), shown.path, view)
}

/** The JSON of an entity in its stored form. Hidden attributes are cut out of its bytes. */
function jsonOf({ path, encoded, seenBy }: Shown & FoundEntity): Uint8Array {
  if (!seenBy || seenBy.showsAllAttributes()) return encodedJson(encoded)
  const set = seenBy.attributesOf(new StoredIdentity(path, encoded))
  assert(set, 'a reader finds only what it may see')
  return set.kind === 'all' ? encodedJson(encoded) : membersOf(set).jsonOf(encoded)
}

/** The identity of an entity in its stored form. */
class StoredIdentity implements EntityInPath {
  readonly type: string

  constructor(
    readonly path: string,
    private readonly encoded: Buffer,
  ) {
    this.type = encodedType(encoded)
  }

  get id(): string {
    return encodedId(this.encoded)
  }
}

const members = new WeakMap<AttributeSet, SeenMembers>()

function membersOf(set: AttributeSet): SeenMembers {
  const known = members.get(set)
  if (known) return known
  const made = new SeenMembers(name => shows(set, name))
  members.set(set, made)
  return made
}

/** The attributes of one entity as JSON, as `GET .../attrs` shows them. */
export function attributesItem(shown: Shown, view: View): ListItem {
  const render = isLarge(shown) ? attributesPieces : renderAttributes
  return render(entityOf(shown), shown.path, view)
}

/** A list of entities as JSON. The stored forms stay in memory until all of them are rendered. */
export function entityItems(entities: readonly Shown[], view: View): ListItems {
  const cost = (index: number): number => {
    const shown = entities[index]!
    return 'encoded' in shown ? shown.encoded.length : 0
  }
  let heldBytes = 0
  for (let index = 0; index < entities.length; index++) heldBytes += cost(index)
  return { length: entities.length, render: index => entityItem(entities[index]!, view), cost, heldBytes }
}
