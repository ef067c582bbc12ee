// The subscriptions of a tenant, found by an event.
//
// The cost of an event grows with the subscriptions that it matches, not with all that exist. An entry is stored under
// its id; else under the common prefix of all ids that its pattern matches (a tree of prefixes); else among those that
// watch any id. There, buckets divide entries by path, type, attributes, `q` and patterns (matcher-bucket.ts). Queries
// and patterns are interned: each text is compiled once, when it is needed, and tested once per event.
//
// Subscriptions to creations, to updates, to both and to deletions have an index each.
//
// Measured on one core of a busy machine, with 100,000 subscriptions that do not match (40 % by id, 25 % by type with
// `q`, 25 % by pattern, 10 % by attribute): an event takes 1.3 us, with 10 subscriptions 0.4 us; 1.5 us when only the
// `q` differ; 3 us with a hundred patterns that need an engine and have no prefix. Adding a subscription takes 8 us,
// and 0.8 KB besides its own 1.6 KB.
//
// Not here: whether a match triggers a notification (triggering.ts): throttling, expiry, status after switch-offs, `mq`
// and geography.

import { explorationTogetherMax } from '../limits.js'
import { type InternedPattern, InternedPatterns } from '../queries/interned-patterns.js'
import { EventWork } from '../queries/pattern.js'
import { Exploration } from '../queries/pattern-engine.js'
import { PrefixTree } from '../queries/prefix-tree.js'
import { conjuncts, matchesQuery } from '../queries/query.js'
import { guardsOf } from '../queries/query-index.js'
import type { Query } from '../queries/query-parser.js'
import { coveringPaths, coversPath } from '../scope.js'
import { concerns, type Event } from './event.js'
import {
  Bucket,
  type Entry,
  type InternedQuery,
  type Probe,
  propertiesOfDeletions,
  propertiesOfUpdates,
  type Watcher,
} from './matcher-bucket.js'
import { alterationTypesOf, type Subscription, watchesDeletions } from './subscription.js'

export class Matcher {
  private readonly watchers = new Map<string, Watcher>()
  private readonly creations = new Index(propertiesOfUpdates)
  private readonly updates = new Index(propertiesOfUpdates)
  /** Subscriptions to both, which is the default without alteration types. */
  private readonly both = new Index(propertiesOfUpdates)
  private readonly deletions = new Index(propertiesOfDeletions)
  private readonly queries = new Map<string, InternedQuery>()
  private readonly search = new Search()

  /** The number of subscriptions that can match; with none, no event needs to be created. */
  get size(): number {
    return this.watchers.size
  }

  /** Adds a subscription, or replaces the one with the same id. One that its owner made inactive never matches. */
  add(subscription: Subscription): void {
    this.remove(subscription.id)
    if (subscription.status === 'inactive') return
    const entries: Entry[] = []
    const indexes = this.indexesFor(subscription)
    const watcher: Watcher = { subscription, query: this.internQuery(subscription), entries, foundFor: 0 }
    for (const { id, type, idPattern, typePattern } of subscription.entities) {
      const entry: Entry = {
        watcher,
        id,
        type,
        idPattern: idPattern === undefined ? undefined : this.search.ids.intern(idPattern),
        typePattern: typePattern === undefined ? undefined : this.search.types.intern(typePattern),
      }
      entries.push(entry)
      for (const index of indexes) index.add(entry)
    }
    this.watchers.set(subscription.id, watcher)
  }

  /** Compiles the patterns of an added subscription, and computes their cost, so that no event has to. */
  prepare(id: string): void {
    const watcher = this.watchers.get(id)
    if (!watcher) return
    const exploration = new Exploration(explorationTogetherMax)
    for (const { idPattern, typePattern } of watcher.entries) {
      if (idPattern) this.search.ids.prepare(idPattern, exploration)
      if (typePattern) this.search.types.prepare(typePattern, exploration)
    }
    const { mq } = watcher.subscription.condition.expression
    for (const query of [watcher.query?.query, mq]) if (query) exploreAll(query, exploration)
  }

  /** Removes a subscription, if it exists. */
  remove(id: string): void {
    const watcher = this.watchers.get(id)
    if (!watcher) return
    this.watchers.delete(id)
    const indexes = this.indexesFor(watcher.subscription)
    for (const entry of watcher.entries) {
      for (const index of indexes) index.remove(entry)
      if (entry.idPattern) this.search.ids.release(entry.idPattern)
      if (entry.typePattern) this.search.types.release(entry.typePattern)
    }
    const { query } = watcher
    if (query && --query.uses === 0) this.queries.delete(query.source)
  }

  // [hot] Once per event.
  /**
   * Appends the subscriptions that the event matches (`matches` in triggering.ts), in the order of their ids. The
   * caller may reuse the array. `work`: the budget of the event.
   */
  touched(event: Event, found: Subscription[], work = new EventWork()): void {
    const first = found.length
    this.search.run(event, this.indexesOf(event), found, work)
    if (found.length < first + 2) return
    const inOrder = found.splice(first).sort(byId)
    for (const subscription of inOrder) found.push(subscription)
  }

