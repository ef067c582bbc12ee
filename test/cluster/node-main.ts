// A node of its own process for tests, which answers asks.
//
// Its parent sends it a `Setting`. The node reports 'listening' with its address, 'up' when it can ask its parent, and
// the text of every ask that it begins. The shard of an ask selects its outcome (`wishes`).

import type { AskOptions, TransportOptions } from '../../cluster/index.js'
import { startAsks } from '../../cluster/index.js'
import { systemClock } from '../../src/clock.js'

export interface Setting {
  readonly self: { readonly name: string; readonly address: string }
  readonly parent: { readonly name: string; readonly address: string }
  readonly incarnation: string
  readonly options?: Partial<AskOptions>
  readonly transport?: TransportOptions
}

export type NodeReport = { readonly listening: string } | { readonly up: boolean } | { readonly begun: string }

/** The outcome of an ask, by its shard. */
export const askOutcomes = { echo: 0, long: 1, noReply: 2 } as const

/** Bytes of a long reply: a page of entities. */
export const longReplyBytes = 30_000_000

if (process.send) process.once('message', setting => void serve(setting as Setting))

async function serve({ self, parent, incarnation, options, transport }: Setting): Promise<void> {
  const say = (said: NodeReport): void => {
    process.send!(said)
  }
  const host = {
    onAsk: (shard: number, request: Uint8Array, onReply: (reply: Uint8Array) => void) => {
      if (request.length < 1000) say({ begun: Buffer.from(request).toString() })
      if (shard === askOutcomes.echo) onReply(request)
      else if (shard === askOutcomes.long) onReply(Buffer.alloc(longReplyBytes, request))
    },
  }
  const asks = await startAsks(self, incarnation, [parent], host, systemClock, options, transport)
  asks.onChange((_node, up) => say({ up }))
  say({ listening: asks.address })
  process.once('disconnect', () => process.exit())
}
