// The keys of one issuer, as they are now: fetched from its URL, or read from a file.
//
//             disk (once)      URL: at once, every 10 minutes, and again for an unknown kid
//   KeyRing  <------------  <-----------------------------------------------------------------
//
// What cannot be fetched or read changes nothing: the keys so far stay in use, and the log has the reason. For tokens
// with an unknown `kid` the keys are fetched again at most once in 30 s, since any client can make such tokens. All
// tokens that wait share one fetch. Tokens of a key that was withdrawn cause none: after a change of keys there are
// many of them, and they would use up the fetch that the next change needs.
//
// Not here: the connection (the port FetchKeys; fetch-keys.ts), and what tokens do with the keys (tokens.ts).

import { readFile, stat } from 'node:fs/promises'
import type { Clock, Logger } from '../ports.js'
import { type KeySet, readKeySet } from './jwks.js'
import type { JwksStore, KeysOwner } from './jwks-store.js'
import { jwksBytesMax, keysAgainMs, keysRefreshMs, keysTimeoutMs, withdrawnKeysMax } from './limits.js'

/** An answer to GET. */
export interface FetchedAnswer {
  readonly status: number
  /** The reader may stop early, which ends the connection. */
  readonly body: AsyncIterable<Uint8Array>
}

/**
 * Requests a URL with GET. It follows no redirect, and connects only to what is allowed. It ends when the signal is
 * aborted. Fails with a sentence for operators.
 */
export type FetchKeys = (url: string, signal: AbortSignal) => Promise<FetchedAnswer>

/** The keys of one issuer. */
export interface KeyRing {
  /** undefined: there were none so far. */
  readonly current: KeySet | undefined
  /** Resolves when the keys on disk were read. Never fails. */
  readonly ready: Promise<void>
  /**
   * Asks for newer keys, because a token needs some that are not there. Resolves when they were asked for; undefined:
   * that has been done a short time ago.
   */
  again(): Promise<void> | undefined
  /** Whether a key of this name was there, and is not any more: newer keys need not be asked for. */
  isWithdrawn(kid: string): boolean
  stop(): void
}

export interface RingGiven {
  readonly clock: Pick<Clock, 'wallMs' | 'monoMs' | 'after'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
  /** Called when other keys are in use than before. */
  readonly onChange: () => void
  readonly onFetched: (isDone: boolean) => void
}

/** The reason is logged again after this time, as long as it stays the same. */
const warnEveryMs = 3_600_000

/** Logs why keys could not be had: each reason once, and once an hour. */
class Complaints {
  private reason = ''
  private sinceMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly given: RingGiven,
    private readonly of: string,
  ) {}

  about(reason: string): void {
    const nowMs = this.given.clock.monoMs()
    if (reason === this.reason && nowMs - this.sinceMs < warnEveryMs) return
    this.reason = reason
    this.sinceMs = nowMs
    this.given.logger.warn(`access: keys of the issuer ${this.of}: ${reason}`)
  }

  end(): void {
    this.reason = ''
  }
}

/** Keys from a URL. */
export class FetchedKeys implements KeyRing {
  current: KeySet | undefined
  readonly ready: Promise<void>
  private readonly complaints: Complaints
  private pending: Promise<void> | undefined
  private abort: AbortController | undefined
  private againFromMs = Number.NEGATIVE_INFINITY
  private readonly withdrawn = new Set<string>()
  private cancel = (): void => {}
  private isStopped = false

  constructor(
    private readonly owner: KeysOwner,
    private readonly store: JwksStore,
    private readonly fetch: FetchKeys,
    private readonly given: RingGiven,
  ) {
    this.complaints = new Complaints(given, owner.issuer)
    this.ready = this.readStored()
    // A token that comes meanwhile waits for the same fetch.
    this.pending = this.ready.then(() => this.fetchNow())
  }

  again(): Promise<void> | undefined {
    if (this.isStopped) return undefined
    if (this.pending) return this.pending
    const nowMs = this.given.clock.monoMs()
    if (nowMs < this.againFromMs) return undefined
    this.againFromMs = nowMs + keysAgainMs
    return this.fetchOnce()
  }

  isWithdrawn(kid: string): boolean {
    return this.withdrawn.has(kid)
  }

  stop(): void {
    this.isStopped = true
    this.cancel()
    this.abort?.abort()
  }

  private async readStored(): Promise<void> {
    try {
      const stored = await this.store.read(this.owner)
      if (stored && !this.isStopped) this.use(stored.set, ', which were fetched before this start')
    } catch (error) {
      this.complaints.about((error as Error).message)
    }
  }

  private fetchOnce(): Promise<void> {
    this.pending ??= this.fetchNow()
    return this.pending
  }