  private indexesOf(event: Event): readonly Index[] {
    switch (event.class) {
      case 'create':
        return [this.both, this.creations]
      case 'delete':
        return [this.deletions]
      default:
        return [this.both, this.updates]
    }
  }

  private indexesFor(subscription: Subscription): readonly Index[] {
    const types = alterationTypesOf(subscription.condition)
    const creations = types.includes('entityCreate')
    const updates = types.includes('entityUpdate') || types.includes('entityChange')
    const indexes = creations && updates ? [this.both] : creations ? [this.creations] : updates ? [this.updates] : []
    return watchesDeletions(subscription) ? [...indexes, this.deletions] : indexes
  }

  private internQuery({ condition: { expression } }: Subscription): InternedQuery | undefined {
    const { q } = expression
    if (!q) return undefined
    const source = expression.source.q as string
    const known = this.queries.get(source) ?? newQuery(source, q)
    known.uses++
    this.queries.set(source, known)
    return known
  }
}

/** One event at a time that is matched against an index. */
class Search implements Probe {
  readonly ids = new InternedPatterns()
  readonly types = new InternedPatterns()
  event!: Event
  paths: readonly string[] = []
  /** The path for which `paths` was computed: it is often the same. */
  private path = ''
  /** The number of the event. Results for earlier events do not count. */
  private number = 0
  private found: Subscription[] = []
  private work!: EventWork

  run(event: Event, indexes: readonly Index[], found: Subscription[], work: EventWork): void {
    this.event = event
    this.work = work
    this.number++
    this.found = found
    if (event.path !== this.path) {
      this.path = event.path
      this.paths = coveringPaths(event.path)
    }
    for (const index of indexes) index.visit(this)
  }

  holds(query: InternedQuery): boolean {
    if (query.askedFor !== this.number) {
      query.askedFor = this.number
      query.holds = matchesQuery(query.query, this.event.entity, this.event.path, this.work)
    }
    return query.holds
  }

  matchesId(pattern: InternedPattern): boolean {
    return this.ids.matches(pattern, this.event.entity.id, this.work, this.number)
  }

  matchesType(pattern: InternedPattern): boolean {
    return this.types.matches(pattern, this.event.entity.type, this.work, this.number)
  }

  /** An entry with an id is only considered for events of that id. */
  consider({ watcher, type, idPattern, typePattern }: Entry): void {
    if (watcher.foundFor === this.number) return
    const { subscription, query } = watcher
    const { entity, path } = this.event
    if (type !== undefined && type !== entity.type) return
    if (!coversPath(subscription.servicePath, path)) return
    if (!concerns(this.event, subscription.condition, subscription.notification.propagateDeletes)) return
    if (query && !this.holds(query)) return
    if (typePattern && !this.matchesType(typePattern)) return
    if (idPattern && !this.matchesId(idPattern)) return
    watcher.foundFor = this.number
    this.found.push(subscription)
  }
}

function exploreAll(query: Query, exploration: Exploration): void {
  for (const statement of conjuncts(query))
    if (statement.operator === 'MatchPattern') statement.right.explore(exploration)
}

const newQuery = (source: string, query: Query): InternedQuery => ({
  source,
  query,
  guards: guardsOf(query),
  uses: 0,
  askedFor: 0,
  holds: false,
})

const byId = (a: Subscription, b: Subscription): number => (a.id < b.id ? -1 : 1)

/** Entries by id, by prefix of the id, and all others. */
class Index {
  private readonly ids = new Map<string, Bucket>()
  private readonly prefixes = new PrefixTree<Bucket>()

  constructor(private readonly properties: ConstructorParameters<typeof Bucket>[0]) {}

  add(entry: Entry): void {
    const { id } = entry
    const prefix = prefixOf(entry)
    let bucket = id === undefined ? this.prefixes.get(prefix) : this.ids.get(id)
    if (!bucket) {
      bucket = new Bucket(this.properties)
      if (id === undefined) this.prefixes.set(prefix, bucket)
      else this.ids.set(id, bucket)
    }
    bucket.add(entry)
  }

  remove(entry: Entry): void {
    const { id } = entry
    const prefix = prefixOf(entry)
    const bucket = (id === undefined ? this.prefixes.get(prefix) : this.ids.get(id))!
    bucket.remove(entry)
    if (bucket.size > 0) return
    if (id === undefined) this.prefixes.delete(prefix)
    else this.ids.delete(id)
  }

  visit(probe: Probe): void {
    const { id } = probe.event.entity
    this.ids.get(id)?.visit(probe)
    this.prefixes.visit(id, bucket => bucket.visit(probe))
  }
}

/** The empty prefix, which every id has, contains the entries without an id and without a known prefix. */
const prefixOf = ({ idPattern }: Entry): string => idPattern?.prefix ?? ''
