// The types of entities: from counts that every change keeps, never from a scan (docs/interface/types.md).
//
// A tenant may have hundreds of thousands of such counts, so they are visited in steps. Each is reported as it was when
// it was visited.
//
// A grant leaves out pairs of path and type that it does not cover, and names of attributes that it does not show.
// Where it depends on the id, counts cannot tell: these entities are read.

import { shows } from '../../domain/access/attribute-set.js'
import type { AccessCondition } from '../../domain/access/condition.js'
import { Pace, type Ticks } from '../../domain/pace.js'
import { accepted, type Result, refused } from '../../domain/refusal.js'
import { anyCoversPath } from '../../domain/scope.js'
import { decodeEntity } from '../../encoded-entity.js'
import type { ShardReply, TypeSummary, TypesRequest } from '../../messages/messages.js'
import type { GroupCommit } from '../commit/commit.js'
import type { PathCounts } from '../commit/counts.js'
import { replyAfterFailure } from '../commit/deposed.js'
import type { CountedRange } from './entity-place.js'
import type { Lists } from './lists.js'

const countsPerLook = 256

export class Types {
  constructor(
    private readonly commit: GroupCommit,
    private readonly entities: PathCounts,
    private readonly attributes: PathCounts,
    private readonly lists: Pick<Lists, 'each'>,
    private readonly ticks: Ticks,
  ) {}

  /** Like a list, it waits for the commits in flight: counts that are in memory may belong to them. */
  summarize(request: TypesRequest, onReply: (reply: ShardReply) => void): void {
    this.read(request).then(
      types =>
        this.commit.afterFlight(failure => {
          if (failure) onReply(replyAfterFailure(failure))
          else onReply(types.ok ? { kind: 'types', types: types.value } : { kind: 'refused', refusal: types.refusal })
        }),
      (error: Error) => onReply({ kind: 'failed', reason: error.message }),
    )
  }

  private async read(request: TypesRequest): Promise<Result<readonly TypeSummary[]>> {
    const found = new FoundTypes()
    const pace = new Pace(this.ticks)
    const byId = await this.count(request, found, pace)
    if (found.size > 0) await this.name(request, found, pace)
    const { grant, tenant } = request
    if (grant && byId.length > 0) {
      const refusal = await this.lists.each(tenant, byId, (encoded, path) => found.addEntity(grant, encoded, path))
      if (refusal) return refused(refusal)
    }
    return accepted(found.summaries())
  }

  /** Counts the entities. Returns the ranges in which it depends on the id whether an entity counts. */
  private async count(
    { tenant, paths, type: only, grant }: TypesRequest,
    found: FoundTypes,
    pace: Pace,
  ): Promise<readonly CountedRange[]> {
    const byId: CountedRange[] = []
    let looks = 0
    for (const [path, types] of await this.entities.load(tenant)) {
      if (!anyCoversPath(paths, path)) continue
      for (const [type, count] of types) {
        if (++looks % countsPerLook === 0 && pace.isOver) await pace.breathe()
        if (only !== undefined && type !== only) continue
        if (grant?.coversRange(path, type) === 'none') continue
        if (grant && !grant.attributesOfRange(path, type)) byId.push({ path, type, count })
        else found.count(type, count)
      }
    }
    return byId
  }

  /** Adds the attributes of each type that was counted. */
  private async name({ tenant, paths, grant }: TypesRequest, found: FoundTypes, pace: Pace): Promise<void> {
    let looks = 0
    for (const [path, attributes] of await this.attributes.load(tenant)) {
      if (!anyCoversPath(paths, path)) continue
      for (const attribute of attributes.keys()) {
        if (++looks % countsPerLook === 0 && pace.isOver) await pace.breathe()
        if (found.hasAttribute(attribute)) continue
        if (!grant || isShown(grant, path, attribute)) found.addAttribute(attribute)
      }
    }
  }
}

/** Whether the attribute of a count is shown by all entities of its path and type. */
function isShown(grant: AccessCondition, path: string, attribute: string): boolean {
  const [type, name] = attribute.split('\0') as [string, string]
  const set = grant.attributesOfRange(path, type)
  return set !== undefined && shows(set, name)
}

/** The types that were found so far. */
class FoundTypes {
  private readonly types = new Map<string, { count: number; attributes: (readonly [string, string])[] }>()
  /** The attributes of each type, by their names in the counts: they occur under many paths. */
  private readonly seen = new Set<string>()

  get size(): number {
    return this.types.size
  }

  count(type: string, count: number): void {
    const summary = this.types.get(type)
    if (summary) summary.count += count
    else this.types.set(type, { count, attributes: [] })
  }

  hasAttribute(attribute: string): boolean {
    return this.seen.has(attribute)
  }

  addAttribute(attribute: string): void {
    this.seen.add(attribute)
    const [type, name, attributeType] = attribute.split('\0') as [string, string, string]
    this.types.get(type)?.attributes.push([name, attributeType])
  }

  /** Adds an entity, if the grant covers it. */
  addEntity(grant: AccessCondition, encoded: Buffer, path: string): void {
    const entity = grant.seen(decodeEntity(encoded), path)
    if (!entity) return
    this.count(entity.type, 1)
    for (const [name, { type }] of entity.attributes) {
      const attribute = `${entity.type}\0${name}\0${type}`
      if (!this.seen.has(attribute)) this.addAttribute(attribute)
    }
  }

  summaries(): readonly TypeSummary[] {
    return [...this.types].map(([type, summary]) => ({ type, ...summary }))
  }
}
