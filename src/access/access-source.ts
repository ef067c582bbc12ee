// The access file in use: read at the start, on SIGHUP, and when it has changed.
//
//   look, once a second:   state as before?  ->  nothing
//                          another one       ->  wait for the next look: it may be in the middle of being written
//                          the same again    ->  read it
//
// The first half of a YAML file may be a valid file too, with rules that allow more than the whole. So a changed file
// is read when two looks in a row find it in the same state. SIGHUP reads it at once. A faulty file changes nothing:
// the old one stays in use, and an ERROR gives the line and the reason. The same holds for a file that names files of
// keys that cannot be read; those are tried again at every look.
//
// Not here: its syntax (access-text.ts), its use (authenticator.ts).

import type { AccessFile } from '../domain/access/access-file.js'
import { type Result, refusalText } from '../domain/refusal.js'
import type { Clock, Logger } from '../ports.js'
import { folderOf, keyFilesFault, type ReadAccess, readAccessFile, readUsable } from './access-text.js'
import { stateNow, stateOf } from './file-state.js'

/** Time between two looks at the file. A look costs one system call. */
const lookMs = 1_000

export interface AccessSourceGiven {
  readonly clock: Pick<Clock, 'wallMs' | 'after'>
  readonly logger: Pick<Logger, 'info' | 'error'>
}

export interface AccessSourceNumbers {
  /** 1 at the start, one more for each new file. */
  readonly generation: number
  readonly reloads: number
  readonly reloadFailures: number
  /** When the file in use was read. */
  readonly readMs: number
}

export class AccessSource {
  /** Resolves when the latest of the regular looks has ended. */
  looked: Promise<void> = Promise.resolve()
  readonly folder: string
  private readonly listeners = new Set<(file: AccessFile) => void>()
  private current: AccessFile
  private currentGeneration = 1
  private readMs: number
  private reloadFailures = 0
  /** The state of the file when it was read, and at the latest look. */
  private readState: string
  private seenState: string
  /** A new file that waits for its files of keys. */
  private candidate: AccessFile | undefined
  private cancel = (): void => {}
  private isStopped = false

  /**
   * Reads the file now, unless it is still in the state in which `checked` was read. Throws an error with a sentence if
   * it cannot be used: there must be no start without it.
   */
  constructor(
    private readonly path: string,
    private readonly given: AccessSourceGiven,
    checked?: ReadAccess,
  ) {
    this.folder = folderOf(path)
    const { file, state } = checked?.state === stateNow(path) ? checked : usable(path)
    this.readState = this.seenState = state
    this.current = file
    this.readMs = given.clock.wallMs()
  }

  get file(): AccessFile {
    return this.current
  }

  get generation(): number {
    return this.currentGeneration
  }

  /** Calls the listener with each new file. Returns a function that ends it. */
  on(listener: (file: AccessFile) => void): () => void {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  /** Starts the regular looks. */
  begin(): void {
    if (!this.isStopped) this.lookLater()
  }

  stop(): void {
    this.isStopped = true
    this.cancel()
    this.listeners.clear()
  }

  /** Reads the file now, as on SIGHUP. Returns whether the file on disk is in use. */
  readAgain(): boolean {
    if (this.isStopped) return false
    this.readState = this.seenState = stateNow(this.path)
    return this.use(readAccessFile(this.path))
  }

  numbers(): AccessSourceNumbers {
    const { currentGeneration: generation, reloadFailures, readMs } = this
    return { generation, reloads: generation - 1, reloadFailures, readMs }
  }

  private lookLater(): void {
    this.cancel = this.given.clock.after(lookMs, () => {
      this.looked = this.look().then(() => {
        if (!this.isStopped) this.lookLater()
      })
    })
  }

  /** Never fails. */
  private async look(): Promise<void> {
    const state = await stateOf(this.path)
    if (this.isStopped) return
    const before = this.seenState
    this.seenState = state
    if (state === this.readState) return this.tryCandidate()
    if (state !== before) return
    const file = readAccessFile(this.path)
    // The file was written meanwhile: the next look reads it again.
    if (stateNow(this.path) !== state) return
    this.readState = state
    this.use(file)
  }

  private tryCandidate(): void {
    if (this.candidate && keyFilesFault(this.candidate, this.folder) === undefined) this.take(this.candidate)
  }

  private use(file: Result<AccessFile>): boolean {
    this.candidate = undefined
    const fault = file.ok ? keyFilesFault(file.value, this.folder) : refusalText(file.refusal)
    if (file.ok && fault === undefined) {
      this.take(file.value)
      return true
    }
    if (file.ok) this.candidate = file.value
    this.reloadFailures++
    this.given.logger.error(`access: the new file ${this.path} is not used, the old one stays in use: ${fault}`)
    return false
  }

  private take(file: AccessFile): void {
    this.current = file
    this.currentGeneration++
    this.readMs = this.given.clock.wallMs()
    this.candidate = undefined
    this.given.logger.info(`access: the file ${this.path} was read again, and is in use`)
    for (const listener of this.listeners) listener(file)
  }
}

function usable(path: string): ReadAccess {
  const read = readUsable(path)
  if (!read.ok) throw new Error(`the access file ${path}: ${refusalText(read.refusal)}`)
  return read.value
}
