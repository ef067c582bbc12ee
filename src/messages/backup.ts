// What a backup asks of a whole process, by any of its shards, and what the process tells.
//
// A backup begins at each owner, which then keeps its rows as they stand at that moment, and gives them page by page.
// It ends at each owner, too: until then no other one begins there.

/** How a backup has ended. */
export interface BackupOutcome {
  readonly succeeded: boolean
  readonly endedMs: number
  readonly durationMs: number
  /** Of the file. */
  readonly bytes: number
}

/** What a process knows of backups. */
export interface BackupNumbers {
  readonly isRunning: boolean
  /** undefined: none has ended since the start. */
  readonly last: BackupOutcome | undefined
}

export type BackupStep =
  | { readonly what: 'begin'; readonly session: string }
  /** The next rows; asked again after the last ones, it keeps the backup from being given up. */
  | { readonly what: 'page'; readonly session: string }
  | { readonly what: 'end'; readonly session: string; readonly outcome: BackupOutcome }

export interface BackupRequest {
  readonly kind: 'backup'
  readonly step: BackupStep
}

export type BackupReply =
  /** `shards`: those whose rows will come, and at what positions of their logs, in a cluster, they are. */
  | {
      readonly what: 'begun'
      readonly shards: readonly number[]
      readonly isKeeper: boolean
      readonly stamp: number
      readonly positions: readonly { readonly shard: number; readonly epoch: number; readonly sequence: number }[]
    }
  /** Another backup is under way. */
  | { readonly what: 'busy' }
  /** `rows` of them are in `bytes` (backup/backup-file.ts). */
  | {
      readonly what: 'page'
      readonly rows: number
      readonly rowBytes: number
      readonly bytes: Buffer
      readonly isLast: boolean
    }
  /** The backup is not known here: it was given up, or the process is another one. */
  | { readonly what: 'unknown' }
  | { readonly what: 'ended' }
