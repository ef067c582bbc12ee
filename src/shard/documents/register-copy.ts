// A worker's copy of the register: it applies the changes that the keeper sends (register-feed.ts), and reports its
// position.
//
// The position of the copy is a row of its store, written with the changes that lead to it. While all rows are
// transferred again, there is no position. The present rows stay until the last page has come, and then those that no
// page had are deleted. So a subscription that exists is never missing.

import type { FollowRequest, RegisterPosition, ShardReply } from '../../messages/messages.js'
import type { StoreReader } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { prefix } from '../keys.js'
import { storedPosition } from '../replicate/positions.js'
import { encodePosition, positionKey, registerRanges } from '../replicate/replicated-layout.js'
import { decodeOperations, type RowOperation } from '../replicate/row-operations.js'
import { readPage } from '../replicate/snapshot.js'
import { isMarkKey } from '../tenants/deletion-layout.js'
import type { RegisterFollower } from './register-follower.js'

/** Bytes of rows that are examined together. */
const pageBytesMax = 1024 * 1024

export interface CopyParts {
  readonly store: StoreReader
  readonly commit: GroupCommit
  readonly follower: RegisterFollower
  /** The number of the register. */
  readonly register: number
}

export class RegisterCopy {
  private readonly parts: CopyParts
  /** The position of the store; undefined: it does not have all rows. */
  private position: RegisterPosition | undefined
  /** Keys of the rows that the pages had so far, as latin1. */
  private brought = new Set<string>()
  /** Requests of the keeper are applied one after the other. */
  private taking: Promise<unknown> = Promise.resolve()
  private hasAll = false
  private onFed: (() => void)[] = []

  constructor(parts: CopyParts) {
    this.parts = parts
    this.position = storedPosition(parts.store, parts.register)
  }

  /** Whether the keeper has sent everything that it had when this process began. */
  get isFed(): boolean {
    return this.hasAll
  }

  /** Calls back when `isFed`. */
  whenFed(run: () => void): void {
    if (this.hasAll) run()
    else this.onFed.push(run)
  }

  /**
   * Applies a request of the keeper, if nothing is missing before it. Replies with the position when that is durable.
   */
  onFollow(request: FollowRequest, onReply: (reply: ShardReply) => void): void {
    const taken = this.taking.then(() => this.take(request))
    this.taking = taken.catch(() => undefined)
    taken.then(
      carriedBy => {
        const { position } = this
        this.parts.commit.afterCommit(carriedBy, failure => {
          if (failure) return onReply({ kind: 'failed', reason: failure.message })
          if (position?.epoch === request.epoch && position.sequence >= request.upTo) this.noteFed()
          onReply({ kind: 'followed', position })
        })
      },
      (error: Error) => onReply({ kind: 'failed', reason: error.message }),
    )
  }

  /** Returns the number of the commit that carries the changes. */
  private async take(request: FollowRequest): Promise<number> {
    const { epoch, before, form, after, upTo, rows } = request
    const known = this.position
    // The keeper has a new epoch that continues after everything that it had, so numbers continue.
    const isSameHistory =
      known?.epoch === epoch || (before && known?.epoch === before.epoch && known.sequence <= before.sequence)
    const reached = isSameHistory ? known?.sequence : undefined
    const { operations } = decodeOperations(rows, this.parts.register)
    if (form === 'changes') {
      if (reached === undefined) return 0
      if (reached !== after) return this.setPosition({ epoch, sequence: reached })
      this.write(operations)
      return this.setPosition({ epoch, sequence: upTo })
    }
    if (request.isFirst) {
      this.brought = new Set()
      this.setPosition(undefined)
    }
    for (const { key } of operations) this.brought.add(key.toString('latin1'))
    const carriedBy = this.write(operations)
    if (request.next) return carriedBy
    await this.deleteOthers()
    return this.setPosition({ epoch, sequence: upTo })
  }

  /** Staged changes are visible at once, as with turns. */
  private write(operations: readonly RowOperation[]): number {
    let carriedBy = 0
    for (const { key, value } of operations) carriedBy = this.parts.commit.write(key, value)
    this.parts.follower.follow(operations)
    return carriedBy
  }

  private setPosition(position: RegisterPosition | undefined): number {
    const { commit, register } = this.parts
    this.position = position
    return commit.write(positionKey(register), position && encodePosition({ ...position, hash: noHash }))
  }

  private async deleteOthers(): Promise<void> {
    const { store, commit, follower, register } = this.parts
    let after: Buffer | undefined
    do {
      const page = await readPage(store, registerRanges(register), after, pageBytesMax, 0)
      const gone = decodeOperations(page.rows, register).operations.filter(
        ({ key }) => !this.brought.has(key.toString('latin1')),
      )
      const deletions = gone.map(({ key }) => ({ key, value: undefined }))
      for (const { key } of deletions) commit.write(key, undefined)
      // A page may have brought another path of the tenant. So the tenant stays known, with one path too many.
      follower.follow(deletions.filter(({ key }) => key[0] !== prefix.path || isMarkKey(key)))
      after = page.next
    } while (after)
    this.brought = new Set()
  }

  private noteFed(): void {
    this.hasAll = true
    for (const run of this.onFed.splice(0)) run()
  }
}

/** Workers compare positions by epoch and number alone. */
const noHash = Buffer.alloc(0)
