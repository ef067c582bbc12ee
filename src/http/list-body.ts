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
import { decodeEntity, isAnswer, StoredJson } from '../encoded-entity.js'
import type { FoundEntity } from '../messages/messages.js'
import type { Reply } from './reply.js'
import { seenFormsUnder } from './seen-forms.js'
import { listParameter, type Parameters } from './url.js'

/** The JSON of an item. A large item may come in pieces, which are rendered when they are read. */
export type ListItem = StoredJson | string | Iterator<string>

export interface ListItems {
  readonly length: number
  /** Renders one item. Called once for each, in order. */
  render(index: number): ListItem
  /** Bytes that must be read for that, if they are more than the rendered bytes. */
  cost?(index: number): number
  /** Bytes that stay in memory until all items are rendered. Items in their stored form have no more in all. */
  readonly heldBytes?: number
}

/** Bytes rendered in one turn: up to 5 ms. */
const turnBytesMax = 256 * 1024
/** The minimum that a piece of an item counts: even an empty piece may have taken time. */
const pieceBytesMin = 4 * 1024
/** Items up to this size are joined, up to this many bytes. */
const smallBytesMax = 32 * 1024
const partBytesMax = 256 * 1024
/** Room of a part: one more small item may begin just before its end. */
const roomMax = partBytesMax + smallBytesMax + 1
/** Bytes of a part at its beginning, where the size of its items is not known. */
const partBytesMin = 2 * 1024

/** Answers 200 with the items as a JSON array; `total` as in `Reply.json`. */
export function replyWithList(reply: Reply, items: ListItems, total?: number): void {
  new ListBody(reply, items, list, total).goOn()
}

export function replyWithItem(reply: Reply, item: ListItem): void {
  if (typeof item === 'string') reply.json(item)
  else if (item instanceof StoredJson) reply.json(item.bytes())
  else new ListBody(reply, { length: 1, render: () => item }, alone).goOn()
}

const comma = 0x2c

interface Brackets {
  readonly opening: string
  readonly closing: string
}

const list: Brackets = { opening: '[', closing: ']' }
const alone: Brackets = { opening: '', closing: '' }

class ListBody {
  private readonly total: number | undefined
  private readonly parts: Uint8Array[] = []
  /** The part that small items are copied to, and its bytes so far. */
  private part: Buffer
  private partBytes = 0
  private bytes = 0
  private next = 0
  /** The remaining pieces of the last item. */
  private pieces: Iterator<string> | undefined
  private readonly closing: string
  private readonly hold

  constructor(
    private readonly reply: Reply,
    private readonly items: ListItems,
    { opening, closing }: Brackets,
    total?: number,
  ) {
    this.total = total
    this.hold = reply.answers.open()
    // The items, a comma before each or the opening bracket, and the closing one.
    const expected = (items.heldBytes ?? partBytesMin) + items.length + 2
    this.part = Buffer.allocUnsafe(Math.min(expected, roomMax))
    this.closing = closing
    this.addText(opening)
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
          const refusal = this.addText(value)
          if (refusal) return this.refuse(refusal)
          turnBytes += Math.max(value.length, pieceBytesMin)
        }
        continue
      }
      const index = this.next++
      const item = items.render(index)
      const cost = items.cost?.(index) ?? 0
      if (index > 0) this.addComma()
      if (typeof item !== 'string' && !(item instanceof StoredJson)) {
        this.pieces = item
        turnBytes += cost
        continue
      }
      const refusal = typeof item === 'string' ? this.addText(item) : this.addStored(item)
      if (refusal) return this.refuse(refusal)
      turnBytes += Math.max(item.length, cost)
    }
    this.addText(this.closing)
    this.closePart()
    const [only] = this.parts
    hold.release()
    reply.json(this.parts.length === 1 ? only! : this.parts, this.total)
  }

  private addText(text: string): Refusal | undefined {
    const length = Buffer.byteLength(text)
    if (!this.fits(length)) return this.reply.answers.tooLarge
    if (length > smallBytesMax) return this.addPart(Buffer.from(text), true)
    this.makeRoom(length)
    this.part.write(text, this.partBytes)
    return this.grow(length)
  }

  /** The next item counts it against the limits. */
  private addComma(): void {
    this.bytes++
    this.makeRoom(1)
    this.part[this.partBytes++] = comma
  }

  private addStored(json: StoredJson): Refusal | undefined {
    const { length } = json
    if (!this.fits(length)) return this.reply.answers.tooLarge
    if (length > smallBytesMax) return this.addPart(json.bytes(), !json.isShared)
    this.makeRoom(length)
    json.copyTo(this.part, this.partBytes)
    return this.grow(length)
  }

  private fits(more: number): boolean {
    this.bytes += more
    return this.bytes <= this.reply.answers.answerBytesMax
  }

  /** `isOwn`: the bytes are not part of memory that is counted anyway. */
  private addPart(bytes: Uint8Array, isOwn: boolean): Refusal | undefined {
    this.closePart()
    this.parts.push(bytes)
    return !isOwn || this.hold.take(bytes.length) ? undefined : refusals.answersTooMany
  }

  private makeRoom(more: number): void {
    const { part, partBytes } = this
    if (partBytes + more <= part.length) return
    this.part = Buffer.allocUnsafe(Math.min(Math.max(2 * part.length, partBytesMin, partBytes + more), roomMax))
    part.copy(this.part, 0, 0, partBytes)
  }

  private grow(more: number): Refusal | undefined {
    this.partBytes += more
    if (this.partBytes < partBytesMax) return undefined
    const { partBytes } = this
    this.closePart()
    return this.hold.take(partBytes) ? undefined : refusals.answersTooMany
  }

  private closePart(): void {
    const { part, partBytes } = this
    if (partBytes === 0) return
    this.parts.push(partBytes === part.length ? part : part.subarray(0, partBytes))
    // The next part may use the rest: nothing is copied to where this one is.
    this.part = part.subarray(partBytes)
    this.partBytes = 0
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

/** The JSON of an entity in its stored form, as its reader sees it. */
const jsonOf = ({ path, encoded, seenBy }: Shown & FoundEntity): StoredJson =>
  seenBy ? seenFormsUnder(seenBy).jsonOf(path, encoded) : StoredJson.whole(encoded)

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
