// Finds the queries (`q`) that may hold for an entity: `temperature>21`, `temperature>22` ... are not tested one by
// one.
//
// The index uses one necessary condition of each query, its guard. A guard requires one of a few values at a path, or a
// value between bounds, or only that the attribute exists. Only queries whose guards hold are tested. A query without a
// guard (`!temperature`, `dateModified>...`) is always tested.
//
// In an array any element may satisfy an equality. For bounds, the least value must not be too high and the greatest
// not too low. That also covers arrays in which different elements satisfy different statements.
//
// Not here: whether a query holds (query.ts), sharing queries with the same text (matcher.ts).

import type { Entity } from '../entities/entity.js'
import { isArray, type Json } from '../json.js'
import { partitionPoint } from '../search.js'
import { conjuncts, Several, targetOf } from './query.js'
import type { Bound, Path, Query, Scalar, Statement } from './query-parser.js'

/** A query that can be put into an index. */
export interface GuardedQuery {
  readonly query: Query
  /** Any of them can be its guard; none: no simple condition is necessary. */
  readonly guards: readonly Guard[]
}

/** A necessary condition on the attribute, or on the value at the path in it. */
export type Guard =
  | { readonly kind: 'present'; readonly path: Path }
  | { readonly kind: 'equal'; readonly path: Path; readonly values: readonly Scalar[] }
  | NumberGuard
  | TextGuard

interface NumberGuard extends Ends<number> {
  readonly kind: 'number'
  readonly path: Path
}

interface TextGuard extends Ends<string> {
  readonly kind: 'text'
  readonly path: Path
}

/** The ends of an interval. Both are included; undefined: there is none. */
interface Ends<B> {
  readonly low: B | undefined
  readonly high: B | undefined
}

/** The limit of guards that are considered for one query. */
const guardsMax = 8

/** Possible guards of a query: the selective ones, or if there are none, those that only require an attribute. */
export function guardsOf(query: Query): readonly Guard[] {
  const statements = conjuncts(query)
  const selective = [...statements.map(equalGuard).filter(isThere), ...boundsGuards(statements)]
  const guards = selective.length > 0 ? selective : statements.map(presence).filter(isThere)
  return guards.slice(0, guardsMax)
}

const isThere = <T>(one: T | undefined): one is T => one !== undefined

/** The limit of list items in a guard. The query has an entry for each item, which costs memory. */
const listedMax = 16

function equalGuard(statement: Statement): Guard | undefined {
  const { path } = statement
  if (statement.operator !== 'Equals' || path.builtin) return undefined
  const { right } = statement
  if (right.kind === 'value') return { kind: 'equal', path, values: [right.value] }
  if (right.kind === 'range' || right.items.size > listedMax) return undefined
  return { kind: 'equal', path, values: [...right.items] }
}

/** The bounds of a query, joined for each path and kind. */
function boundsGuards(statements: readonly Statement[]): readonly Guard[] {
  const guards = new Map<string, NumberGuard | TextGuard>()
  for (const guard of statements.map(boundsOf).filter(isThere)) {
    const key = `${guard.kind} ${guard.path.attribute} ${keyOf(guard.path)}`
    const known = guards.get(key)
    guards.set(key, known ? narrowed(known, guard) : guard)
  }
  return [...guards.values()]
}

function boundsOf(statement: Statement): NumberGuard | TextGuard | undefined {
  const { path } = statement
  if (path.builtin) return undefined
  switch (statement.operator) {
    case 'GreaterThan':
    case 'GreaterThanOrEqual':
      return bounded(path, statement.right, undefined)
    case 'LessThan':
    case 'LessThanOrEqual':
      return bounded(path, undefined, statement.right)
    case 'Equals':
      return statement.right.kind === 'range' ? bounded(path, statement.right.from, statement.right.to) : undefined
    default:
      return undefined
  }
}

