// Whether one watch of a live feed has received what the specification promises (docs/interface/live.md#events,
// docs/interface/live.md#snapshots, docs/interface/live.md#resuming).
//
//   versions of an entity   0    1    2    3    4    5        what writers did, from the tenant's model
//   reports to this watch   E    -    E    L    E    E        by the plain rules (reference-watch)
//   received                E         E              ^
//   position                         lo = hi = 2     an event for 5: 3 and 4 are lost
//
// For each entity the position is how far the reader has come. An event must be of a version behind it, and may skip
// only versions that report nothing, unless a `gap` or a `coalesced` has announced that, or `minInterval` allows it.
// Where several versions look alike, the position is a range: `lo` counts for the order, `hi` for losses. After a
// resumption and after a gap the first event may be any earlier one. A snapshot sets the position to a version that
// looks so.
//
// Not here: transports (feed-client), readers that come and go (feed-reader).

import { watchParameters } from '../support/random-feed.js'
import type { JsonObject } from '../support/reference-entities.js'
import {
  changedNames,
  eventEntity,
  isListed,
  isShownAlike,
  listedEntity,
  namesShown,
  type Report,
  reportsOf,
  type Watch,
} from '../support/reference-watch.js'
import type { FeedEvent } from './feed-client.js'
import { FoldedFeed } from './folded-feed.js'
import { describe, type EntityHistory, fineMs, type TenantModel, type Version } from './tenant-model.js'

interface Position {
  lo: number
  hi: number
}

/** What a reader keeps to continue: the cursor, and how far it had come with it. */
export interface Bookmark {
  readonly cursor: string
  readonly receivedMs: number
  /** How often the broker had been disturbed when the session began. */
  readonly disturbances: number
  readonly positions: ReadonlyMap<EntityHistory, Position>
  readonly folded: FoldedFeed
  /** Events that were folded into later ones which have not come yet. */
  readonly foldsLeft: number
}

/** The broker, as far as gaps depend on it. */
export interface GapCauses {
  /** How often it was disturbed: killed, restarted, and the like. */
  readonly disturbances: number
  /** Whether it may forget changes, and readers may be slow, so that a gap may be `too old`. */
  readonly forgets: boolean
  /** How long ago a change may have been made that still comes to a watch that begins. */
  readonly lagMsMax: number
}

interface Expected {
  readonly reports: readonly Report[]
  readonly alteration: string
  readonly changed: ReadonlySet<string>
  readonly entity: JsonObject
}

const alterations = { create: 'entityCreate', change: 'entityChange', update: 'entityUpdate', delete: 'entityDelete' }

/** The broker's clock may differ so much from the test's. */
const clockErrorMs = 20
const cursorLengthMax = 64
const snapshotPartMax = 100
const trailMax = 4_000

export class FeedChecker {
  /** The first fault. */
  problem: string | undefined
  /** Whether a snapshot has to come, or to be completed. */
  isAwaiting = false
  /** The numbers of received events. */
  readonly counts = { events: 0, repeated: 0, skipped: 0, snapshots: 0, gaps: 0, resumed: 0, coalesced: 0 }
  private readonly expectations = new Map<Version, Expected>()
  private positions = new Map<EntityHistory, Position>()
  private folded = new FoldedFeed()
  private bookmark: Bookmark | undefined
  private parts = new Map<EntityHistory, JsonObject>()
  private openingMs = 0
  /** Disturbances when the session began that made the cursor of this one; without a cursor, when this one began. */
  private disturbancesBefore = 0
  private disturbancesAtOpening = 0
  private foldsLeft = 0
  /** Of entities with versions that were left out, how far the reader had come before: a gap has to follow. */
  private readonly late = new Map<EntityHistory, number>()
  /**
   * The same, of entities with an event that an earlier version fits, and perhaps a later one with losses before it.
   */
  private readonly doubtful = new Map<EntityHistory, number>()
  /** Events about each entity in this session, for `minInterval`. */
  private sent = new Map<EntityHistory, number>()
  private readonly trail: { readonly about: EntityHistory | undefined; readonly text: string }[] = []

