// Entities that count their updates, the same number in every shard of a cluster: each write adds one, so a write that
// is lost or made twice shows.

import { placementDefault, ShardMap } from '../src/domain/scope.js'
import { load } from './loader.js'
import { type Template, wire } from './workloads.js'

export interface Counter {
  readonly shard: number
  /** Requests as bytes on the wire. */
  readonly creation: string
  readonly increment: string
  /** The answer has the count alone. */
  readonly reading: string
}

/** A service path is in some of the shards only. All of these paths together are in all shards. */
const paths = 256

/** Counters, `perShard` in each shard: the first ones of all shards, then the second ones of all, and so on. */
export function countersOf(perShard: number, shards: number): readonly Counter[] {
  const map = new ShardMap({ ...placementDefault, shards })
  const found = Array.from({ length: shards }, (): Counter[] => [])
  for (let n = 0, missing = shards * perShard; missing > 0; n++) {
    const servicePath = `/p${n % paths}`
    const id = `urn:counter:${n}`
    const shard = map.shardOf('', servicePath, id)
    if (found[shard]!.length === perShard) continue
    found[shard]!.push(counterOf(shard, servicePath, id))
    missing -= 1
  }
  return Array.from({ length: shards * perShard }, (_, n) => found[n % shards]![Math.floor(n / shards)]!)
}

function counterOf(shard: number, servicePath: string, id: string): Counter {
  const bytes = (method: Template['method'], path: string, body: unknown = ''): string =>
    wire({ method, path, body: body === '' ? '' : JSON.stringify(body), servicePath }, '')
  const one = `/v2/entities/${id}/attrs`
  return {
    shard,
    creation: bytes('POST', '/v2/entities?options=upsert', {
      id,
      type: 'Counter',
      count: { type: 'Number', value: 0 },
    }),
    increment: bytes('PATCH', one, { count: { type: 'Number', value: { $inc: 1 } } }),
    reading: bytes('GET', `${one}/count/value`),
  }
}

/** Nodes that have just begun are slow, so refused requests are repeated for this time. */
const againMs = 20_000

/** Stores counters with the value 0. */
export const createCounters = (urls: readonly string[], counters: readonly Counter[]): Promise<void> =>
  load({ urls, count: counters.length, connections: urls.length, againMs, request: n => counters[n]!.creation })
