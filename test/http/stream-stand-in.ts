// Stands in for the streams of a process: it keeps the watches that were opened, and a test plays their readings.

import { EndOfTick } from '../../src/broker/streams/end-of-tick.js'
import { WaitingBudget } from '../../src/broker/streams/reader-queue.js'
import type { Reading, StreamReader } from '../../src/broker/streams/reading.js'
import { ChangeTexts } from '../../src/broker/streams/stream-event.js'
import type { StreamHub } from '../../src/broker/streams/stream-hub.js'
import type { Watch } from '../../src/domain/streams/watch.js'
import { FakeClock } from '../support/fake-clock.js'

export interface OpenedWatch {
  readonly watch: Watch
  readonly reader: StreamReader
  isEnded: boolean
}

export class StreamStandIn implements Pick<StreamHub, 'open' | 'texts' | 'waiting' | 'endOfTick'> {
  readonly opened: OpenedWatch[] = []
  readonly texts = new ChangeTexts()
  readonly waiting = new WaitingBudget()
  readonly clock = new FakeClock()
  readonly bookmarks = { anyTurn: (): number => 0 }
  private ends: (() => void)[] = []
  readonly endOfTick = new EndOfTick({ endOfTick: run => void this.ends.push(run) })

  open(watch: Watch, reader: StreamReader): Reading {
    const opened: OpenedWatch = { watch, reader, isEnded: false }
    this.opened.push(opened)
    const reading: Pick<Reading, 'end'> = {
      end: () => {
        opened.isEnded = true
      },
    }
    return reading as Reading
  }

  /** Ends the tick: its events are sent. */
  endTick(): void {
    for (const run of this.ends.splice(0)) run()
  }

  /** As a connection needs it. */
  get asHub(): StreamHub {
    return this as unknown as StreamHub
  }
}
