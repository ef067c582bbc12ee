// The part of a backup that comes from one owner of shards: its rows at the moment at which the backup begins, page by
// page.
//
// The owner opens all cursors in one tick, between two commits. So all rows belong to one moment, and the backup has
// every write that was answered before. An open cursor keeps old rows in the store. So the owner admits one backup at a
// time, and ends it when no client asks for pages any more.
//
// As for everything that moves rows, `destinations` (keys.ts) decides which kinds of rows go along. Bundles go as they
// are, because they can be split only while the store is at rest.
//
// Not here: restoring the rows (process/restore.ts), asking the owners (broker/backup.ts).

import { RowPacker } from '../backup/backup-file.js'
import type { BackupNumbers, BackupOutcome, BackupReply, BackupRequest, ShardReply } from '../messages/messages.js'
import type { Clock, Cursor, Row, Store } from '../ports.js'
import type { GroupCommit } from './commit/commit.js'
import { destinations, kindsThatGo, prefix, shardOfKey, under } from './keys.js'
import { storedPosition } from './replicate/positions.js'

export interface BackupSourceParts {
  readonly store: Store
  readonly commit: Pick<GroupCommit, 'afterAll' | 'whenQuiet'>
  readonly clock: Pick<Clock, 'monoMs' | 'after'>
  /** The number of shards that hold entities; the register is the shard after them. */
  readonly shards: number
  /** The last stamp that was given. */
  readonly lastStamp: () => number
  /** Whether this owner answers for a shard, or for the register, at this moment. */
  readonly owns: (shard: number) => boolean
  /** Whether it is a node of a cluster: then its store follows the logs of all shards that it has copies of. */
  readonly isNode: boolean
}

/** Bytes of a page without its last row. The event loop spends some 0.2 ms on a page. */
const pageBytesMax = 64 * 1024
/** Rows read at once, in another thread. */
const rowsPerRead = 256
/** A backup that gets no request for this long is given up. It is longer than a client may leave its answer unread. */
const idleMsMax = 45_000
/** The time between two checks of these limits. */
const lookMs = 5_000
/** A backup that takes longer is given up: the store keeps all that was deleted or replaced meanwhile. */
const backupMsMax = 6 * 3_600_000
/** How long a backup waits for staged writes. Durable writes are in it in any case. */
const stagedMsMax = 1_000

type OnReply = (reply: ShardReply) => void

/** The kinds of rows that a backup has. */
const kinds = kindsThatGo('shard', 'register', 'progress', 'split')
const destinationOf = new Map(
  Object.entries(destinations).map(([kind, destination]) => [
    prefix[kind as keyof typeof prefix] as number,
    destination,
  ]),
)

export class BackupSource {
  private session: Session | undefined
  private last: BackupOutcome | undefined

  constructor(private readonly parts: BackupSourceParts) {}

  get numbers(): BackupNumbers {
    return { isRunning: this.session !== undefined, last: this.last }
  }

  onAsk({ step }: BackupRequest, onReply: OnReply): void {
    const reply = (content: BackupReply): void => onReply({ kind: 'backup', content })
    const { session } = this
    if (step.what === 'begin') return session ? reply({ what: 'busy' }) : this.begin(step.session, reply)
    if (session?.name !== step.session) return reply({ what: 'unknown' })
    session.askedMs = this.parts.clock.monoMs()
    if (step.what === 'page') {
      session.page().then(reply, (error: Error) => onReply({ kind: 'failed', reason: error.message }))
      return
    }
    this.last = step.outcome
    this.drop(session)
    reply({ what: 'ended' })
  }

