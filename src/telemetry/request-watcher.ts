// Who is told of every request, and passes it on to those who count.
//
// [hot] Once per request: nothing is made here that is not wanted.

import type { AnsweredRequest, RequestWatch } from '../ports.js'
import type { RequestTallies } from './request-tallies.js'
import type { ServiceTallies } from './service-tallies.js'
import type { StatisticsBook } from './statistics-book.js'

export class RequestWatcher implements RequestWatch {
  readonly wantsOrigin = false
  readonly payloadBytes = 0
  readonly isTimed: boolean
  private readonly requests: RequestTallies
  private readonly statistics: StatisticsBook
  private readonly services: ServiceTallies | undefined

  /** `services`: undefined, nobody counts by tenant (`-disableMetrics`). */
  constructor(requests: RequestTallies, statistics: StatisticsBook, services: ServiceTallies | undefined) {
    this.requests = requests
    this.statistics = statistics
    this.services = services
    this.isTimed = statistics.blocks.timing
  }

  onRouted(route: string, method: string, payload: 'json' | 'text' | 'none'): void {
    this.statistics.onRouted(route, method, payload)
  }

  onAnswered(request: AnsweredRequest): void {
    this.requests.onAnswered(request)
    this.services?.onAnswered(request)
    this.statistics.onAnswered(request)
  }

  onParsed(ms: number): void {
    this.statistics.onParsed(ms)
  }
}
