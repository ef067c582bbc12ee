// Orders to a process as a whole, which arrive as asks of any of its shards: for metrics, statistics, how it logs (messages/admin.ts).
//
// A process answers other processes before all of it has started. Until it has somebody who carries out orders, an order is `unreachable`.

import type { AdminOrder, AdminTold, Shards } from '../messages/messages.js'

/** Carries out orders. */
export interface OrderHandler {
  obey(order: AdminOrder): AdminTold[AdminOrder['what']]
}

export class AdminDesk {
  private handler: OrderHandler | undefined

  /** From now on orders are carried out. */
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
        onReply({ kind: 'admin', told: handler.obey(request.order) })
      },
      owners: () => shards.owners(),
      ownerOf: shard => shards.ownerOf(shard),
      pathsOf: tenant => shards.pathsOf(tenant),
    }
  }
}
