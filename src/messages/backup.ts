// The requests of a backup to a whole process, sent to any of its shards, and the replies.
//
// A backup begins at each owner. The owner then keeps its rows in their state at that moment, and sends them page by
// page. The backup also ends at each owner; until then no other backup begins there.

/** The outcome of a backup. */
export interface BackupOutcome {
  readonly succeeded: boolean
  readonly endedMs: number
  readonly durationMs: number
  /** The size of the file. */
  readonly bytes: number
}

/** The state of backups in a process. */
export interface BackupNumbers {
  readonly isRunning: boolean
  /** undefined: no backup has ended since the start. */
  readonly last: BackupOutcome | undefined
}

export type BackupStep =
  | { readonly what: 'begin'; readonly session: string }
  /** Asks for the next rows. Asked again after the last rows, it keeps the backup from being abandoned. */
  | { readonly what: 'page'; readonly session: string }
  | { readonly what: 'end'; readonly session: string; readonly outcome: BackupOutcome }

export interface BackupRequest {
  readonly kind: 'backup'
  readonly step: BackupStep
}

export type BackupReply =
  /** `shards`: the shards whose rows will come. In a cluster, `positions` are those of their logs. */
  | {
      readonly what: 'begun'
      readonly shards: readonly number[]
      readonly isKeeper: boolean
      readonly stamp: number
      readonly positions: readonly { readonly shard: number; readonly epoch: number; readonly sequence: number }[]
    }
  /** Another backup is in progress. */
  | { readonly what: 'busy' }
  /** `bytes` contains this many rows (backup/backup-file.ts). */
  | {
      readonly what: 'page'
      readonly rows: number
      readonly rowBytes: number
      readonly bytes: Buffer
      readonly isLast: boolean
    }
  /** The backup is unknown here: it was abandoned, or the process has restarted. */
  | { readonly what: 'unknown' }
  | { readonly what: 'ended' }
