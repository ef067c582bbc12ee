// Whether what a view shows is live.

import type { LiveState } from '../interface/change-feed.js'

const texts = { opening: 'opening the live feed', live: 'live', cut: 'the live feed was cut', refused: 'not live' }

export function FeedNote({ feed }: { readonly feed: LiveState }) {
  const title = feed.kind === 'refused' ? `${feed.problem.status} ${feed.problem.text}` : undefined
  return (
    <span class={`feed feed-${feed.kind}`} title={title}>
      {texts[feed.kind]}
    </span>
  )
}
