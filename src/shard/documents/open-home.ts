// What an owner of shards needs to answer for documents, put together from the rows of its store.
//
// Each row says whose it is: ours, when the home of its tenant is one of our shards, or a copy of what another home has told. A row that tells
// of a removal is of use to its home alone, and only when there are others to be told.

import { type ShardMap, workerOf } from '../../domain/scope.js'
import type { Clock } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import type { Shelves } from './documents.js'
import type { Company } from './home.js'
import type { JournalEntry } from './journal.js'
import { Learning } from './learning.js'
import { Sharing } from './sharing.js'

/** Which of several workers an owner is. */
export interface WorkerPart {
  readonly worker: number
  readonly workers: number
}

export interface HomeParts {
  readonly shelves: Shelves
  readonly commit: GroupCommit
  readonly shardMap: ShardMap
  readonly clock: Clock
  /** No revision that was given before is above. */
  readonly horizon: number
  /** undefined: it is alone. */
  readonly part: WorkerPart | undefined
}

/** Reads the rows, and gives what it takes to tell others of them; undefined: there are none. To be called before the store's stamps go on. */
export async function openHome(parts: HomeParts): Promise<Company | undefined> {
  const { shelves, part } = parts
  if (part) return openOneOf(parts, part)
  for (const shelf of Object.values(shelves))
    await shelf.load(({ tenant, id, text }) => {
      if (!text) shelf.bury(tenant, id)
    })
  return undefined
}

async function openOneOf(
  { shelves, commit, shardMap, clock, horizon }: HomeParts,
  { worker, workers }: WorkerPart,
): Promise<Company> {
  const learning = new Learning(shelves, commit, tenant => workerOf(shardMap.homeOf(tenant), workers))
  const own: JournalEntry[] = []
  for (const shelf of Object.values(shelves))
    await shelf.load(({ home, revision, kind, tenant, id, text }) => {
      const owner = workerOf(home, workers)
      if (owner === worker) return void own.push({ revision, kind, tenant, id, text })
      learning.recall(owner, revision)
      if (!text) shelf.bury(tenant, id)
    })
  return { sharing: new Sharing(worker, clock, shelves, learning, own, horizon), learning }
}
