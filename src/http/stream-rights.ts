// The right to read a stream, for as long as it lasts (docs/interface/access.md#streams).
//
// A stream may be open for months. It ends when the proof of its reader ends, and when a new access file allows the
// reader less than it reads.
//
// Not here: who asks (access/), what ends a stream otherwise (event-stream.ts, stream-socket.ts).

import type { Refusal } from '../domain/refusal.js'
import type { WatchScope } from '../domain/streams/watch-parser.js'
import type { Clock } from '../ports.js'
import type { Asker } from './access-guard.js'
import { refuseNarrowed } from './request-authorizer.js'

/** The longest time between two looks at a proof that has an end. */
const lookMsMax = 3_600_000

/** Who reads a stream, and what it is about. */
export interface StreamReaderRights {
  readonly asker: Asker
  readonly scope: WatchScope
}

export class StreamRights {
  private readonly scopes: WatchScope[] = []
  private stopLooking = (): void => {}
  private isOver = false

  /** `onOver` is called once, if the right ends before `stop`. */
  constructor(
    private readonly asker: Asker,
    private readonly clock: Pick<Clock, 'after' | 'wallMs'>,
    private readonly onOver: () => void,
  ) {
    this.lookLater()
  }

  /** The refusal of a further watch; undefined: the reader may have it, from now on until the right ends. */
  add(scope: WatchScope): Refusal | undefined {
    const refusal = refusalOf(this.asker.now() ?? this.asker, scope)
    if (!refusal) this.scopes.push(scope)
    return refusal
  }

  /** Ends it, if the present file allows the reader less than it reads. */
  look(): void {
    const now = this.asker.now()
    if (this.isOver || (now && !this.scopes.some(scope => refusalOf(now, scope)))) return
    this.stop()
    this.onOver()
  }

  stop(): void {
    this.isOver = true
    this.stopLooking()
  }

  private lookLater(): void {
    const { endsMs } = this.asker
    if (endsMs === undefined || this.isOver) return
    const waitMs = Math.min(Math.max(endsMs - this.clock.wallMs(), 0), lookMsMax)
    this.stopLooking = this.clock.after(waitMs, () => {
      this.look()
      this.lookLater()
    })
  }
}

const refusalOf = (asker: Asker, { tenant, servicePath }: WatchScope): Refusal | undefined =>
  refuseNarrowed(asker, 'stream', { tenant, paths: [servicePath] })
