// The changes of an owner's shards for the readers of streams (docs/interface/live.md).
//
// In the turn that makes a change, the tenant's matchers find the filters that it concerns. When the change is durable,
// it enters the ring together with them, before any client gets its reply. Holders poll: a poll gets the changes behind
// its position that the holder's filters found, or waits for one.
//
//   turn -> matched -> (commit is durable) -> ring -> polls of holders -> readers
//
// A holder learns that a filter is known when everything from before is durable. Changes that were made before the
// first filter of a tenant do not enter the ring, and a snapshot that is read then has them. And behind a gap nothing
// may come that is older (broker/streams/reading.ts).
//
// A filter is soft state with a lease: a holder that does not poll loses its filters here, and registers them again.
//
// A tenant costs something only while it has filters, and for a while afterwards, so that its readers may come back.

import assert from 'node:assert/strict'
import { EventViews, eventAsSeen, isUnseen, matchesAsSeen } from '../../domain/access/watching.js'
import { eventWorkMax } from '../../domain/limits.js'
import { EventWork } from '../../domain/queries/pattern.js'
import { stampMs } from '../../domain/stamp.js'
import {
  type ChangeFilter,
  compileFilter,
  eventBefore,
  type FilterSource,
  filterBefore,
  leaves,
} from '../../domain/streams/change-filter.js'
import type { GapReason } from '../../domain/streams/event-text.js'
import { type Event, eventOf } from '../../domain/subscriptions/event.js'
import { Matcher } from '../../domain/subscriptions/matcher.js'
import { PatternAccount } from '../../domain/subscriptions/pattern-account.js'
import { matches, unmetExpression } from '../../domain/subscriptions/triggering.js'
import { decodeEntity } from '../../encoded-entity.js'
import {
  pollBytesMax,
  pollChangesMax,
  type SentChange,
  type StreamPoll,
  type StreamReplay,
  type StreamReply,
  type StreamRequest,
} from '../../messages/streams.js'
import type { Clock } from '../../ports.js'
import type { GroupCommit } from '../commit/commit.js'
import { hasLost } from '../commit/deposed.js'
import type { Done } from '../notify/triggers.js'
import { ChangeRing, type RingEntry, type RingLimits } from './change-ring.js'
import { Holder, type OwnedFilter } from './holder-filters.js'

/** A holder that has not polled for this time has gone. */
const leaseMs = 60_000
/** How often leases, waiting polls and the age of the ring are checked. */
const lookMs = 250
/**
 * The time between two rounds of answers: readers of changes that follow one another get those of this time together.
 * One reader of 1,000 changes a second costs a third less processor time so.
 */
const gatherMs = 10
/** How long the ring keeps the changes of a tenant after its last filter has gone. */
const lingerMs = 600_000
/** Filters of all holders together: some 3 KB each. */
export const filtersMax = 200_000
/** Changes that one step of a replay decodes and matches. */
const replayedMax = 256

interface TenantStreams {
  /** Grows with each new filter. */
  generation: number
  readonly after: Matcher<OwnedFilter>
  /** Filters whose readers want to know that an entity does not match any more. */
  readonly before: Matcher<OwnedFilter>
  /** The possible cost of an event of the tenant in patterns of filters. */
  readonly patterns: PatternAccount
  filters: number
  /** When its last filter has gone: the end of its changes in the ring. */
  untilMs: number
}

export interface ChangeStreamParts {
  readonly commit: Pick<GroupCommit, 'afterCommit' | 'afterAll'>
  readonly clock: Clock
  readonly limits: RingLimits
  /** Unique for each process. */
  readonly ring: string
}

/** Numbers for metrics. */
export interface StreamNumbers {
  readonly filters: number
  readonly holders: number
  readonly ringBytes: number
  readonly ringAgeMs: number
}

export class ChangeStreams {
  private readonly parts: ChangeStreamParts
  private readonly ring: ChangeRing
  private readonly tenants = new Map<string, TenantStreams>()
  private readonly holders = new Map<string, Holder>()
  private readonly work = new EventWork()
  private readonly found: OwnedFilter[] = []
  private filterCount = 0
  private isLooking = false
  private isAnswering = false
  /** When a holder got changes, most lately. */
  private answeredMs = Number.NEGATIVE_INFINITY

  constructor(parts: ChangeStreamParts) {
    this.parts = parts
    this.ring = new ChangeRing(parts.clock, parts.limits)
  }

  get numbers(): StreamNumbers {
    const { filterCount: filters, holders, ring } = this
    return { filters, holders: holders.size, ringBytes: ring.bytes, ringAgeMs: ring.ageMs }
  }

