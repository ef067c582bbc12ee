// The log: which lines are written, their form, and their outputs. Standard output always, and the file of `-logDir` if
// there is one.
//
// A line is made once for each form in use: fields separated by ` | ` as operators of the reference know them, JSON, or
// short and for human eyes (docs/interface/administration.md#log-lines). No client can break a line or forge a field:
// control characters are escaped everywhere, and so is the bar between fields. A line that is too long is replaced by a
// short one that states this.
//
// A transaction gets its number with the first line that it writes.
//
// Not here: what to log when (the callers), how lines are written (log-output.ts), alarms (alarms.ts).

import type { LogLevel, LogSettings } from '../messages/admin.js'
import type { LogContext, Logger } from '../ports.js'
import { type LogOutput, type LostLine, openLogFile, openLogOutput } from './log-output.js'

type LogFormat = 'pipe' | 'json' | 'short'

interface LogEvent {
  readonly ms: number
  readonly level: LogLevel | 'SUMMARY'
  readonly op: string
  readonly message: string
  /** undefined: it belongs to no transaction. */
  readonly context: LogContext | undefined
  /** The number of the context's transaction; '' without a context. */
  readonly transaction: string
}

export interface LoggerOptions {
  /** Read for each line, so a change has effect at once. */
  readonly settings: LogSettings
  /** `pipe` by default. */
  readonly format?: 'pipe' | 'json' | undefined
  /** Standard output gets short lines (`-logForHumans`). */
  readonly forHumans?: boolean
  /** A file that also gets every line. */
  readonly file?: LogOutput | undefined
  /** Receives lines, without their newline; by default they go to standard output. */
  readonly write?: (line: string) => void
  readonly wallMs?: () => number
}

/** A logger whose lines name a part of the program in their field `op`. */
export interface AreaLogger extends Logger {
  /** A logger for a part of the program. Levels are common to all areas: setting one sets all. */
  area(name: string): AreaLogger
  /** Opens the log file anew, if there is one; when that fails, it logs the reason and keeps the old file. */
  reopen(): void
}

/** The outputs of lines, and their form. */
export interface LogDestination {
  readonly format: 'pipe' | 'json'
  /** Standard output gets short lines (`-logForHumans`). */
  readonly forHumans: boolean
  /** undefined: standard output alone. */
  readonly file: { readonly directory: string; readonly append: boolean } | undefined
}

/**
 * Opens the log. `isFirst`: no other process or thread of this program has opened it, so the file of an earlier start
 * is put away. Throws an error with a sentence for the operator when the file cannot be opened.
 */
export function openLog(
  { file, format, forHumans }: LogDestination,
  settings: LogSettings,
  isFirst: boolean,
): AreaLogger {
  const lostLine = lostLines[format]
  const opened = file && openLogFile(file.directory, { append: file.append || !isFirst, isFirst, lostLine })
  return openLogger({ settings, format, forHumans, file: opened })
}

/** The line in place of lost lines; undefined: the default. */
const lostLines: Readonly<Record<'pipe' | 'json', LostLine | undefined>> = {
  pipe: undefined,
  json: count => renderJsonLine('WARN', `${count} LINES LOST`, Date.now()),
}

/** Opens a log with these outputs. Lines are written asynchronously, a fatal one at once. */
export function openLogger(options: LoggerOptions): AreaLogger {
  const { settings, format = 'pipe', forHumans = false, file, write, wallMs = Date.now } = options
  const output = write
    ? { write, flush: () => {}, reopen: () => {} }
    : openLogOutput(undefined, lostLines[forHumans ? 'pipe' : format])
  const sinks: Sink[] = [{ output, format: forHumans ? 'short' : format }]
  if (file) sinks.push({ output: file, format })
  return new SharedLogger({ settings, sinks, wallMs, transactions: new Transactions(wallMs()) }, 'main')
}

const severity = { NONE: 0, FATAL: 1, ERROR: 2, WARN: 3, INFO: 4, DEBUG: 5 } as const satisfies Record<LogLevel, number>

interface Sink {
  readonly output: LogOutput
  readonly format: LogFormat
}

interface Shared {
  readonly settings: LogSettings
  readonly sinks: readonly Sink[]
  readonly wallMs: () => number
  readonly transactions: Transactions
}

/** Numbers of transactions: `<start s>-<start ms>-<counter>` (docs/interface/administration.md#log-lines). */
class Transactions {
  private readonly start: string
  private count = 0
  private readonly known = new WeakMap<LogContext, string>()

  constructor(startMs: number) {
    this.start = `${Math.floor(startMs / 1000)}-${String(Math.floor(startMs) % 1000).padStart(3, '0')}`
  }

