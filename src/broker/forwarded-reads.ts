// Queries that providers may answer in part (docs/interface/registrations.md#queries): the stored entities, merged with
// the answers of providers.
//
// The answers of providers are not checked against the filters of the query, and not stored. The answer has the
// stored entities in any case.

import { pageLimitDefault } from '../domain/limits.js'
import { ForwardedQuery, type LocatedEntity, mayBeProvided } from '../domain/providers/forwarded-query.js'
import type { ProviderIndex } from '../domain/providers/provider-index.js'
import { compileSelection, type Selection } from '../domain/queries/selection.js'
import { accepted, refusals, refusalText, refused } from '../domain/refusal.js'
import { decodeEntity, encodedType } from '../encoded-entity.js'
import type { FoundEntity, ListRequest } from '../messages/messages.js'
import type { AnswerRoom } from '../ports.js'
import type { Forwarding, Outward, RefusedBy } from './forwarding.js'
import { type Listed, type OnResult, type ReadTarget, type Shown, type ShownPage, shownUnder } from './replies.js'

export interface Elsewhere {
  /** The requested attributes; empty: all. */
  readonly attrs: readonly string[]
  readonly outward: () => Outward
}

export class ForwardedReads {
  /** `room`: the budget for stored entities while providers are asked; undefined: it is not counted. */
  constructor(
    private readonly forwarding: Forwarding,
    private readonly room?: AnswerRoom,
  ) {}

  /**
   * Returns a function that receives the local page of a list and adds the entities of providers; undefined: no
   * provider is registered for it.
   */
  list(request: ListRequest, elsewhere: Elsewhere, onResult: OnResult<ShownPage>): OnResult<Listed> | undefined {
    const index = this.forwarding.of(request.tenant)
    if (!index || !mayBeProvided(index, request.selection)) return undefined
    return local => {
      if (!local.ok) return onResult(local)
      const { entities, total } = local.value
      const hold = this.room?.open()
      if (hold && !hold.take(entities.reduce((sum, { encoded }) => sum + encoded.length, 0)))
        return onResult(refused(refusals.answersTooMany))
      this.extend(index, request, elsewhere, entities, total, page => {
        hold?.release()
        onResult(accepted(page))
      })
    }
  }

  /**
   * Returns a function that receives the local result of a read and adds the attributes of providers; undefined: no
   * provider is registered for it.
   */
  retrieve(target: ReadTarget, elsewhere: Elsewhere, onResult: OnResult<Shown>): OnResult<FoundEntity> | undefined {
    const index = this.forwarding.of(target.tenant)
    if (!index?.mayProvide(target.id)) return undefined
    return local => {
      if (!local.ok && local.refusal.code !== 'entityNotFound') return onResult(local)
      const found = local.ok ? [local.value] : []
      const type = local.ok ? encodedType(local.value.encoded) : target.type
      const selection = selectionOf(target.id, type)
      const query = { selection, paths: target.paths, limit: pageLimitDefault, offset: 0, grant: target.grant }
      this.extend(index, query, elsewhere, found, found.length, ({ entities: [only, another] }, refusedBy) => {
        // A reader that may not see everything does not learn of providers.
        const isRefused = refusedBy.length > 0 && !target.grant
        if (!only) return onResult(isRefused ? refused(refusals.entityRefusedByProviders(refusedBy)) : local)
        onResult(another ? refused(refusals.entityAmbiguous) : accepted(only))
      })
    }
  }

  private extend(
    index: ProviderIndex,
    { selection, paths, limit, offset, grant }: Pick<ListRequest, 'selection' | 'paths' | 'limit' | 'offset' | 'grant'>,
    { attrs, outward }: Elsewhere,
    found: readonly FoundEntity[],
    total: number,
    onPage: (page: ShownPage, refusedBy: RefusedBy) => void,
  ): void {
    const entities = found.map(({ encoded, path }): LocatedEntity => {
      const entity = decodeEntity(encoded)
      // The owner has left out what is not covered.
      return { entity: grant ? grant.seen(entity, path)! : entity, path }
    })
    const query = new ForwardedQuery(
      index,
      { selection, paths, attrs, grant },
      { limit, offset },
      { entities, total },
      placeOf(paths),
      this.forwarding.nowMs(),
      this.forwarding.options.requestsMax,
    )
    this.forwarding.query(query, outward, refusedBy => {
      const { entities, total } = query.result()
      // An entity to which no provider has added is answered in its stored form.
      const stored = (one: FoundEntity): Shown => (grant ? shownUnder(grant, one) : one)
      onPage({ entities: entities.map((one, at) => (one.isJoined ? one : stored(found[at]!))), total }, refusedBy)
    })
  }
}

/** The selection of one entity. Its texts were already checked. */
function selectionOf(id: string, type: string | undefined): Selection {
  const selectors = [{ ids: [id], types: type === undefined ? undefined : [type] }]
  const selection = compileSelection({ selectors, from: 'url' })
  if (!selection.ok) throw new Error(refusalText(selection.refusal))
  return selection.value
}

/** The path that is reported for entities of providers: the requested path, if it is exactly one. */
const placeOf = ([first = '/', ...others]: readonly string[]): string =>
  others.length > 0 || first.endsWith('#') ? '/' : first
