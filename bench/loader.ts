// Sends a known number of requests as fast as the server accepts them, and reports which were acknowledged.
//
// wrk runs for a time, not for a count, and does not report which requests were answered. Storing exactly a million
// entities needs the first, and a check after a crash needs the second.

import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from './connection.js'
import { requestsOf, stockId, type Template } from './workloads.js'

export interface Loading {
  readonly urls: readonly string[]
  /** The n-th request as bytes on the wire. */
  readonly request: (n: number) => string
  /** Number of requests; Infinity continues until the server dies. */
  readonly count: number
  readonly connections?: number
  /**
   * Time in which a refused request is repeated: only for those that may be made twice. By default it is not repeated.
   */
  readonly againMs?: number
  /** Called for every request answered. */
  readonly onAcknowledged?: (n: number) => void
}

/** Between two tries. */
const retryMs = 100

/**
 * Sends all requests; resolves when all are answered. Rejects on the first answer that is finally not 2xx, and when a
 * server ends.
 */
export async function load({
  urls,
  request,
  count,
  connections = 64,
  againMs = 0,
  onAcknowledged,
}: Loading): Promise<void> {
  const open: Connection[] = []
  let next = 0
  const send = async (url: string): Promise<void> => {
    const connection = await Connection.open(url)
    open.push(connection)
    while (next < count) {
      const sent = next
      next += 1
      const text = request(sent)
      const untilMs = performance.now() + againMs
      let answer = await connection.ask(text)
      while (!answer.isSuccess && performance.now() < untilMs) {
        await delay(retryMs)
        answer = await connection.ask(text)
      }
      const { isSuccess, head, body } = answer
      if (!isSuccess) throw new Error(`${url} refused request ${sent}:\n${head}\n${body}`)
      onAcknowledged?.(sent)
    }
  }
  try {
    await Promise.all(Array.from({ length: connections }, (_, k) => send(urls[k % urls.length]!)))
  } finally {
    for (const connection of open) connection.close()
  }
}

/** Stores the entities that the workloads read and update. */
export function loadStock(urls: readonly string[], template: Template, tenant: string, count: number): Promise<void> {
  return load({ urls, request: requestsOf(template, tenant, stockId), count })
}
