// Sends requests at a pace, whether or not the servers keep up, and reports when each was due and when it was answered.
//
// wrk sends the next request when it has an answer, so it measures a server's capacity, not its behaviour at half of
// that. This loop counts, every millisecond, how many requests should have gone out by then. Connections take turns, so
// that each server gets the same number.

import { type Answer, Connection } from './connection.js'
import { steadyMs } from './machine.js'

export interface Pacing {
  /** They share the connections evenly. */
  readonly urls: readonly string[]
  readonly perSecond: number
  readonly connections: number
  /** The n-th request as bytes on the wire. */
  readonly request: (n: number) => string
  /** Called for every answer; both times in `steadyMs`. An exception ends the loop. */
  readonly onAnswer: (n: number, answer: Answer, dueMs: number, answeredMs: number) => void
  /** Number of requests; by default it continues until `end`. */
  readonly count?: number
}

export interface OpenLoop {
  /**
   * Resolves when every due request is answered. Rejects when a connection breaks, and when the servers cannot keep up
   * at all.
   */
  readonly ended: Promise<void>
  /** No more requests come due. */
  end(): Promise<void>
}

/** Servers that answer the last request this long after it was due get more requests than they can serve. */
const lateMsMax = 5_000

export async function startOpenLoop(pacing: Pacing): Promise<OpenLoop> {
  const { urls, perSecond, connections, request, onAnswer } = pacing
  const open = await Promise.all(Array.from({ length: connections }, (_, k) => Connection.open(urls[k % urls.length]!)))
  const idle = [...open]
  let count = pacing.count ?? Number.POSITIVE_INFINITY
  let sent = 0
  let answered = 0
  const fromMs = steadyMs()
  const dueMs = (n: number): number => fromMs + (n / perSecond) * 1000
  /** Number of requests due by now. */
  const due = (): number => Math.min(count, Math.floor(((steadyMs() - fromMs) / 1000) * perSecond) + 1)
  let finish: (failure?: unknown) => void = () => {}
  const ended = new Promise<void>((done, failed) => {
    finish = failure => (failure === undefined ? done() : failed(failure))
  })
  const send = async (connection: Connection): Promise<void> => {
    const n = sent++
    const answer = await connection.ask(request(n))
    onAnswer(n, answer, dueMs(n), steadyMs())
    answered += 1
    idle.push(connection)
    if (answered === count) finish()
    else sendDue()
  }
  const sendDue = (): void => {
    for (const all = due(); sent < all && idle.length > 0; ) send(idle.shift()!).catch(finish)
  }
  const timer = setInterval(() => {
    sendDue()
    if (steadyMs() - dueMs(answered) > lateMsMax)
      finish(new Error(`${urls.join(', ')}: no keeping up with ${Math.round(perSecond)}/s`))
  }, 1)
  const closed = ended.finally(() => {
    clearInterval(timer)
    for (const connection of open) connection.close()
  })
  // The caller gets a failure from `ended`.
  closed.catch(() => {})
  return {
    ended: closed,
    end() {
      count = due()
      if (answered === count) finish()
      return closed
    },
  }
}

export interface Pace {
  readonly url: string
  readonly perSecond: number
  readonly seconds: number
  readonly connections: number
  /** The n-th request as bytes on the wire. */
  readonly request: (n: number) => string
}

/**
 * The times at which the requests were answered, in `steadyMs`. Rejects on the first answer that is not 2xx, and when
 * the server cannot keep up at all.
 */
export async function sendPaced({ url, perSecond, seconds, connections, request }: Pace): Promise<number[]> {
  const answeredMs: number[] = []
  const loop = await startOpenLoop({
    urls: [url],
    perSecond,
    connections,
    request,
    onAnswer: (n, { isSuccess, head, body }, _, atMs) => {
      if (!isSuccess) throw new Error(`${url} refused request ${n}:\n${head}\n${body}`)
      answeredMs[n] = atMs
    },
    count: Math.round(perSecond * seconds),
  })
  await loop.ended
  return answeredMs
}
