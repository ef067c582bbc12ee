// Which node ought to own each shard: equal shares, with as few moves as possible.
//
// No rule that knows only the members gives equal shares and also moves few shards when a node joins. So the present
// owners count as well: the latest takeovers, which all nodes read from the logs. A node keeps its shards up to its
// share. The rest goes to nodes that have less. Shares differ by one shard at most.
//
// The entities of one service path are in one shard of each remainder modulo the spread. So a node that owns all shards
// of one remainder works for every path. Each node gets such a remainder, as long as there are no more nodes than
// remainders. That costs no additional moves for the first nine nodes that join, and a few exchanges for later ones.
// The shards of the other remainders are mixed.
//
// A move goes from a node above its share to one below it, concerns a shard without a joined owner, or completes a
// remainder. So nodes that see different takeovers for a moment may plan different moves, but no move is taken back.
// Nodes plan the same moves again after some of them were done, whatever their order: shares and preferences do not
// depend on it.
//
// Not here: standbys (placement.ts), how a shard moves (duties.ts).

import assert from 'node:assert/strict'
import { weigh } from './placement.js'

export interface PresentOwners {
  /** The nodes that should get shards. */
  readonly members: readonly string[]
  /** By shard: the owner by the latest takeover, which need not be a member; undefined: it never had one. */
  readonly present: readonly (string | undefined)[]
  /** The nodes that ought to have a copy of a shard, the best one first. */
  readonly copies: (shard: number) => readonly string[]
  /** The number of shards over which a service path is spread. */
  readonly spread: number
  /** Whether only shards without a member as their owner move, whatever the shares. */
  readonly isFixed?: boolean
}

/** More nodes than this need not work for one path. */
const remaindersMax = 16

/** By shard: the node that ought to own it. Empty if there are no members. */
export function ownersWanted(given: PresentOwners): readonly string[] {
  if (given.members.length === 0) return []
  return new Shares(given).divide()
}

/**
 * The shards that two members may exchange: their numbers stay the same, and no member loses a part of its remainder.
 * So no plan takes such an exchange back, unless it completes another remainder (`ownersWanted` shows that).
 */
export const freeShards = (given: PresentOwners): ReadonlySet<number> =>
  given.members.length === 0 ? new Set() : new Shares(given).free()

/** A node that is no member. */
const outside = -1

class Shares {
  private readonly given: PresentOwners
  /** In an order that depends on nothing but their names. */
  private readonly members: readonly string[]
  private readonly shards: number
  private readonly remainders: number
  /** By shard: the number of its present owner, and of its wanted one. */
  private readonly present: readonly number[]
  private readonly wanted: number[]
  /** By node: shards above its share, and below it. */
  private readonly excess: number[]
  private readonly room: number[]
  /** By node: the remainder whose shards it ought to own; undefined: none. */
  private own: readonly (number | undefined)[] = []

  constructor(given: PresentOwners) {
    const { members, present, spread, isFixed = false } = given
    this.given = given
    this.shards = present.length
    this.remainders = Math.min(spread, remaindersMax, this.shards)
    assert.equal(this.shards % this.remainders, 0, 'the shards do not have each remainder equally often')
    this.members = sortedBy(members, name => weigh(this.shards, name))
    const numbers = new Map(this.members.map((name, number) => [name, number]))
    this.present = present.map(owner => (owner === undefined ? outside : (numbers.get(owner) ?? outside)))
    this.wanted = [...this.present]
    const counts = this.members.map((_, node) => this.present.filter(owner => owner === node).length)
    const shares = sharesOf(counts, this.shards)
    this.excess = counts.map((count, node) => (isFixed ? 0 : Math.max(0, count - shares[node]!)))
    this.room = counts.map((count, node) => Math.max(0, shares[node]! - count))
  }

  free(): ReadonlySet<number> {
    this.chooseRemainders()
    return new Set(this.present.flatMap((owner, shard) => (owner === outside || this.isKept(shard) ? [] : [shard])))
  }

  divide(): readonly string[] {
    this.chooseRemainders()
    if (this.hasRoom) {
      this.giveOrphans()
      this.giveRemainders()
      this.giveMixed()
    } else if (!this.given.isFixed) this.exchange()
    return this.wanted.map(node => this.members[node]!)
  }

  private chooseRemainders(): void {
    if (this.members.length <= this.remainders) this.own = this.ownRemainders()
  }

  private get hasRoom(): boolean {
    return this.room.some(room => room > 0)
  }

  /** Moves a shard to a node if its owner has too many, or none is joined, and that node has too few. */
  private give(shard: number, to: number): void {
    const from = this.wanted[shard]!
    if (this.room[to]! === 0 || from !== this.present[shard]) return
    if (from !== outside && this.excess[from]! === 0) return
    if (from !== outside) this.excess[from]!--
    this.room[to]!--
    this.wanted[shard] = to
  }

  /** Shards whose owner has gone: to nodes with a copy, which can take them over at once. */
  private giveOrphans(): void {
    const { present, copies } = this.given
    const numbers = new Map(this.members.map((name, number) => [name, number]))
    const orphans = present.flatMap((owner, shard) =>
      owner !== undefined && this.present[shard] === outside ? { shard, nodes: copies(shard) } : [],
    )
    const most = Math.max(0, ...orphans.map(({ nodes }) => nodes.length))
    for (let rank = 0; rank < most; rank++)
      for (const { shard, nodes } of orphans) {
        const node = numbers.get(nodes[rank] ?? '')
        if (node !== undefined) this.give(shard, node)
      }
  }

