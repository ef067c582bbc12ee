// The document owner: how a document changes, whatever its kind.
//
// A turn is synchronous, like those of entities: it sees what earlier turns have staged. The reply to a change leaves
// when the change is durable here and, where there are other owners, at all of them (register.ts). So the next change
// of an entity and the next request see it, wherever they are decided. Reads wait for staged changes in the
// same way.
//
// This code does not check the placement: the caller sends requests to the document owner.
//
// Not here: the requests and decisions (subscription-owner.ts, registration-owner.ts).

import type { OwnedDocument, PrincipalSource, VisibleDocuments } from '../../domain/access/principal.js'
import { accepted, type Refusal, type Result, refused } from '../../domain/refusal.js'
import type { ShardReply } from '../../messages/messages.js'
import type { DiskRoom } from '../../ports.js'
import { refusalForRoom } from '../turn/room.js'
import type { Document, Documents } from './documents.js'
import type { Register } from './register.js'

export type OnReply = (reply: ShardReply) => void

/** A change that is about to be staged; without a document it is a removal. */
export interface Decided<T extends Document> {
  readonly tenant: string
  readonly id: string
  readonly document: T | undefined
  readonly text: string
}

export const removal = (tenant: string, id: string): Decided<never> => ({ tenant, id, document: undefined, text: '' })

/** A new or changed document with its text, or the refusal when that is larger than `bytesMax`. */
export function wanted<T extends Document>(
  document: T,
  text: string,
  bytesMax: number,
  tooLarge: (bytes: number, bytesMax: number) => Refusal,
): Result<Decided<T>> {
  const { tenant, id } = document
  const bytes = Buffer.byteLength(text)
  return bytes > bytesMax ? refused(tooLarge(bytes, bytesMax)) : accepted({ tenant, id, document, text })
}

export class DocumentOwner {
  private readonly register: Register
  private readonly waitingMax: number
  private readonly room: DiskRoom
  private waiting = 0

  /** `waitingMax`: changes and reads whose reply waits. `visible` undefined: there is no access control. */
  constructor(
    register: Register,
    waitingMax: number,
    room: DiskRoom,
    private readonly visible?: VisibleDocuments,
  ) {
    this.register = register
    this.waitingMax = waitingMax
    this.room = room
  }

  /** Which documents a list for a reader has; undefined: all. Without access control no reader sees any. */
  visibleFor(reader: PrincipalSource | undefined, tenant: string): ((document: OwnedDocument) => boolean) | undefined {
    return reader && (this.visible?.(reader, tenant) ?? (() => false))
  }

  /** Decides about a change and makes it, if one can be made now. */
  change<T extends Document, P>(documents: Documents<T, P>, decide: () => Result<Decided<T>>, onReply: OnReply): void {
    const obstacle = this.register.obstacle()
    if (obstacle) return onReply(obstacle)
    if (this.waiting >= this.waitingMax) return onReply({ kind: 'busy' })
    const decided = this.withRoom(decide())
    if (!decided.ok) return this.afterTold(documents.stagedIn, { kind: 'refused', refusal: decided.refusal }, onReply)
    this.stage(documents, decided.value)
    this.waiting++
    const { stagedIn } = documents
    this.register.afterAll(stagedIn, failure => {
      this.waiting--
      if (!failure) documents.onKnown(stagedIn)
      onReply(failure ?? { kind: 'done' })
    })
  }

  /** A removal needs no room of its own. */
  private withRoom<T extends Document>(decided: Result<Decided<T>>): Result<Decided<T>> {
    const refusal = decided.ok ? refusalForRoom(this.room, decided.value.document === undefined) : undefined
    return refusal ? refused(refusal) : decided
  }

  private stage<T extends Document, P>(documents: Documents<T, P>, { tenant, id, document, text }: Decided<T>): void {
    if (document) documents.put(document, text)
    else documents.remove(tenant, id)
  }

  /**
   * Replies when all owners have the documents that were read, durably: those of a list up to its latest change. Readers
   * may wait as long as a lease, so they share the limit of changes.
   */
  afterTold(carriedBy: number, reply: ShardReply, onReply: OnReply): void {
    if (this.waiting >= this.waitingMax) return onReply({ kind: 'busy' })
    this.waiting++
    this.register.beforeRead(carriedBy, failure => {
      this.waiting--
      onReply(failure ?? reply)
    })
  }
}
