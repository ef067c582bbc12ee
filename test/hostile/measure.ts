// How long each request of the corpus holds the event loop: `node dist/test/hostile/measure.js [world] [-workers 2]
// ...`. Every request goes to a broker that has just started; with the word `warm`, all requests of a world go to one.

import { type HostileRequest, type World, worlds } from './corpus.js'
import { type MeasuredBroker, startMeasured } from './turns.js'

export interface Measured {
  readonly request: HostileRequest
  readonly status: number
  readonly text: string
  readonly heldMs: number
}

/** Sends one request, and measures how long the loop was held. */
export async function measure(broker: MeasuredBroker, request: HostileRequest): Promise<Measured> {
  const headers = [
    ...(request.headers ?? []),
    ...(request.body === undefined ? [] : ['Content-Type: application/json']),
  ]
  let status = 0
  let text = ''
  const heldMs = await broker.longestMs(async () => {
    const answer = await broker.node.ask(request.line, headers, request.body)
    status = answer.status
    text = answer.text
  })
  return { request, status, text, heldMs }
}

async function main(words: readonly string[]): Promise<void> {
  const isWarm = words.includes('warm')
  const args = words.slice(words.findIndex(word => word.startsWith('-'))).filter(word => word !== 'warm')
  const options = words.some(word => word.startsWith('-')) ? args : []
  const chosen = worlds.filter(({ name }) => words.includes(name))
  for (const world of chosen.length > 0 ? chosen : worlds) await measureWorld(world, isWarm, options)
}

async function measureWorld(world: World, isWarm: boolean, args: readonly string[]): Promise<void> {
  const teardowns: (() => unknown)[] = []
  const t = { teardown: (run: () => unknown) => void teardowns.unshift(run) }
  try {
    const first = await startMeasured(t, { args })
    await world.prepare(first.node)
    const { dataDir } = first.broker
    await first.broker.kill('SIGTERM')
    let broker: MeasuredBroker | undefined
    for (const request of world.requests) {
      broker ??= await startMeasured(t, { args, dataDir })
      const { status, text, heldMs } = await measure(broker, request)
      const wrong = status === request.status ? '' : `  <-- ${status} ${text.slice(0, 150)}`
      console.log(`${heldMs.toFixed(1).padStart(8)} ms  ${world.name}: ${request.name}${wrong}`)
      if (isWarm) continue
      await broker.broker.kill('SIGTERM')
      broker = undefined
    }
  } finally {
    for (const run of teardowns) await run()
  }
}

if (process.argv[1]?.endsWith('measure.js')) await main(process.argv.slice(2))
