// What one node knows of all members, itself included, and whom it suspects since when.
//
// It believes the better of two tellings (member.ts), with one caution: it takes nobody's word that a member is dead.
// It then suspects, and lets the time of suspicion pass on its own clock. As a rule every node has begun to suspect
// long before, and it costs nothing. But when two parts of a cluster that had lost each other meet, each has the time
// to say that it lives.
//
// Members that are gone are remembered for a while, so that old news does not bring them back; news of strangers who
// are gone is no news. Not here: whom to probe, and what a node says to news of itself (membership.ts).

import { type PingTarget, rumourLength } from './gossip-messages.js'
import { type GossipOptions, membersMax, suspicionMs, tellingsMax } from './gossip-options.js'
import { believe, isHere, type Member, type Rumour, Rumours } from './member.js'

interface Suspicion {
  sinceMs: number
  /** How many there were when it began. */
  readonly members: number
}

export class Roster {
  private readonly rumours = new Rumours()
  private readonly others = new Map<string, Rumour>()
  private readonly suspicions = new Map<string, Suspicion>()
  /** Since when; who has been gone for the longest time first. */
  private readonly goneSinceMs = new Map<string, number>()
  private changes: Member[] = []

  constructor(
    private own: Member,
    private readonly options: GossipOptions,
  ) {}

  get self(): Member {
    return this.own
  }

  get size(): number {
    return 1 + this.others.size - this.goneSinceMs.size
  }

  /** All that are known, this node first, then also those who are gone. */
  get members(): Member[] {
    return [this.own, ...[...this.others.values()].map(({ member }) => member)]
  }

  get(name: string): Member | undefined {
    return name === this.own.name ? this.own : this.others.get(name)?.member
  }

  /** What is known of a member, this node included, as it is told. */
  recall(name: string): Rumour | undefined {
    return name === this.own.name ? { member: this.own, suspectedBy: [] } : this.others.get(name)
  }

  get hasNews(): boolean {
    return this.rumours.size > 0
  }

  /** For one message: `urgent` first, and then what is to be told, as far as there is room. */
  news(urgent: readonly Rumour[] = []): Rumour[] {
    let bytesLeft = this.options.rumoursBytesMax
    const first = new Map<string, Rumour>()
    for (const rumour of urgent) {
      const bytes = rumourLength(rumour)
      if (bytes > bytesLeft || first.has(rumour.member.name)) continue
      bytesLeft -= bytes
      first.set(rumour.member.name, rumour)
    }
    return [...first.values(), ...this.rumours.take(bytesLeft, tellingsMax(this.options, this.size), first)]
  }

  /** What another node is to hear of itself before all else, so that it can say that it lives. */
  tidings({ name, life }: PingTarget): Rumour[] {
    const known = this.others.get(name)
    return known && (known.member.status !== 'alive' || known.member.life !== life) ? [known] : []
  }

  /** Whom this node suspects, without those in `told`: a node that knows better says so in the answer. */
  doubts(told: readonly Rumour[]): Rumour[] {
    let bytesLeft = this.options.rumoursBytesMax
    const names = new Set(told.map(({ member }) => member.name))
    const doubts: Rumour[] = []
    for (const name of this.suspicions.keys()) {
      const rumour = this.others.get(name)!
      bytesLeft -= rumourLength(rumour)
      if (bytesLeft < 0) break
      if (!names.has(name)) doubts.push(rumour)
    }
    return doubts
  }

  everything(withSelf: boolean): Rumour[] {
    return [...(withSelf ? [{ member: this.own, suspectedBy: [] }] : []), ...this.others.values()]
  }

  setSelf(member: Member): void {
    this.own = member
    this.tell({ member, suspectedBy: [] })
    this.changes.push(member)
  }

  /** What this node has said of itself last is told once more from the beginning. */
  retell(): void {
    this.tell({ member: this.own, suspectedBy: [] })
  }

  hear({ member, suspectedBy }: Rumour, nowMs: number): void {
    const known = this.others.get(member.name)?.member
    if (!known) {
      if (isHere(member) && this.others.size + 1 < membersMax) this.put({ member, suspectedBy }, nowMs)
      return
    }
    const heard: Member = member.status === 'dead' && isHere(known) ? { ...member, status: 'suspect' } : member
    if (believe(known, heard) !== known) this.put({ member: heard, suspectedBy }, nowMs)
    else if (heard.status === 'suspect' && heard.incarnation === known.incarnation)
      this.confirm(known.name, heard.life, suspectedBy)
  }

  /** This node has found that life of a member out of reach. */
  suspect(name: string, life: string, nowMs: number): void {
    const known = this.others.get(name)?.member
    if (known?.life !== life || !isHere(known)) return
    const suspectedBy = [this.own.name]
    if (known.status === 'suspect') this.confirm(name, life, suspectedBy)
    else this.put({ member: { ...known, status: 'suspect' }, suspectedBy }, nowMs)
  }

  /** Declares dead whose time has passed, and forgets who has been gone for long. */
  expire(nowMs: number): void {
    for (const [name, suspicion] of this.suspicions) {
      if (this.suspicionDueMs(name, suspicion) > nowMs) continue
      const { member, suspectedBy } = this.others.get(name)!
      this.put({ member: { ...member, status: 'dead' }, suspectedBy }, nowMs)
    }
    for (const [name, sinceMs] of this.goneSinceMs) {
      if (sinceMs + this.options.forgetMs > nowMs) break
      this.goneSinceMs.delete(name)
      this.others.delete(name)
      this.rumours.drop(name)
    }
  }

  get dueMs(): number {
    let dueMs = Number.POSITIVE_INFINITY
    for (const [name, suspicion] of this.suspicions) dueMs = Math.min(dueMs, this.suspicionDueMs(name, suspicion))
    for (const sinceMs of this.goneSinceMs.values()) return Math.min(dueMs, sinceMs + this.options.forgetMs)
    return dueMs
  }

  /** This node has stood still for so long, and could not hear who lives. */
  postpone(lateMs: number): void {
    for (const suspicion of this.suspicions.values()) suspicion.sinceMs += lateMs
  }

  /** What has changed since this was asked last, in order. */
  takeChanges(): Member[] {
    const { changes } = this
    if (changes.length > 0) this.changes = []
    return changes
  }

  private put(rumour: Rumour, nowMs: number): void {
    const { name, status } = rumour.member
    this.others.set(name, rumour)
    if (status === 'suspect') this.suspicions.set(name, { sinceMs: nowMs, members: this.size })
    else this.suspicions.delete(name)
    if (isHere(rumour.member)) this.goneSinceMs.delete(name)
    else if (!this.goneSinceMs.has(name)) this.goneSinceMs.set(name, nowMs)
    this.tell(rumour)
    this.changes.push(rumour.member)
  }

  private confirm(name: string, life: string, suspectedBy: readonly string[]): void {
    const known = this.others.get(name)!
    const all = [...new Set([...known.suspectedBy, ...suspectedBy])].slice(0, this.options.confirmations + 1)
    if (known.member.life !== life || all.length === known.suspectedBy.length) return
    const rumour = { member: known.member, suspectedBy: all }
    this.others.set(name, rumour)
    this.tell(rumour)
  }

  private suspicionDueMs(name: string, { sinceMs, members }: Suspicion): number {
    const confirmed = Math.max(0, this.others.get(name)!.suspectedBy.length - 1)
    return sinceMs + suspicionMs(this.options, members, confirmed)
  }

  private tell(rumour: Rumour): void {
    this.rumours.put(rumour, rumourLength(rumour))
  }
}
