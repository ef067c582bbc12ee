// Light requests every 2 ms while a server does other work, and the wait of each.
//
// Samples use a few connections in turn, so that none waits for the answer to another. On a single connection, a turn
// of the server's event loop longer than 2 ms would pile them up, and the pile would be measured. A sample that finds
// all connections waiting counts from its due time. Otherwise a long pause would hide the samples that it delayed.

import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from './connection.js'

const everyMs = 2
/** Enough that a pause of 100 ms finds a connection for every sample. */
const connections = 50
const lastAnswersMsMax = 10_000

export interface Sampler {
  /** Waits for the last answers; returns the milliseconds of each sample. Fails if the answer to one was not 2xx. */
  end(): Promise<number[]>
}

/** Starts sampling with the requests that `requestOf` returns. */
export async function startSampler(url: string, requestOf: (n: number) => string): Promise<Sampler> {
  const open = await Promise.all(Array.from({ length: connections }, () => Connection.open(url)))
  const idle = [...open]
  const due: number[] = []
  const took: number[] = []
  let asked = 0
  let failure: Error | undefined
  const ask = async (connection: Connection, dueMs: number): Promise<void> => {
    const { isSuccess, head, body } = await connection.ask(requestOf(asked++))
    if (!isSuccess) throw new Error(`${url} refused a sample:\n${head}\n${body}`)
    took.push(performance.now() - dueMs)
    const next = due.shift()
    if (next === undefined) idle.push(connection)
    else await ask(connection, next)
  }
  // The server does not cause late timers of this process. So a sample counts from the moment when its timer really
  // ran.
  const timer = setInterval(() => {
    const connection = idle.shift()
    if (!connection) due.push(performance.now())
    else
      ask(connection, performance.now()).catch(error => {
        failure ??= error as Error
      })
  }, everyMs)
  return {
    async end() {
      clearInterval(timer)
      for (let waited = 0; idle.length < connections && !failure && waited < lastAnswersMsMax; waited += 10)
        await delay(10)
      for (const connection of open) connection.close()
      if (failure) throw failure
      if (idle.length < connections) throw new Error(`${url} does not answer samples any more`)
      if (took.length === 0) throw new Error('no sample was answered')
      return took
    },
  }
}
