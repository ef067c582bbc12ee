// The rows of a table together with the feed that keeps them up to date.

import { useEffect, useState } from 'preact/hooks'
import { ChangeFeed, type LiveState } from '../interface/change-feed.js'
import type { ConsoleClient } from '../interface/console-client.js'
import { EntityRows, type RowSelection } from './entity-rows.js'
import { type Observable, useValue } from './observable.js'

export interface LiveRows {
  readonly rows: EntityRows
  readonly feed: Observable<LiveState>
}

/** undefined: the selection is not known yet. */
export function useLiveRows(client: ConsoleClient, selection: RowSelection | undefined): LiveRows | undefined {
  const proof = useValue(client.proof)
  const about = selection ? JSON.stringify([selection, proof]) : ''
  const [live, setLive] = useState<LiveRows | undefined>(undefined)
  // The text stands for the selection and the proof.
  useEffect(() => {
    if (!selection) return
    const rows = new EntityRows(client, selection)
    const feed = new ChangeFeed(
      client,
      rows.feedRequest(),
      news => rows.apply(news),
      () => rows.refreshSoon(),
    )
    // There may be changes between the first page and the feed.
    const unfollowFeed = feed.state.follow(state => state.kind === 'live' && rows.refreshSoon())
    const unfollowReturns = client.returns.follow(() => rows.refreshSoon())
    // The rows of the earlier selection stay until these have an answer.
    const fresh = { rows, feed: feed.state }
    const showFresh = (): void => setLive(fresh)
    const unfollowAnswers = [rows.total.follow(showFresh), rows.problem.follow(showFresh)]
    setLive(before => before ?? fresh)
    return () => {
      for (const unfollow of unfollowAnswers) unfollow()
      unfollowFeed()
      unfollowReturns()
      feed.close()
      rows.close()
    }
  }, [client, about])
  return live
}
