// From an exchange of the front to a handler: head, route, body (entities.md §1.1). Failures end here, are logged once, and become a 500.

import { isLooped } from '../domain/forwarding.js'
import { refusals } from '../domain/refusal.js'
import type { Chance, Logger } from '../ports.js'
import { Correlators } from './correlators.js'
import type { BodyHandler, Exchange, FrontHandler } from './front.js'
import type { Reply } from './reply.js'
import { type HttpSettings, readHead, readVendor, type Vendor } from './request.js'
import type { Router } from './routes.js'

export class Server implements FrontHandler {
  private readonly route: Router
  private readonly settings: HttpSettings
  private readonly correlators: Correlators
  private readonly logger: Logger

  constructor(route: Router, settings: HttpSettings, chance: Chance, logger: Logger) {
    this.route = route
    this.settings = settings
    this.correlators = new Correlators(chance)
    this.logger = logger
  }

  // [hot] Once per request.
  onRequest(exchange: Exchange): BodyHandler | undefined {
    const vendor = readVendor(exchange, this.correlators)
    const { reply } = vendor
    try {
      return this.serve(exchange, vendor)
    } catch (error) {
      this.fail(reply, error as Error)
      return undefined
    }
  }

  private serve(exchange: Exchange, vendor: Vendor): BodyHandler | undefined {
    const { reply } = vendor
    const head = readHead(exchange, vendor, this.settings)
    if (!head.ok) {
      reply.refuse(head.refusal)
      return undefined
    }
    const request = head.value
    if (isLooped(reply.correlator))
      this.logger.warn('A request goes in a circle: it is neither forwarded nor notified of', {
        correlator: reply.correlator,
      })
    const route = this.route(request.components)
    if (!route) {
      reply.refuse(refusals.unknownPath)
      return undefined
    }
    const write = route.write.get(request.method)
    if (write) {
      return body => {
        try {
          write(request, reply, body)
        } catch (error) {
          this.fail(reply, error as Error)
        }
      }
    }
    const read = route.read.get(request.method)
    if (read) read(request, reply)
    else reply.refuse(refusals.method, route.allow)
    return undefined
  }

  /** A broken invariant or a failed read: this request ends, the others go on. */
  private fail(reply: Reply, error: Error): void {
    this.logger.error(`Runtime Error (${error.stack ?? error.message})`, { correlator: reply.correlator })
    reply.refuse(refusals.failure('internal error'))
  }
}
