// A sweep: every entity of some paths, of the shards that count.

import t from 'tap'
import { ShardMap } from '../../../src/domain/scope.js'
import { imageId } from '../../../src/image.js'
import { sweep } from '../../../src/shard/read/sweep.js'
import { entityOf, fill } from '../../support/entities.js'
import { MemoryStore } from '../../support/memory-store.js'

const shardMap = new ShardMap({ shards: 8, spread: 4 })
const paths = ['/', '/a', '/b'] as const

const everything = paths.flatMap(path =>
  Array.from({ length: 30 }, (_, n) => ({ path, entity: entityOf(`${path}${n}`, 'T', 1 + n, {}) })),
)

async function swept(wanted: readonly string[], owned?: Uint8Array): Promise<string[]> {
  const store = new MemoryStore()
  await fill(store, shardMap, 't', everything)
  const found: string[] = []
  const take = ({ image }: { readonly image: Buffer }): boolean => found.push(imageId(image)) > 0
  await sweep(store, shardMap, 't', wanted, async () => {}, take, owned)
  return found.sort()
}

const idsOf = (wanted: readonly string[], counts: (shard: number) => boolean): string[] =>
  everything
    .filter(({ path, entity }) => wanted.includes(path) && counts(shardMap.shardOf('t', path, entity.id)))
    .map(({ entity }) => entity.id)
    .sort()

// Few paths are read path by path, many shard by shard.
for (const wanted of [['/a'], ['/'], paths])
  t.test(`a sweep of ${wanted.join(' ')} gives all there is, or what is in shards that are ours`, async t => {
    t.strictSame(
      await swept(wanted),
      idsOf(wanted, () => true),
    )
    t.strictSame(await swept(wanted, new Uint8Array(8)), [])
    t.strictSame(
      await swept(wanted, Uint8Array.of(1, 0, 0, 1, 0, 1, 1, 0)),
      idsOf(wanted, shard => [0, 3, 5, 6].includes(shard)),
    )
  })
