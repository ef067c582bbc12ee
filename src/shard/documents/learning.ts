// The copies of other homes' documents: what an owner learns of those it does not decide about.
//
// Of each home an owner knows up to which revision it has everything. It takes only what comes right behind that, so there are no gaps, and a
// copy never goes back to an older state: who tells learns from the answer where to go on. What is known is durable before it is
// said. After a start it is the highest revision of the home's rows: less than was known if the last changes were removals, which are then
// told again or have been buried.
//
// Not here: the telling (sharing.ts).

import assert from 'node:assert/strict'
import type { LearnRequest, ShardReply } from '../../messages/messages.js'
import type { GroupCommit } from '../commit/commit.js'
import type { Shelves } from './documents.js'

export class Learning {
  private readonly shelves: Shelves
  private readonly commit: GroupCommit
  private readonly homeOf: (tenant: string) => number
  private readonly known = new Map<number, number>()
  private readonly heard = new Set<number>()
  /** Called when a home has told everything for the first time. */
  onHeard: () => void = () => {}

  /** `homeOf`: the owner that decides about a tenant's documents. */
  constructor(shelves: Shelves, commit: GroupCommit, homeOf: (tenant: string) => number) {
    this.shelves = shelves
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
    this.commit.afterCommit(lastStaged(this.shelves), failure =>
      onReply(failure ? { kind: 'failed', reason: failure.message } : { kind: 'learned', upTo }),
    )
  }

  private take({ home, changes, upTo }: LearnRequest): void {
    let known = this.knownOf(home)
    for (const { revision, kind, tenant, id, text } of changes) {
      if (revision <= known) continue
      assert.equal(this.homeOf(tenant), home, 'a home tells of its own tenants')
      if (text === undefined) this.shelves[kind].remove(tenant, id)
      else this.shelves[kind].learn(text, revision)
      known = revision
    }
    this.known.set(home, Math.max(known, upTo))
  }

  private forget(home: number): void {
    for (const shelf of Object.values(this.shelves))
      for (const { tenant, id } of [...shelf.all()]) if (this.homeOf(tenant) === home) shelf.remove(tenant, id)
    this.known.set(home, 0)
  }

  private knownOf(home: number): number {
    return this.known.get(home) ?? 0
  }
}

/** The commit that carries the latest change of any kind. */
const lastStaged = (shelves: Shelves): number => Math.max(...Object.values(shelves).map(shelf => shelf.stagedIn))
