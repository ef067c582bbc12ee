// Watches the files of certificates, and passes their content to its users when it has changed.
//
// Once a second the watch asks the system for the state of each file, by its name. A symbolic link that now leads to
// another file is a change as well, as Kubernetes and certbot make it. The watch reads files only when their state has
// changed, or on SIGHUP, and compares the content with the one in use. Files that cannot be read, or do not fit
// together, are no failure: the old certificates stay in use, and the watch tries again with every look. A key and its
// certificate are written one after the other, so one WARN gives the reason only when the next look finds it again.
//
// It also warns of certificates that end soon, since a missed renewal is noticed nowhere else.
//
// Not here: the list of files, and their users (compose/certificates.ts).

import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { OptionName } from '../config/options.js'
import { endOf } from '../http/pem.js'
import type { CertificateNumbers } from '../messages/admin.js'
import type { Clock, Logger } from '../ports.js'

/**
 * Time between two looks at the files. A longer time serves a new certificate later; a look costs a system call for
 * each file.
 */
const lookMs = 1_000
/** A longer file is no certificate and no list of authorities; that of a Linux system has 0.2 MB. */
const fileBytesMax = 4 * 1024 * 1024
const dayMs = 24 * 60 * 60 * 1000
/** The log begins to warn of the end of a certificate this long before it, and repeats the warning once a day. */
const warnAheadMs = 14 * dayMs
const warnEveryMs = dayMs

/** Files that are used together. */
export interface CertificateFiles {
  readonly use: CertificateNumbers['use']
  /** Paths, by the options that name them. */
  readonly files: Readonly<Partial<Record<OptionName, string>>>
  /** The option of the certificate that is presented to others; undefined: there are authorities only. */
  readonly shown: OptionName | undefined
}

/** The contents of the files. */
export type CertificateContents = Readonly<Partial<Record<OptionName, Buffer>>>

/**
 * Uses these contents from now on. When that is impossible, it throws an error with a sentence, and the old ones stay
 * in use.
 */
export type TakeCertificates = (contents: CertificateContents) => void

export interface WatchGiven {
  readonly clock: Pick<Clock, 'wallMs' | 'monoMs' | 'after'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
}

export class CertificateWatch {
  /** Resolves when the latest of the regular looks has ended. */
  looked: Promise<void> = Promise.resolve()
  private readonly watched: readonly WatchedFiles[]
  private cancel = (): void => {}
  private isStopped = false
  private isLooking = false
  /** A look at everything is requested, as soon as the one in progress has ended. */
  private isAsked = false

  /** Reads the files now. Code that reads them later gets the same content, or a newer one. */
  constructor(
    files: readonly CertificateFiles[],
    private readonly given: WatchGiven,
  ) {
    this.watched = files.map(one => new WatchedFiles(one, given))
  }

  /** Calls `take` whenever the files of that use have changed; without it they are not looked at. */
  on(use: CertificateFiles['use'], take: TakeCertificates): void {
    for (const one of this.watched) if (one.use === use) one.take = take
  }

  /** Starts the regular looks. */
  begin(): void {
    if (this.watched.length === 0 || this.isStopped) return
    this.lookLater()
  }

  stop(): void {
    this.isStopped = true
    this.cancel()
  }

  /** Looks now, and reads files even if their state seems unchanged. Never fails. */
  look(): Promise<void> {
    this.isAsked = true
    return this.lookOnce()
  }

  numbers(): readonly CertificateNumbers[] {
    return this.watched.map(one => one.numbers())
  }

  private lookLater(): void {
    this.cancel = this.given.clock.after(lookMs, () => {
      this.looked = this.lookOnce().then(() => {
        if (!this.isStopped) this.lookLater()
      })
    })
  }

  /** Never fails, and never runs twice at a time: a file system may answer late. */
  private async lookOnce(): Promise<void> {
    if (this.isLooking) return
    this.isLooking = true
    do {
      const { isAsked } = this
      this.isAsked = false
      for (const one of this.watched) if (!this.isStopped) await one.look(isAsked, () => this.isStopped)
    } while (this.isAsked)
    this.isLooking = false
  }
}

/** The files of one use. */
class WatchedFiles {
  readonly use: CertificateFiles['use']
  take: TakeCertificates | undefined
  private readonly files: readonly (readonly [OptionName, string])[]
  /** Hash of the contents in use. */
  private hash: string
  /** State of the files at their last reading. */
  private states = ''
  /** The reason why the present content is not used; '': it is used. */
  private refusal = ''
  /** The reason that was logged last. */
  private reported = ''
  private endMs: number | undefined
  private warnedMs = Number.NEGATIVE_INFINITY
  private renewed = 0
  private refused = 0

