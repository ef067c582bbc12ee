// The writes of a tenant: each entity with all its versions, in their order.
//
// An entity has one writer, and a writer has one request in flight, so the order of the versions is exact. Each knows
// when its request was sent and when the answer came. After a kill it may be unknown whether a change has happened:
// then the writer reads the entity, and the version is kept or is void. A change that shows nothing, such as an update
// to the same values, stays in doubt.
//
// An id lies in one service path, since snapshots show no paths.
//
// Not here: the events that readers receive (feed-checker), HTTP (feed-writer).

import { type Change, type Entity, type Outcome, Reference } from '../support/reference-entities.js'
import { shownEntity } from '../support/reference-query.js'
import { type Happening, happeningOf } from '../support/reference-subscriptions.js'

/** `sent`: there is no answer yet. `doubtful`: it may have happened or not. `void`: it has not. */
export type Fate = 'sent' | 'done' | 'doubtful' | 'void'

export interface Version {
  /** Its place among the versions of its entity. */
  readonly at: number
  readonly happening: Happening
  /** Undefined after a deletion. */
  readonly after: Entity | undefined
  /** Undefined where the request could not name one. */
  readonly correlator: string | undefined
  readonly sentMs: number
  /** When it was known to be durable. */
  doneMs: number
  fate: Fate
  /** The first reader that received it. */
  reportedTo: string | undefined
}

/** A change that is on its way. */
export interface Begun {
  readonly outcome: Outcome
  readonly version: Version | undefined
}

/** An entity: its identity, and its versions from the first one on. */
export class EntityHistory {
  readonly versions: Version[] = []

  constructor(
    readonly id: string,
    readonly type: string,
    readonly path: string,
  ) {}

  /** The state behind a version; before the first one there is no entity. */
  stateAt(at: number): Entity | undefined {
    return this.versions[at]?.after
  }
}

const originMs = Date.now() - performance.now()

/** Milliseconds since 1970, finer than those of `Date`, and never going back. */
export const fineMs = (): number => originMs + performance.now()

export class TenantModel {
  readonly reference = new Reference()
  readonly histories = new Map<string, EntityHistory>()
  /** Faults that were found beside the checks of readers. */
  readonly problems: string[] = []

  constructor(readonly tenant: string) {}

  history({ id, type }: Pick<Entity, 'id' | 'type'>): EntityHistory | undefined {
    return this.histories.get(`${id} ${type}`)
  }

  /** Applies a change that is about to be sent; a refused one makes no version. */
  begin(change: Change, correlator: string | undefined): Begun {
    const before = this.reference.get(change)
    const outcome = this.reference.apply(change, Date.now())
    if (outcome !== 'done' && outcome !== 'partly') return { outcome, version: undefined }
    return { outcome, version: this.add(change, happeningOf(change, before, this.reference.get(change)), correlator) }
  }

  /** Notes that the broker will remove an entity by itself. */
  beginExpiry(entity: Entity): Version {
    const change: Change = { action: 'deleteEntity', path: entity.path, id: entity.id, type: entity.type }
    this.reference.apply(change, Date.now())
    return this.add(change, happeningOf(change, entity, undefined), undefined)
  }

  private add({ id, type, path }: Change, happening: Happening, correlator: string | undefined): Version {
    const history = this.history({ id, type }) ?? new EntityHistory(id, type, path)
    this.histories.set(`${id} ${type}`, history)
    const version: Version = {
      at: history.versions.length,
      happening,
      after: happening.class === 'delete' ? undefined : happening.entity,
      correlator,
      sentMs: fineMs(),
      doneMs: Number.POSITIVE_INFINITY,
      fate: 'sent',
      reportedTo: undefined,
    }
    history.versions.push(version)
    return version
  }

  done(version: Version): void {
    version.fate = 'done'
    version.doneMs = fineMs()
  }

  /** Nothing was done: the reference goes back. */
  undo(version: Version): void {
    const { entity, before } = version.happening
    this.reference.restore(entity, before)
    version.fate = 'void'
    if (version.reportedTo !== undefined)
      this.problems.push(`${version.reportedTo} was told of a change that has not happened: ${describe(version)}`)
  }

  /** Decides about a version with an unknown outcome, by the entity's JSON that was read since; undefined: none. */
  settle(version: Version, found: string | undefined): void {
    const shown = (state: Entity | undefined) => state && normalized(state)
    const [before, after] = [shown(version.happening.before), shown(version.after)]
    if (found !== before && found !== after) {
      this.problems.push(
        `${found ?? 'no entity'} was found after ${describe(version)}, instead of ${before} or ${after}`,
      )
      return
    }
    if (before === after) version.fate = 'doubtful'
    else if (found === after) this.done(version)
    else this.undo(version)
  }
}

/** The entity in a form that does not depend on the order of names. */
export const normalized = (entity: Entity): string => sortedJson(shownEntity(entity, { mode: 'normalized' }))

/** JSON whose members are in the order of their names. */
export const sortedJson = (text: string): string => JSON.stringify(sorted(JSON.parse(text)))

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, one]) => [name, sorted(one)]))
}

export function describe({ at, happening, correlator, fate }: Version): string {
  const { class: kind, entity, r } = happening
  const names = [...r].join()
  return `${entity.id} ${entity.type} version ${at}, ${kind}${names && ` of ${names}`} (${correlator ?? 'no correlator'}, ${fate})`
}