function bounded(path: Path, low: Bound | undefined, high: Bound | undefined): NumberGuard | TextGuard {
  return typeof (low ?? high) === 'number'
    ? { kind: 'number', path, low: low as number | undefined, high: high as number | undefined }
    : { kind: 'text', path, low: low as string | undefined, high: high as string | undefined }
}

/** The intersection of two bounds of one kind. */
function narrowed<G extends NumberGuard | TextGuard>(guard: G, other: G): G {
  const low = guard.low === undefined || (other.low !== undefined && other.low > guard.low) ? other.low : guard.low
  const high =
    guard.high === undefined || (other.high !== undefined && other.high < guard.high) ? other.high : guard.high
  return { ...guard, low, high }
}

/** Every condition on an attribute except its absence requires that it exists. */
function presence({ operator, path }: Statement): Guard | undefined {
  return operator === 'NotExists' || path.builtin ? undefined : { kind: 'present', path: { ...path, steps: [] } }
}

/** The path within an attribute as a text. */
const keyOf = ({ steps }: Path): string => (steps.length === 0 ? '' : JSON.stringify(steps.map(({ key }) => key)))

/** Queries, indexed by conditions on an entity. */
export class QueryIndex<Q extends GuardedQuery> {
  private readonly unguarded = new Set<Q>()
  /** The guard that each query got when it was added. */
  private readonly given = new Map<Q, Guard>()
  /** By attribute, then by the path within it. */
  private readonly guarded = new Map<string, Map<string, PathGuards<Q>>>()

  add(query: Q): void {
    const guard = this.leastCrowded(query.guards)
    if (!guard) {
      this.unguarded.add(query)
      return
    }
    this.given.set(query, guard)
    const { attribute } = guard.path
    let paths = this.guarded.get(attribute)
    if (!paths) {
      paths = new Map()
      this.guarded.set(attribute, paths)
    }
    const key = keyOf(guard.path)
    let guards = paths.get(key)
    if (!guards) {
      guards = new PathGuards(guard.path)
      paths.set(key, guards)
    }
    guards.add(query, guard)
  }

  remove(query: Q): void {
    const guard = this.given.get(query)
    if (!guard) {
      this.unguarded.delete(query)
      return
    }
    this.given.delete(query)
    const paths = this.guarded.get(guard.path.attribute)!
    const guards = paths.get(keyOf(guard.path))!
    guards.remove(query, guard)
    if (guards.size > 0) return
    paths.delete(keyOf(guard.path))
    if (paths.size === 0) this.guarded.delete(guard.path.attribute)
  }

  // [hot] Once per event and bucket of the matcher that distinguishes queries.
  /** Calls `show` with every query that may hold for the entity in the path, some of them perhaps twice. */
  visit(entity: Entity, path: string, show: (query: Q) => void): void {
    for (const query of this.unguarded) show(query)
    if (this.guarded.size <= entity.attributes.size) {
      for (const [name, paths] of this.guarded)
        if (entity.attributes.has(name)) for (const guards of paths.values()) guards.visit(entity, path, show)
      return
    }
    for (const name of entity.attributes.keys()) {
      const paths = this.guarded.get(name)
      if (paths) for (const guards of paths.values()) guards.visit(entity, path, show)
    }
  }

  /** The guard with the fewest queries, among several: in `status==on;room==17` it is not the status. */
  private leastCrowded(guards: readonly Guard[]): Guard | undefined {
    if (guards.length < 2) return guards[0]
    const crowds = guards.map(
      guard => this.guarded.get(guard.path.attribute)?.get(keyOf(guard.path))?.crowd(guard) ?? 0,
    )
    return guards[crowds.indexOf(Math.min(...crowds))]
  }
}

/** Queries whose guards use one path. */
class PathGuards<Q> {
  size = 0
  private readonly present = new Set<Q>()
  private readonly equal = new Map<Scalar, Set<Q>>()
  private readonly numbers = new Intervals<number, Q>()
  private readonly texts = new Intervals<string, Q>()

  constructor(private readonly path: Path) {}

