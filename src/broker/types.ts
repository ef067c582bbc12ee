// Operations on entity types (entities.md §18): what types there are, and what their entities have in common.

import { accepted, refusals, refused } from '../domain/refusal.js'
import type { TypeSummary } from '../messages/messages.js'
import type { OnResult } from './replies.js'
import type { ShardClient } from './shard-client.js'

export interface TypesTarget {
  readonly tenant: string
  readonly paths: readonly string[]
}

export class TypeOperations {
  private readonly shards: ShardClient

  constructor(shards: ShardClient) {
    this.shards = shards
  }

  /** `GET /v2/types`: all types, by name in code unit order. */
  list(target: TypesTarget, onResult: OnResult<readonly TypeSummary[]>): void {
    this.shards.types({ ...target, kind: 'types', type: undefined }, result => {
      if (!result.ok) return onResult(result)
      onResult(accepted([...result.value].sort((a, b) => (a.type < b.type ? -1 : 1))))
    })
  }

  /** `GET /v2/types/{type}`. */
  retrieve(target: TypesTarget, type: string, onResult: OnResult<TypeSummary>): void {
    this.shards.types({ ...target, kind: 'types', type }, result => {
      if (!result.ok) return onResult(result)
      const [summary] = result.value
      onResult(summary ? accepted(summary) : refused(refusals.typeNotFound))
    })
  }
}
