// Administration: what is asked of all processes at once.
//
// Whoever cannot be reached is left out: numbers of the others are better than none, and an order about the log is lost with a process anyway.
//
// Not here: what a process tells (observe/operator.ts), how parts become one (domain), forms and texts (http/admin.ts).

import type { AdminOrder, AdminTold, Shards } from '../messages/messages.js'

export class AdminOperations {
  private readonly shards: Shards

  constructor(shards: Shards) {
    this.shards = shards
  }

  /** Gives an order to all owners; `onTold` gets what those told that could be reached, always in the same order. */
  all<O extends AdminOrder>(order: O, onTold: (told: AdminTold[O['what']][]) => void): void {
    const owners = this.shards.owners()
    const parts: (AdminTold[O['what']] | undefined)[] = []
    let missing = owners.length
    for (const [index, shard] of owners.entries())
      this.shards.ask(shard, { kind: 'admin', order }, reply => {
        if (reply.kind === 'admin') parts[index] = reply.told as AdminTold[O['what']]
        if (--missing === 0) onTold(parts.filter(part => part !== undefined))
      })
  }

  /** Gives an order to the first owner alone: what all of them would tell alike. undefined: it cannot be reached. */
  first<O extends AdminOrder>(order: O, onTold: (told: AdminTold[O['what']] | undefined) => void): void {
    this.shards.ask(this.shards.owners()[0]!, { kind: 'admin', order }, reply =>
      onTold(reply.kind === 'admin' ? (reply.told as AdminTold[O['what']]) : undefined),
    )
  }
}