  add(query: Q, guard: Guard): void {
    this.size++
    switch (guard.kind) {
      case 'present':
        this.present.add(query)
        break
      case 'equal':
        for (const value of guard.values) {
          const queries = this.equal.get(value)
          if (queries) queries.add(query)
          else this.equal.set(value, new Set([query]))
        }
        break
      case 'number':
        this.numbers.add(guard.low, guard.high, query)
        break
      case 'text':
        this.texts.add(guard.low, guard.high, query)
    }
  }

  remove(query: Q, guard: Guard): void {
    this.size--
    switch (guard.kind) {
      case 'present':
        this.present.delete(query)
        break
      case 'equal':
        for (const value of guard.values) {
          const queries = this.equal.get(value)
          queries?.delete(query)
          if (queries?.size === 0) this.equal.delete(value)
        }
        break
      case 'number':
        this.numbers.remove(guard.low, guard.high, query)
        break
      case 'text':
        this.texts.remove(guard.low, guard.high, query)
    }
  }

  /** How many queries with a guard like this one an entity may match; for bounds perhaps half. */
  crowd(guard: Guard): number {
    switch (guard.kind) {
      case 'present':
        return this.present.size
      case 'equal':
        return Math.max(...guard.values.map(value => this.equal.get(value)?.size ?? 0))
      case 'number':
        return this.numbers.size / 2
      case 'text':
        return this.texts.size / 2
    }
  }

  /** Called when the entity has the attribute. */
  visit(entity: Entity, path: string, show: (query: Q) => void): void {
    for (const query of this.present) show(query)
    if (this.size === this.present.size) return
    const target = targetOf(this.path, entity, path)
    if (target instanceof Several) this.visitElements(target.values.flat() as readonly Json[], show)
    else if (isArray(target)) this.visitElements(target, show)
    else this.visitValue(target, show)
  }

  private visitValue(value: Json | undefined, show: (query: Q) => void): void {
    if (value === undefined || (typeof value === 'object' && value !== null)) return
    this.visitEqual(value, show)
    if (typeof value === 'number') this.numbers.visit(value, value, show)
    else if (typeof value === 'string') this.texts.visit(value, value, show)
  }

  private visitElements(array: readonly Json[], show: (query: Q) => void): void {
    if (this.equal.size > 0) for (const element of new Set(array)) this.visitEqual(element as Scalar, show)
    visitSpan(this.numbers, array, isNumber, show)
    visitSpan(this.texts, array, isText, show)
  }

  private visitEqual(value: Scalar, show: (query: Q) => void): void {
    const queries = this.equal.get(value)
    if (queries) for (const query of queries) show(query)
  }
}

const isNumber = (value: Json): value is number => typeof value === 'number'
const isText = (value: Json): value is string => typeof value === 'string'

function visitSpan<B extends Bound, Q>(
  intervals: Intervals<B, Q>,
  array: readonly Json[],
  isOfKind: (value: Json) => value is B & Json,
  show: (query: Q) => void,
): void {
  let least: B | undefined
  let most: B | undefined
  if (intervals.size === 0) return
  for (const element of array) {
    if (!isOfKind(element)) continue
    if (least === undefined || element < least) least = element
    if (most === undefined || element > most) most = element
  }
  if (least !== undefined && most !== undefined) intervals.visit(least, most, show)
}

// Intervals that are found by a value in them. Which of many `temperature > 30; temperature < 40` match 35?
//
// The intervals are sorted by their lower ends. The middle one is the root of a binary tree, the middles of both halves
// are its children, and so on. Each subtree knows its highest upper end. So a search skips intervals that begin too
// late or end too early. It costs the logarithm of their number for each interval that it finds.
//
// A new interval waits in a short list until there are enough to sort everything again. A removed one leaves a hole
// until there are more holes than intervals.

interface Interval<B, T> extends Ends<B> {
  /** undefined: it was removed. */
  item: T | undefined
}

/**
 * The limit of waiting intervals. Each costs every search a few nanoseconds; sorting costs 0.1 us for each interval.
 */