  private giveRemainders(): void {
    for (const [node, remainder] of this.own.entries())
      if (remainder !== undefined) for (const shard of this.shardsOf(remainder)) this.give(shard, node)
  }

  /**
   * Each node in turn gets one row: a shard of every remainder. So the remainders that belong to no node are divided
   * evenly, and a later node can gather one from all. That fills all shares: a node above its share has enough shards
   * besides its remainder.
   */
  private giveMixed(): void {
    const rows = rowsOf(this.shards, this.remainders)
    const firsts = this.members.map(name => weigh(this.shards, name) % rows.length)
    for (let turn = 0; turn < rows.length && this.hasRoom; turn++)
      for (const [node, first] of firsts.entries())
        for (const shard of rows[(first + turn) % rows.length]!) if (!this.isKept(shard)) this.give(shard, node)
  }

  /**
   * Where shares are equal, a node gets the missing shards of its remainder in exchange for others. Each exchange makes
   * one remainder more whole and none less, so that this ends.
   */
  private exchange(): void {
    for (const [node, remainder] of this.own.entries())
      if (remainder !== undefined)
        for (const shard of this.shardsOf(remainder)) {
          const owner = this.present[shard]!
          const back = owner === node ? undefined : this.inExchange(node, owner)
          if (back === undefined || this.wanted[shard] !== owner) continue
          this.wanted[shard] = node
          this.wanted[back] = owner
        }
  }

  /** A shard that a node can give to another one: best of that one's remainder, and never of its own. */
  private inExchange(from: number, to: number): number | undefined {
    const isFree = (owner: number, shard: number): boolean =>
      owner === from && this.wanted[shard] === from && !this.isKept(shard)
    const best = this.present.findIndex(
      (owner, shard) => isFree(owner, shard) && shard % this.remainders === this.own[to],
    )
    const any = best >= 0 ? best : this.present.findIndex(isFree)
    return any >= 0 ? any : undefined
  }

  /** Whether a shard belongs to the remainder of its present owner. */
  private isKept(shard: number): boolean {
    const owner = this.present[shard]!
    return owner !== outside && this.own[owner] === shard % this.remainders
  }

  private shardsOf(remainder: number): readonly number[] {
    return Array.from({ length: this.shards / this.remainders }, (_, row) => row * this.remainders + remainder)
  }

  /** By node: the remainder of which it has all shards, or can get most. No two nodes have the same. */
  private ownRemainders(): readonly (number | undefined)[] {
    const claims = this.members.flatMap((name, node) =>
      Array.from({ length: this.remainders }, (_, remainder) => this.claim(name, node, remainder)),
    )
    claims.sort((a, b) => b.owned - a.owned || b.reach - a.reach || b.weight - a.weight)
    const own = new Array<number | undefined>(this.members.length).fill(undefined)
    const taken = new Set<number>()
    for (const { node, remainder } of claims)
      if (own[node] === undefined && !taken.has(remainder)) {
        own[node] = remainder
        taken.add(remainder)
      }
    return own
  }

  /** `owned`: 1 if the node has the whole remainder. `reach`: how many of its shards the node has, or can get. */
  private claim(name: string, node: number, remainder: number) {
    const shards = this.shardsOf(remainder)
    const held = new Map<number, number>()
    for (const shard of shards) held.set(this.present[shard]!, (held.get(this.present[shard]!) ?? 0) + 1)
    const mine = held.get(node) ?? 0
    let free = 0
    for (const [owner, count] of held)
      if (owner !== node) free += owner === outside ? count : Math.min(count, this.excess[owner]!)
    const reach = mine + Math.min(free, this.room[node]!)
    return { node, remainder, owned: mine === shards.length ? 1 : 0, reach, weight: weigh(remainder, name) }
  }
}

/**
 * How many shards each node ought to own. Where they do not divide evenly, nodes that have more than the smaller share
 * get the larger one first, so that fewer shards move.
 */
function sharesOf(counts: readonly number[], shards: number): readonly number[] {
  const least = Math.floor(shards / counts.length)
  let larger = shards % counts.length
  const shares = counts.map(count => (count > least && larger-- > 0 ? least + 1 : least))
  for (let node = 0; larger > 0; node++)
    if (counts[node]! <= least) {
      shares[node] = least + 1
      larger--
    }
  return shares
}

/** All shards in rows, each with one shard of every remainder, in an order that depends on hashes alone. */
function rowsOf(shards: number, remainders: number): readonly (readonly number[])[] {
  const columns = Array.from({ length: remainders }, (_, remainder) => {
    const column = Array.from({ length: shards / remainders }, (_, row) => row * remainders + remainder)
    return sortedBy(column, shard => weigh(shard, ''))
  })
  return columns[0]!.map((_, row) => columns.map(column => column[row]!))
}

function sortedBy<T>(items: readonly T[], weight: (item: T) => number): T[] {
  return items
    .map(item => ({ item, weight: weight(item) }))
    .sort((a, b) => b.weight - a.weight || (a.item < b.item ? -1 : 1))
    .map(({ item }) => item)
}
