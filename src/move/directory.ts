// The stores of a data directory that no broker uses, all of them: opened, and closed again.
//
// Their locks are held as long as they are open, so nobody else can use the directory meanwhile, nor divide it anew.
//
// Not here: what is read from them and written to them (directory-source.ts, directory-sink.ts).

import { ShardMap, workerOf } from '../domain/scope.js'
import type { Durability, Store } from '../ports.js'
import type { DataDirectory } from '../storage/data-directory.js'
import { openStore, settleStore } from '../storage/open-store.js'

export interface OpenDirectory {
  readonly directory: DataDirectory
  readonly stores: readonly Store[]
  readonly shardMap: ShardMap
  storeOf(shard: number): Store
  close(): Promise<void>
}

/** Opens all stores. Rejects with a DataDirectoryError when the operator has something to set right. */
export async function openStores(
  directory: DataDirectory,
  durability: Durability,
  warn: (line: string) => void,
): Promise<OpenDirectory> {
  const settled = await settleStore(directory, {})
  const { workers } = settled
  const stores: Store[] = []
  const close = async (): Promise<void> => {
    for (const store of stores) await store.close()
  }
  try {
    for (let worker = 0; worker < workers; worker++)
      stores.push(await openStore(settled, { durability, logger: { warn }, part: { worker, workers } }))
  } catch (error) {
    await close()
    throw error
  }
  return {
    directory: settled,
    stores,
    shardMap: new ShardMap(settled),
    storeOf: shard => stores[workerOf(shard, workers)] as Store,
    close,
  }
}
