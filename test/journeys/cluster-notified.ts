// A subscription to some entities of a cluster, and the notifications that its receiver must get: each acknowledged
// change after the subscription, at least once, for any owner of the entity; and no state that the entity never had.

import { setTimeout as pause } from 'node:timers/promises'
import type { Teardown } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { MoodyReceiver } from '../support/moody-receiver.js'
import type { Random } from '../support/random.js'
import type { State, Write } from './crash-oracle.js'
import { type Entity, type Histories, stateFrom } from './histories.js'

/** The watched entities: those of some writers. */
const watched = /^urn:thing:[0-3]:/
/**
 * Longest time until a notification arrives. The successor of a lost node sends its pending notifications, and a first
 * and a second try may fail.
 */
const arrivalMsMax = 60_000
/** Longest time of subscribing. */
const subscribedMsMax = 60_000
/** Between two checks whether all have arrived. */
const lookMs = 50

export class Notified {
  /** Notifications of states that no client has written. */
  readonly problems: string[] = []
  private readonly histories: Histories
  private readonly pending = new Set<string>()
  private readonly notified = new Set<string>()
  private readonly receiver: MoodyReceiver
  private isSubscribed = false

  constructor(t: Teardown, random: Random, histories: Histories) {
    this.histories = histories
    this.receiver = new MoodyReceiver(t, random, ({ body }) => this.take(JSON.parse(body)))
  }

  /** Number of changes that were notified. */
  get count(): number {
    return this.notified.size
  }

  /**
   * Subscribes, and repeats that until the cluster has settled. If an earlier try was stored after all, a second
   * subscription does no harm.
   */
  async subscribe(baseUrl: string): Promise<void> {
    await this.receiver.open()
    const client = new HttpClient(baseUrl)
    const untilMs = performance.now() + subscribedMsMax
    for (;;) {
      const { status, text } = await client.send('POST', '/v2/subscriptions', {
        subject: { entities: [{ idPattern: watched.source, typePattern: '.*' }] },
        notification: { http: { url: `${this.receiver.url}/` } },
      })
      if (status === 201) break
      if (status !== 503 || performance.now() > untilMs) throw new Error(`POST /v2/subscriptions: ${status} ${text}`)
      await pause(lookMs)
    }
    client.close()
    this.isSubscribed = true
  }

  /** Records the changes of an acknowledged write that was sent after the subscription. */
  onAcknowledged({ after }: Write): void {
    if (!this.isSubscribed) return
    for (const [id, state] of after) if (state && watched.test(id)) this.expect(keyOf(id, state))
  }

  /** Waits for all pending changes to arrive, and returns those that are late. */
  async missing(): Promise<readonly string[]> {
    const untilMs = performance.now() + arrivalMsMax
    while (this.pending.size > 0 && performance.now() < untilMs) await pause(lookMs)
    return [...this.pending]
  }

  private expect(key: string): void {
    if (!this.notified.has(key)) this.pending.add(key)
  }

  private take({ data }: { readonly data: readonly Entity[] }): void {
    for (const entity of data) {
      const state = stateFrom(entity)
      const key = keyOf(entity.id, state)
      if (!this.histories.has(entity.id, state)) this.problems.push(`notified of ${key}, which nobody has written`)
      this.notified.add(key)
      this.pending.delete(key)
    }
  }
}

const keyOf = (id: string, state: State): string => `${id} ${JSON.stringify(state)}`
