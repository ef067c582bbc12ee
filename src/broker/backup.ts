// Makes one backup of all shards from the pages of their owners (shard/backup-source.ts), as fast as the reader takes
// the bytes.
//
// The owner of the register begins first. It accepts one backup at a time, so of two that begin together one continues.
// Then the others begin. Each shard has to be in exactly one part. In a cluster, shards may move at that time. Then the
// backup begins again, until `beginMsMax` is over. Later moves do no harm, since each owner keeps its rows as they
// were. But an owner that owns no shard any more cannot be asked, and then the backup fails.
//
// Pages come from all owners in turn, so no owner abandons the backup while others have more rows. The backup works a
// tenth of the time.
//
// Not here: the form of the file (backup/backup-file.ts), access to it (http/backup.ts).

import { BackupError, type BackupOwner, BackupWriter } from '../backup/backup-file.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import type { Placement } from '../domain/scope.js'
import type { BackupOutcome, BackupReply, BackupStep, ShardReply, Shards } from '../messages/messages.js'
import type { Chance, Clock, Logger } from '../ports.js'

export interface BackupParts {
  readonly shards: Shards
  readonly placement: Placement
  /** The format of rows, as in the data directory. */
  readonly rowFormat: number
  /** The program and its version: `orrery 1.2.3`. */
  readonly by: string
  readonly clock: Pick<Clock, 'monoMs' | 'wallMs' | 'after'>
  readonly chance: Pick<Chance, 'uuid'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
}

/** How long it tries to begin while shards move, and the pause between two tries. */
const beginMsMax = 10_000
const beginPauseMs = 300
/** Units of rest for each unit of work: requests in progress keep their latency. */
const restPerWork = 9
/**
 * The interval at which owners that have sent all their rows are asked again, so that they do not abandon the backup.
 */
const keepAliveMs = 10_000

/** An owner that takes part. */
interface Part {
  readonly owner: number
  readonly begun: Extract<BackupReply, { what: 'begun' }>
  isLast: boolean
  askedMs: number
}

/** Why a backup did not begin, and whether the reason may pass because shards are moving. */
type NotBegun = { readonly refusal: Refusal; readonly mayPass: boolean }

export class BackupOperations {
  constructor(private readonly parts: BackupParts) {}

  /**
   * Begins a backup, and returns the bytes of its file. A caller that stops early must return the generator, so that
   * the owners release their snapshots.
   */
  async begin(): Promise<Result<AsyncGenerator<Uint8Array, void, void>>> {
    const { clock, chance } = this.parts
    const session = chance.uuid()
    const beganMs = clock.wallMs()
    const untilMs = clock.monoMs() + beginMsMax
    for (;;) {
      const begun = await this.beginAll(session)
      if (Array.isArray(begun)) return accepted(this.file(session, beganMs, begun))
      if (!begun.mayPass || clock.monoMs() >= untilMs) return refused(begun.refusal)
      await new Promise<void>(resolve => clock.after(beginPauseMs, resolve))
    }
  }

  private async beginAll(session: string): Promise<Part[] | NotBegun> {
    const { placement, clock } = this.parts
    const owners = this.owners()
    const [first, ...others] = owners
    // The answer of an owner that has begun may have been lost, so all owners get the end.
    const giveUp = async (notBegun: NotBegun): Promise<NotBegun> => {
      const outcome = { succeeded: false, endedMs: clock.wallMs(), durationMs: 0, bytes: 0 }
      await this.endAll(session, owners, outcome)
      return notBegun
    }
    const keeper = await this.beginAt(first!, session)
    if ('refusal' in keeper) return keeper.mayPass ? giveUp(keeper) : keeper
    const parts = [keeper]
    for (const one of await Promise.all(others.map(owner => this.beginAt(owner, session)))) {
      if ('refusal' in one) return giveUp(one)
      parts.push(one)
    }
    const fault = faultIn(parts, placement.shards)
    return fault === undefined ? parts : giveUp({ refusal: refusals.backupIncomplete(fault), mayPass: true })
  }

  private async beginAt(owner: number, session: string): Promise<Part | NotBegun> {
    const reply = await this.ask(owner, { what: 'begin', session })
    if (reply.kind === 'backup' && reply.content.what === 'begun')
      return { owner, begun: reply.content, isLast: false, askedMs: this.parts.clock.monoMs() }
    if (reply.kind === 'backup' && reply.content.what === 'busy')
      return { refusal: refusals.backupUnderWay, mayPass: false }
    return { refusal: refusals.backupIncomplete(reasonOf(reply)), mayPass: reply.kind !== 'failed' }
  }

