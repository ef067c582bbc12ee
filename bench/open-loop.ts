// Sends requests at a pace, whether or not the server keeps up, and tells when each was answered.
//
// wrk asks again when it has an answer, so it finds out what a server can do, not how it does at half of that. This one counts, every
// millisecond, how many should have gone out by then.

import { Connection } from './connection.js'
import { steadyMs } from './machine.js'

export interface Pace {
  readonly url: string
  readonly perSecond: number
  readonly seconds: number
  readonly connections: number
  /** The n-th request as bytes on the wire. */
  readonly request: (n: number) => string
}

/** When the n-th was answered, in `steadyMs`. Fails on the first answer that is not 2xx, and when the server cannot keep up at all. */
export async function sendPaced({ url, perSecond, seconds, connections, request }: Pace): Promise<number[]> {
  const idle = await Promise.all(Array.from({ length: connections }, () => Connection.open(url)))
  const open = [...idle]
  const count = Math.round(perSecond * seconds)
  const answeredMs: number[] = []
  let sent = 0
  let answered = 0
  let timer: NodeJS.Timeout | undefined
  const fromMs = steadyMs()
  try {
    await new Promise<void>((done, failed) => {
      const send = (connection: Connection): void => {
        const n = sent++
        connection.ask(request(n)).then(({ isSuccess, head, body }) => {
          answeredMs[n] = steadyMs()
          if (!isSuccess) return failed(new Error(`${url} refused request ${n}:\n${head}\n${body}`))
          answered += 1
          idle.push(connection)
          if (answered === count) done()
          else sendDue()
        }, failed)
      }
      const sendDue = (): void => {
        const due = Math.min(count, ((steadyMs() - fromMs) / 1000) * perSecond)
        while (sent < due && idle.length > 0) send(idle.pop()!)
      }
      timer = setInterval(() => {
        sendDue()
        if (steadyMs() - fromMs > seconds * 1000 + lateMsMax)
          failed(new Error(`${url} does not keep up with ${Math.round(perSecond)}/s`))
      }, 1)
    })
  } finally {
    clearInterval(timer)
    for (const connection of open) connection.close()
  }
  return answeredMs
}

/** A server that ends so long after the pace was over is being asked more than it can do. */
const lateMsMax = 5_000
