// Requests that did not come as exchanges of a front: updates over a WebSocket (docs/interface/live.md#updates).

import type { Payload } from '../domain/entities/entity.js'
import type { Result } from '../domain/refusal.js'
import type { Asker } from './access-guard.js'
import type { Exchange } from './front.js'

export interface InnerRequests {
  /**
   * Serves a write whose body is parsed already, as if it had come to a front. `asker`: who has opened the connection;
   * undefined: there is no access control.
   */
  serveParsed(exchange: Exchange, payload: Result<Payload>, asker: Asker | undefined): void
}