  constructor(
    readonly name: string,
    readonly watch: Watch,
    readonly model: TenantModel,
    private readonly causes: GapCauses,
  ) {}

  /** A session is about to be requested, from a bookmark or from now on. */
  opening(from: Bookmark | undefined): void {
    this.openingMs = fineMs()
    this.foldsLeft = from?.foldsLeft ?? 0
    this.sent = new Map()
    this.parts = new Map()
    this.late.clear()
    this.doubtful.clear()
    this.isAwaiting = !from && this.watch.snapshot
    this.disturbancesAtOpening = this.causes.disturbances
    this.disturbancesBefore = from?.disturbances ?? this.disturbancesAtOpening
    this.bookmark = from
    this.positions = new Map()
    if (from) {
      for (const [history, { hi }] of from.positions) this.positions.set(history, { lo: -1, hi })
      this.folded = from.folded.copy()
    } else {
      for (const history of this.model.histories.values())
        this.positions.set(history, { lo: this.floorOf(history), hi: -1 })
      this.folded = new FoldedFeed()
    }
    this.note(undefined, from ? `opened from ${from.cursor}` : 'opened')
  }

  /** The session has begun: without a bookmark, changes that were sent to the broker before may be missing. */
  begun(cursor: string | undefined): void {
    if (this.bookmark) this.counts.resumed++
    this.note(undefined, `begun${cursor === undefined ? '' : ` at ${cursor}`}`)
    if (!this.bookmark && !this.watch.snapshot)
      for (const history of this.model.histories.values())
        this.positionOf(history).hi = Math.max(this.positionOf(history).hi, history.versions.length - 1)
    // A snapshot follows, of which nothing has been received.
    if (cursor !== undefined && !this.isAwaiting && !this.bookmark) this.keep(cursor)
  }

  closed(why: string): void {
    // A server that is not there refuses many times.
    if (why.includes('ECONNREFUSED')) this.trail.pop()
    else this.note(undefined, `closed: ${why}`)
  }

  /** Where the reader continues; undefined: it has to begin anew. */
  get place(): Bookmark | undefined {
    return this.bookmark
  }

  take({ kind, cursor, data }: FeedEvent): void {
    if (this.problem) return
    if (cursor !== undefined && cursor.length > cursorLengthMax) this.noteFault(`the cursor ${cursor} is too long`)
    switch (kind) {
      case 'bookmark':
        break
      case 'gap':
        this.takeGap(data, cursor)
        break
      case 'snapshot':
        this.takeSnapshot(data, cursor)
        break
      case 'coalesced':
        this.note(undefined, `coalesced ${data.count}`)
        this.foldsLeft += data.count as number
        this.counts.coalesced += data.count as number
        break
      case 'end':
        this.note(undefined, `end: ${data.reason}`)
        break
      default:
        this.takeChange(kind, data)
    }
    if (cursor === undefined) return
    if (this.isAwaiting) this.noteFault(`the event ${kind} before the end of a snapshot has a cursor`)
    else this.keep(cursor)
  }

  /** The event that has to come next; undefined: none. */
  missing(): string | undefined {
    if (this.isAwaiting) return 'a snapshot is not complete'
    for (const history of this.model.histories.values()) {
      const hi = this.late.get(history) ?? this.positionOf(history).hi
      const lost = this.requiredBetween(history, hi, history.versions.length)[0]
      if (lost) return this.explained(`nothing was received of ${describe(lost)}`, history)
    }
    return undefined
  }

  /** The fault of the entities that the reader has put together from all events, once nothing is missing. */
  difference(): string | undefined {
    const found = this.folded.difference(this.watch, this.model)
    return found && this.explained(found.text, found.history)
  }

