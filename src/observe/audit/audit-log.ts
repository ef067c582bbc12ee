// The audit log of a process: lines wait in memory, and one writer appends them to the file in batches
// (docs/operations/audit.md).
//
// A request only adds its line, and never waits for the disk. Lines of some milliseconds are written together, one
// write at a time, so they keep the order of the answers. Lines of a failed write stay first in the queue, and are
// tried again once a second, with the file opened anew. Lines are lost only when the queue is full, or when
// the process ends before they could be written.
//
// A write may fail in the middle of a line, of this process or of another one with the same file. So the first write
// after a failure begins with an end of line, and repeats the whole line: a reader finds a broken or an empty line, and
// loses none.
//
// Not here: the form of a line (audit-line.ts), the file (line-file.ts).

import type { AuditEntry, AuditTrail, Clock, Logger } from '../../ports.js'
import { auditLine } from './audit-line.js'
import type { LineFile } from './line-file.js'

/** Bytes of lines that wait to be written; further lines are lost. Raising it lets a disk be away for longer. */
export const auditWaitingBytesMax = 16 * 1024 * 1024

/** How long lines wait for others, to be written together: a write costs as much as making ten lines. */
export const auditDelayMs = 20

/** The pause before a failed write is tried again. */
export const auditProbeMs = 1_000

/** The shortest time between two reports of a failure, or of lost lines. */
export const auditReportMs = 60_000

/** How often the file is checked for another one under its name. */
const lookMs = 2_000
/** The pause before a pipe whose reader is slow is tried again. */
const againMs = 50
/** How long the end of a process waits until all lines are written. */
const closeMsMax = 5_000

export interface AuditNumbers {
  /** Lines that were written. */
  readonly written: number
  readonly lost: number
  readonly waitingBytes: number
  readonly isFailing: boolean
}

export interface AuditParts {
  readonly file: LineFile
  /** Whether nothing may change while lines cannot be written. */
  readonly isRequired: boolean
  /** Whether the tenant header has an effect. */
  readonly isMultitenant: boolean
  readonly clock: Pick<Clock, 'wallMs' | 'monoMs' | 'after'>
  readonly logger: Pick<Logger, 'error' | 'warn'>
  /** undefined: `auditWaitingBytesMax`. */
  readonly waitingBytesMax?: number
}

/** Lines that are written together, with their ends. */
interface Batch {
  readonly lines: string[]
  bytes: number
}

export class AuditLog implements AuditTrail {
  private readonly waitingBytesMax: number
  private readonly batches: Batch[] = []
  /** The lines of the write that is under way. */
  private inFlight: readonly string[] = []
  private waitingBytes = 0
  private written = 0
  private lost = 0
  /** Lost lines that were not reported yet. */
  private unreported = 0
  /** The reason why lines cannot be written; undefined: they can. */
  private failure: string | undefined
  /** The state of the writer. `pausing`: it waits before it tries again. */
  private state: 'idle' | 'scheduled' | 'writing' | 'pausing' | 'closed' = 'idle'
  private wantsReopen = false
  /** The file may end in the middle of a line. */
  private isTorn = false
  private isAnnounced = false
  private readonly announcedMs = { failure: Number.NEGATIVE_INFINITY, reopening: Number.NEGATIVE_INFINITY }
  private lossReportedMs = Number.NEGATIVE_INFINITY
  private stopReport: (() => void) | undefined
  private stopLooking = (): void => {}
  /** Called when no line waits any more, or when writing has failed: the log is being closed. */
  private onEmpty: (() => void) | undefined
  private readonly atExit = (): void => this.writeNow()

  constructor(private readonly parts: AuditParts) {
    this.waitingBytesMax = parts.waitingBytesMax ?? auditWaitingBytesMax
    process.on('exit', this.atExit)
    this.lookLater()
  }

  /** Half of the room is for the lines of requests that are under way already. */
  get refusesChanges(): boolean {
    return this.parts.isRequired && (this.failure !== undefined || this.waitingBytes > this.waitingBytesMax / 2)
  }

  // [hot] Once per request that has a line.
  add(entry: AuditEntry): void {
    const { clock, isMultitenant, file } = this.parts
    const line = `${auditLine(entry, clock.wallMs(), isMultitenant)}\n`
    const bytes = Buffer.byteLength(line)
    if (this.state === 'closed' || this.waitingBytes + bytes > this.waitingBytesMax) return this.lose(1)
    this.waitingBytes += bytes
    const last = this.batches.at(-1)
    if (last && last.bytes + bytes <= file.batchBytesMax) {
      last.lines.push(line)
      last.bytes += bytes
    } else this.batches.push({ lines: [line], bytes })
    if (this.state !== 'idle') return
    this.state = 'scheduled'
    clock.after(auditDelayMs, () => {
      if (this.state === 'scheduled') this.goOn()
    })
  }

  /** Opens the file again, so that it can be renamed. Lines that are being written still go to the old one. */
  reopen(): void {
    this.wantsReopen = true
    if (this.state === 'idle') this.goOn()
  }

  numbers(): AuditNumbers {
    const { written, lost, waitingBytes, failure } = this
    return { written, lost, waitingBytes, isFailing: failure !== undefined }
  }

