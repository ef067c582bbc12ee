// `orrery watch`: prints changes of a running broker as they happen (docs/interface/live.md#orrery-watch).
//
// Exit status: 0 after SIGINT or SIGTERM, and when the reader of the output has gone (`| head`). 1 when the arguments
// are wrong, when the broker refuses the watch, or when the first connection cannot be made. Standard output has only
// events or the table; everything else goes to standard error. Headers and the token are printed nowhere.

import { systemChance, systemClock } from '../clock.js'
import { type OpenSocket, openSockets } from '../deliver/sockets/sockets.js'
import { readWatchArguments, type WatchOrder } from './arguments.js'
import { EventLines, LatestTable, type Output, type WatchDisplay } from './display.js'
import { WatchFeed } from './feed.js'

/** Runs the command with the words behind its name; returns the exit status. */
export async function runWatch(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const reading = readWatchArguments(words, env)
  if (reading.kind === 'refuse') return fail(reading.lines.join('\n'))
  const { order } = reading
  let openSocket: OpenSocket
  try {
    openSocket = openSockets(order.tls)
  } catch (error) {
    return fail(`orrery watch: ${(error as Error).message}`)
  }
  return follow(order, openSocket)
}

function fail(lines: string): number {
  process.stderr.write(`${lines}\n`)
  return 1
}

async function follow(order: WatchOrder, openSocket: OpenSocket): Promise<number> {
  const { stdout, stderr } = process
  let isFull = false
  const out: Output = {
    isTTY: stdout.isTTY,
    get columns() {
      return stdout.columns
    },
    get rows() {
      return stdout.rows
    },
    write(text) {
      if (stdout.write(text) || isFull) return
      isFull = true
      feed.pause()
      stdout.once('drain', () => {
        isFull = false
        feed.resume()
      })
    },
  }
  const display: WatchDisplay =
    order.format === 'table' ? new LatestTable(out, stderr, systemClock) : new EventLines(out, stderr)
  const feed = new WatchFeed({
    order,
    openSocket,
    clock: systemClock,
    chance: systemChance,
    onBegun: isAnew => display.begun(isAnew),
    onEvent: event => display.event(event),
    onNote: line => display.note(line),
  })
  let isReaderGone = false
  const onError = (): void => {
    isReaderGone = true
    feed.stop()
  }
  const onResize = (): void => display.resized()
  const onSignal = (): void => {
    feed.stop()
    setTimeout(() => leaveSignals(), sameSignalMs).unref()
  }
  const leaveSignals = (): void => {
    for (const signal of signals) process.off(signal, onSignal)
  }
  stdout.on('error', onError)
  stderr.on('error', onError)
  stdout.on('resize', onResize)
  // A second signal ends the process by default, but `timeout` sends each one twice.
  for (const signal of signals) process.on(signal, onSignal)
  // A pause between two connections does not keep the process alive; this timer does.
  const awake = setInterval(() => {}, awakeMs)
  try {
    const reason = await feed.run()
    if (reason !== undefined) display.note(`${order.url.origin}: ${reason}`)
    if (!isReaderGone) display.end()
    return reason === undefined ? 0 : 1
  } finally {
    clearInterval(awake)
    stdout.off('resize', onResize)
    leaveSignals()
  }
}

const signals = ['SIGINT', 'SIGTERM'] as const
/** Signals within this time are one. */
const sameSignalMs = 500
const awakeMs = 1_000
