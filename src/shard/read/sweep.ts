// A sweep: every entity of some service paths of a tenant, shard by shard, in the order of the store.
//
// Reading rows one after the other is ten times cheaper than finding each by its key, so whatever has to look into most entities sweeps.
// Each shard is seen as it stood when the sweep came to it.

import type { ShardMap } from '../../domain/scope.js'
import type { Range, StoreReader } from '../../ports.js'
import { decodeRow, entityRange, parseEntityKey } from '../layout.js'
import type { Owned } from '../replicate/ownership.js'

/** Lets others have their turn; whoever sweeps waits for it between steps. */
export type Breathe = () => Promise<void>

/** One entity of a sweep. */
export interface Swept {
  readonly shard: number
  readonly path: string
  readonly image: Buffer
}

/** Rows read at a time, the next ones on another thread while these are looked into: a quarter quicker where there is a core for it. */
const rowsPerRead = 512
/** Rows between two breaths: some 0.5 ms of looking into entities. */
const rowsPerStep = 128

/** Gives every entity under the exact paths, of shards that are ours (`owned`), to `take`, until that says false. */
export async function sweep(
  store: StoreReader,
  shardMap: ShardMap,
  tenant: string,
  paths: readonly string[],
  breathe: Breathe,
  take: (swept: Swept) => boolean,
  owned?: Owned,
): Promise<void> {
  const wanted = new Set(paths)
  for (const { shard, range, path: known } of stretches(shardMap, tenant, paths)) {
    if (owned && owned[shard] !== 1) continue
    const cursor = store.cursor(range, known === undefined ? 'both' : 'values')
    try {
      let reading = cursor.next(rowsPerRead)
      for (;;) {
        const rows = await reading
        if (rows.length === 0) break
        reading = cursor.next(rowsPerRead)
        reading.catch(() => {}) // it is told when it is awaited
        for (const [index, { key, value }] of rows.entries()) {
          const path = known ?? parseEntityKey(key).path
          if (!wanted.has(path)) continue
          for (const image of decodeRow(value)) if (!take({ shard, path, image })) return
          if (index % rowsPerStep === rowsPerStep - 1) await breathe()
        }
        await breathe()
      }
    } finally {
      await cursor.close()
    }
  }
}

/** A part of the store. */
interface Stretch {
  readonly shard: number
  readonly range: Range
  /** The path of all its rows; undefined: they have several. */
  readonly path: string | undefined
}

/** What has to be read: each path in each of its shards, or, when the paths are many, each shard of the tenant once. */
function stretches(shardMap: ShardMap, tenant: string, paths: readonly string[]): Stretch[] {
  const { shards, spread } = shardMap.placement
  if (paths.length * spread <= shards)
    return paths.flatMap(path =>
      shardMap.shardsOf(tenant, path).map(shard => ({ shard, range: entityRange(shard, tenant, path), path })),
    )
  return Array.from({ length: shards }, (_, shard) => ({ shard, range: entityRange(shard, tenant), path: undefined }))
}