  private keep(cursor: string): void {
    const positions = new Map([...this.positions].map(([history, position]) => [history, { ...position }]))
    for (const [history, hi] of this.late) positions.set(history, { lo: hi, hi })
    const disturbances = this.disturbancesAtOpening
    this.bookmark = {
      cursor,
      receivedMs: fineMs(),
      disturbances,
      positions,
      folded: this.folded.copy(),
      foldsLeft: this.foldsLeft,
    }
  }

  // Changes

  private takeChange(kind: string, data: JsonObject): void {
    const entity = (kind === 'entityLeave' ? data : (data.data as readonly JsonObject[])[0]) as JsonObject
    const history = this.model.history({ id: String(entity.id), type: String(entity.type) })
    if (!history) return this.noteFault(`an event of an entity that was never written: ${JSON.stringify(data)}`)
    this.note(history, `${kind} ${data.correlator ?? ''} ${data.time ?? ''}`)
    if (this.isAwaiting) return this.noteFault(`${kind} before the end of a snapshot`, history)
    const position = this.positionOf(history)
    let alike = history.versions.filter(version => this.isOf(version, kind, data, history))
    let ahead = alike.filter(({ at }) => at > position.lo)
    let reachable = ahead.filter(({ at }) => this.maySkip(this.requiredBetween(history, position.hi, at)))
    if (alike.length === 0 && this.mayBeLate) {
      alike = history.versions.filter(version => this.isOf(version, kind, data, history, true))
      ahead = alike.filter(({ at }) => at > position.lo)
    }
    if (reachable.length === 0 && this.mayBeLate) {
      if (!this.late.has(history)) this.late.set(history, Math.max(position.hi, this.doubtful.get(history) ?? -1))
      reachable = ahead
    }
    if (this.mayBeLate && reachable.length < ahead.length && !this.doubtful.has(history))
      this.doubtful.set(history, position.hi)
    const [first] = reachable
    if (!first) return this.noteFault(this.faultOf(alike, ahead, history, kind, data), history)
    this.checkTimes(first, alike.length, data)
    this.checkInterval(history)
    const skipped = this.requiredBetween(history, position.hi, first.at).length
    this.counts.events++
    this.counts.skipped += skipped
    if (first.at <= position.hi) this.counts.repeated++
    if (this.watch.minIntervalMs === 0 && !this.late.has(history)) this.foldsLeft -= skipped
    position.lo = first.at
    // The events behind a repeated one are repeated as well: the reader shows an earlier state until then.
    position.hi = (reachable.at(-1) as Version).at
    if (alike.length === 1) first.reportedTo ??= this.name
    this.folded.take(kind, entity, this.watch.onlyChangedAttrs)
  }

  private faultOf(
    alike: readonly Version[],
    ahead: readonly Version[],
    history: EntityHistory,
    kind: string,
    data: JsonObject,
  ): string {
    if (ahead[0]) {
      const [lost] = this.requiredBetween(history, this.positionOf(history).hi, ahead[0].at)
      return `${kind} of version ${ahead[0].at} came, but nothing of ${describe(lost as Version)}`
    }
    if (alike.length > 0) return `${kind} of version ${alike.map(({ at }) => at)} came out of order`
    // With `onlyChangedAttrs`, an event has to show what the lost one would have shown.
    const later = history.versions.find(version => this.isOf(version, kind, data, history, true))
    const lost = later && this.skippedBefore(later, history)[0]
    if (lost) return `${kind} of version ${later.at} came, but it shows nothing of ${describe(lost)}`
    const same = history.versions.find(({ correlator }) => correlator !== undefined && correlator === data.correlator)
    const { reports, alteration, changed, entity } = same ? this.expected(same) : noExpectation
    const wanted = same
      ? `instead of ${reports.join('|')} ${alteration} of version ${same.at}${same.fate === 'void' ? ', which has not happened' : ''}, changed ${[...changed]}: ${JSON.stringify(entity)} of ${JSON.stringify(listedEntity(this.watch, same.happening.entity))}`
      : 'of a request that was never made'
    return `${kind} ${JSON.stringify(data)}\n  ${wanted}`
  }

