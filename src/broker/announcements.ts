// The service paths that all owners know, as an owner of shards remembers them, and the creations in progress there.
//
// The owner announces a path before it creates the first entity there. The register may drop a tenant that has no
// entity any more (shard/documents/unused-tenants.ts). Before that, the owner forgets its paths, and waits until the
// creations that it has admitted have ended. The next creation announces its path anew.

import { Recent } from '../domain/recent.js'
import type { ShardReply } from '../messages/messages.js'

type OnReply = (reply: ShardReply) => void

export interface CreationScope {
  readonly tenant: string
  readonly path: string
}

/**
 * The number of announced paths that are remembered, up to twice as many, some 120 bytes each. Other paths are
 * announced again.
 */
const announcedKept = 32_768

/** The creations that began between two calls of `forget`. */
interface Period {
  creations: number
  onEnd: (() => void) | undefined
}

export class Announcements {
  private readonly announced = new Recent<true>(announcedKept)
  private readonly waiting = new Map<string, OnReply[]>()
  private period: Period = { creations: 0, onEnd: undefined }
  /** Whether creations that began before the last `forget` have not ended. */
  private isEnding = false

  constructor(
    /** Asks the keeper of the register to announce a path to all owners. */
    private readonly ask: (scope: CreationScope, onReply: OnReply) => void,
  ) {}

  // [hot] Once per request that may create an entity.
  has(scope: CreationScope): boolean {
    return this.announced.get(keyOf(scope)) !== undefined
  }

  /** Announces a path to all owners. Replies `done` when they know it. */
  announce(scope: CreationScope, onReply: OnReply): void {
    const key = keyOf(scope)
    const waiting = this.waiting.get(key)
    if (waiting) return void waiting.push(onReply)
    this.waiting.set(key, [onReply])
    this.ask(scope, reply => {
      if (reply.kind === 'done') this.announced.set(key, true)
      const callbacks = this.waiting.get(key) ?? []
      this.waiting.delete(key)
      for (const callback of callbacks) callback(reply)
    })
  }

  /** Admits a request that may create an entity in a path that `has` knows. The reply ends the creation. */
  letThrough(onReply: OnReply): OnReply {
    const { period } = this
    period.creations++
    return reply => {
      if (--period.creations === 0) period.onEnd?.()
      onReply(reply)
    }
  }

  /**
   * Forgets the paths of tenants, except tenants with a path that is being announced. When all creations admitted so
   * far have ended, it calls back with the names of the forgotten tenants; with undefined when an earlier call still
   * waits.
   */
  forget(tenants: readonly string[], onForgotten: (tenants: readonly string[] | undefined) => void): void {
    if (this.isEnding) return onForgotten(undefined)
    const leaving = new Set(tenants)
    for (const key of this.waiting.keys()) leaving.delete(tenantOf(key))
    // A map may be changed while a loop iterates over it.
    if (leaving.size > 0)
      for (const [key] of this.announced.entries()) if (leaving.has(tenantOf(key))) this.announced.delete(key)
    const { period } = this
    this.period = { creations: 0, onEnd: undefined }
    const end = (): void => {
      this.isEnding = false
      onForgotten([...leaving])
    }
    this.isEnding = true
    if (period.creations === 0) end()
    else period.onEnd = end
  }
}

const keyOf = ({ tenant, path }: CreationScope): string => `${tenant}\0${path}`

const tenantOf = (key: string): string => key.slice(0, key.indexOf('\0'))
