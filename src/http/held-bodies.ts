// Bodies of requests that arrive while their token is being verified (docs/interface/access.md#tokens).
//
// Any client may send a token and a body, so the bytes that are kept have one limit for the process.

import { heldBodyBytesMax } from '../domain/access/access-limits.js'
import type { BodyHandler, Excess } from './front.js'

export class HeldBodies {
  private bytes = 0

  constructor(private readonly bytesMax = heldBodyBytesMax) {}

  /** Takes room for a body; false: there is none. */
  take(length: number): boolean {
    if (this.bytes + length > this.bytesMax) return false
    this.bytes += length
    return true
  }

  release(length: number): void {
    this.bytes -= length
  }
}

/** The body of a request, which may arrive before its client is identified. */
export class HeldBody {
  private isDecided = false
  /** Whether the request was refused because there was no room for its body. */
  isRefused = false
  private handler: BodyHandler | undefined
  private came: { readonly bytes: Uint8Array; readonly excess: Excess | undefined } | undefined

  /** `refuse` is called once, if there is no room for the body. */
  constructor(
    private readonly room: HeldBodies,
    private readonly refuse: () => void,
  ) {}

  /** `handler` undefined: the request is answered without its body. */
  give(handler: BodyHandler | undefined): void {
    this.isDecided = true
    this.handler = handler
    const { came } = this
    if (!came) return
    this.came = undefined
    this.room.release(came.bytes.length)
    handler?.(came.bytes, came.excess)
  }

  /** What the front gets as the receiver of the body. */
  handlerNow(awaitsBody: boolean): BodyHandler | undefined {
    if (this.isDecided || !awaitsBody) return this.handler
    return (body, excess) => {
      if (this.isDecided) this.handler?.(body, excess)
      // The bytes are valid during the call only.
      else if (this.room.take(body.length)) this.came = { bytes: Uint8Array.from(body), excess }
      else {
        this.isRefused = true
        this.refuse()
      }
    }
  }
}
