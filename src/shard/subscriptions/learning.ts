// The copies of other homes' subscriptions: what an owner learns of those it does not decide about.
//
// Of each home an owner knows up to which revision it has everything. It takes only what comes right behind that, so there are no gaps, and a
// copy never goes back to an older state: who tells learns from the answer where to go on. What is known is durable before it is
// said. After a start it is the highest revision of the home's rows: less than was known if the last changes were removals, which are then
// told again or have been buried.
//
// Not here: the telling (sharing.ts).

import assert from 'node:assert/strict'
import { decodeSubscription } from '../../domain/subscription-json.js'
import type { LearnRequest, ShardReply } from '../../messages.js'
import type { GroupCommit } from '../commit.js'
import type { Subscriptions } from './subscriptions.js'

export class Learning {
  private readonly subscriptions: Subscriptions
  private readonly commit: GroupCommit
  private readonly homeOf: (tenant: string) => number
  private readonly known = new Map<number, number>()
  private readonly heard = new Set<number>()
  /** Called when a home has told everything for the first time. */
  onHeard: () => void = () => {}

  /** `homeOf`: the owner that decides about a tenant's subscriptions. */
  constructor(subscriptions: Subscriptions, commit: GroupCommit, homeOf: (tenant: string) => number) {
    this.subscriptions = subscriptions
    this.commit = commit
    this.homeOf = homeOf
  }

  /** Takes note of a row that was there at start. */
  recall(home: number, revision: number): void {
    this.known.set(home, Math.max(revision, this.knownOf(home)))
  }

  /** Whether a home has told everything it had since this process began. */
  hasHeard(home: number): boolean {
    return this.heard.has(home)
  }

  /** Takes what a home tells, if nothing is missing before it; replies up to where everything is known. */
  onLearn(request: LearnRequest, onReply: (reply: ShardReply) => void): void {
    const { home, after, isAll, isAnew } = request
    if (isAnew) this.forget(home)
    if (this.knownOf(home) >= after) {
      this.take(request)
      if (isAll && !this.heard.has(home)) {
        this.heard.add(home)
        this.onHeard()
      }
    }
    const upTo = this.knownOf(home)
    this.commit.afterCommit(this.subscriptions.stagedIn, failure =>
      onReply(failure ? { kind: 'failed', reason: failure.message } : { kind: 'learned', upTo }),
    )
  }

  private take({ home, changes, upTo }: LearnRequest): void {
    let known = this.knownOf(home)
    for (const { revision, tenant, id, text } of changes) {
      if (revision <= known) continue
      assert.equal(this.homeOf(tenant), home, 'a home tells of its own tenants')
      if (text === undefined) this.subscriptions.remove(tenant, id)
      else this.subscriptions.put(decodeSubscription(text), revision, text)
      known = revision
    }
    this.known.set(home, Math.max(known, upTo))
  }

  private forget(home: number): void {
    for (const { tenant, id } of [...this.subscriptions.all()])
      if (this.homeOf(tenant) === home) this.subscriptions.remove(tenant, id)
    this.known.set(home, 0)
  }

  private knownOf(home: number): number {
    return this.known.get(home) ?? 0
  }
}
