// Appends the changes of this node's turns to the logs of the shards that it owns.
//
// Appends of different shards are in flight together. A shard has one at a time, because each record is numbered and
// has the hash of the one before. Parts that do not fit into one append go in several, one after the other, and the
// host gets one outcome for all. An append with an unknown outcome is repeated byte for byte. If it has happened
// already, the engine reports that; after another takeover it cannot happen any more. So nothing is guessed, and no
// record exists twice.
//
// A takeover of our own that came late (its answer was lost) is ours: the remaining pieces are appended in its name. A
// takeover of another node ends this node's right to append to that shard. An append is all or nothing, so one of its
// records shows whether it happened before the takeover. If it did not, the parts of the lost shards never will, and
// the others are appended again without them (`Deposed`).
//
// Where several engines keep the logs, an append has shards of one engine. The parts of one call then go one after the
// other, first those of the engine that keeps the first part. An engine may be away while the others work. After
// `forsakeMs` without an answer this node gives up its shards there (`Holding.forsake`). Otherwise other shards would
// stop as well: some of their changes wait until no append is in flight. The append may have happened or not, so its
// clients get an error, and the next takeover ends it. With one engine nothing else could go on, and an append waits.
//
// An engine that has lost something (log-check.ts) lacks the takeover, or the record before an append. Then nothing is
// appended, and the changes wait until the engine has everything again.

import assert from 'node:assert/strict'
import { logIndexOf, logOf } from '../logs/divided-log.js'
import type { Append, ShardLog, Takeover, Unknown } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { encodeRecord, type Fragment, positionOf, recordOverheadBytes } from './log-record.js'
import { nameOf, noOwner } from './owner.js'
import type { Replica } from './replica.js'
import type { ReplicationOptions } from './replication-options.js'
import { DeposedError, type HostReplication, type LogPosition, type Loss, type ShardPayload } from './shard-host.js'

/** A shard as the node that appends to it sees it. */
export interface OwnedShard {
  readonly replica: Replica
  /** The epoch of the takeover in whose name this node appends. */
  epoch: number
  /**
   * Whether this node owns it, as far as is known here. A shard that another node has taken over is lost, whatever
   * happens later.
   */
  readonly mayAppend: boolean
  /** Whether this node has given it up because its engine was silent, and has not taken it over since. */
  readonly isForsaken: boolean
  /** The latest takeover that is known. */
  readonly latest: Takeover | undefined
  /** When this node was last certain to own it, on its clock. */
  readonly certainMs: number
}

export interface AppenderParts {
  /** The logs; `logIndexOf` tells which of them keeps a shard. */
  readonly logs: readonly ShardLog[]
  readonly clock: Pick<ClusterClock, 'monoMs' | 'after'>
  readonly options: Pick<ReplicationOptions, 'retryMs' | 'pageBytesMax' | 'forsakeMs'>
  /** The name and life of this node, as in takeovers. */
  readonly self: string
  readonly holding: (shard: number) => OwnedShard
  /** The engine has reported a takeover. */
  readonly onTakeover: (shard: number, takeover: Takeover) => void
  /** One of several logs has not answered for so long that this node gives up its shards there. */
  readonly onForsaken: (log: number) => void
  /** Whether the engine has everything, as far as is known. */
  readonly mayAppend: () => boolean
  /** The engine lacks something that is known here. */
  readonly onLost: () => void
}

/** A piece of a payload that one record can hold. */
interface Piece {
  readonly shard: number
  readonly payload: Buffer
  readonly fragment: Fragment
}

/** A piece in flight. */
interface Sent {
  readonly piece: Piece
  readonly holding: OwnedShard
  readonly append: Append
  readonly position: LogPosition
}

type OnAppended = (outcome: ReadonlyMap<number, LogPosition> | Error) => void

export class Appender implements HostReplication {
  private readonly parts: AppenderParts
  private readonly inFlight = new Set<Appending>()
  private readonly shards = new Set<number>()
  private isClosed = false

  constructor(parts: AppenderParts) {
    this.parts = parts
  }

  append(payloads: readonly ShardPayload[], onDone: OnAppended): void {
    if (this.isClosed) return
    const { shards, inFlight } = this
    assert(payloads.length > 0, 'an append is empty')
    assert(!payloads.some(({ shard }) => shards.has(shard)), 'another append of a shard is in flight')
    for (const { shard } of payloads) shards.add(shard)
    const one = new Appending(this.parts, payloads, outcome => {
      inFlight.delete(one)
      for (const { shard } of payloads) shards.delete(shard)
      onDone(outcome)
    })
    inFlight.add(one)
    one.send()
  }

