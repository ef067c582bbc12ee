// The content of a data directory, read when no broker holds it.
//
// A copy is read, because opening the store recovers it, and the next start shall prove that it can do this.

import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDataDirectory } from '../../src/storage/data-directory.js'
import { openStore } from '../../src/storage/open-store.js'
import { compareIndexes } from './compare-indexes.js'

/** The errors of the indexes and counts; `clusterId`: of the cluster whose node has the directory. */
export async function indexesEqualRebuild(dataDir: string, clusterId?: string): Promise<readonly string[]> {
  const copy = mkdtempSync(join(tmpdir(), 'orrery-inspect-'))
  try {
    cpSync(dataDir, copy, { recursive: true })
    const wanted = { shards: 1, spread: 1, ...(clusterId !== undefined && { cluster: { id: clusterId } }) }
    const directory = openDataDirectory(copy, wanted, () => 'a directory that is there has its own')
    const { workers } = directory
    const wrong: string[] = []
    for (let worker = 0; worker < workers; worker++) {
      const part = { worker, workers }
      const store = await openStore(directory, { durability: 'os', logger: { warn: () => {} }, part })
      try {
        wrong.push(...(await compareIndexes(store, clusterId === undefined ? 'together' : 'by shard')))
      } finally {
        await store.close()
      }
    }
    return wrong
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