const waitingMax = 64

/** Items by intervals. The ends, and the values of searches, are all numbers or all strings. */
export class Intervals<B extends Bound, T> {
  private sorted: Interval<B, T>[] = []
  /** The highest end of the subtree whose root has the same index. */
  private highest: (B | undefined)[] = []
  private waiting: Interval<B, T>[] = []
  private holes = 0

  get size(): number {
    return this.sorted.length - this.holes + this.waiting.length
  }

  add(low: B | undefined, high: B | undefined, item: T): void {
    this.waiting.push({ low, high, item })
  }

  remove(low: B | undefined, high: B | undefined, item: T): void {
    if (this.waiting.length > waitingMax) this.sort()
    const waiting = this.waiting.findIndex(one => one.item === item)
    if (waiting >= 0) {
      this.waiting.splice(waiting, 1)
      return
    }
    const wanted = { low, high }
    let at = this.firstFrom(wanted)
    while (at < this.sorted.length && this.sorted[at]!.item !== item) {
      if (compare(this.sorted[at]!, wanted) > 0) return
      at++
    }
    if (at === this.sorted.length) return
    this.sorted[at]!.item = undefined
    this.holes++
    if (this.holes > this.sorted.length / 2) this.sort()
  }

  // [hot] Once per event and attribute with bounds.
  /** Calls `show` with the items of all intervals that begin at `most` or lower and end at `least` or higher. */
  visit(least: B, most: B, show: (item: T) => void): void {
    if (this.waiting.length > waitingMax) this.sort()
    for (const { low, high, item } of this.waiting) if (begins(low, most) && reaches(high, least)) show(item as T)
    this.search(0, this.sorted.length, least, most, show)
  }

  private search(first: number, end: number, least: B, most: B, show: (item: T) => void): void {
    let from = first
    while (from < end) {
      const middle = (from + end) >>> 1
      if (!reaches(this.highest[middle], least)) return
      this.search(from, middle, least, most, show)
      const { low, high, item } = this.sorted[middle]!
      if (!begins(low, most)) return
      if (item !== undefined && reaches(high, least)) show(item)
      from = middle + 1
    }
  }

  private sort(): void {
    // These are two sorted runs: the sort of JavaScript merges them without comparing all with all.
    const waiting = this.waiting.sort(compare)
    this.sorted = [...this.sorted.filter(({ item }) => item !== undefined), ...waiting].sort(compare)
    this.waiting = []
    this.holes = 0
    this.highest = new Array(this.sorted.length)
    this.measure(0, this.sorted.length)
  }

  /** Computes the highest ends of a subtree that is not empty. */
  private measure(from: number, end: number): B | undefined {
    const middle = (from + end) >>> 1
    let highest = this.sorted[middle]!.high
    if (from < middle) highest = higher(highest, this.measure(from, middle))
    if (middle + 1 < end) highest = higher(highest, this.measure(middle + 1, end))
    this.highest[middle] = highest
    return highest
  }

  /** The first index whose interval is not before the wanted one. */
  private firstFrom(wanted: Ends<B>): number {
    return partitionPoint(at => compare(this.sorted[at]!, wanted) < 0, 0, this.sorted.length)
  }
}

const begins = <B extends Bound>(low: B | undefined, most: B): boolean => low === undefined || low <= most

const reaches = <B extends Bound>(high: B | undefined, least: B): boolean => high === undefined || high >= least

const higher = <B extends Bound>(a: B | undefined, b: B | undefined): B | undefined =>
  a === undefined || b === undefined ? undefined : a > b ? a : b

/** By the lower end, then by the upper one. */
function compare<B extends Bound>(a: Ends<B>, b: Ends<B>): number {
  if (a.low !== b.low) return a.low === undefined || (b.low !== undefined && a.low < b.low) ? -1 : 1
  if (a.high !== b.high) return b.high === undefined || (a.high !== undefined && a.high < b.high) ? -1 : 1
  return 0
}