  /** The number of a context: all lines of one transaction have the same. */
  of(context: LogContext): string {
    let number = this.known.get(context)
    if (number === undefined) {
      this.count = (this.count + 1) % 2 ** 31
      number = `${this.start}-${String(this.count).padStart(11, '0')}`
      this.known.set(context, number)
    }
    return number
  }
}

class SharedLogger implements AreaLogger {
  constructor(
    private readonly shared: Shared,
    private readonly op: string,
  ) {}

  get level(): LogLevel {
    return this.shared.settings.level
  }

  set level(level: LogLevel) {
    this.shared.settings.level = level
  }

  area(name: string): AreaLogger {
    return new SharedLogger(this.shared, field(name, 'main'))
  }

  reopen(): void {
    try {
      for (const { output } of this.shared.sinks) output.reopen()
    } catch (error) {
      this.error(`Runtime Error (the log file cannot be opened again: ${(error as Error).message})`)
    }
  }

  fatal(message: string, context?: LogContext): void {
    this.#log('FATAL', message, context)
    for (const { output } of this.shared.sinks) output.flush()
  }

  error(message: string, context?: LogContext): void {
    this.#log('ERROR', message, context)
  }

  warn(message: string, context?: LogContext): void {
    this.#log('WARN', message, context)
  }

  info(message: string, context?: LogContext): void {
    this.#log('INFO', message, context)
  }

  debug(message: string, context?: LogContext): void {
    this.#log('DEBUG', message, context)
  }

  summary(message: string): void {
    this.#write('SUMMARY', message, undefined)
  }

  #log(level: LogLevel, message: string, context: LogContext | undefined): void {
    if (severity[level] <= severity[this.shared.settings.level]) this.#write(level, message, context)
  }

  #write(level: LogEvent['level'], message: string, context: LogContext | undefined): void {
    const { sinks, wallMs, settings, transactions } = this.shared
    const transaction = context ? transactions.of(context) : ''
    const event: LogEvent = { ms: wallMs(), level, op: this.op, message, context, transaction }
    for (const { output, format } of sinks) output.write(renderLine(event, format, settings.lineBytesMax))
  }
}

/** The line, without its newline, of at most `bytesMax` bytes. */
function renderLine(event: LogEvent, format: LogFormat, bytesMax: number): string {
  const line = forms[format](event)
  if (!isTooLong(line, bytesMax)) return line
  return format === 'json' ? forms.json({ ...event, message: tooLong, context: undefined }) : tooLong
}

const tooLong = 'LINE TOO LONG'

const forms = { pipe, json, short } as const satisfies Record<LogFormat, (event: LogEvent) => string>

function pipe({ ms, level, op, message, context, transaction }: LogEvent): string {
  const origin = context
    ? `corr=${field(context.correlator, 'N/A')} | trans=${transaction} | from=${field(context.from, 'N/A')}` +
      ` | srv=${field(context.tenant, '<none>')} | subsrv=${field(context.path, '<none>')}`
    : 'corr=N/A | trans=N/A | from=N/A | srv=N/A | subsrv=N/A'
  const time = new Date(ms).toISOString()
  return `time=${time} | lvl=${level} | ${origin} | comp=Orrery | op=${op} | msg=${field(message, '')}`
}

/** The same names; absent fields are left out. */
function json({ ms, level, op, message, context, transaction }: LogEvent): string {
  const { correlator, from, tenant, path } = context ?? {}
  return JSON.stringify({
    time: new Date(ms).toISOString(),
    lvl: level,
    ...(correlator && { corr: correlator }),
    ...(transaction && { trans: transaction }),
    ...(from && { from }),
    ...(tenant && { srv: tenant }),
    ...(path && { subsrv: path }),
    comp: 'Orrery',
    op,
    msg: message,
  })
}

/** A line of JSON that belongs to no transaction, in the form of the log. */
export const renderJsonLine = (level: LogLevel, message: string, ms: number): string =>
  json({ ms, level, op: 'main', message, context: undefined, transaction: '' })

/** `TYPE@DATE  FILE[LINE]: TEXT`, with a part of the program for the file. */
function short({ ms, level, op, message }: LogEvent): string {
  return `${level}@${new Date(ms).toISOString()}  ${op}: ${printable(message)}`
}

const field = (value: string | undefined, otherwise: string): string =>
  value ? printable(value).replaceAll('|', '\\u007c') : otherwise

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

const escapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function printable(value: string): string {
  if (!unprintable.test(value)) return value
  return value.replace(
    new RegExp(unprintable, 'g'),
    found => escapes[found] ?? `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** A character of a string is at most three bytes, so most lines need no count. */
const isTooLong = (line: string, bytesMax: number): boolean =>
  line.length * 3 > bytesMax && Buffer.byteLength(line) > bytesMax
