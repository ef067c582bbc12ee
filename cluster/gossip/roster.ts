// One node's knowledge of all members, itself included, and the members that it suspects, with the time.
//
// It believes the better of two reports (member.ts), with one exception: it does not believe a report that a member is
// dead. It then suspects the member, and waits for the end of the suspicion on its own clock. Mostly every node has
// suspected that member long before, so this costs nothing. But when two parts of a cluster meet after a split, each
// has the time to refute its death.
//
// Members that are gone are remembered for a while, so that old news does not bring them back. News of unknown members
// that are gone is ignored. Not here: the choice of probes, and this node's reaction to news of itself (membership.ts).

import { type PingTarget, rumourLength } from './gossip-messages.js'
import { type GossipOptions, membersMax, suspicionMs, transmissionsMax } from './gossip-options.js'
import { believe, isHere, type Member, type Rumour, Rumours } from './member.js'

interface Suspicion {
  sinceMs: number
  /** How many members there were when it began. */
  readonly members: number
}

export class Roster {
  private readonly rumours = new Rumours()
  private readonly others = new Map<string, Rumour>()
  private readonly suspicions = new Map<string, Suspicion>()
  /** Suspect and dead members whose machines have refused the connection for this node's latest probe. */
  private readonly refusing = new Set<string>()
  /** The time since when a member has been gone; the longest gone first. */
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

  /** All known members, this node first, also those that are gone. */
  get members(): Member[] {
    return [this.own, ...[...this.others.values()].map(({ member }) => member)]
  }

  get(name: string): Member | undefined {
    return name === this.own.name ? this.own : this.others.get(name)?.member
  }

  /** The report about a member, this node included, in the form in which it is sent. */
  recall(name: string): Rumour | undefined {
    return name === this.own.name ? { member: this.own, suspectedBy: [] } : this.others.get(name)
  }

  get hasRumours(): boolean {
    return this.rumours.size > 0
  }

  /** Rumours for one message: `urgent` first, and then those that are due, as far as there is room. */
  nextRumours(urgent: readonly Rumour[] = []): Rumour[] {
    let bytesLeft = this.options.rumoursBytesMax
    const first = new Map<string, Rumour>()
    for (const rumour of urgent) {
      const bytes = rumourLength(rumour)
      if (bytes > bytesLeft || first.has(rumour.member.name)) continue
      bytesLeft -= bytes
      first.set(rumour.member.name, rumour)
    }
    return [...first.values(), ...this.rumours.take(bytesLeft, transmissionsMax(this.options, this.size), first)]
  }

  /** The rumour that another node should get about itself before all else, so that it can refute it. */
  rumoursAbout({ name, life }: PingTarget): Rumour[] {
    const known = this.others.get(name)
    return known && (known.member.status !== 'alive' || known.member.life !== life) ? [known] : []
  }

  /**
   * The members that this node suspects, without those in `sent`: a node that knows better reports so in its answer.
   */
  doubts(sent: readonly Rumour[]): Rumour[] {
    let bytesLeft = this.options.rumoursBytesMax
    const names = new Set(sent.map(({ member }) => member.name))
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
    this.enqueue({ member, suspectedBy: [] })
    this.changes.push(member)
  }

  /** Sends this node's own state again as often as a new rumour. */
  resendOwn(): void {
    this.enqueue({ member: this.own, suspectedBy: [] })
  }

  receive({ member, suspectedBy }: Rumour, nowMs: number): void {
    const known = this.others.get(member.name)?.member
    if (!known) {
      if (isHere(member) && this.others.size + 1 < membersMax) this.put({ member, suspectedBy }, nowMs)
      return
    }
    const received: Member = member.status === 'dead' && isHere(known) ? { ...member, status: 'suspect' } : member
    if (believe(known, received) !== known) this.put({ member: received, suspectedBy }, nowMs)
    else if (received.status === 'suspect' && received.incarnation === known.incarnation)
      this.confirm(known.name, received.life, suspectedBy)
  }

  /** This node could not reach that life of a member. `isRefused`: its machine has refused the connection. */
  suspect(name: string, life: string, nowMs: number, isRefused: boolean): void {
    const known = this.others.get(name)?.member
    if (known?.life !== life || !isHere(known)) return
    const suspectedBy = [this.own.name]
    if (known.status === 'suspect') this.confirm(name, life, suspectedBy)
    else this.put({ member: { ...known, status: 'suspect' }, suspectedBy }, nowMs)
    if (isRefused) this.refusing.add(name)
    else this.refusing.delete(name)
  }

  /** Whether the machine of a member that is suspect or dead has refused connections: nobody listens there. */
  isRefusing(name: string): boolean {
    return this.refusing.has(name)
  }

  /** Whether this node is among those that could not reach a member. */
  isSuspectedHere(name: string): boolean {
    return this.others.get(name)?.suspectedBy.includes(this.own.name) ?? false
  }

  /** Declares members dead whose suspicion has ended, and forgets members that have been gone for long. */
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
      this.refusing.delete(name)
      this.rumours.drop(name)
    }
  }

  get dueMs(): number {
    let dueMs = Number.POSITIVE_INFINITY
    for (const [name, suspicion] of this.suspicions) dueMs = Math.min(dueMs, this.suspicionDueMs(name, suspicion))
    for (const sinceMs of this.goneSinceMs.values()) return Math.min(dueMs, sinceMs + this.options.forgetMs)
    return dueMs
  }

  /** This node was stopped for so long, and could not receive refutations. A refused connection needs none. */
  beginAnew(nowMs: number, lateMs: number): void {
    for (const [name, suspicion] of this.suspicions)
      suspicion.sinceMs = this.refusing.has(name) ? suspicion.sinceMs + lateMs : nowMs
  }

  /** The members that have changed since the last call, in order. */
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
    if (status !== 'dead') this.refusing.delete(name)
    if (isHere(rumour.member)) this.goneSinceMs.delete(name)
    else if (!this.goneSinceMs.has(name)) this.goneSinceMs.set(name, nowMs)
    this.enqueue(rumour)
    this.changes.push(rumour.member)
  }

  private confirm(name: string, life: string, suspectedBy: readonly string[]): void {
    const known = this.others.get(name)!
    const all = [...new Set([...known.suspectedBy, ...suspectedBy])].slice(0, this.options.confirmations + 1)
    if (known.member.life !== life || all.length === known.suspectedBy.length) return
    const rumour = { member: known.member, suspectedBy: all }
    this.others.set(name, rumour)
    this.enqueue(rumour)
  }

  private suspicionDueMs(name: string, { sinceMs, members }: Suspicion): number {
    const confirmed = Math.max(0, this.others.get(name)!.suspectedBy.length - 1)
    return sinceMs + suspicionMs(this.options, members, confirmed, this.refusing.has(name))
  }

  private enqueue(rumour: Rumour): void {
    this.rumours.put(rumour, rumourLength(rumour))
  }
}