  /** How long an append in flight has waited for the engines: the longest time; 0: there is none. */
  get stalledMs(): number {
    return Math.max(...this.parts.logs.map((_, log) => this.stalledMsOf(log)))
  }

  /** The same for the appends to one log. */
  stalledMsOf(log: number): number {
    const nowMs = this.parts.clock.monoMs()
    let longest = 0
    for (const one of this.inFlight) if (one.log === log) longest = Math.max(longest, nowMs - one.movedMs)
    return longest
  }

  /** The reason of a log's engine for a wait; undefined: it has given none, or there is no append. */
  troubleOf(log: number): Unknown | undefined {
    for (const { log: waitsFor, unknown } of this.inFlight) if (waitsFor === log && unknown) return unknown
    return undefined
  }

  /** Sends nothing more, and calls nothing back. */
  close(): void {
    this.isClosed = true
    for (const one of this.inFlight) one.close()
    this.inFlight.clear()
  }
}

/** One call of the host, until all its parts are appended or lost. */
class Appending {
  /** When the engine last accepted some of the parts, or when the host passed them. */
  movedMs: number
  unknown: Unknown | undefined
  private readonly parts: AppenderParts
  private readonly onDone: OnAppended
  /** The pieces of the parts that are not yet appended. */
  private pieces: Piece[]
  private readonly positions = new Map<number, LogPosition>()
  /** The shards whose parts will never be durable. */
  private readonly losses: Loss[] = []
  private isClosed = false

  constructor(parts: AppenderParts, payloads: readonly ShardPayload[], onDone: OnAppended) {
    this.parts = parts
    this.onDone = onDone
    this.movedMs = parts.clock.monoMs()
    const payloadMax = Math.min(...parts.logs.map(log => log.appendBytesMax)) - recordOverheadBytes
    this.pieces = payloads.flatMap(({ shard, payload }) => piecesOf(shard, payload, payloadMax))
  }

  close(): void {
    this.isClosed = true
  }

  /** The index of the log that it waits for, or waited for last. */
  get log(): number {
    const [next] = this.pieces
    return next ? logIndexOf(next.shard, this.parts.logs.length) : 0
  }

  send(): void {
    if (this.isClosed) return
    for (const { shard } of this.pieces) if (!this.parts.holding(shard).mayAppend) this.lose(shard)
    const { pieces, positions, losses } = this
    if (pieces.length > 0) return this.make(this.load())
    this.end(losses.length === 0 ? positions : new DeposedError(losses, positions))
  }

  /**
   * Nothing more of a shard is appended. Its pieces that are in the log already belong to a step that never becomes
   * whole.
   */
  private lose(shard: number): void {
    const { clock, holding } = this.parts
    this.pieces = this.pieces.filter(piece => piece.shard !== shard)
    this.positions.delete(shard)
    this.losses.push(lossOf(holding(shard), clock.monoMs()))
  }

  private make(sent: readonly Sent[]): void {
    if (!this.parts.mayAppend()) return this.later(() => this.make(sent))
    const appends = sent.map(({ append }) => append)
    this.logFor(sent).append(appends, outcome => {
      if (this.isClosed) return
      this.unknown = outcome.kind === 'unknown' ? outcome : undefined
      if (outcome.kind === 'appended') this.onAppended(sent)
      else if (outcome.kind === 'superseded') this.findOut(sent)
      else if (outcome.kind === 'short') this.whenFound(sent)
      else this.retry(() => this.make(sent))
    })
  }

  private logFor([first]: readonly Sent[]): ShardLog {
    return logOf(this.parts.logs, first!.append.shard)
  }

  /** Whether its engine has been silent for long, and others could go on. */
  private get isHopeless(): boolean {
    const { clock, options, logs } = this.parts
    return logs.length > 1 && clock.monoMs() - this.movedMs >= options.forsakeMs
  }

  private retry(run: () => void): void {
    if (this.isHopeless) this.forsake()
    else this.later(run)
  }

  /** Gives up the parts for this engine, whether they have happened or not. The others go on. */
  private forsake(): void {
    this.unknown = undefined
    this.parts.onForsaken(this.log)
    this.movedMs = this.parts.clock.monoMs()
    this.send()
  }

  /** Nothing has happened: tries again, until the engine has the lost records again. */
  private whenFound(sent: readonly Sent[]): void {
    this.parts.onLost()
    this.later(() => this.make(sent))
  }