  /** `isLoose`: even with `onlyChangedAttrs`, versions before it may have been left out. */
  private isOf(version: Version, kind: string, data: JsonObject, history: EntityHistory, isLoose = false): boolean {
    if (version.fate === 'void' || data.servicePath !== history.path) return false
    if (version.correlator !== undefined && data.correlator !== undefined && data.correlator !== version.correlator)
      return false
    const { reports, alteration, changed, entity } = this.expected(version)
    if (kind === 'entityLeave') return reports.includes('leave')
    if (data.alterationType !== kind || !isReported(reports)) return false
    const shown = (data.data as readonly JsonObject[])[0] as JsonObject
    if (kind !== alteration && (kind === 'entityDelete' || alteration === 'entityDelete')) return false
    if (kind === 'entityDelete') return this.watch.onlyChangedAttrs || isShownAlike(shown, entity)
    const names = data.changed as readonly string[]
    const isSame = kind === alteration && names.length === changed.size && names.every(name => changed.has(name))
    const isWhole = isLoose || !this.watch.onlyChangedAttrs || this.skippedBefore(version, history).length === 0
    if (isSame && isWhole && reports.includes('event') && isShownAlike(shown, entity)) return true
    return this.mayFold && this.isFolded(version, data, history, isLoose)
  }

  /** Whether the reader may receive one event for several changes. */
  private get mayFold(): boolean {
    return this.watch.minIntervalMs > 0 || this.foldsLeft > 0
  }

  /**
   * An event for a version and some before it: it has the kind of any of them, names what has changed in any of them,
   * and shows the last state.
   */
  private isFolded(version: Version, data: JsonObject, history: EntityHistory, isLoose: boolean): boolean {
    const { watch } = this
    const names = data.changed as readonly string[]
    const shown = (data.data as readonly JsonObject[])[0] as JsonObject
    const earlier = history.versions.slice(this.positionOf(history).lo + 1, version.at + 1)
    const reported = earlier.filter(one => isReported(this.expected(one).reports))
    if (!reported.some(one => this.expected(one).alteration === data.alterationType)) return false
    const folded = earlier.filter(one => this.expected(one).reports.some(report => report !== 'nothing'))
    const changed = new Set(folded.flatMap(one => [...this.expected(one).changed]))
    if (!names.every(name => changed.has(name))) return false
    if (![...this.expected(version).changed].every(name => names.includes(name))) return false
    if (!watch.onlyChangedAttrs) return isShownAlike(shown, this.expected(version).entity)
    // No value may be lost: everything that is new to the reader is named, and nothing is that was not. Of versions
    // that were left out there is only the gap that has to follow.
    const newVersions = isLoose ? [version] : [...this.skippedBefore(version, history), version]
    const needed = this.shownOf(version, newVersions)
    const possible = this.shownOf(version, folded)
    const wanted = Object.fromEntries(Object.entries(possible).filter(([name]) => Object.hasOwn(shown, name)))
    return Object.keys(needed).every(name => Object.hasOwn(shown, name)) && isShownAlike(shown, wanted)
  }

  /** The state of a version, with the attributes that some requests have named. */
  private shownOf({ happening }: Version, requests: readonly Version[]): JsonObject {
    const r = new Set(requests.flatMap(one => [...one.happening.r]))
    return eventEntity(this.watch, happening, namesShown(this.watch, { ...happening, r }))
  }

  private skippedBefore({ at }: Version, history: EntityHistory): Version[] {
    return this.requiredBetween(history, this.positionOf(history).hi, at)
  }

  private expected(version: Version): Expected {
    const known = this.expectations.get(version)
    if (known) return known
    const { watch } = this
    const { happening } = version
    const expected: Expected = {
      reports: reportsOf(watch, happening),
      alteration: alterations[happening.class],
      changed: changedNames(happening),
      entity: eventEntity(watch, happening, namesShown(watch, happening)),
    }
    this.expectations.set(version, expected)
    return expected
  }