  /** Opens the cursors when all that is staged is durable, because counters are piggybacked on a commit. */
  private begin(name: string, reply: (content: BackupReply) => void): void {
    const { commit, clock } = this.parts
    const session = new Session(name, clock.monoMs())
    this.session = session
    let hasBegun = false
    const begin = (): void => {
      if (hasBegun) return
      hasBegun = true
      cancel()
      reply(this.session === session ? this.open(session) : { what: 'unknown' })
    }
    const cancel = clock.after(stagedMsMax, begin)
    commit.afterAll(() => commit.whenQuiet(begin))
    this.watch(session)
  }

  private open(session: Session): BackupReply {
    const { store, lastStamp, shards: count, owns, isNode } = this.parts
    const owned = new Set(Array.from({ length: count }, (_, shard) => shard).filter(owns))
    const isKeeper = owns(count)
    const isIncluded = ({ key }: Row): boolean => {
      switch (destinationOf.get(key[0] as number)) {
        case 'shard':
          return owned.has(shardOfKey(key))
        case 'register':
          return isKeeper
        case 'progress':
          // The keeper of a cluster's register has all progress; each worker has a part of it.
          return !isNode || isKeeper
        default:
          return true
      }
    }
    session.open(
      kinds.map(kind => store.cursor(under(Buffer.from([kind])))),
      isIncluded,
    )
    const ofLogs = isNode ? [...owned, ...(isKeeper ? [count] : [])] : []
    const positions = ofLogs.flatMap(shard => {
      const position = storedPosition(store, shard)
      return position ? { shard, epoch: position.epoch, sequence: position.sequence } : []
    })
    return { what: 'begun', shards: [...owned], isKeeper, stamp: lastStamp(), positions }
  }

  /** Gives up a backup for which no client asks any more. */
  private watch(session: Session): void {
    const { clock } = this.parts
    const check = (): void => {
      if (this.session !== session) return
      const nowMs = clock.monoMs()
      if (nowMs - session.askedMs >= idleMsMax || nowMs - session.beganMs >= backupMsMax) this.drop(session)
      else clock.after(lookMs, check)
    }
    clock.after(lookMs, check)
  }

  private drop(session: Session): void {
    this.session = undefined
    // The store itself reports a cursor that it cannot close.
    session.close().catch(() => {})
  }
}

/** A backup under way. */
class Session {
  askedMs: number
  private isIncluded: (row: Row) => boolean = () => false
  private cursors: Cursor[] = []
  private readonly packer = new RowPacker()
  /** Rows that were read, and not given yet. */
  private rows: Row[] = []
  private at = 0
  private reading: Promise<unknown> | undefined
  private isClosed = false

  constructor(
    readonly name: string,
    readonly beganMs: number,
  ) {
    this.askedMs = beganMs
  }

  open(cursors: Cursor[], isIncluded: (row: Row) => boolean): void {
    this.cursors = cursors
    this.isIncluded = isIncluded
  }

  /** The next rows, whose bytes are overwritten by the next call. One call at a time. */
  async page(): Promise<BackupReply> {
    if (this.reading) throw new Error('a page is requested while another one is being read')
    const { packer } = this
    packer.begin()
    while (packer.length < pageBytesMax) {
      const row = this.rows[this.at++]
      if (row) {
        if (this.isIncluded(row)) packer.add(row)
      } else if (!(await this.read())) break
    }
    return { what: 'page', ...packer.packed(), isLast: this.cursors.length === 0 && this.at >= this.rows.length }
  }

  /** Reads some rows. Returns false when there are none any more. */
  private async read(): Promise<boolean> {
    const [cursor] = this.cursors
    this.at = 0
    this.rows = []
    if (!cursor) return false
    const reading = cursor.next(rowsPerRead)
    this.reading = reading
    try {
      this.rows = await reading
    } finally {
      this.reading = undefined
    }
    if (this.isClosed) throw new Error('the backup was given up')
    if (this.rows.length === 0) {
      this.cursors.shift()
      await cursor.close()
    }
    return true
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.reading?.catch(() => {})
    const { cursors } = this
    this.cursors = []
    for (const cursor of cursors) await cursor.close()
  }
}
