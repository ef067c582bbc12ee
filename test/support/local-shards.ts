// The shards of a node over the test's own store, put together as in src/process/node.ts, with limits for a test.

import { HybridClock } from '../../src/clock.js'
import type { ShardMap } from '../../src/domain/scope.js'
import { AnswersInFlight } from '../../src/http/answers-in-flight.js'
import type { Clock, Store } from '../../src/ports.js'
import { lastStamp } from '../../src/shard/commit/commit-log.js'
import { openLocalShards, type ShardParts, shardLimitsDefault } from '../../src/shard/open-shards.js'
import { StepwiseScanner } from '../../src/shard/read/scans.js'
import type { LocalShards } from '../../src/shard/shards.js'
import { ampleRoom } from '../../src/shard/turn/room.js'

export const queriesForTests: ShardParts['queries'] = {
  viewBytesMax: 64 * 1024 * 1024,
  scanDeadlineMs: 30_000,
  scanRowsMax: 1_000_000,
}

const mb64 = 64 * 1024 * 1024

/** Shards over a store; parts that are not given are as in a node. */
export function localShards(
  store: Store,
  shardMap: ShardMap,
  clock: Clock,
  parts: Partial<ShardParts> = {},
): Promise<LocalShards> {
  return openLocalShards({
    store,
    shardMap,
    clock,
    stamps: new HybridClock(clock, lastStamp(store)),
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    scanner: new StepwiseScanner(store, shardMap, clock),
    limits: shardLimitsDefault,
    queries: queriesForTests,
    streams: { limits: { bytesMax: mb64, ageMsMax: 600_000 }, ring: 'ring' },
    answers: new AnswersInFlight({ answerBytesMax: mb64, answersInFlightMax: 8 * mb64 }),
    notifications: { isKept: true, descendantsMax: 1000, flowControl: undefined },
    onFailure: () => {},
    room: ampleRoom,
    ...parts,
  })
}
