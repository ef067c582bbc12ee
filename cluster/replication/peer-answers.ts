// The answers of a node to the requests of other nodes about its shards (peer-messages.ts).
//
// Not here: what a node asks others (caretaker.ts, balancer.ts, trimming.ts), and moves of shards themselves
// (holding.ts).

import type { Balancer } from './balancer.js'
import type { Caretaker } from './caretaker.js'
import type { Holding } from './holding.js'
import type { LogChecks } from './log-checks.js'
import { nameOf } from './owner.js'
import { decodePeerRequest, encodePeerMessage, type PeerReply, textOf } from './peer-messages.js'
import type { ReplicationOptions } from './replication-options.js'
import type { ShardHost } from './shard-host.js'
import type { Trimming } from './trimming.js'

/** Reasons with which a request for a shard is refused. */
const lostReason = 'the log lacks what is known here, or does not answer'
const notOwnedReason = 'it is not owned here'

const refused = (reason: string): PeerReply => ({ kind: 'refused', reason })

export interface PeerAnswersParts {
  readonly host: Pick<ShardHost, 'position' | 'snapshot'>
  readonly options: Pick<ReplicationOptions, 'pageBytesMax'>
  /** By shard. */
  readonly holdings: readonly Holding[]
  readonly check: Pick<LogChecks, 'isLost' | 'checkFirst'>
  readonly trimming: Pick<Trimming, 'note'>
  readonly balancer: Pick<Balancer, 'note' | 'onExchange'>
  readonly caretaker: Pick<Caretaker, 'hold'>
  /** Whether a node ought to own a shard instead of this one. */
  readonly mayGet: (node: string, shard: number) => boolean
}

/** Sends a reply, with the rows of a page if it is one. */
type Answer = (reply: PeerReply, bytes?: Buffer) => void

export class PeerAnswers {
  private isClosed = false

  constructor(private readonly parts: PeerAnswersParts) {}

  /** Refuses every request from now on. */
  close(): void {
    this.isClosed = true
  }

  /** Answers a request of another node, once. Bytes that are no request are refused. */
  onAsk(given: Buffer, onReply: (reply: Buffer) => void): void {
    const asked = decodePeerRequest(given)
    const answer: Answer = (reply, bytes) => onReply(encodePeerMessage(reply, bytes))
    if (!asked) return answer(refused('this is no request that is known here'))
    if (this.isClosed) return answer(refused('this node is closing'))
    const { message } = asked
    const { trimming, balancer, caretaker, holdings } = this.parts
    if (message.kind === 'standing') {
      trimming.note(message.owner, message.flushed)
      balancer.note(message.owner, message.load)
      return answer({ kind: 'done' })
    }
    if (message.kind === 'exchange') {
      const reason = balancer.onExchange(message.from, message.gives, message.takes)
      return answer(reason === undefined ? { kind: 'done' } : refused(reason))
    }
    const holding = holdings[message.shard]
    if (!holding) return answer(refused(`there is no shard ${message.shard}`))
    switch (message.kind) {
      case 'handOver':
        return this.onHandOver(holding, message.to, answer)
      case 'reached':
        if (message.needsRest) caretaker.hold()
        holding.replica.expect(message.sequence)
        return holding.replica.afterApplied(message.sequence, () => answer({ kind: 'done' }))
      case 'snapshot':
        return this.onSnapshot(holding, message.after, answer)
    }
  }

  private onHandOver(holding: Holding, to: string, answer: Answer): void {
    const node = nameOf(to)
    const { check, mayGet } = this.parts
    if (check.isLost) return answer(refused(lostReason))
    if (!mayGet(node, holding.shard))
      return answer(refused(`${node} is not the one to own shard ${holding.shard}, as known here`))
    if (holding.phase !== 'active') return answer(refused(notOwnedReason))
    // The engine may have been restored from an older backup since the last check. The shard is not sealed yet.
    check.checkFirst(holding.shard, isWhole => {
      if (this.isClosed) return
      if (!isWhole) return answer(refused(lostReason))
      holding.handOver(to, epoch =>
        answer(epoch === undefined ? refused(notOwnedReason) : { kind: 'handedOver', epoch }),
      )
    })
  }

  private onSnapshot({ shard, replica }: Holding, after: string, answer: Answer): void {
    const { host, options, check } = this.parts
    if (check.isLost) return answer(refused(lostReason))
    const written = host.position(shard)
    if (!written || (replica.state !== 'following' && replica.state !== 'owned'))
      return answer(refused('there is no whole copy here'))
    const position = textOf(written)
    const place = after === '' ? undefined : Buffer.from(after, 'base64')
    host.snapshot(shard, place, options.pageBytesMax, page => {
      if (page instanceof Error) answer(refused(page.message))
      else answer({ kind: 'page', position, next: page.next?.toString('base64') }, page.rows)
    })
  }
}