  // [hot] Once per update.
  /** Whether changes of a tenant are kept. */
  concerns(tenant: string): boolean {
    return this.tenants.has(tenant)
  }

  // [hot] Once per update of a tenant with streams.
  /** Takes the change of a turn, which commit number `commit` makes durable. Call it in the tick of the turn. */
  onChange(done: Done, commit: number): void {
    const { change, place, encoded, encodedBefore, origin, stamp } = done
    const tenant = this.tenants.get(place.tenant)
    assert(tenant)
    const event = eventOf(change, place)
    const { generation } = tenant
    const concerned = this.concernedBy(tenant, event)
    const { shard, path } = place
    this.parts.commit.afterCommit(commit, failure => {
      if (failure && hasLost(failure, shard)) return
      // A filter that came meanwhile begins before this change.
      const { found, left, isIncomplete } =
        tenant.generation === generation ? concerned : this.concernedBy(tenant, event)
      this.ring.append({
        shard,
        stamp,
        tenant: place.tenant,
        path,
        class: event.class,
        alterations: change.alterations,
        correlator: origin.correlator ?? origin.correlatorRoot,
        encoded,
        encodedBefore,
        found,
        left,
        isIncomplete,
      })
      this.answerSoon()
    })
  }

  private concernedBy(tenant: TenantStreams, event: Event): Pick<RingEntry, 'found' | 'left' | 'isIncomplete'> {
    const { work } = this
    work.begin()
    const views = new EventViews(event, work)
    const found = this.foundBy(tenant.after, event, views)
    const isIncomplete = work.isExceeded
    if (tenant.before.size === 0) return { found, left: none, isIncomplete }
    work.begin()
    const left = this.leftBy(tenant.before, event, found, views)
    return { found, left, isIncomplete: isIncomplete || work.isExceeded }
  }

  private foundBy(matcher: Matcher<OwnedFilter>, event: Event, views: EventViews): readonly OwnedFilter[] {
    if (matcher.size === 0) return none
    const { found, work } = this
    found.length = 0
    matcher.touched(event, found, work)
    if (found.length === 0) return none
    return found.filter(filter => {
      const { grant, condition } = filter
      const seen = views.under(grant)
      if (!seen || (grant && !matchesAsSeen(filter, seen, work))) return false
      return unmetExpression(condition, seen, work) === undefined
    })
  }

  private leftBy(
    matcher: Matcher<OwnedFilter>,
    event: Event,
    now: readonly OwnedFilter[],
    views: EventViews,
  ): readonly OwnedFilter[] {
    if (!event.before) return none
    const isFound = new Set(now.map(({ id }) => id))
    const earlier = eventBefore(event, event.before)
    return this.foundBy(matcher, earlier, new EventViews(earlier, this.work)).filter(({ id, holder, number }) => {
      const filter = holder.filters.get(number)
      const seen = filter && views.under(filter.grant)
      if (!seen || isFound.has(id) || (filter.grant && isUnseen(seen))) return false
      return leaves(filter, seen, this.work)
    })
  }

  onAsk({ step }: StreamRequest, onReply: (reply: StreamReply) => void): void {
    if (step.what === 'poll') this.onPoll(step, onReply)
    else onReply(this.replay(step))
  }

  private onPoll(step: StreamPoll, onReply: (reply: StreamReply) => void): void {
    const known = this.holderOf(step.holder)
    const earlier = known.poll
    known.poll = undefined
    earlier?.onReply({ what: 'superseded' })
    const holder = step.fromRevision === 0 ? this.anew(known) : known
    if (step.fromRevision > holder.revision || step.revision < holder.revision) return onReply({ what: 'unknown' })
    // A holder that did not wait for the answer to its last poll sends the changes of that again.
    for (const number of step.remove) this.remove(holder, number)
    for (const { number, source } of step.add) this.add(holder, number, source)
    const isChanged = step.revision !== holder.revision || step.fromRevision === 0
    holder.revision = step.revision
    const { clock } = this.parts
    holder.leaseUntilMs = clock.monoMs() + leaseMs
    const isOther = step.after?.ring !== this.parts.ring
    // A holder that begins has nothing to miss.
    const seen = isOther ? this.ring.position : step.after.position
    holder.poll = { step, onReply, untilMs: clock.monoMs() + step.waitMs, seen }
    this.lookLater()
    if (isChanged) this.settle(holder, step.revision)
    if (isOther) this.answer(holder, true)
    else this.answerSoon()
  }

  /** Answers a holder when everything staged so far is durable. Meanwhile it gets its changes as ever. */
  private settle(holder: Holder, revision: number): void {
    this.parts.commit.afterAll(() => {
      holder.durable = Math.max(holder.durable, revision)
      this.answer(holder, false)
    })
  }

