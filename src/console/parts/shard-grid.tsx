// All shards as a grid: the colour is the owner. A name in the legend makes the shards of the others pale.
//
// The colour alone says nothing: the number of a cell is its shard, its title the owner, and a mark shows what is not
// as it should be. With more owners than colours some share one.

import { needsAttention, type ShardShape } from '../state/cluster-shapes.js'
import { number } from './value-text.js'

const colours = 8

export function ShardGrid({
  shards,
  owners,
  chosen,
  onChoose,
}: {
  readonly shards: readonly ShardShape[]
  /** In the order of their colours. */
  readonly owners: readonly string[]
  /** '': none. */
  readonly chosen: string
  readonly onChoose: (owner: string) => void
}) {
  const sorted = [...owners].sort()
  const colourOf = (owner: string | undefined): string =>
    owner === undefined ? 'unowned' : `owner-${Math.max(0, sorted.indexOf(owner)) % colours}`
  const countOf = (owner: string | undefined): number => shards.filter(one => one.owner === owner).length
  const unowned = countOf(undefined)
  return (
    <>
      <div class="buttons legend">
        {sorted.map(owner => (
          <button
            key={owner}
            type="button"
            class={colourOf(owner)}
            aria-pressed={owner === chosen}
            onClick={() => onChoose(owner)}
          >
            {owner}: {number(countOf(owner))}
          </button>
        ))}
        {unowned > 0 && <span class="bad">without an owner: {number(unowned)}</span>}
      </div>
      <ul class="shards" aria-label={`${number(shards.length)} shards, the last one is the register`}>
        {shards.map(one => {
          const { shard, owner } = one
          const isPale = chosen !== '' && owner !== chosen
          const classes = [colourOf(owner), needsAttention(one) && 'marked', isPale && 'pale'].filter(Boolean)
          return (
            <li key={shard} class={classes.join(' ')} title={titleOf(one)}>
              {shard}
            </li>
          )
        })}
      </ul>
    </>
  )
}

function titleOf({ shard, owner, next, epoch, copy, lag }: ShardShape): string {
  const moves = next === undefined ? '' : `, moves to ${next}`
  return `Shard ${shard}: owner ${owner ?? 'none'}${moves}, epoch ${epoch}, copy here ${copy}, ${lag} records behind`
}
