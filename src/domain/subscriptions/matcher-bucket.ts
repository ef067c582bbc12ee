// Buckets of the matcher: watchers that an event may match, divided by one property after the other.
//
//   few entries:   [a, b, c]                        each is looked into
//   more of them:  by path   /#  -> bucket          an event opens the buckets that fit it, and `others`,
//                            /a  -> bucket          which holds the entries to which the property does not matter
//                            others -> bucket
//
// A bucket with too many entries is divided by the next property: path, type, attributes of the condition, `q`, pattern
// of the id, pattern of the type. Entries that are equal in all of them match together or not at all.
//
// A property only excludes entries that cannot match. The `Probe` decides whether an entry matches, and may see it more
// than once.
//
// Not here: ids and their prefixes, which are examined before (matcher.ts).

import type { InternedPattern } from '../queries/interned-patterns.js'
import { type GuardedQuery, QueryIndex } from '../queries/query-index.js'
import type { Event } from './event.js'
import type { Watcher } from './subscription.js'

/** One element of a subscription's subject: an event matches the subscription through it. */
export interface Entry {
  readonly known: KnownWatcher
  readonly id: string | undefined
  readonly type: string | undefined
  readonly idPattern: InternedPattern | undefined
  readonly typePattern: InternedPattern | undefined
}

/** A watcher in the matcher. */
export interface KnownWatcher {
  readonly watcher: Watcher
  readonly query: InternedQuery | undefined
  readonly entries: readonly Entry[]
  /** The number of the last event that matched it. */
  foundFor: number
}

/** The `q` of one or more subscriptions, and its result for the last event that it was tested on. */
export interface InternedQuery extends GuardedQuery {
  readonly source: string
  uses: number
  askedFor: number
  holds: boolean
}

/** An event that is being matched. */
export interface Probe {
  readonly event: Event
  /** Service paths of subscriptions that cover the path of the event. */
  readonly paths: readonly string[]
  holds(query: InternedQuery): boolean
  matchesId(pattern: InternedPattern): boolean
  matchesType(pattern: InternedPattern): boolean
  /** Called with every entry that was not excluded. */
  consider(entry: Entry): void
}

/**
 * The limit of entries that are examined one by one, some 20 ns each. More are divided, which takes half a kilobyte for
 * each property.
 */
const undividedMax = 8

export class Bucket {
  /** Its division; undefined: it is not divided. */
  private division: Division | undefined
  private entries: Entry[] = []
  private count = 0

  /** `properties`: the properties by which it is divided, in this order, beginning with number `depth`. */
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
      // A copy without spare capacity: most buckets never grow.
      this.entries = [...this.entries, entry]
      if (this.entries.length > undividedMax) this.divide()
    } else {
      this.division.add(entry)
    }
  }

  /** Removes an entry that was added. */
  remove(entry: Entry): void {
    this.count--
    if (!this.division) this.entries.splice(this.entries.indexOf(entry), 1)
    else if (this.count > 0) this.division.remove(entry)
    else this.division = undefined // It contains only this entry.
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

/** Creates a division by one property; the function creates its buckets. */
type Property = (bucket: () => Bucket) => Division

/** Entries that no property distinguishes. */
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

/** Receives keys that are added and removed. */
interface Watched<K> {
  add(key: K): void
  remove(key: K): void
}

/** Buckets by keys. An entry is under each of its keys; without keys it is among the others. */
class Keyed<K> implements Division {
  private readonly buckets = new Map<K, Bucket>()
  private readonly others: Bucket

  /** `open` visits the matching buckets. */
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
    ({ known }) => [known.watcher.servicePath],
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
 * The limit of attribute names of a condition that get an entry each, which costs memory. `consider` tests longer
 * lists.
 */
const attrsMax = 64

const byAttribute: Property = bucket =>
  new Keyed(
    bucket,
    ({ known: { watcher } }) => {
      const { attrs } = watcher.condition
      return attrs.length > attrsMax ? none : attrs
    },
    (buckets, probe) => {
      const { named, changedValues } = probe.event
      if (named.size + changedValues.size > buckets.size) {
        for (const [name, one] of buckets) if (named.has(name) || changedValues.has(name)) one.visit(probe)
        return
      }
      for (const name of named) buckets.get(name)?.visit(probe)
      // Attributes that a replacement deleted are not named.
      for (const name of changedValues) if (!named.has(name)) buckets.get(name)?.visit(probe)
    },
  )

const byQuery: Property = bucket => {
  const index = new QueryIndex<InternedQuery>()
  return new Keyed(
    bucket,
    ({ known }) => listOf(known.query),
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

/** The properties that divide subscriptions to creations or updates. Expensive tests come last. */
export const propertiesOfUpdates: readonly Property[] = [
  byPath,
  byType,
  byAttribute,
  byQuery,
  byIdPattern,
  byTypePattern,
]

/**
 * The properties that divide subscriptions to deletions, for which attributes do not matter
 * (docs/interface/subscriptions.md#alteration-types).
 */
export const propertiesOfDeletions: readonly Property[] = propertiesOfUpdates.filter(one => one !== byAttribute)
