// The right to read a stream, for as long as it lasts (docs/interface/access.md#streams).
//
// A stream may be open for months. It ends when the proof of its reader ends, and when a new access file allows the
// reader less than it reads.
//
// Not here: who asks (access/), what ends a stream otherwise (event-stream.ts, stream-socket.ts).

import { type AllowedGrant, refuseAction } from '../domain/access/grant.js'
import { grantOfWatcher, type WatchedPart, withGrant } from '../domain/access/watching.js'
import { accepted, type Refusal, type Result } from '../domain/refusal.js'
import type { Watch } from '../domain/streams/watch.js'
import type { WatchScope } from '../domain/streams/watch-parser.js'
import type { Clock } from '../ports.js'
import type { Asker } from './access-guard.js'
import { refuseNarrowed } from './request-authorizer.js'

/** The longest time between two checks of a proof that has an end. */
const lookMsMax = 3_600_000

/** The reader of a stream, and the place that it reads. */
export interface StreamReaderRights {
  readonly asker: Asker
  readonly scope: WatchScope
}

/** What a watch of a stream was allowed when it began. */
interface WatchedRight {
  readonly part: WatchedPart
  /** The grant, as text. */
  readonly grant: string
}

export class StreamRights {
  private readonly watched: WatchedRight[] = []
  private stopLooking = (): void => {}
  private isOver = false

  /** `onOver` is called once, if the right ends before `stop`. */
  constructor(
    private reader: Asker,
    private readonly clock: Pick<Clock, 'after' | 'wallMs'>,
    private readonly onOver: () => void,
  ) {
    this.lookLater()
  }

  /** The reader, by its latest proof. */
  get asker(): Asker {
    return this.reader
  }

  /**
   * Continues with a new proof, perhaps of another principal, whose rules have to allow all watches. Returns the
   * refusal if they do not; then the earlier proof stays in effect.
   */
  renew(asker: Asker): Refusal | undefined {
    for (const watched of this.watched) {
      const refusal = refusalNow(asker, watched)
      if (refusal) return refusal
    }
    this.stopLooking()
    this.reader = asker
    this.lookLater()
    return undefined
  }

  /** The watch as the reader may have it, from now on until the right ends, or its refusal. */
  add(watch: Watch): Result<Watch> {
    const part = { ...watch.filter, entities: watch.source.entities }
    const grant = grantNow(this.reader.now() ?? this.reader, part)
    if (!grant.ok) return grant
    this.watched.push({ part, grant: textOf(grant.value) })
    return accepted({ ...watch, source: withGrant(watch.source, grant.value) })
  }

  /** The refusal of everything in a place; undefined: the reader may have it, from now on until the right ends. */
  addWhole({ tenant, servicePath }: WatchScope): Refusal | undefined {
    const refusal = refuseNarrowed(this.reader.now() ?? this.reader, 'stream', { tenant, paths: [servicePath] })
    const part = { tenant, servicePath, entities: [], condition: noCondition }
    if (!refusal) this.watched.push({ part, grant: wholeText })
    return refusal
  }

  /** Ends it, if the present file does not allow the reader what it reads. A wider grant changes nothing. */
  look(): void {
    const now = this.reader.now()
    if (this.isOver || (now && !this.watched.some(watched => refusalNow(now, watched)))) return
    this.stop()
    this.onOver()
  }

  stop(): void {
    this.isOver = true
    this.stopLooking()
  }

  private lookLater(): void {
    const { endsMs } = this.reader
    if (endsMs === undefined || this.isOver) return
    const waitMs = Math.min(Math.max(endsMs - this.clock.wallMs(), 0), lookMsMax)
    this.stopLooking = this.clock.after(waitMs, () => {
      this.look()
      this.lookLater()
    })
  }
}

const grantNow = (asker: Asker, part: WatchedPart): Result<AllowedGrant> =>
  grantOfWatcher(asker.grant('stream', part.tenant, [part.servicePath]), 'stream', part)

/** The refusal of a watch that goes on; undefined: all may be read, or what could be read when it began. */
function refusalNow(asker: Asker, { part, grant }: WatchedRight): Refusal | undefined {
  const now = grantNow(asker, part)
  if (!now.ok) return now.refusal
  if (now.value.kind === 'all' || textOf(now.value) === grant) return undefined
  return refuseAction('stream', { tenant: part.tenant, paths: [part.servicePath] })
}

const wholeText = ''

const noCondition: WatchedPart['condition'] = {
  attrs: [],
  expression: { source: {}, q: undefined, mq: undefined, geo: undefined },
}

const textOf = (grant: AllowedGrant): string =>
  grant.kind === 'all' ? wholeText : JSON.stringify(grant.condition.clauses)
