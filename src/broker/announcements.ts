// What an owner of shards knows of service paths that all owners have heard of, and what it creates there at the
// moment.
//
// The owner announces a path before it creates the first entity there. A tenant that has nothing any more may leave the
// register (shard/documents/unused-tenants.ts). Before that, the owner forgets its paths, and waits until the creations
// that it has let through have ended. The next creation announces its path anew.

import { Recent } from '../domain/recent.js'
import type { ShardReply } from '../messages/messages.js'

type OnReply = (reply: ShardReply) => void

export interface CreationScope {
  readonly tenant: string
  readonly path: string
}

/** Service paths known to be announced, or twice as many, some 120 bytes each; the others are announced again. */
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
  /** Whether creations that began before the last time of forgetting have not ended. */
  private isEnding = false

  constructor(
    /** Asks the keeper of the register to tell all owners of a path. */
    private readonly ask: (scope: CreationScope, onReply: OnReply) => void,
  ) {}

  // [hot] Once per request that may create an entity.
  has(scope: CreationScope): boolean {
    return this.announced.get(keyOf(scope)) !== undefined
  }

  /** Has all owners told of a path. Replies `done` when they have heard of it. */
  announce(scope: CreationScope, onReply: OnReply): void {
    const key = keyOf(scope)
    const waiting = this.waiting.get(key)
    if (waiting) return void waiting.push(onReply)
    this.waiting.set(key, [onReply])
    this.ask(scope, reply => {
      if (reply.kind === 'done') this.announced.set(key, true)
      const told = this.waiting.get(key) ?? []
      this.waiting.delete(key)
      for (const tell of told) tell(reply)
    })
  }

  /** Lets through what may create an entity in a path that `has` knows. The reply ends it. */
  letThrough(onReply: OnReply): OnReply {
    const { period } = this
    period.creations++
    return reply => {
      if (--period.creations === 0) period.onEnd?.()
      onReply(reply)
    }
  }

  /**
   * Forgets the paths of tenants, but for those with one that is being announced. Calls back with the names of the
   * others when all that was let through so far has ended; with undefined when an earlier call still waits.
   */
  forget(tenants: readonly string[], onForgotten: (tenants: readonly string[] | undefined) => void): void {
    if (this.isEnding) return onForgotten(undefined)
    const leaving = new Set(tenants)
    for (const key of this.waiting.keys()) leaving.delete(tenantOf(key))
    // A map may be changed while a loop goes through it.
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