  /** Each owner once, the owner of the register first. */
  private owners(): readonly number[] {
    const { shards, placement } = this.parts
    const owners = new Set([shards.ownerOf(placement.shards)])
    for (let shard = 0; shard < placement.shards; shard++) owners.add(shards.ownerOf(shard))
    return [...owners]
  }

  /** Asks an owner by any shard that it owns now. */
  private ask(owner: number, step: BackupStep): Promise<ShardReply> {
    const { shards, placement } = this.parts
    for (let shard = placement.shards; shard >= 0; shard--)
      if (shards.ownerOf(shard) === owner)
        return new Promise(resolve => shards.ask(shard, { kind: 'backup', step }, resolve))
    return Promise.resolve({ kind: 'unreachable', reason: 'a node that took part owns no shard any more' })
  }

  private async endAll(session: string, owners: readonly number[], outcome: BackupOutcome): Promise<void> {
    await Promise.all(owners.map(owner => this.ask(owner, { what: 'end', session, outcome })))
  }

  private async *file(
    session: string,
    beganMs: number,
    parts: readonly Part[],
  ): AsyncGenerator<Uint8Array, void, void> {
    const { clock, logger, placement, rowFormat, by } = this.parts
    const startMs = clock.monoMs()
    const writer = new BackupWriter()
    let bytes = 0
    let succeeded = false
    const counted = (block: Buffer): Buffer => {
      bytes += block.length
      return block
    }
    try {
      const owners: readonly BackupOwner[] = parts.map(({ begun: { what: _, ...owner } }) => owner)
      yield counted(
        writer.begin({ rowFormat, by, beganMs, shards: placement.shards, spread: placement.spread, owners }),
      )
      while (parts.some(({ isLast }) => !isLast))
        for (const [number, part] of parts.entries()) {
          const workedMs = clock.monoMs()
          if (part.isLast && workedMs - part.askedMs < keepAliveMs) continue
          part.askedMs = workedMs
          const page = await this.pageOf(part, session)
          part.isLast = page.isLast
          const block = page.rows > 0 ? counted(writer.page(number, page)) : undefined
          const restMs = restPerWork * (clock.monoMs() - workedMs)
          if (block) yield block
          await new Promise<void>(resolve => clock.after(restMs, resolve))
        }
      yield counted(writer.end(clock.wallMs()))
      succeeded = true
    } catch (error) {
      const { message } = error as Error
      logger.warn(`a backup has failed: ${message}`)
      yield counted(writer.fail(message))
      throw error
    } finally {
      const outcome = { succeeded, endedMs: clock.wallMs(), durationMs: clock.monoMs() - startMs, bytes }
      if (succeeded) logger.info(`a backup of ${bytes} bytes was read in ${Math.round(outcome.durationMs)} ms`)
      await this.endAll(
        session,
        parts.map(({ owner }) => owner),
        outcome,
      )
    }
  }

  private async pageOf({ owner }: Part, session: string): Promise<Extract<BackupReply, { what: 'page' }>> {
    const reply = await this.ask(owner, { what: 'page', session })
    if (reply.kind === 'backup' && reply.content.what === 'page') return reply.content
    throw new BackupError(reasonOf(reply))
  }
}

/** Why the parts do not have each shard exactly once; undefined: they do. */
function faultIn(parts: readonly Part[], shards: number): string | undefined {
  const times = new Array<number>(shards).fill(0)
  for (const { begun } of parts) for (const shard of begun.shards) times[shard]!++
  const wrong = times.findIndex(count => count !== 1)
  if (wrong >= 0) return times[wrong] === 0 ? `no node answers for shard ${wrong}` : `shard ${wrong} is moving`
  const keepers = parts.filter(({ begun }) => begun.isKeeper).length
  return keepers === 1 ? undefined : 'no node answers for the register'
}

function reasonOf(reply: ShardReply): string {
  switch (reply.kind) {
    case 'unreachable':
    case 'failed':
    case 'lost':
      return reply.reason
    case 'backup':
      return reply.content.what === 'unknown'
        ? 'an owner of shards has given the backup up'
        : 'an answer was unexpected'
    default:
      return `an owner of shards answered: ${reply.kind}`
  }
}