  /** Never fails. */
  private async fetchNow(): Promise<void> {
    this.cancel()
    let nextMs = keysAgainMs
    try {
      if (this.isStopped) return
      const set = readKeySet(await this.download(), this.current)
      if (this.isStopped) return
      nextMs = keysRefreshMs
      this.given.onFetched(true)
      this.complaints.end()
      if (!this.current?.isSame(set)) {
        this.use(set, '')
        await this.keep(set)
      }
    } catch (error) {
      if (this.isStopped) return
      this.given.onFetched(false)
      this.complaints.about(`cannot be fetched from ${this.owner.url}: ${(error as Error).message}`)
    } finally {
      this.pending = undefined
      if (!this.isStopped)
        this.cancel = this.given.clock.after(nextMs, () => {
          this.fetchOnce()
        })
    }
  }

  private use(set: KeySet, source: string): void {
    for (const { kid } of this.current?.keys ?? []) if (kid !== undefined) this.withdrawn.add(kid)
    for (const { kid } of set.keys) if (kid !== undefined) this.withdrawn.delete(kid)
    for (const kid of this.withdrawn) if (this.withdrawn.size > withdrawnKeysMax) this.withdrawn.delete(kid)
    this.current = set
    const { keys } = set
    this.given.logger.info(
      `access: ${keys.length === 1 ? '1 key' : `${keys.length} keys`} of the issuer ${this.owner.issuer}${source}`,
    )
    this.given.onChange()
  }

  private async keep(set: KeySet): Promise<void> {
    try {
      await this.store.write(this.owner, { set, fetchedMs: this.given.clock.wallMs() })
    } catch (error) {
      this.complaints.about(`cannot be kept on disk: ${(error as Error).message}`)
    }
  }

  private async download(): Promise<string> {
    const abort = new AbortController()
    this.abort = abort
    const cancel = this.given.clock.after(keysTimeoutMs, () => abort.abort())
    // A port that ignores the signal must not hold tokens back.
    const aborted = new Promise<never>((_, reject) => {
      const onAbort = (): void => reject(new Error(`no answer within ${keysTimeoutMs} ms`))
      abort.signal.addEventListener('abort', onAbort, { once: true })
    })
    try {
      return await Promise.race([this.read(abort.signal), aborted])
    } finally {
      cancel()
      this.abort = undefined
    }
  }

  private async read(signal: AbortSignal): Promise<string> {
    const { status, body } = await this.fetch(this.owner.url, signal)
    const parts: Uint8Array[] = []
    let bytes = 0
    for await (const part of body) {
      if (status !== 200) break
      bytes += part.length
      if (bytes > jwksBytesMax) throw new Error(`the answer has more than ${jwksBytesMax} bytes`)
      parts.push(part)
    }
    if (status !== 200) throw new Error(`the answer has the status ${status}`)
    return Buffer.concat(parts).toString()
  }
}

/** Time between two looks at a file. */
const lookMs = 1_000

/** Keys from a file. It is read again when it has changed. */
export class FileKeys implements KeyRing {
  current: KeySet | undefined
  readonly ready: Promise<void>
  private readonly complaints: Complaints
  private state = ''
  private looking: Promise<void> | undefined
  private lookedMs: number
  private cancel = (): void => {}
  private isStopped = false

  constructor(
    private readonly issuer: string,
    private readonly path: string,
    private readonly given: RingGiven,
  ) {
    this.complaints = new Complaints(given, issuer)
    this.lookedMs = given.clock.monoMs()
    this.ready = this.lookOnce()
  }

  again(): Promise<void> | undefined {
    if (this.isStopped) return undefined
    if (this.looking) return this.looking
    return this.given.clock.monoMs() - this.lookedMs < lookMs ? undefined : this.lookOnce()
  }

  isWithdrawn(): boolean {
    return false
  }

  stop(): void {
    this.isStopped = true
    this.cancel()
  }

  private lookOnce(): Promise<void> {
    this.looking ??= this.look()
    return this.looking
  }

  /** Never fails. */
  private async look(): Promise<void> {
    this.cancel()
    this.lookedMs = this.given.clock.monoMs()
    try {
      const { dev, ino, size, mtimeMs, ctimeMs } = await stat(this.path)
      const state = `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`
      if (state !== this.state) {
        if (size > jwksBytesMax) throw new Error(`the keys have more than ${jwksBytesMax} bytes`)
        const set = readKeySet(await readFile(this.path, 'utf8'), this.current)
        this.state = state
        this.take(set)
      }
      this.complaints.end()
    } catch (error) {
      // The next look reads it again.
      this.state = ''
      if (!this.isStopped) this.complaints.about(`cannot be read from ${this.path}: ${(error as Error).message}`)
    } finally {
      this.looking = undefined
      if (!this.isStopped)
        this.cancel = this.given.clock.after(lookMs, () => {
          this.lookOnce()
        })
    }
  }

  private take(set: KeySet): void {
    if (this.isStopped || this.current?.isSame(set)) return
    this.current = set
    const { length } = set.keys
    this.given.logger.info(
      `access: ${length === 1 ? '1 key' : `${length} keys`} of the issuer ${this.issuer} from ${this.path}`,
    )
    this.given.onChange()
  }
}