  /** The versions between two places that have happened for certain, and which the reader must receive. */
  private requiredBetween({ versions }: EntityHistory, from: number, to: number): Version[] {
    const required: Version[] = []
    for (let at = from + 1; at < to; at++) {
      const version = versions[at] as Version
      if (version.fate !== 'done') continue
      if (this.expected(version).reports.every(report => report === 'event' || report === 'leave'))
        required.push(version)
    }
    return required
  }

  /** Whether shards may have moved, so that a gap may come behind changes that are newer than it. */
  private get mayBeLate(): boolean {
    return this.causes.disturbances > this.disturbancesBefore
  }

  /** Whether so many versions may be left out before a later one. */
  private maySkip(skipped: readonly Version[]): boolean {
    if (skipped.length === 0 || this.watch.minIntervalMs > 0) return true
    return skipped.length <= this.foldsLeft
  }

  private checkTimes({ sentMs, doneMs, happening }: Version, alike: number, { time }: JsonObject): void {
    if (time === undefined || alike > 1) return
    const ms = Date.parse(String(time))
    if (ms < sentMs - clockErrorMs || ms > Math.min(doneMs, fineMs()) + clockErrorMs)
      this.noteFault(
        `the time ${time} of an event is not that of the request, which was sent ${iso(sentMs)}: ${happening.class}`,
      )
  }

  /** Even if the first event of an entity was sent at once, and the last one has just been sent. */
  private checkInterval(history: EntityHistory): void {
    const count = (this.sent.get(history) ?? 0) + 1
    this.sent.set(history, count)
    const { minIntervalMs } = this.watch
    if ((count - 1) * minIntervalMs > fineMs() - this.openingMs + clockErrorMs)
      this.noteFault(
        `${count} events within ${(fineMs() - this.openingMs).toFixed(0)} ms, in spite of minInterval`,
        history,
      )
  }

  // Gaps and snapshots

  private takeGap({ reason, since }: JsonObject, cursor: string | undefined): void {
    this.note(undefined, `gap: ${reason}, since ${since}`)
    this.counts.gaps++
    const isFair = reason === 'too old' ? this.causes.forgets : this.mayBeLate
    if (!isFair) this.noteFault(`a gap without a cause: ${reason}`)
    const sinceMs = Date.parse(String(since))
    for (const [history, hi] of this.late) this.positionOf(history).hi = hi
    for (const [history, hi] of this.doubtful) this.positionOf(history).hi = Math.max(this.positionOf(history).hi, hi)
    this.late.clear()
    this.doubtful.clear()
    for (const history of this.model.histories.values()) {
      const position = this.positionOf(history)
      const all = this.requiredBetween(history, position.hi, history.versions.length)
      const lost = this.isAwaiting ? undefined : all.find(({ doneMs }) => doneMs < sinceMs - clockErrorMs)
      if (lost)
        this.noteFault(`a gap since ${since} does not cover ${describe(lost)}, done ${iso(lost.doneMs)}`, history)
      if (this.watch.snapshot) continue
      position.hi = Math.max(position.hi, history.versions.length - 1)
      position.lo = -1
    }
    if (!this.watch.snapshot) return
    if (cursor !== undefined) this.noteFault('a gap before a snapshot has a cursor')
    this.isAwaiting = true
    this.parts = new Map()
  }

  private takeSnapshot({ data, end, count }: JsonObject, cursor: string | undefined): void {
    if (!this.isAwaiting) return this.noteFault('a snapshot that was not announced')
    if (end === true) {
      this.note(undefined, `snapshot of ${count}`)
      if (count !== this.parts.size) this.noteFault(`a snapshot of ${this.parts.size} entities, which counts ${count}`)
      if (cursor === undefined) this.noteFault('the end of a snapshot has no cursor')
      return this.endSnapshot()
    }
    const entities = data as readonly JsonObject[]
    if (entities.length > snapshotPartMax) this.noteFault(`${entities.length} entities in a part of a snapshot`)
    for (const entity of entities) {
      const history = this.model.history({ id: String(entity.id), type: String(entity.type) })
      if (!history) return this.noteFault(`a snapshot has an entity that was never written: ${JSON.stringify(entity)}`)
      if (this.parts.has(history)) this.noteFault(`a snapshot has an entity twice: ${JSON.stringify(entity)}`, history)
      this.parts.set(history, entity)
    }
  }

