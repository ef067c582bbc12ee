// Buckets of the matcher: subscriptions that an event may match, told apart by one property after the other.
//
//   few entries:   [a, b, c]                        each is looked into
//   more of them:  by path   /#  -> bucket          an event opens the buckets that fit it, and `others`,
//                            /a  -> bucket          which holds the entries to which the property does not matter
//                            others -> bucket
//
// A bucket with too many entries is divided by the next property: path, type, attributes of the condition, `q`, pattern
// of the id, pattern of the type. Entries that are alike in all of them match together or not at all.
//
// A property only leaves out what cannot match. The `Probe` decides whether an entry matches, and may see it more than
// once.
//
// Not here: ids and their prefixes, which come before all these (matcher.ts).

import type { InternedPattern } from '../queries/interned-patterns.js'
import { type GuardedQuery, QueryIndex } from '../queries/query-index.js'
import type { Event } from './event.js'
import type { Subscription } from './subscription.js'

/** One element of a subscription's subject: a way for an event to match it. */
export interface Entry {
  readonly watcher: Watcher
  readonly id: string | undefined
  readonly type: string | undefined
  readonly idPattern: InternedPattern | undefined
  readonly typePattern: InternedPattern | undefined
}

/** A subscription in the matcher. */
export interface Watcher {
  readonly subscription: Subscription
  readonly query: InternedQuery | undefined
  readonly entries: readonly Entry[]
  /** The last event that it was found for, by its number. */
  foundFor: number
}

/** The `q` of one or more subscriptions, and what it said of the last event that it was asked about. */
export interface InternedQuery extends GuardedQuery {
  readonly source: string
  uses: number
  askedFor: number
  holds: boolean
}

/** An event on its way through buckets. */
export interface Probe {
  readonly event: Event
  /** Service paths of subscriptions that cover that of the event. */
  readonly paths: readonly string[]
  holds(query: InternedQuery): boolean
  matchesId(pattern: InternedPattern): boolean
  matchesType(pattern: InternedPattern): boolean
  /** Is shown every entry that nothing has left out. */
  consider(entry: Entry): void
}

/**
 * Entries that are looked into one by one, some 20 ns each. More are divided, which takes half a kilobyte for each
 * property.
 */
const undividedMax = 8

export class Bucket {
  /** How it is divided; undefined: not at all. */
  private division: Division | undefined
  private entries: Entry[] = []
  private count = 0

  /** `properties`: by which it is divided, in this order, beginning with number `depth`. */
  constructor(
    private readonly properties: readonly Property[],
    private readonly depth = 0,
  ) {}

  get size(): number {
    return this.count
  }

  add(entry: Entry): void {
    this.count++
    if (!this.division) {
      // No room for more: most buckets never have any.
      this.entries = [...this.entries, entry]
      if (this.entries.length > undividedMax) this.divide()
    } else {
      this.division.add(entry)
    }
  }

  /** Takes out an entry that has been added. */
  remove(entry: Entry): void {
    this.count--
    if (!this.division) this.entries.splice(this.entries.indexOf(entry), 1)
    else if (this.count > 0) this.division.remove(entry)
    else this.division = undefined // it holds nothing but this entry
  }

  visit(probe: Probe): void {
    if (this.division) this.division.visit(probe)
    else for (const entry of this.entries) probe.consider(entry)
  }

  private divide(): void {
    const property = this.properties[this.depth]
    const division = property ? property(() => new Bucket(this.properties, this.depth + 1)) : new Alike()
    for (const entry of this.entries) division.add(entry)
    this.division = division
    this.entries = []
  }
}

interface Division {
  add(entry: Entry): void
  remove(entry: Entry): void
  visit(probe: Probe): void
}

/** Makes a division by one property, whose buckets are made by the function. */
type Property = (bucket: () => Bucket) => Division

/** Entries that no property tells apart. */
class Alike implements Division {
  private readonly entries = new Set<Entry>()

  add(entry: Entry): void {
    this.entries.add(entry)
  }

  remove(entry: Entry): void {
    this.entries.delete(entry)
  }

  visit(probe: Probe): void {
    for (const entry of this.entries) probe.consider(entry)
  }
}

/** Hears of keys that come and go. */
interface Watched<K> {
  add(key: K): void
  remove(key: K): void
}