  /** Writes what waits, and closes the file. Lines that cannot be written in time are lost, which is reported. */
  async close(): Promise<void> {
    if (this.state === 'closed') return
    this.stopLooking()
    await new Promise<void>(resolve => {
      this.onEmpty = resolve
      this.parts.clock.after(closeMsMax, resolve)
      if (this.state !== 'writing') this.goOn()
    })
    const isWriting = this.state === 'writing'
    this.state = 'closed'
    process.off('exit', this.atExit)
    this.stopReport?.()
    const left = this.batches.reduce((sum, { lines }) => sum + lines.length, this.inFlight.length)
    this.lost += left
    this.unreported += left
    if (this.unreported > 0) this.reportLoss()
    // A write that does not end must not go to another file, which may get the number of this one.
    if (!isWriting) this.parts.file.close()
  }

  // The writer

  private goOn(): void {
    if (this.state === 'closed') return
    this.state = 'idle'
    if (this.wantsReopen) return this.openAgain()
    const batch = this.batches.shift()
    if (!batch) {
      this.recover()
      return this.onEmpty?.()
    }
    this.state = 'writing'
    this.inFlight = batch.lines
    const text = batch.lines.join('')
    const bytes = Buffer.from(this.isTorn ? `\n${text}` : text)
    this.parts.file.append(bytes, (error, written) => this.onWritten(error, written))
  }

  private onWritten(error: NodeJS.ErrnoException | undefined, written: number): void {
    const rest = this.unwritten(this.inFlight, this.isTorn ? written - 1 : written)
    this.inFlight = []
    if (rest.length > 0) this.batches.unshift({ lines: rest, bytes: this.parts.file.batchBytesMax })
    if (this.state === 'closed') return
    if (error?.code === 'EAGAIN') return this.pause(againMs)
    this.isTorn = rest.length > 0
    if (error) return this.fail(error)
    if (rest.length === 0) this.recover()
    this.goOn()
  }

  /** Counts the lines that are wholly among the written bytes, and returns the others. */
  private unwritten(lines: readonly string[], written: number): string[] {
    let end = 0
    let count = 0
    for (const line of lines) {
      const bytes = Buffer.byteLength(line)
      if (end + bytes > written) break
      end += bytes
      count++
    }
    this.written += count
    this.waitingBytes -= end
    return lines.slice(count)
  }

  private openAgain(): void {
    const { file, logger } = this.parts
    this.wantsReopen = false
    this.state = 'writing'
    file.reopen(reopened => {
      if (this.state === 'closed') return
      if ('error' in reopened) {
        const { message } = reopened.error
        // After a rename lines may still go to the old file, after a deletion they would be lost.
        if (this.failure !== undefined || reopened.file === 'lost') return this.fail(reopened.error)
        if (this.mayAnnounce('reopening'))
          logger.error(`the audit log ${file.name} cannot be opened again (${message}): the old file stays in use`)
      } else if (reopened.file === 'other') this.isTorn = false
      this.goOn()
    })
  }

  private pause(ms: number): void {
    this.state = 'pausing'
    this.parts.clock.after(ms, () => {
      if (this.state === 'pausing') this.goOn()
    })
  }

  private fail({ message }: Error): void {
    const { file, logger, isRequired } = this.parts
    const isNew = this.failure === undefined
    this.failure = message
    this.wantsReopen = true
    this.pause(auditProbeMs)
    this.onEmpty?.()
    if (!isNew || !this.mayAnnounce('failure')) return
    this.isAnnounced = true
    const refusing = isRequired ? ', and requests that change something are refused' : ''
    logger.error(`the audit log ${file.name} cannot be written (${message}): its lines wait in memory${refusing}`)
  }

  private recover(): void {
    if (this.failure === undefined) return
    this.failure = undefined
    if (!this.isAnnounced) return
    this.isAnnounced = false
    const { file, logger } = this.parts
    if (this.unreported > 0) this.reportLoss()
    logger.warn(`the audit log ${file.name} is written again, ${this.lost} of its lines were lost since the start`)
  }

  private mayAnnounce(what: 'failure' | 'reopening'): boolean {
    const nowMs = this.parts.clock.monoMs()
    if (nowMs - this.announcedMs[what] < auditReportMs) return false
    this.announcedMs[what] = nowMs
    return true
  }

  private lose(count: number): void {
    this.lost += count
    this.unreported += count
    if (this.stopReport || this.state === 'closed') return
    const { clock } = this.parts
    const waitMs = this.lossReportedMs + auditReportMs - clock.monoMs()
    this.stopReport = clock.after(Math.max(auditProbeMs, waitMs), () => this.reportLoss())
  }

  private reportLoss(): void {
    const { file, logger, clock } = this.parts
    this.stopReport?.()
    this.stopReport = undefined
    this.lossReportedMs = clock.monoMs()
    const why =
      this.failure ?? (this.state === 'closed' ? 'the process ends' : 'they came faster than they were written')
    logger.error(`${this.unreported} lines of the audit log ${file.name} were lost (${why})`)
    this.unreported = 0
  }

  private lookLater(): void {
    const { file, clock } = this.parts
    this.stopLooking = clock.after(lookMs, () =>
      file.look(isAnother => {
        if (this.state === 'closed') return
        if (isAnother) this.reopen()
        this.lookLater()
      }),
    )
  }

  /** The process ends: writes what waits before it returns, if it can be written. */
  private writeNow(): void {
    const lines = this.batches.flatMap(batch => batch.lines)
    if (lines.length === 0) return
    try {
      this.parts.file.appendNow(Buffer.from(`${this.isTorn ? '\n' : ''}${lines.join('')}`))
    } catch {
      // No one is left to report it to.
    }
  }
}
