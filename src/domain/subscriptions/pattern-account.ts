// The highest cost of the patterns of a tenant's subscriptions for one event. A subscription that would make an event
// too expensive is refused when it is created.
//
// An event runs patterns of subscriptions with its type or without a type, and with its id, or with a pattern whose
// prefix fits it. So there is a tree of works for each type, and one for subscriptions without a type. Works are stored
// under the id, or under the prefix of all matching ids. An event costs at most the most expensive path from the root
// to a leaf.
//
// Equal texts in one place are run once, and count once. Patterns that are comparisons (plain-pattern.ts) cost nothing
// for ids and types.
//
// Not here: the cost of one test (pattern.ts), the caller (shard/documents/pattern-accounts.ts).

import { explorationTogetherMax, identifierLengthMax } from '../limits.js'
import { compilePattern, literalPrefix, type Pattern, testWork, valueWork } from '../queries/pattern.js'
import { Exploration } from '../queries/pattern-engine.js'
import { step, type TreeNode } from '../queries/prefix-tree.js'
import { conjuncts } from '../queries/query.js'
import type { Query } from '../queries/query-parser.js'
import type { Watcher } from './subscription.js'

/** The cost of one text at one place. */
interface Charge {
  /** undefined: every type. */
  readonly type: string | undefined
  /** The prefix of the ids for which it is run. */
  readonly prefix: string
  readonly text: string
  readonly work: number
}

/** No id contains it: with this suffix, an id is not a prefix of another one. */
const endOfId = '\u0000'

export class PatternAccount {
  /** The charges of each subscription that costs anything. */
  private readonly charges = new Map<string, readonly Charge[]>()
  private readonly uses = new Map<string, number>()
  private readonly anyType = new WorkTree()
  private readonly types = new Map<string, WorkTree>()

  /** Adds a subscription, or replaces the one with the same id. */
  add(subscription: Watcher): void {
    this.put(subscription.id, chargesOf(subscription))
  }

  /** Removes a subscription, if it exists. */
  remove(id: string): void {
    this.put(id, [])
  }

  /** Whether no subscription costs anything. */
  get isEmpty(): boolean {
    return this.charges.size === 0
  }

  /** The highest cost of an event. */
  get work(): number {
    let heaviest = 0
    for (const { work } of this.types.values()) if (work > heaviest) heaviest = work
    return this.anyType.work + heaviest
  }

  /** The highest cost of an event now, and with the subscription, which replaces the one with the same id. */
  workWith(subscription: Watcher): { readonly before: number; readonly after: number } {
    const { id } = subscription
    const charges = chargesOf(subscription)
    const held = this.charges.get(id) ?? []
    const before = this.work
    if (charges.length === 0 && held.length === 0) return { before, after: before }
    this.put(id, charges)
    const after = this.work
    this.put(id, held)
    return { before, after }
  }

  private put(id: string, charges: readonly Charge[]): void {
    // New charges are added first, so that shared ones are not removed in between.
    for (const charge of charges) this.count(charge, 1)
    for (const charge of this.charges.get(id) ?? []) this.count(charge, -1)
    if (charges.length > 0) this.charges.set(id, charges)
    else this.charges.delete(id)
  }

  private count({ type, prefix, text, work }: Charge, times: 1 | -1): void {
    const key = JSON.stringify([type ?? null, prefix, text])
    const before = this.uses.get(key) ?? 0
    const after = before + times
    if (after > 0) this.uses.set(key, after)
    else this.uses.delete(key)
    if (before > 0 && after > 0) return
    this.treeOf(type).add(prefix, times * work)
    if (type !== undefined && this.types.get(type)!.work === 0) this.types.delete(type)
  }

  private treeOf(type: string | undefined): WorkTree {
    if (type === undefined) return this.anyType
    let tree = this.types.get(type)
    if (!tree) {
      tree = new WorkTree()
      this.types.set(type, tree)
    }
    return tree
  }
}

/** The charges of a subscription. One that its owner made inactive is never tested. */
function chargesOf(subscription: Watcher): readonly Charge[] {
  const { status, entities, id: subscriptionId, condition } = subscription
  if (status === 'inactive') return []
  const exploration = new Exploration(explorationTogetherMax)
  const { source } = condition.expression
  // Accessing the others would compile them.
  const q = mayHavePatterns(source.q) ? condition.expression.q : undefined
  const mq = mayHavePatterns(source.mq) ? condition.expression.mq : undefined
  const contents: Pick<Charge, 'text' | 'work'>[] = []
  if (q) contents.push({ text: `q ${source.q}`, work: workOf(q, exploration) })
  // An `mq` is tested for each subscription, since it may be about metadata of the event.
  if (mq) contents.push({ text: `mq ${subscriptionId}`, work: workOf(mq, exploration) })
  const charges: Charge[] = []
  for (const { id, idPattern, type, typePattern } of entities) {
    const prefix = id === undefined ? literalPrefix({ source: idPattern as string }) : id + endOfId
    const texts = [...contents]
    if (idPattern !== undefined) texts.push({ text: `id ${idPattern}`, work: identityWork(idPattern, exploration) })
    if (typePattern !== undefined)
      texts.push({ text: `type ${typePattern}`, work: identityWork(typePattern, exploration) })
    for (const { text, work } of texts) if (work > 0) charges.push({ type, prefix, text, work: Math.ceil(work) })
  }
  return charges
}

const mayHavePatterns = (text: string | undefined): boolean => text?.includes('~=') === true

function identityWork(source: string, exploration: Exploration): number {
  const pattern = compilePattern(source)
  return pattern ? testWork(explored(pattern, exploration), identifierLengthMax) : 0
}

function workOf(query: Query, exploration: Exploration): number {
  let work = 0
  for (const statement of conjuncts(query))
    if (statement.operator === 'MatchPattern')
      work += valueWork(explored(statement.right, exploration), statement.charactersMax)
  return work
}

function explored(pattern: Pattern, exploration: Exploration): Pattern {
  pattern.explore(exploration)
  return pattern
}

interface Node extends TreeNode<Node> {
  /** The work of this node. */
  own: number
  /** The same plus the most expensive path below. */
  work: number
}

const newNode = (label: string, lower?: Node): Node => ({ label, own: 0, work: lower?.work ?? 0, below: undefined })

/**
 * Works under prefixes: a radix tree whose nodes know the most expensive path below them. Works are whole numbers, so
 * that removals leave no rounding errors.
 */
class WorkTree {
  private readonly root = newNode('')

  /** The most expensive path from the root. */
  get work(): number {
    return this.root.work
  }

  add(prefix: string, work: number): void {
    const way = [this.root]
    for (let at = 0; at < prefix.length; ) {
      const next = step(way.at(-1)!, prefix, at, newNode)
      way.push(next)
      at += next.label.length
    }
    way.at(-1)!.own += work
    for (let depth = way.length - 1; depth >= 0; depth--) {
      const node = way[depth]!
      let heaviest = 0
      for (const below of node.below?.values() ?? []) if (below.work > heaviest) heaviest = below.work
      node.work = node.own + heaviest
      if (node.work === 0 && depth > 0) way[depth - 1]!.below!.delete(node.label.charCodeAt(0))
    }
  }
}
