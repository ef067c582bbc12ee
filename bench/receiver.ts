// The receiver of notifications (receiver-main.ts) as the bench sees it: started, asked what it has heard of, waited
// for.

import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { start } from './servers.js'

export interface Counts {
  /** Notifications, those that came again included. */
  readonly received: number
  /** How many there were by their Ctx-Notification-Id, and by the updates they tell of. */
  readonly notifications: number
  readonly updates: number
  /** When the last one came that was not known yet, by the wall clock. */
  readonly lastMs: number
}

/** The value of an update, and when it was heard of first, in `steadyMs`. */
export type Arrival = readonly [value: number, atMs: number]

/** Ports. */
export interface Lanes {
  readonly live: readonly number[]
  /** Accepts connections, and that is all. */
  readonly dead: number
}

export interface Receiver {
  readonly pid: number
  /** Where notifications go. */
  readonly url: string
  counts(): Promise<Counts>
  /** Of every update heard of. */
  arrivals(): Promise<readonly Arrival[]>
  lanes(): Promise<Lanes>
  forget(): Promise<void>
  /** What is known when so many updates have been heard of, or when nothing new has come for a long time. */
  heardOf(updates: number): Promise<Counts>
  stop(): Promise<void>
}

/** How long a missing notification is waited for: longer than it takes to try again twice. */
const silenceMsMax = 15_000
const askedEveryMs = 20

/** Starts it beside the generator, with so many lanes. */
export async function startReceiver(folder: string, lanes = 0): Promise<Receiver> {
  const script = fileURLToPath(new URL('./receiver-main.js', import.meta.url))
  const subject = { name: 'receiver', script, isBroker: false }
  const args = ['-lanes', String(lanes)]
  const { pid, url, stop } = await start(subject, join(folder, 'receiver'), 'generator', { probe: '/counts', args })
  const told = async <T>(path: string): Promise<T> => (await fetch(url + path)).json() as Promise<T>
  const counts = (): Promise<Counts> => told('/counts')
  return {
    pid,
    url: `${url}/notify`,
    counts,
    arrivals: () => told('/arrivals'),
    lanes: () => told('/lanes'),
    async forget() {
      await told('/forget')
    },
    async heardOf(updates) {
      let known = await counts()
      for (let silentMs = 0; known.updates < updates && silentMs < silenceMsMax; silentMs += askedEveryMs) {
        await delay(askedEveryMs)
        const now = await counts()
        if (now.updates > known.updates) silentMs = 0
        known = now
      }
      return known
    },
    stop,
  }
}