  /** As much as fits into one append: for each shard of one log the first piece that is left. */
  private load(): Sent[] {
    const { parts, log } = this
    const { appendsMax, appendBytesMax } = parts.logs[log]!
    const sent: Sent[] = []
    const shards = new Set<number>()
    let bytes = 0
    for (const piece of this.pieces) {
      if (shards.has(piece.shard) || logIndexOf(piece.shard, parts.logs.length) !== log) continue
      const size = piece.payload.length + recordOverheadBytes
      if (sent.length >= appendsMax || bytes + size > appendBytesMax) break
      bytes += size
      shards.add(piece.shard)
      sent.push(sending(piece, this.parts.holding(piece.shard)))
    }
    return sent
  }

  private onAppended(sent: readonly Sent[]): void {
    this.unknown = undefined
    this.movedMs = this.parts.clock.monoMs()
    const pieces = new Set(sent.map(({ piece }) => piece))
    this.pieces = this.pieces.filter(piece => !pieces.has(piece))
    for (const { holding, append, position } of sent) {
      holding.replica.advance(position)
      this.positions.set(append.shard, position)
    }
    this.send()
  }

  /** There are later takeovers, so the append has happened before them or never will. */
  private findOut(sent: readonly Sent[]): void {
    const { self, onTakeover } = this.parts
    this.logFor(sent).takeovers(outcome => {
      if (this.isClosed) return
      if (outcome.kind === 'unknown') return this.retry(() => this.findOut(sent))
      // Epochs only grow, unless the engine has lost takeovers.
      const isLost = sent.some(({ append }) => append.epoch > (outcome.takeovers.get(append.shard)?.epoch ?? 0))
      if (isLost) return this.whenFound(sent)
      for (const { append, holding } of sent) {
        const takeover = outcome.takeovers.get(append.shard)!
        onTakeover(append.shard, takeover)
        if (takeover.owner === self && holding.mayAppend) holding.epoch = takeover.epoch
      }
      this.look(sent)
    })
  }

  /**
   * An append has happened as a whole or not at all, so one of its shards shows which; best one to which no other node
   * appends.
   */
  private look(sent: readonly Sent[]): void {
    const { options } = this.parts
    const [first] = sent as [Sent]
    const { append, position, holding } = sent.find(({ holding }) => holding.mayAppend) ?? first
    this.logFor(sent).read(append.shard, position.sequence - 1, options.pageBytesMax, outcome => {
      if (this.isClosed) return
      if (outcome.kind === 'unknown') return this.retry(() => this.look(sent))
      const [there] = outcome.records
      if (there?.bytes.equals(append.bytes)) return this.onAppended(sent)
      if (!there || !holding.mayAppend) return this.send()
      this.end(new Error(`shard ${append.shard} has another record ${position.sequence} than the one appended here`))
    })
  }

  private later(run: () => void): void {
    const { clock, options } = this.parts
    clock.after(options.retryMs, () => {
      if (!this.isClosed) run()
    })
  }

  private end(outcome: ReadonlyMap<number, LogPosition> | Error): void {
    this.pieces = []
    this.onDone(outcome)
  }
}

/** The known facts about a shard that another node has taken over, or that was given up. */
export function lossOf({ replica: { shard }, latest, certainMs, isForsaken }: OwnedShard, nowMs: number): Loss {
  const { owner, epoch } = latest ?? { owner: noOwner, epoch: 0 }
  return {
    shard,
    node: owner === noOwner || isForsaken ? undefined : nameOf(owner),
    epoch,
    certainMs: Number.isFinite(certainMs) ? nowMs - certainMs : undefined,
    ...(isForsaken && { isForsaken }),
  }
}

function sending(piece: Piece, holding: OwnedShard): Sent {
  const { epoch, replica } = holding
  const bytes = encodeRecord(piece.shard, epoch, replica.end, piece.payload, piece.fragment)
  const sequence = replica.end.sequence + 1
  return {
    piece,
    holding,
    append: { shard: piece.shard, epoch, sequence, bytes },
    position: positionOf(bytes, { epoch, sequence }),
  }
}

function piecesOf(shard: number, payload: Buffer, payloadMax: number): Piece[] {
  const pieces: Piece[] = []
  for (let at = 0; at === 0 || at < payload.length; at += payloadMax) {
    const end = at + payloadMax
    pieces.push({
      shard,
      payload: payload.subarray(at, end),
      fragment: { continues: end < payload.length, continuesPrevious: at > 0 },
    })
  }
  return pieces
}
