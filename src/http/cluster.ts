// Handlers of a node's place in its cluster: who is there, who owns what, and giving shards away. There in a node of a cluster only.

import { refusals } from '../domain/refusal.js'
import type { ClusterDesk } from './cluster-desk.js'
import type { Reply } from './reply.js'

export class ClusterHandlers {
  private readonly desk: ClusterDesk

  constructor(desk: ClusterDesk) {
    this.desk = desk
  }

  status(reply: Reply): void {
    reply.json(JSON.stringify(this.desk.status()))
  }

  /** Answers when all shards are with others. */
  drain(reply: Reply): void {
    this.desk.drain().then(isDone => {
      if (isDone) reply.done()
      else reply.refuse(refusals.handingOver)
    })
  }

  resume(reply: Reply): void {
    this.desk.resume()
    reply.done()
  }
}