  constructor(
    private readonly watched: CertificateFiles,
    private readonly given: WatchGiven,
  ) {
    this.use = watched.use
    this.files = Object.entries(watched.files) as [OptionName, string][]
    // A file that cannot be read prevents the start anyway.
    const contents = tried(() => contentsOf(this.files.map(([option, path]) => [option, readFileSync(path)])))
    this.hash = contents ? hashOf(contents) : ''
    const shown = contents && tried(() => this.shownIn(contents))
    this.endMs = shown && endOf(shown)
    // The checks before the start have warned of it already.
    if (this.endMs !== undefined && this.endMs <= given.clock.wallMs()) this.warnedMs = given.clock.monoMs()
  }

  async look(isAsked: boolean, isStopped: () => boolean): Promise<void> {
    this.warnOfEnd()
    if (!this.take) return
    const states = (await Promise.all(this.files.map(([, path]) => stateOf(path)))).join()
    if (states === this.states && this.refusal === '' && !isAsked) return
    try {
      const contents = contentsOf(await Promise.all(this.files.map(([option, path]) => read(option, path))))
      if (isStopped()) return
      this.states = states
      const hash = hashOf(contents)
      if (hash !== this.hash) {
        this.take(contents)
        this.hash = hash
        this.onRenewed(contents)
      }
      this.refusal = ''
      this.reported = ''
    } catch (error) {
      this.onRefused((error as Error).message, isAsked)
    }
  }

  private warnOfEnd(): void {
    const { clock, logger } = this.given
    const { endMs } = this
    if (endMs === undefined || endMs - clock.wallMs() > warnAheadMs) return
    if (clock.monoMs() - this.warnedMs < warnEveryMs) return
    this.warnedMs = clock.monoMs()
    const leftMs = endMs - clock.wallMs()
    const when = `on ${new Date(endMs).toISOString()}`
    const days = Math.floor(leftMs / dayMs)
    const what = `-${this.watched.shown}: the certificate in ${this.pathOfShown}`
    if (leftMs <= 0) logger.warn(`${what} has ended ${when}`)
    else logger.warn(`${what} ends ${when}, in ${days === 1 ? '1 day' : `${days} days`}`)
  }

  numbers(): CertificateNumbers {
    const { use, endMs, renewed, refused } = this
    return { use, endMs, renewed, refused }
  }

  private onRenewed(contents: CertificateContents): void {
    this.renewed++
    const shown = this.shownIn(contents)
    const { logger } = this.given
    if (!shown) return logger.info(`${this.names} read again: new connections trust these authorities`)
    this.endMs = endOf(shown)
    this.warnedMs = Number.NEGATIVE_INFINITY
    const ends = new Date(this.endMs).toISOString()
    logger.info(
      `${this.names} read again: new connections get subject ${nameOf(shown)}, notAfter ${ends}, SHA-256 ${shown.fingerprint256}`,
    )
    this.warnOfEnd()
  }

  private onRefused(reason: string, isAsked: boolean): void {
    const isSeenAgain = reason === this.refusal
    this.refusal = reason
    if (reason === this.reported || !(isSeenAgain || isAsked)) return
    this.reported = reason
    this.refused++
    this.given.logger.warn(`${this.names}: the new content is not used, the old goes on for new connections: ${reason}`)
  }

  private shownIn(contents: CertificateContents): X509Certificate | undefined {
    const pem = this.watched.shown && contents[this.watched.shown]
    return pem && new X509Certificate(pem)
  }

  private get pathOfShown(): string | undefined {
    return this.watched.shown && this.watched.files[this.watched.shown]
  }

  /** The options, as a log line names them. */
  private get names(): string {
    return this.files.map(([option]) => `-${option}`).join(', ')
  }
}

/** The subject in one line. */
const nameOf = ({ subject }: X509Certificate): string => (subject ?? '').trim().replaceAll('\n', ', ')

/** A text that changes when the name leads to another file, and when the file was written to. */
async function stateOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = await stat(path)
    return `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}

/** Throws an error with a sentence that names the option. */
async function read(option: OptionName, path: string): Promise<readonly [OptionName, Buffer]> {
  try {
    const found = await stat(path)
    if (!found.isFile()) throw new Error(`${path} is no file`)
    if (found.size > fileBytesMax) throw new Error(`${path} has more than ${fileBytesMax} bytes`)
    return [option, await readFile(path)]
  } catch (error) {
    throw new Error(`-${option}: ${(error as Error).message}`, { cause: error })
  }
}

const contentsOf = (read: readonly (readonly [OptionName, Buffer])[]): CertificateContents => Object.fromEntries(read)

/** The lengths ensure that no part of one file is taken for a part of the next. */
function hashOf(contents: CertificateContents): string {
  const hash = createHash('sha256')
  for (const bytes of Object.values(contents)) hash.update(`${bytes.length} `).update(bytes)
  return hash.digest('hex')
}

function tried<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}