  /** The holder without anything that it had. */
  private anew(holder: Holder): Holder {
    this.forget(holder)
    const { name } = holder
    const begun = new Holder(name)
    this.holders.set(name, begun)
    return begun
  }

  private holderOf(name: string): Holder {
    let holder = this.holders.get(name)
    if (!holder) {
      holder = new Holder(name)
      this.holders.set(name, holder)
    }
    return holder
  }

  /** A text of a filter that this build refuses finds nothing: the holder had accepted it. */
  private add(holder: Holder, number: number, source: FilterSource): void {
    const compiled = compileFilter(`${holder.name}/${number}`, source)
    if (!compiled.ok || holder.filters.has(number)) return
    const filter: OwnedFilter = { ...compiled.value, holder, number }
    const tenant = this.tenantOf(filter.tenant)
    if (this.filterCount >= filtersMax) return void holder.refused.push({ number, steps: undefined })
    const { before, after } = tenant.patterns.workWith(filter)
    if (after > eventWorkMax && after > before) return void holder.refused.push({ number, steps: after })
    tenant.patterns.add(filter)
    holder.filters.set(number, filter)
    tenant.after.add(filter)
    tenant.after.prepare(filter.id)
    if (filter.leaves) tenant.before.add({ ...filterBefore(filter), holder, number })
    tenant.filters++
    tenant.generation++
    this.filterCount++
  }

  private tenantOf(name: string): TenantStreams {
    let tenant = this.tenants.get(name)
    if (!tenant) {
      const [after, before] = [new Matcher<OwnedFilter>(), new Matcher<OwnedFilter>()]
      const patterns = new PatternAccount()
      tenant = { generation: 0, after, before, patterns, filters: 0, untilMs: this.lingerEnd() }
      this.tenants.set(name, tenant)
      this.ring.cover(name)
    }
    return tenant
  }

  private remove(holder: Holder, number: number): void {
    const filter = holder.filters.get(number)
    const tenant = filter && this.tenants.get(filter.tenant)
    if (!tenant) return
    holder.filters.delete(number)
    tenant.after.remove(filter.id)
    tenant.before.remove(filter.id)
    tenant.patterns.remove(filter.id)
    tenant.filters--
    this.filterCount--
    if (tenant.filters === 0) tenant.untilMs = this.lingerEnd()
  }

  private lingerEnd(): number {
    return this.parts.clock.monoMs() + lingerMs
  }

  private forget(holder: Holder): void {
    for (const number of [...holder.filters.keys()]) this.remove(holder, number)
  }

  /** Many changes enter the ring in one tick: polls are answered at its end. If some were just now, they wait for more. */
  private answerSoon(): void {
    if (this.isAnswering) return
    this.isAnswering = true
    const { clock } = this.parts
    const waitMs = this.answeredMs + gatherMs - clock.monoMs()
    const answer = (): void => {
      this.isAnswering = false
      for (const holder of this.holders.values()) this.answer(holder, false)
    }
    if (waitMs > 0) clock.after(waitMs, answer)
    else clock.endOfTick(answer)
  }

  /** Answers a holder's poll, if there are changes for it, or anyway. */
  private answer(holder: Holder, anyway: boolean): void {
    const { poll } = holder
    if (!poll) return
    const { ring, parts } = this
    const { after } = poll.step
    const lost = (after !== undefined && after.ring !== parts.ring) || poll.seen < ring.lastGone
    const changes: SentChange[] = []
    let isIncomplete = false
    let bytes = 0
    let position = Math.max(poll.seen, ring.lastGone)
    for (
      const end = Math.min(ring.position, position + pollChangesMax);
      position < end && bytes < pollBytesMax;
      position++
    ) {
      const entry = ring.at(position + 1)!
      isIncomplete ||= entry.isIncomplete
      const change = changeFor(entry, holder)
      if (!change) continue
      changes.push(change)
      bytes += change.encoded.length
    }
    poll.seen = position
    const isAll = position === ring.position
    const isSettled = isAll && holder.settled < holder.durable
    if (isSettled) holder.settled = holder.durable
    const isLost = lost || isIncomplete
    if (!anyway && !isSettled && !isLost && changes.length === 0 && isAll) return
    holder.poll = undefined
    if (changes.length > 0) this.answeredMs = parts.clock.monoMs()
    const { refused } = holder
    holder.refused = []
    const tick = isAll ? ring.tick() : ring.at(position)!.tick
    poll.onReply({
      what: 'changes',
      at: { ring: parts.ring, position },
      tick,
      lost: isLost,
      settled: holder.settled,
      refused,
      changes,
    })
  }

