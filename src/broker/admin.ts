// Administration: orders to all processes at once (messages/admin.ts), which arrive as asks of any of a process's
// shards.
//
// A process that cannot be reached is left out: numbers of the others are better than none.
//
// Not here: what a process tells (observe/operator.ts), how parts become one (observe/operator.ts), forms
// (http/admin.ts).

import type { AdminCommand, AdminReply, Shards } from '../messages/messages.js'

export class AdminOperations {
  constructor(private readonly shards: Shards) {}

  /** Gives an order to all owners; `onTold` gets what those told that could be reached, always in the same order. */
  all<O extends AdminCommand>(order: O, onTold: (told: AdminReply[O['what']][]) => void): void {
    const owners = this.shards.owners()
    const parts: (AdminReply[O['what']] | undefined)[] = []
    let missing = owners.length
    for (const [index, shard] of owners.entries())
      this.shards.ask(shard, { kind: 'admin', order }, reply => {
        if (reply.kind === 'admin') parts[index] = reply.told as AdminReply[O['what']]
        if (--missing === 0) onTold(parts.filter(part => part !== undefined))
      })
  }

  /** Gives an order to the first owner alone: what all of them would tell alike. undefined: it cannot be reached. */
  first<O extends AdminCommand>(order: O, onTold: (told: AdminReply[O['what']] | undefined) => void): void {
    this.shards.ask(this.shards.owners()[0]!, { kind: 'admin', order }, reply =>
      onTold(reply.kind === 'admin' ? (reply.told as AdminReply[O['what']]) : undefined),
    )
  }
}

export interface OrderHandler {
  execute(order: AdminCommand): AdminReply[AdminCommand['what']]
}

/** A process answers others before all of it has started. Until there is a handler, an order is `unreachable`. */
export class ProcessAdmin {
  private handler: OrderHandler | undefined

  open(handler: OrderHandler): void {
    this.handler = handler
  }

  /** The shards, which also take orders. */
  over(shards: Shards): Shards {
    return {
      ask: (shard, request, onReply) => {
        if (request.kind !== 'admin') return shards.ask(shard, request, onReply)
        const { handler } = this
        if (!handler) return onReply({ kind: 'unreachable', reason: 'it is starting' })
        onReply({ kind: 'admin', told: handler.execute(request.order) })
      },
      owners: () => shards.owners(),
      ownerOf: shard => shards.ownerOf(shard),
      pathsOf: tenant => shards.pathsOf(tenant),
    }
  }
}
