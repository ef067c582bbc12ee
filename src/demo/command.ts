// `orrery demo`: a broker with a small living city, to look at in the console (docs/operations/demo.md).
//
// A temporary directory is removed at the end. A given one stays; it has to be missing or empty at the start, so that
// the demo never mixes with the data of somebody.
//
// Exit status: 0 after SIGINT or SIGTERM. 1 when the arguments are wrong, or the broker could not start or has failed.

import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../clock.js'
import { openSockets } from '../deliver/sockets/sockets.js'
import { BrokerClient } from '../move/broker-client.js'
import { type DemoOrder, hostDefault, readDemoArguments } from './arguments.js'
import { Demo } from './demo.js'
import { seededChance } from './seeded-chance.js'

/** A broker in this process. */
export interface OwnBroker {
  /** Makes everything durable, and ends. */
  stop(): Promise<void>
}

/** Starts a broker with these start options. Rejects with a sentence; `onFailure` gets one when it fails later. */
export type StartBroker = (words: readonly string[], onFailure: (error: Error) => void) => Promise<OwnBroker>

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Runs the command with the words behind its name; returns the exit status. */
export async function runDemo(words: readonly string[], startBroker: StartBroker): Promise<number> {
  const reading = readDemoArguments(words)
  if (reading.kind === 'refuse') return fail(reading.lines.join('\n'))
  const ending = new AbortController()
  const onSignal = (): void => ending.abort()
  for (const signal of signals) process.on(signal, onSignal)
  try {
    await demonstrate(reading.order, startBroker, ending)
    return 0
  } catch (error) {
    return fail(`orrery demo: ${(error as Error).message}`)
  } finally {
    for (const signal of signals) process.off(signal, onSignal)
  }
}

function fail(lines: string): number {
  process.stderr.write(`${lines}\n`)
  return 1
}

async function demonstrate(order: DemoOrder, startBroker: StartBroker, ending: AbortController): Promise<void> {
  const { directory: given } = order
  if (given !== undefined && existsSync(given) && readdirSync(given).length > 0)
    throw new Error(`${given} is not empty: -dataDir needs an empty or a missing directory`)
  const directory = given ?? mkdtempSync(join(tmpdir(), 'orrery-demo-'))
  const remove = (): void => {
    if (given === undefined) rmSync(directory, { recursive: true, force: true })
  }
  // Also when a bug ends the process.
  process.once('exit', remove)
  try {
    await serve(order, directory, startBroker, ending)
  } finally {
    remove()
    process.off('exit', remove)
  }
}

async function serve(
  order: DemoOrder,
  directory: string,
  startBroker: StartBroker,
  ending: AbortController,
): Promise<void> {
  let failure: Error | undefined
  const onFailure = (error: Error): void => {
    failure = error
    ending.abort()
  }
  const { port, host, seed } = order
  const options = ['-port', String(port), '-localIp', host, '-dataDir', directory]
  // A receiver that refuses is a part of the demo, so warnings of it are not worth a line.
  const broker = await startBroker([...options, '-durability', 'os', '-logLevel', 'ERROR'], onFailure)
  const client = new BrokerClient(urlOf(host, port), {
    token: undefined,
    openSocket: openSockets({ insecure: false, caFile: undefined }),
  })
  try {
    const { signal } = ending
    const demo = await Demo.start({ client, clock: systemClock, chance: seededChance(seed), signal })
    try {
      if (!signal.aborted) process.stdout.write(`${readyLine(order)}\n`)
      await demo.live()
    } finally {
      demo.close()
    }
  } finally {
    await client.close()
    await broker.stop()
  }
  if (failure) throw failure
}

const urlOf = (host: string, port: number): string => `http://${host.includes(':') ? `[${host}]` : host}:${port}`

const readyLine = ({ host, port }: DemoOrder): string =>
  [
    `The demo is ready: ${urlOf(host === hostDefault ? 'localhost' : host, port)}/console/ shows 60 buses that move (Entities),`,
    'a subscription whose receiver refuses (Subscriptions), and WeatherStation1, whose weather comes from a provider.',
    'Ctrl-C ends it.',
  ].join(' ')