  private endSnapshot(): void {
    this.counts.snapshots++
    this.isAwaiting = false
    for (const history of this.model.histories.values()) {
      const position = this.positionOf(history)
      const from = Math.max(position.lo, doneBefore(history, this.openingMs))
      const entity = this.parts.get(history)
      const at = this.latestShown(history, from, entity)
      if (at === undefined)
        return this.noteFault(`a snapshot shows ${entity ? JSON.stringify(entity) : 'nothing'} of an entity`, history)
      position.lo = this.floorOf(history)
      position.hi = at
      this.folded.put(history, entity)
    }
    this.parts = new Map()
  }

  /** Behind which version the events of a watch begin. */
  private floorOf(history: EntityHistory): number {
    return doneBefore(history, this.openingMs - this.causes.lagMsMax)
  }

  /** The latest version from one on that a list would show so. */
  private latestShown(history: EntityHistory, from: number, shown: JsonObject | undefined): number | undefined {
    for (let at = history.versions.length - 1; at >= from; at--) {
      if (history.versions[at]?.fate === 'void') continue
      const state = history.stateAt(at)
      const listed = state !== undefined && isListed(this.watch, state)
      if (shown ? listed !== false && isShownAlike(shown, listedEntity(this.watch, state!)) : listed !== true) return at
    }
    return undefined
  }

  // Positions and explanations

  private positionOf(history: EntityHistory): Position {
    const known = this.positions.get(history)
    if (known) return known
    const position = { lo: -1, hi: -1 }
    this.positions.set(history, position)
    return position
  }

  private note(about: EntityHistory | undefined, text: string): void {
    this.trail.push({ about, text: `${iso(fineMs())} ${text}` })
    if (this.trail.length > trailMax) this.trail.splice(0, trailMax / 2)
  }

  /** Notes a fault; only the first one counts. */
  noteFault(what: string, history?: EntityHistory): void {
    this.problem ??= this.explained(what, history)
  }

  /** The last events and connections, one a line. */
  get received(): string {
    return [`${this.name} received:`, ...this.trail.slice(-15).map(({ text }) => `  ${text}`)].join('\n')
  }

  private explained(what: string, history?: EntityHistory): string {
    const lines = [
      `${this.name}: ${what}`,
      `watch ${JSON.stringify({ path: this.watch.path, ...watchParameters(this.watch) })}`,
    ]
    if (history) {
      const { lo, hi } = this.positionOf(history)
      lines.push(`position ${lo}..${hi}; the last versions:`)
      for (const version of history.versions.slice(-8))
        lines.push(
          `  ${iso(version.sentMs)}..${iso(version.doneMs)} ${describe(version)}: ${this.expected(version).reports.join('|')}`,
        )
    }
    const received = this.trail.filter(({ about }) => about === undefined || about === history)
    lines.push('received:', ...received.slice(-15).map(({ text }) => `  ${text}`))
    return lines.join('\n')
  }
}

/** Whether a change matches, even if nothing of it is shown by itself. */
const isReported = (reports: readonly Report[]): boolean => reports.includes('event') || reports.includes('hidden')

const noExpectation: Expected = { reports: [], alteration: '', changed: new Set(), entity: {} }

const iso = (ms: number): string => (Number.isFinite(ms) ? new Date(ms).toISOString().slice(11, 23) : 'never')

/** The place of the last version that was known to be durable at a time; -1: none. */
function doneBefore({ versions }: EntityHistory, ms: number): number {
  for (let at = versions.length - 1; at >= 0; at--) if ((versions[at] as Version).doneMs < ms) return at
  return -1
}
