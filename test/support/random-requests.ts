// Random requests to shards, of all kinds, over so few entities that requests often meet. Also the content of a reply,
// in a form that does not depend on which owner sent it.

import type { WantedAttribute } from '../../src/domain/entities/entity.js'
import { operatorOf } from '../../src/domain/entities/operators.js'
import type { Json } from '../../src/domain/json.js'
import type { SelectorSource } from '../../src/domain/queries/selection.js'
import type { Result } from '../../src/domain/refusal.js'
import { stampOf } from '../../src/domain/stamp.js'
import { decodeEntity } from '../../src/encoded-entity.js'
import type {
  FindRequest,
  FoundEntity,
  ListRequest,
  Origin,
  TypeSummary,
  TypesRequest,
  WriteRequest,
} from '../../src/messages/messages.js'
import type { Random } from './random.js'
import { orderOf, selectionOf } from './selections.js'

export const tenants = ['', 't'] as const
const paths = ['/', '/a', '/a/b', '/c'] as const
const types = ['A', 'B'] as const
const options = { overrideMetadata: false, forcedUpdate: false }

const wanted = (value: Json, type = 'Number'): WantedAttribute => ({
  type,
  value,
  operator: operatorOf(value),
  metadata: undefined,
})

const originOf = (): Origin => ({ correlatorRoot: 'root', numbering: { next: 1, step: 1 } })

export interface RandomRequestsOptions {
  /** Ids in each path. */
  readonly ids: number
  /** Stamps and due dates are around this time. */
  readonly nowMs: () => number
}

export class RandomRequests {
  private readonly random: Random
  private readonly options: RandomRequestsOptions
  private stamp = 0

  constructor(random: Random, given: RandomRequestsOptions) {
    this.random = random
    this.options = given
  }

  /** Some writes, no two about the same id. `creates`: they may create entities. */
  writes(countMax: number, creates: boolean): readonly WriteRequest[] {
    const writes = new Map<string, WriteRequest>()
    for (let count = this.random.between(1, countMax); count > 0; count--) {
      const write = this.write(creates)
      const { tenant, path, id } = write.target
      writes.set(`${tenant} ${path} ${id}`, write)
    }
    // In the order of their stamps.
    return [...writes.values()].map(write => ({ ...write, stamp: this.next() }))
  }

  private next(): number {
    // Above the stamps that owners make themselves, so that every owner uses the given one.
    this.stamp = Math.max(this.stamp + 64, stampOf(this.options.nowMs()) + 1024)
    return this.stamp
  }

  private write(creates: boolean): WriteRequest {
    const { random } = this
    const target = {
      tenant: random.pick(tenants),
      path: random.pick(paths),
      id: `E${random.between(1, this.options.ids)}`,
      type: random.pick([undefined, ...types]),
    }
    const origin = originOf()
    const n = random.between(1, 9)
    const on = <K extends string>(kind: K) => ({ kind, target, origin }) as const
    const what = random.between(creates ? 0 : 4, 11)
    if (what <= 3) {
      const type = target.type ?? 'A'
      const attributes = new Map([
        ['n', wanted(n)],
        [random.pick(['b', 'c']), wanted(`x${n}`, 'Text')],
      ])
      const created = { id: target.id, type, attributes }
      return { ...on('create'), target: { ...target, type }, entity: created, upsert: what === 3, options }
    }
    if (what <= 6) return { ...on('append'), attributes: new Map([['n', wanted({ $inc: n })]]), options }
    if (what === 7) return { ...on('append'), attributes: new Map([[random.pick(['c', 'd']), wanted(n)]]), options }
    if (what === 8) {
      const due = new Date(this.options.nowMs() + random.between(-3, 3) * 60_000).toISOString()
      return { ...on('append'), attributes: new Map([['dateExpires', wanted(due, 'DateTime')]]), options }
    }
    if (what === 9) return { ...on('deleteAttribute'), name: random.pick(['c', 'd', 'dateExpires']) }
    return on('deleteEntity')
  }

  list(): ListRequest {
    const { random } = this
    return {
      kind: 'list',
      tenant: random.pick(tenants),
      paths: random.pick<readonly string[]>([['/#'], ['/#'], ['/a/#'], ['/', '/c']]),
      selection: selectionOf({
        selectors: random.pick<readonly SelectorSource[]>([
          [],
          [{ types: ['A'] }],
          [{ ids: ['E1', 'E2', 'E7'] }],
          [{ idPattern: '[13]$' }],
        ]),
        q: random.pick([undefined, undefined, 'n>5', 'c']),
      }),
      order: orderOf(random.pick(['', '', 'n,id', '!id'])),
      offset: random.pick([0, 0, 3]),
      limit: random.pick([5, 20, 1000]),
    }
  }

  types(): TypesRequest {
    return {
      kind: 'types',
      tenant: this.random.pick(tenants),
      paths: this.random.pick([['/#'], ['/a']]),
      type: undefined,
    }
  }

  find(): FindRequest {
    const { random } = this
    const id = `E${random.between(1, this.options.ids)}`
    return {
      kind: 'find',
      tenant: random.pick(tenants),
      paths: random.pick<readonly string[]>([['/#'], ['/a'], ['/']]),
      id,
      type: undefined,
    }
  }
}

/**
 * The compared parts of entities. The time of the last change is left out, since it depends on the number of requests.
 */
export const entitiesIn = (entities: readonly FoundEntity[]): readonly unknown[] =>
  entities.map(({ path, encoded }) => {
    const { id, type, created, attributes } = decodeEntity(encoded)
    return [path, id, type, created, ...[...attributes].map(([name, { type, value }]) => [name, type, value])]
  })

export const summariesIn = (summaries: readonly TypeSummary[]): readonly unknown[] =>
  summaries
    .map(({ type, count, attributes }) => [type, count, [...new Set(attributes.map(one => one.join(' ')))].sort()])
    .sort()

/** A result with its value in another form. */
export const shownResult = <T>(result: Result<T>, show: (value: T) => unknown): unknown =>
  result.ok ? show(result.value) : result.refusal
