// The receiver of notifications (receiver-main.ts) as the bench uses it: starting it, asking it for received
// notifications, waiting for them.

import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { start } from './servers.js'

export interface Counts {
  /** Notifications, those that came again included. */
  readonly received: number
  /** The number of distinct notifications, by their Ctx-Notification-Id, and of distinct updates in them. */
  readonly notifications: number
  readonly updates: number
  /** When the last new one came, by the wall clock. */
  readonly lastMs: number
}

/** The value of an update, and the time when it was first received, in `steadyMs`. */
export type Arrival = readonly [value: number, atMs: number]

/** Ports of the receivers. */
export interface Lanes {
  readonly live: readonly number[]
  /** Accepts connections, and does nothing else. */
  readonly dead: number
}

export interface Receiver {
  readonly pid: number
  /** The URL for notifications. */
  readonly url: string
  counts(): Promise<Counts>
  /** The arrival of every received update. */
  arrivals(): Promise<readonly Arrival[]>
  lanes(): Promise<Lanes>
  forget(): Promise<void>
  /** The counts when this number of updates was received, or when no new one has come for a long time. */
  countsAfter(updates: number): Promise<Counts>
  stop(): Promise<void>
}

/** How long the bench waits for a missing notification: longer than two further tries take. */
const silenceMsMax = 15_000
const askedEveryMs = 20

/** Starts it beside the generator, with this number of lanes. */
export async function startReceiver(folder: string, lanes = 0): Promise<Receiver> {
  const script = fileURLToPath(new URL('./receiver-main.js', import.meta.url))
  const subject = { name: 'receiver', script, isBroker: false }
  const args = ['-lanes', String(lanes)]
  const { pid, url, stop } = await start(subject, join(folder, 'receiver'), 'generator', { probe: '/counts', args })
  const request = async <T>(path: string): Promise<T> => (await fetch(url + path)).json() as Promise<T>
  const counts = (): Promise<Counts> => request('/counts')
  return {
    pid,
    url: `${url}/notify`,
    counts,
    arrivals: () => request('/arrivals'),
    lanes: () => request('/lanes'),
    async forget() {
      await request('/forget')
    },
    async countsAfter(updates) {
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
