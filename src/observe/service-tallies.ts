// Counts requests and what is sent by tenant and service path, for `GET /admin/metrics` (operations.md §7).
//
// Names come from headers, which anybody may send: past `talliesMax` of them the rest is counted together. What headers mean is found once
// and remembered by their text.
//
// [hot] `onAnswered` once per request: 0.1 us (bench/watch.ts).

import { ownText } from '../domain/recent.js'
import type { ServiceTally } from '../messages/admin.js'
import type { AnsweredRequest, EndedTry } from '../ports.js'
import { emptyTally, serviceNames } from './service-metrics.js'

/** Pairs of tenant and path that are told apart until the next reset: 500 bytes each. */
export const talliesMax = 10_000

/** Pairs of headers whose meaning is remembered, all forgotten at once when there are more, and how long a list of paths may be for that. */
export const knownMax = 2_000
const knownLengthMax = 200

/** Names of what is not told apart; no tenant and no path can be called so. */
const others = 'other-services'

const nobody = { tenant: '', paths: '', tally: undefined }

export class ServiceTallies {
  private tallies = new Map<string, ServiceTally>()
  /** By tenant and path as the headers have them. */
  private readonly known = new Map<string, Map<string, ServiceTally>>()
  private knownCount = 0
  /** What was counted last: most requests are like the one before, and to compare two texts is cheaper than to look them up. */
  private last: { readonly tenant: string; readonly paths: string; readonly tally: ServiceTally | undefined } = nobody

  // [hot] Once per request.
  onAnswered({ tenant, paths, status, requestBytes, responseBytes, durationMs }: AnsweredRequest): void {
    const tally = this.tallyOf(tenant, paths)
    if (!tally) return
    tally.incomingTransactions++
    if (status >= 400) tally.incomingTransactionErrors++
    tally.incomingTransactionRequestSize += requestBytes
    tally.incomingTransactionResponseSize += responseBytes
    tally.serviceSeconds += durationMs / 1000
  }

  /** MQTT is not counted (§7.3). */
  onEnded({ what, tenant, path, requestBytes, responseBytes, failure }: EndedTry): void {
    if (what === 'mqttNotification') return
    const tally = this.tallyOf(tenant, path)
    if (!tally) return
    tally.outgoingTransactions++
    if (failure !== undefined) tally.outgoingTransactionErrors++
    tally.outgoingTransactionRequestSize += requestBytes
    tally.outgoingTransactionResponseSize += responseBytes
  }

  /** What was counted since the last reset. */
  read(isReset: boolean): readonly ServiceTally[] {
    const all = [...this.tallies.values()].map(tally => ({ ...tally }))
    if (isReset) this.forget()
    return all
  }

  private forget(): void {
    this.tallies = new Map()
    this.known.clear()
    this.knownCount = 0
    this.last = nobody
  }

  private tallyOf(tenant: string, paths: string): ServiceTally | undefined {
    const { last } = this
    if (last.tenant === tenant && last.paths === paths && last.tally) return last.tally
    const tally = this.known.get(tenant)?.get(paths) ?? this.find(tenant, paths)
    this.last = { tenant, paths, tally }
    return tally
  }

  private find(tenant: string, paths: string): ServiceTally | undefined {
    const names = serviceNames(tenant, paths)
    if (!names) return undefined
    const tally = this.tally(names)
    if (paths.length > knownLengthMax) return tally
    if (this.knownCount >= knownMax) {
      this.known.clear()
      this.knownCount = 0
    }
    let ofTenant = this.known.get(tenant)
    if (!ofTenant) {
      ofTenant = new Map()
      this.known.set(ownText(tenant), ofTenant)
    }
    ofTenant.set(ownText(paths), tally)
    this.knownCount++
    return tally
  }

  private tally({ service, path }: { readonly service: string; readonly path: string }): ServiceTally {
    const key = `${service} ${path}`
    const there = this.tallies.get(key)
    if (there) return there
    if (this.tallies.size >= talliesMax && service !== others) return this.tally({ service: others, path: others })
    // Cut out of the key, so that they hold on to no header.
    const tally = emptyTally(key.slice(0, service.length), key.slice(service.length + 1))
    this.tallies.set(key, tally)
    return tally
  }
}
