// The types of entities: from counts that every change keeps, never from a scan (docs/interface/types.md).
//
// A tenant may have hundreds of thousands of such counts, so they are visited in steps. Each is reported as it was when
// it was visited.

import { Pace, type Ticks } from '../../domain/pace.js'
import { anyCoversPath } from '../../domain/scope.js'
import type { ShardReply, TypeSummary, TypesRequest } from '../../messages/messages.js'
import type { GroupCommit } from '../commit/commit.js'
import type { PathCounts } from '../commit/counts.js'
import { replyAfterFailure } from '../commit/deposed.js'

const countsPerLook = 256

export class Types {
  constructor(
    private readonly commit: GroupCommit,
    private readonly entities: PathCounts,
    private readonly attributes: PathCounts,
    private readonly ticks: Ticks,
  ) {}

  /** Like a list, it waits for the commit in flight: counts that are in memory may belong to it. */
  summarize(request: TypesRequest, onReply: (reply: ShardReply) => void): void {
    this.read(request).then(
      types =>
        this.commit.afterFlight(failure => onReply(failure ? replyAfterFailure(failure) : { kind: 'types', types })),
      (error: Error) => onReply({ kind: 'failed', reason: error.message }),
    )
  }

  private async read({ tenant, paths, type: only }: TypesRequest): Promise<readonly TypeSummary[]> {
    const found = new Map<string, { count: number; attributes: (readonly [string, string])[] }>()
    const pace = new Pace(this.ticks)
    let looks = 0
    for (const [path, types] of await this.entities.load(tenant)) {
      if (!anyCoversPath(paths, path)) continue
      for (const [type, count] of types) {
        if (++looks % countsPerLook === 0 && pace.isOver) await pace.breathe()
        if (only !== undefined && type !== only) continue
        const summary = found.get(type)
        if (summary) summary.count += count
        else found.set(type, { count, attributes: [] })
      }
    }
    if (found.size === 0) return []
    // The attributes of each type, by their names in the counts: they occur under many paths.
    const seen = new Set<string>()
    for (const [path, attributes] of await this.attributes.load(tenant)) {
      if (!anyCoversPath(paths, path)) continue
      for (const attribute of attributes.keys()) {
        if (++looks % countsPerLook === 0 && pace.isOver) await pace.breathe()
        if (seen.has(attribute)) continue
        seen.add(attribute)
        const [type, name, attributeType] = attribute.split('\0') as [string, string, string]
        found.get(type)?.attributes.push([name, attributeType])
      }
    }
    return [...found].map(([type, summary]) => ({ type, ...summary }))
  }
}
