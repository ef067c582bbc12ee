// Administration: admin commands to all processes (messages/admin.ts). A command is sent as a request to any shard of a
// process.
//
// A process that cannot be reached is left out: numbers of the others are better than none.
//
// Not here: the reply of a process and the merging of replies (observe/operator.ts), their JSON (http/admin.ts).

import type { AdminCommand, AdminReply, Shards } from '../messages/messages.js'

export class AdminOperations {
  constructor(private readonly shards: Shards) {}

  /**
   * Sends a command to all owners. `onReplies` gets the replies of the owners that could be reached, always in the same
   * order.
   */
  all<O extends AdminCommand>(order: O, onReplies: (replies: AdminReply[O['what']][]) => void): void {
    const owners = this.shards.owners()
    const parts: (AdminReply[O['what']] | undefined)[] = []
    let missing = owners.length
    for (const [index, shard] of owners.entries())
      this.shards.ask(shard, { kind: 'admin', order }, reply => {
        if (reply.kind === 'admin') parts[index] = reply.content as AdminReply[O['what']]
        if (--missing === 0) onReplies(parts.filter(part => part !== undefined))
      })
  }

  /** Sends a command only to the first owner, when all owners would reply alike. undefined: it cannot be reached. */
  first<O extends AdminCommand>(order: O, onReply: (reply: AdminReply[O['what']] | undefined) => void): void {
    this.shards.ask(this.shards.owners()[0]!, { kind: 'admin', order }, reply =>
      onReply(reply.kind === 'admin' ? (reply.content as AdminReply[O['what']]) : undefined),
    )
  }
}

export interface OrderHandler {
  execute(order: AdminCommand): AdminReply[AdminCommand['what']]
}

/**
 * Executes the admin commands of this process. A process answers requests before it has fully started; until there is a
 * handler, a command is `unreachable`.
 */
export class ProcessAdmin {
  private handler: OrderHandler | undefined

  open(handler: OrderHandler): void {
    this.handler = handler
  }

  /** Wraps the shards so that they also execute admin commands. */
  over(shards: Shards): Shards {
    return {
      ask: (shard, request, onReply) => {
        if (request.kind !== 'admin') return shards.ask(shard, request, onReply)
        const { handler } = this
        if (!handler) return onReply({ kind: 'unreachable', reason: 'it is starting' })
        onReply({ kind: 'admin', content: handler.execute(request.order) })
      },
      owners: () => shards.owners(),
      ownerOf: shard => shards.ownerOf(shard),
      pathsOf: tenant => shards.pathsOf(tenant),
    }
  }
}
