// Requests that did not come as exchanges of a front: updates over a WebSocket (docs/interface/live.md#updates).

import type { Payload } from '../domain/entities/entity.js'
import type { Result } from '../domain/refusal.js'
import type { Exchange } from './front.js'

export interface InnerRequests {
  /** Serves a write whose body is parsed already, as if it had come to a front. */
  serveParsed(exchange: Exchange, payload: Result<Payload>): void
}
