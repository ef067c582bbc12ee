// The updates of one WebSocket (docs/interface/live.md#updates).
//
// An update is a request like any other. Updates of different entities run side by side. An update waits until the
// earlier ones of its entities have been answered, so each entity sees its updates in the order of their messages. The
// updates behind it wait as well.

import type { Payload } from '../domain/entities/entity.js'
import { isArray, isObject, type Json } from '../domain/json.js'
import { accepted, type Refusal, type Result, refusals } from '../domain/refusal.js'
import type { Asker } from './access-guard.js'
import type { InnerRequests } from './inner-requests.js'
import { MessageExchange, type MessageHead } from './message-exchange.js'
import { errorText, statusOf } from './reply.js'

/** Updates of a connection that are not answered yet. */
export const unansweredMax = 256

/** What updates need of their connection. */
export interface UpdateParts {
  readonly inner: InnerRequests
  /** The principal of the connection at this moment; undefined: there is no access control. */
  readonly asker: () => Asker | undefined
  /** Bytes of all updates together that are not answered yet. */
  readonly bytesMax: number
  readonly onDone: (text: string) => void
  /** Called when there are updates without an answer, and when there are none any more. */
  readonly onBusy: (isBusy: boolean) => void
}

/** The number of an update, as the client chose it. */
export type UpdateRef = string | number

interface Waiting {
  readonly ref: UpdateRef
  readonly head: MessageHead
  readonly payload: Result<Payload>
  readonly ids: ReadonlySet<string>
}

export class SocketUpdates {
  private waiting: Waiting[] = []
  /** The ids of entities whose update is not answered yet. */
  private readonly busy = new Set<string>()
  private count = 0
  private bytes = 0
  private isStarting = false
  private isClosed = false

  constructor(private readonly parts: UpdateParts) {}

  /** Updates that are not answered yet. */
  get unanswered(): number {
    return this.count
  }

  /** Executes an update behind the earlier ones of its entities. */
  add(ref: UpdateRef, head: MessageHead, payload: Payload): void {
    const { bytesMax } = this.parts
    if (this.count >= unansweredMax) return this.refuse(ref, refusals.updatesTooMany(unansweredMax))
    if (this.bytes + head.length > bytesMax) return this.refuse(ref, refusals.updatesTooLarge(bytesMax))
    if (this.count++ === 0) this.parts.onBusy(true)
    this.bytes += head.length
    this.waiting.push({ ref, head, payload: accepted(payload), ids: idsOf(payload.value) })
    this.start()
  }

  /** Answers an update with a refusal. */
  refuse(ref: UpdateRef, refusal: Refusal): void {
    this.parts.onDone(doneText(ref, statusOf[refusal.kind], errorText(refusal)))
  }

  /** Starts no more, and reports nothing any more: the connection has ended. */
  close(): void {
    this.isClosed = true
    this.waiting = []
  }

  private start(): void {
    if (this.isStarting) return
    this.isStarting = true
    for (;;) {
      const [next] = this.waiting
      if (!next || this.isClosed || this.isBusy(next.ids)) break
      this.waiting.shift()
      this.execute(next)
    }
    this.isStarting = false
  }

  private isBusy(ids: ReadonlySet<string>): boolean {
    if (this.busy.size === 0) return false
    for (const id of ids) if (this.busy.has(id)) return true
    return false
  }

  private execute({ ref, head, payload, ids }: Waiting): void {
    for (const id of ids) this.busy.add(id)
    const exchange = new MessageExchange('/v2/op/update', head, (status, body) => {
      for (const id of ids) this.busy.delete(id)
      this.count--
      this.bytes -= head.length
      if (this.isClosed) return
      this.parts.onDone(doneText(ref, status, body))
      this.start()
      if (this.count === 0) this.parts.onBusy(false)
    })
    this.parts.inner.serveParsed(exchange, payload, this.parts.asker())
  }
}

/** `body`: '' or the text of a JSON object, whose members follow the status. */
function doneText(ref: UpdateRef, status: number, body: string): string {
  const head = `{"op":"done","ref":${JSON.stringify(ref)},"status":${status}`
  return body === '' ? `${head}}` : `${head},${body.slice(1)}`
}

/** The ids of the entities of a batch that is not checked yet. */
function idsOf(batch: Json): ReadonlySet<string> {
  const ids = new Set<string>()
  if (!isObject(batch) || !isArray(batch.entities)) return ids
  for (const entity of batch.entities) if (isObject(entity) && typeof entity.id === 'string') ids.add(entity.id)
  return ids
}