  private replay({ source, ring: asked, sinceTick, after, upTo }: StreamReplay): StreamReply {
    const { ring } = this
    const reason = asked === this.parts.ring ? ring.missing(source.tenant, sinceTick) : 'begun'
    if (reason) {
      const { ageMsMax } = this.parts.limits
      const isOld = reason === 'evicted' || this.parts.clock.wallMs() - stampMs(sinceTick) > ageMsMax
      return gap(isOld ? 'too old' : 'restarted', sinceTick)
    }
    const compiled = compileFilter('', source)
    if (!compiled.ok) return gap('owner lost', sinceTick)
    const filter = compiled.value
    const changes: SentChange[] = []
    let position = Math.max(after, ring.lastGone)
    let decoded = 0
    let bytes = 0
    for (; position < upTo && decoded < replayedMax && bytes < pollBytesMax; position++) {
      const entry = ring.at(position + 1)
      if (!entry || entry.tick <= sinceTick || entry.tenant !== source.tenant) continue
      decoded++
      const change = replayedFor(entry, filter)
      if (!change) continue
      changes.push(change)
      bytes += change.encoded.length
    }
    return { what: 'replayed', position, isLast: position >= upTo, changes }
  }

  private lookLater(): void {
    if (this.isLooking) return
    this.isLooking = true
    this.parts.clock.after(lookMs, () => {
      this.isLooking = false
      this.look()
      if (this.tenants.size > 0 || this.holders.size > 0) this.lookLater()
    })
  }

  /** Ends leases, polls that have waited long enough, and the changes of tenants whose readers have gone. */
  private look(): void {
    const nowMs = this.parts.clock.monoMs()
    for (const holder of this.holders.values()) {
      if (holder.poll && nowMs >= holder.poll.untilMs) this.answer(holder, true)
      if (nowMs < holder.leaseUntilMs) continue
      this.forget(holder)
      this.holders.delete(holder.name)
    }
    for (const [name, { filters, untilMs }] of this.tenants) {
      if (filters > 0 || nowMs < untilMs) continue
      this.tenants.delete(name)
      this.ring.uncover(name)
    }
    this.ring.sweep()
  }
}

const none: readonly never[] = []

const gap = (reason: GapReason, sinceTick: number): StreamReply => ({
  what: 'gap',
  reason,
  sinceMs: stampMs(sinceTick),
})

/** The change as a holder gets it; undefined: none of its filters found it. */
function changeFor(entry: RingEntry, holder: Holder): SentChange | undefined {
  const found = numbersOf(entry.found, holder)
  const left = numbersOf(entry.left, holder)
  return found.length + left.length === 0 ? undefined : sent(entry, found, left)
}

/** A filter that has been removed since is not among the holder's, and is left out. */
const numbersOf = (filters: readonly OwnedFilter[], holder: Holder): readonly number[] =>
  filters.flatMap(one => (one.holder === holder && holder.filters.has(one.number) ? one.number : []))

/** The same for a filter that did not exist in the turn of the change. It gets number 0. */
function replayedFor(entry: RingEntry, filter: ChangeFilter): SentChange | undefined {
  const before = entry.encodedBefore && decodeEntity(entry.encodedBefore)
  const after = entry.class === 'delete' ? undefined : decodeEntity(entry.encoded)
  const whole = eventOf({ before, after, alterations: entry.alterations }, entry)
  const event = filter.grant ? eventAsSeen(filter.grant, whole) : whole
  if (!event) return undefined
  const isFound = matches(filter, event) && unmetExpression(filter.condition, event) === undefined
  if (isFound) return sent(entry, [0], none)
  if (!filter.leaves || !event.before || (filter.grant && isUnseen(event))) return undefined
  const earlier = eventBefore(event, event.before)
  const filterOfBefore = filterBefore(filter)
  const matched = matches(filterOfBefore, earlier) && unmetExpression(filterOfBefore.condition, earlier) === undefined
  return matched && leaves(filter, event) ? sent(entry, none, [0]) : undefined
}

function sent(entry: RingEntry, found: readonly number[], left: readonly number[]): SentChange {
  const { shard, stamp, tick, tenant, path, class: kind, alterations, correlator, encoded } = entry
  const isOfAttributes = kind === 'create' || kind === 'change'
  const changed = isOfAttributes
    ? alterations.filter(one => one.valueChanged || one.metadataChanged).map(({ name }) => name)
    : none
  const named = alterations.filter(one => one.named).map(({ name }) => name)
  return { shard, stamp, tick, tenant, path, class: kind, changed, named, correlator, found, left, encoded }
}
