// A broker whose event loops are measured (turn-probe.ts), and how long a request has held them.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import {
  type BrokerOptions,
  type BrokerProcess,
  startBroker,
  type Teardown,
  tempDir,
} from '../support/broker-process.js'
import { LocalNode } from '../support/local-node.js'
import { root } from '../support/project.js'

const probe = pathToFileURL(join(root, 'dist/test/hostile/turn-probe.js')).href

/** Threads that serve requests; others may take as long as they need. */
const serving = /^(?:node-thread|worker)-/

export class MeasuredBroker {
  readonly node: LocalNode
  readonly broker: BrokerProcess
  private readonly folder: string

  constructor(broker: BrokerProcess, folder: string) {
    this.node = new LocalNode(broker.port)
    this.broker = broker
    this.folder = folder
  }

  /** The longest round of the loop of a serving thread, while `run` and the work after it run. */
  async longestMs(run: () => Promise<unknown>): Promise<number> {
    const before = this.read()
    await run()
    // The work that the request has left, and the ring of the timer after it.
    await pause(settleMs)
    let longest = 0
    for (const [file, lines] of this.read())
      for (const line of lines.slice(before.get(file)?.length ?? 0))
        longest = Math.max(longest, Number(line.split(' ')[1]))
    return longest
  }

  /** Waits until the work after a start is done, since that is not a cost of requests. */
  async untilQuiet(): Promise<void> {
    const endMs = performance.now() + quietWaitMs
    for (let known = -1; performance.now() < endMs; ) {
      const rounds = [...this.read().values()].reduce((sum, lines) => sum + lines.length, 0)
      if (rounds === known) return
      known = rounds
      await pause(quietMs)
    }
  }

  private read(): Map<string, readonly string[]> {
    const files = readdirSync(this.folder).filter(file => serving.test(file))
    return new Map(
      files.map(file => [file, readFileSync(join(this.folder, file), 'utf8').split('\n').slice(0, -1)] as const),
    )
  }
}

const settleMs = 30
/** A start is over after so long without a report; below, the longest wait for that. */
const quietMs = 300
const quietWaitMs = 6_000

export async function startMeasured(t: Teardown, options: BrokerOptions = {}): Promise<MeasuredBroker> {
  const folder = tempDir(t)
  const wrapper = ['env', `NODE_OPTIONS=--import=${probe}`, `ORRERY_TURNS=${folder}`]
  const broker = await startBroker(t, { ...options, wrapper })
  const measured = new MeasuredBroker(broker, folder)
  await measured.untilQuiet()
  return measured
}
