// A subscription to some entities of a cluster, and what its receiver has to be told: every acknowledged change made
// after the subscription was, at least once, whoever owns the entity then or later; and nothing that the entity never
// was.

import { setTimeout as pause } from 'node:timers/promises'
import type { Teardown } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { MoodyReceiver } from '../support/moody-receiver.js'
import type { Random } from '../support/random.js'
import type { State, Write } from './crash-oracle.js'
import { type Entity, type Histories, stateFrom } from './histories.js'

/** What is watched: the entities of some writers. */
const watched = /^urn:thing:[0-3]:/
/**
 * How long a notification may take: what a node that is gone has not sent, its successor sends; a first and a second
 * try may fail.
 */
const arrivalMsMax = 60_000
/** How long subscribing may take. */
const subscribedMsMax = 60_000
/** Between two looks whether all have come. */
const lookMs = 50

export class Notified {
  /** Notifications of something that nobody has written. */
  readonly problems: string[] = []
  private readonly histories: Histories
  private readonly owed = new Set<string>()
  private readonly told = new Set<string>()
  private readonly receiver: MoodyReceiver
  private isSubscribed = false

  constructor(t: Teardown, random: Random, histories: Histories) {
    this.histories = histories
    this.receiver = new MoodyReceiver(t, random, ({ body }) => this.take(JSON.parse(body)))
  }

  /** How many changes were told. */
  get count(): number {
    return this.told.size
  }

  /**
   * Subscribes, which may take until the cluster has settled; a second subscription, should the first be there after
   * all, does no harm.
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

  /** A write was acknowledged that was sent after the subscription. */
  onAcknowledged({ after }: Write): void {
    if (!this.isSubscribed) return
    for (const [id, state] of after) if (state && watched.test(id)) this.owe(keyOf(id, state))
  }

  /** What is missing when that takes longer than it may. */
  async missing(): Promise<readonly string[]> {
    const untilMs = performance.now() + arrivalMsMax
    while (this.owed.size > 0 && performance.now() < untilMs) await pause(lookMs)
    return [...this.owed]
  }

  private owe(key: string): void {
    if (!this.told.has(key)) this.owed.add(key)
  }

  private take({ data }: { readonly data: readonly Entity[] }): void {
    for (const entity of data) {
      const state = stateFrom(entity)
      const key = keyOf(entity.id, state)
      if (!this.histories.has(entity.id, state)) this.problems.push(`notified of ${key}, which nobody has written`)
      this.told.add(key)
      this.owed.delete(key)
    }
  }
}

const keyOf = (id: string, state: State): string => `${id} ${JSON.stringify(state)}`
