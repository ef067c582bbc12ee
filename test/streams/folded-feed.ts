// The entities that a reader of a live feed knows, put together from snapshots and events, as a web page does it.

import type { JsonObject } from '../support/reference-entities.js'
import { isListed, isShownAlike, listedEntity, type Watch } from '../support/reference-watch.js'
import type { EntityHistory, TenantModel } from './tenant-model.js'

export class FoldedFeed {
  private readonly entities: Map<string, JsonObject>

  constructor(entities: Iterable<[string, JsonObject]> = []) {
    this.entities = new Map(entities)
  }

  copy(): FoldedFeed {
    return new FoldedFeed(this.entities)
  }

  take(kind: string, entity: JsonObject, isPart: boolean): void {
    const key = `${entity.id} ${entity.type}`
    if (kind === 'entityDelete' || kind === 'entityLeave') this.entities.delete(key)
    else this.entities.set(key, isPart ? { ...this.entities.get(key), ...entity } : entity)
  }

  /** Of a snapshot. */
  put({ id, type }: EntityHistory, entity: JsonObject | undefined): void {
    const key = `${id} ${type}`
    if (entity) this.entities.set(key, entity)
    else this.entities.delete(key)
  }

  /** The first entity that is not as the list of the watch shows it, for watches that report every change of it. */
  difference(watch: Watch, model: TenantModel): { readonly text: string; readonly history: EntityHistory } | undefined {
    if (!isWhole(watch)) return undefined
    for (const history of model.histories.values()) {
      const state = model.reference.get(history)
      const listed = state ? isListed(watch, state) : false
      const found = this.entities.get(`${history.id} ${history.type}`)
      if (listed === undefined) continue
      const wanted = state && listed ? listedEntity(watch, state) : undefined
      if (wanted === undefined ? found !== undefined : found === undefined || !isShownAlike(found, wanted))
        return { text: `folded ${JSON.stringify(found)}, instead of ${JSON.stringify(wanted)}`, history }
    }
    return undefined
  }
}

/** Whether a reader of this watch knows its list at any time. */
function isWhole({ snapshot, leave, q, mq, geo, conditionAttrs, alterationTypes, onlyChangedAttrs }: Watch): boolean {
  const takes = (...types: readonly string[]) =>
    alterationTypes.length === 0 || alterationTypes.some(type => types.includes(type))
  const isReported = takes('entityCreate') && takes('entityChange', 'entityUpdate') && (leave || takes('entityDelete'))
  return snapshot && isReported && conditionAttrs.length === 0 && !onlyChangedAttrs && (leave || !(q || mq || geo))
}
