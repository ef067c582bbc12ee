// The registrations of one tenant, indexed by id and type.
//
// IoT agents register each device, so there may be a hundred thousand of them. A request that names an id checks the
// registrations of that id, and those of every id of its type. Any other request checks those of a type, or all. All
// come in the order of registration, which is that of their ids.
//
// Not here: whether a registration is open to a request (registration.ts).

import { partitionPoint } from '../search.js'
import type { ProvidedEntity, Registration } from './registration.js'

/** A registration, and one of its entities. */
export interface Provided {
  readonly registration: Registration
  readonly entity: ProvidedEntity
  /** The attributes of the registration. */
  readonly attrs: ReadonlySet<string>
}

export class ProviderIndex {
  private readonly held = new Map<string, Registration>()
  private readonly all: Provided[] = []
  /** By the registered id. */
  private readonly byId = new Map<string, Provided[]>()
  /** By type, '' for none: the registrations of every id, and all registrations. */
  private readonly everyIdByType = new Map<string, Provided[]>()
  private readonly byType = new Map<string, Provided[]>()

  get size(): number {
    return this.held.size
  }

  /** Adds a registration, or replaces the one with its id. */
  add(registration: Registration): void {
    this.remove(registration.id)
    this.held.set(registration.id, registration)
    const attrs = new Set(registration.dataProvided.attrs)
    for (const entity of registration.dataProvided.entities) {
      const one = { registration, entity, attrs }
      for (const list of this.listsOf(entity)) list.splice(placeBehind(list, registration.id), 0, one)
    }
  }

  remove(id: string): void {
    const registration = this.held.get(id)
    if (!registration) return
    this.held.delete(id)
    for (const entity of registration.dataProvided.entities)
      for (const list of this.listsOf(entity)) {
        const end = placeBehind(list, id)
        let begin = end
        while (begin > 0 && list[begin - 1]!.registration.id === id) begin--
        list.splice(begin, end - begin)
      }
    for (const lists of [this.byId, this.everyIdByType, this.byType])
      for (const { id: entityId = '', type = '' } of registration.dataProvided.entities)
        for (const key of [entityId, type]) if (lists.get(key)?.length === 0) lists.delete(key)
  }

  // [hot] Once per request that names an id, in a tenant with registrations.
  /** Whether any registration may provide an id, of whatever type. */
  mayProvide(id: string): boolean {
    return this.byId.has(id) || this.everyIdByType.size > 0
  }

  /**
   * Registrations that may provide an id of these types (undefined: of any), each once, in the order of registration.
   */
  *ofId(id: string, types: ReadonlySet<string> | undefined): Iterable<Provided> {
    const named = this.byId.get(id) ?? []
    const lists = types ? this.typed(this.everyIdByType, types) : [...this.everyIdByType.values()]
    yield* merged(lists.length === 0 ? [named] : [named, ...lists])
  }

  /**
   * Registrations that may provide any entity of these types (undefined: of any), each once, in the order of
   * registration.
   */
  *ofTypes(types: ReadonlySet<string> | undefined): Iterable<Provided> {
    yield* types ? merged(this.typed(this.byType, types)) : this.all
  }

  /** The lists of the types, and of registrations without a type. */
  private typed(lists: ReadonlyMap<string, Provided[]>, types: ReadonlySet<string>): (readonly Provided[])[] {
    // A request may name more types than exist.
    const wanted =
      types.size > lists.size ? [...lists.keys()].filter(type => type === '' || types.has(type)) : ['', ...types]
    return wanted.flatMap(type => {
      const list = lists.get(type)
      return list ? [list] : []
    })
  }

  private *listsOf({ id, type = '' }: ProvidedEntity): Iterable<Provided[]> {
    yield this.all
    yield listOf(this.byType, type)
    yield id === undefined ? listOf(this.everyIdByType, type) : listOf(this.byId, id)
  }
}

function listOf(lists: Map<string, Provided[]>, key: string): Provided[] {
  let list = lists.get(key)
  if (!list) {
    list = []
    lists.set(key, list)
  }
  return list
}

/** The number of entries that do not come after a registration. Nearly always all: new ones are added at the end. */
function placeBehind(list: readonly Provided[], id: string): number {
  const { length } = list
  if (length === 0 || list[length - 1]!.registration.id <= id) return length
  return partitionPoint(at => list[at]!.registration.id <= id, 0, length)
}

/** Merges ordered lists. They are few: one for each type that a request names. */
function* merged(lists: readonly (readonly Provided[])[]): Iterable<Provided> {
  const [first] = lists
  if (first && lists.length === 1) return yield* first
  const places = lists.map(() => 0)
  for (;;) {
    let next = -1
    for (let at = 0; at < lists.length; at++) {
      const one = lists[at]![places[at]!]
      if (one && (next < 0 || one.registration.id < lists[next]![places[next]!]!.registration.id)) next = at
    }
    if (next < 0) return
    yield lists[next]![places[next]!++]!
  }
}
