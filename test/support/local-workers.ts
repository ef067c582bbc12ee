// Several workers inside the process of the test: nodes over one data directory that ask each other over real sockets.
// Each has a port of its own, so that the test chooses which worker it asks.

import { placementDefault } from '../../src/domain/scope.js'
import { joinWorkers } from '../../src/process/join-workers.js'
import type { JoinedWorker } from '../../src/process/surroundings.js'
import { socketAddresses } from '../../src/process/worker-protocol.js'
import { openDataDirectory } from '../../src/storage/data-directory.js'
import { settleStore } from '../../src/storage/open-store.js'
import { type Teardown, tempDir } from './broker-process.js'
import { type LocalNode, type LocalNodeOptions, startLocalNode } from './local-node.js'

/** Starts them all; they end with the test. */
export async function startLocalWorkers(
  t: Teardown & { fail(message: string): unknown },
  workers: number,
  options: LocalNodeOptions = {},
): Promise<readonly LocalNode[]> {
  const directory = tempDir(t)
  await settleStore(
    openDataDirectory(directory, { ...placementDefault, workers }, () => 'workers'),
    {},
  )
  const sockets = tempDir(t)
  const addresses = socketAddresses(sockets, workers)
  const scanDeadlineMs = options.queries?.scanDeadlineMs ?? 30_000
  const starts = addresses.map((_, index) => {
    const part = { index, workers, addresses }
    const place: JoinedWorker = {
      kind: 'worker',
      worker: index,
      workers,
      join: own => joinWorkers(part, own, scanDeadlineMs, { warn: () => {} }),
    }
    return startLocalNode(t, { ...options, directory, workers, surroundings: { ...options.surroundings, place } })
  })
  return Promise.all(starts)
}
