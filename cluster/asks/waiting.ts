// Asks of one link without an outcome: by number, in the order of their deadlines, and in the order of sending.
//
// Callers use a few waiting times, each for a kind of ask. Asks with equal times form one chain, in the order in which
// they were asked. Their deadlines have the same order. Asks that were not sent yet are at the end:
//
//   first -> ... -> last sent -> unsent -> ... -> last
//
// [hot] An ask is one object and a place in a table. With two sets instead of the chains a read by id from worker to
// worker cost 10.2 us of CPU in both processes together, without them 8.2 (64 outstanding, medians): entries of a set
// are hashed, and its tables are garbage. An ask that leaves its chain drops its references to its neighbours.
// Otherwise an old one would keep all later ones alive until the next full collection.
//
// Not here: the outcome of an ask (link.ts).

import assert from 'node:assert/strict'
import type { OnOutcome } from '../ports.js'

export interface WaitingAsk {
  readonly number: number
  readonly shard: number
  /** Empty once it is sent. */
  request: Uint8Array
  readonly requestBytes: number
  readonly view: number
  readonly deadlineMs: number
  readonly onOutcome: OnOutcome
  sent: boolean
  readonly chain: Chain
  previous: WaitingAsk | undefined
  next: WaitingAsk | undefined
}

interface Chain {
  first: WaitingAsk | undefined
  last: WaitingAsk | undefined
  /** The first that has not been sent. */
  unsent: WaitingAsk | undefined
}

/** Different times that asks may wait. */
const chainsMax = 16

export class WaitingAsks {
  /** Of their requests, sent or not. */
  bytes = 0
  unsentCount = 0
  private readonly byNumber = new ByNumber<WaitingAsk>()
  private readonly chains = new Map<number, Chain>()

  get size(): number {
    return this.byNumber.size
  }

  get(number: number): WaitingAsk | undefined {
    return this.byNumber.get(number)
  }

  /** Adds an unsent ask; its number is above all before it. */
  add(
    number: number,
    shard: number,
    request: Uint8Array,
    view: number,
    nowMs: number,
    waitMs: number,
    onOutcome: OnOutcome,
  ): void {
    const chain = this.chainOf(waitMs)
    const previous = chain.last
    const one: WaitingAsk = {
      number,
      shard,
      request,
      requestBytes: request.length,
      view,
      deadlineMs: nowMs + waitMs,
      onOutcome,
      sent: false,
      chain,
      previous,
      next: undefined,
    }
    if (previous) previous.next = one
    else chain.first = one
    chain.last = one
    chain.unsent ??= one
    this.byNumber.add(one)
    this.unsentCount++
    this.bytes += one.requestBytes
  }

  delete(one: WaitingAsk): void {
    const { chain, previous, next } = one
    if (chain.unsent === one) chain.unsent = next
    if (previous) previous.next = next
    else chain.first = next
    if (next) next.previous = previous
    else chain.last = previous
    one.previous = undefined
    one.next = undefined
    this.byNumber.delete(one.number)
    if (!one.sent) this.unsentCount--
    this.bytes -= one.requestBytes
  }

  /** The first that has not been sent. */
  get unsent(): WaitingAsk | undefined {
    let first: WaitingAsk | undefined
    for (const { unsent } of this.chains.values())
      if (unsent && (!first || unsent.number < first.number)) first = unsent
    return first
  }

  /** Marks an ask as sent; it must be the first unsent one of its chain. */
  noteSent(one: WaitingAsk): void {
    assert.equal(one.chain.unsent, one)
    one.chain.unsent = one.next
    one.sent = true
    this.unsentCount--
  }

  due(nowMs: number): WaitingAsk | undefined {
    for (const { first } of this.chains.values()) if (first && first.deadlineMs <= nowMs) return first
    return undefined
  }

  /** The earliest deadline of all; infinity when nothing waits. */
  get dueMs(): number {
    let dueMs = Number.POSITIVE_INFINITY
    for (const { first } of this.chains.values()) if (first) dueMs = Math.min(dueMs, first.deadlineMs)
    return dueMs
  }

  get any(): WaitingAsk | undefined {
    for (const { first } of this.chains.values()) if (first) return first
    return undefined
  }

  private chainOf(waitMs: number): Chain {
    let chain = this.chains.get(waitMs)
    if (!chain) {
      chain = { first: undefined, last: undefined, unsent: undefined }
      this.chains.set(waitMs, chain)
      assert(this.chains.size <= chainsMax, 'asks have too many different deadlines')
    }
    return chain
  }
}

const capacityMin = 64

/**
 * A table of items with ascending numbers. Open addressing: each item as near behind the place of its number as there
 * was room. A removed item leaves no mark: those behind it move up.
 *
 * Not a Map: the tables that a Map leaves when it grows or is cleaned point to the one that follows. Once such a table
 * has survived a collection of young objects, it keeps all later tables alive until the next full collection. After
 * minutes of asks a link had scavenges of 40 ms from that; with this table they take 1 ms.
 */
export class ByNumber<T extends { readonly number: number }> {
  private slots: (T | undefined)[] = empty(capacityMin)
  private mask = capacityMin - 1
  private count = 0

  get size(): number {
    return this.count
  }

  get(number: number): T | undefined {
    return this.slots[this.slotOf(number)]
  }

  add(item: T): void {
    if (2 * this.count > this.mask) this.resize(2 * this.slots.length)
    this.slots[this.slotOf(item.number)] = item
    this.count++
  }

  delete(number: number): boolean {
    const { slots, mask } = this
    let hole = this.slotOf(number)
    if (!slots[hole]) return false
    for (let at = (hole + 1) & mask; slots[at]; at = (at + 1) & mask) {
      // An item whose place is behind the hole would not be found before it.
      const fromHome = (at - slots[at]!.number) & mask
      if (fromHome < ((at - hole) & mask)) continue
      slots[hole] = slots[at]
      hole = at
    }
    slots[hole] = undefined
    this.count--
    return true
  }

  /** The slot of a number, or the slot where it would be put. */
  private slotOf(number: number): number {
    const { slots, mask } = this
    let at = number & mask
    for (let item = slots[at]; item && item.number !== number; item = slots[at]) at = (at + 1) & mask
    return at
  }

  private resize(capacity: number): void {
    const { slots } = this
    this.slots = empty(capacity)
    this.mask = capacity - 1
    for (const item of slots) if (item) this.slots[this.slotOf(item.number)] = item
  }
}

const empty = <T>(capacity: number): (T | undefined)[] => new Array<T | undefined>(capacity).fill(undefined)