/** Buckets by keys. An entry stands under each of its keys; without keys it stands among the others. */
class Keyed<K> implements Division {
  private readonly buckets = new Map<K, Bucket>()
  private readonly others: Bucket

  /** `open` visits the buckets that fit. */
  constructor(
    private readonly bucket: () => Bucket,
    private readonly keysOf: (entry: Entry) => readonly K[],
    private readonly open: (buckets: ReadonlyMap<K, Bucket>, probe: Probe) => void,
    private readonly watched?: Watched<K>,
  ) {
    this.others = bucket()
  }

  add(entry: Entry): void {
    const keys = this.keysOf(entry)
    if (keys.length === 0) this.others.add(entry)
    for (const key of keys) {
      let bucket = this.buckets.get(key)
      if (!bucket) {
        bucket = this.bucket()
        this.buckets.set(key, bucket)
        this.watched?.add(key)
      }
      bucket.add(entry)
    }
  }

  remove(entry: Entry): void {
    const keys = this.keysOf(entry)
    if (keys.length === 0) this.others.remove(entry)
    for (const key of keys) {
      const bucket = this.buckets.get(key)!
      bucket.remove(entry)
      if (bucket.size > 0) continue
      this.buckets.delete(key)
      this.watched?.remove(key)
    }
  }

  visit(probe: Probe): void {
    this.open(this.buckets, probe)
    this.others.visit(probe)
  }
}

const none: readonly never[] = []
const listOf = <K>(key: K | undefined): readonly K[] => (key === undefined ? none : [key])

const byPath: Property = bucket =>
  new Keyed(
    bucket,
    ({ watcher }) => [watcher.subscription.servicePath],
    (buckets, probe) => {
      for (const path of probe.paths) buckets.get(path)?.visit(probe)
    },
  )

const byType: Property = bucket =>
  new Keyed(
    bucket,
    ({ type }) => listOf(type),
    (buckets, probe) => buckets.get(probe.event.entity.type)?.visit(probe),
  )

/**
 * The most attribute names of a condition that get an entry each, which costs memory. `consider` looks at longer lists.
 */
const attrsMax = 64

const byAttribute: Property = bucket =>
  new Keyed(
    bucket,
    ({ watcher: { subscription } }) => {
      const { attrs } = subscription.condition
      return attrs.length > attrsMax ? none : attrs
    },
    (buckets, probe) => {
      const { named, changedValues } = probe.event
      if (named.size + changedValues.size > buckets.size) {
        for (const [name, one] of buckets) if (named.has(name) || changedValues.has(name)) one.visit(probe)
        return
      }
      for (const name of named) buckets.get(name)?.visit(probe)
      // What a replacement deleted is not named.
      for (const name of changedValues) if (!named.has(name)) buckets.get(name)?.visit(probe)
    },
  )

const byQuery: Property = bucket => {
  const index = new QueryIndex<InternedQuery>()
  return new Keyed(
    bucket,
    ({ watcher }) => listOf(watcher.query),
    (buckets, probe) => {
      const { entity, path } = probe.event
      index.visit(entity, path, query => {
        if (probe.holds(query)) buckets.get(query)!.visit(probe)
      })
    },
    index,
  )
}

const byIdPattern: Property = bucket =>
  new Keyed(
    bucket,
    ({ idPattern }) => listOf(idPattern),
    (buckets, probe) => {
      for (const [pattern, one] of buckets) if (probe.matchesId(pattern)) one.visit(probe)
    },
  )

const byTypePattern: Property = bucket =>
  new Keyed(
    bucket,
    ({ typePattern }) => listOf(typePattern),
    (buckets, probe) => {
      for (const [pattern, one] of buckets) if (probe.matchesType(pattern)) one.visit(probe)
    },
  )

/** What tells apart who waits for creations or updates. Dear questions come last. */
export const propertiesOfUpdates: readonly Property[] = [
  byPath,
  byType,
  byAttribute,
  byQuery,
  byIdPattern,
  byTypePattern,
]

/**
 * What tells apart who waits for deletions, to which attributes do not matter
 * (docs/interface/subscriptions.md#alteration-types).
 */
export const propertiesOfDeletions: readonly Property[] = propertiesOfUpdates.filter(one => one !== byAttribute)
