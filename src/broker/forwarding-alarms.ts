// Alarms of providers that do not answer, or not as they should (operations.md §6.4): told once, until the provider answers again.

import { parseReceiverUrl } from '../domain/receiver-url.js'
import type { Logger } from '../ports.js'

/** Alarms that are up at a time; beyond, the oldest is forgotten, and would be told again. */
const alarmsMax = 10_000

export class ForwardingAlarms {
  private readonly logger: Pick<Logger, 'warn'>
  private readonly raised = new Set<string>()

  constructor(logger: Pick<Logger, 'warn'>) {
    this.logger = logger
  }

  raise(url: string, detail: string): void {
    const key = keyOf(url)
    if (this.raised.has(key)) return
    const [oldest] = this.raised
    if (oldest !== undefined && this.raised.size >= alarmsMax) this.raised.delete(oldest)
    this.raised.add(key)
    this.logger.warn(`Raising alarm ForwardingError ${key}: ${detail}`)
  }

  // [hot] Once per answer, and nearly always there is no alarm.
  release(url: string): void {
    if (this.raised.size === 0) return
    const key = keyOf(url)
    if (this.raised.delete(key)) this.logger.warn(`Releasing alarm ForwardingError ${key}`)
  }
}

function keyOf(url: string): string {
  const parts = parseReceiverUrl(url)
  return parts ? `${parts.host}:${parts.port}${parts.path}` : url
}
