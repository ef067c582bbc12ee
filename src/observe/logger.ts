// The log: which lines are written, and where to. Standard output always, and a file if there is one.
//
// A line is made once for each form that is wanted (log-line.ts). pino provides the destination (log-output.ts).
//
// A transaction has its number from the first line that it writes: those that write none are not numbered.
//
// Not here: what to log when (the callers), and alarms (alarms.ts).

import type { LogLevel, LogSettings } from '../messages/admin.js'
import type { LogContext, Logger } from '../ports.js'
import { field, type LogEvent, type LogFormat, renderLine } from './log-line.js'
import { type LogOutput, openLogOutput } from './log-output.js'

export interface LoggerOptions {
  /** Looked at for each line: whoever changes them changes the log. */
  readonly settings: LogSettings
  /** `pipe` by default. */
  readonly format?: 'pipe' | 'json' | undefined
  /** Standard output gets short lines (`-logForHumans`). */
  readonly forHumans?: boolean
  /** A file that gets every line as well. */
  readonly file?: LogOutput | undefined
  /** Takes lines, without their newline; by default they go to standard output. */
  readonly write?: (line: string) => void
  /** Milliseconds since 1970. */
  readonly wallMs?: () => number
}

/** A logger whose lines name a part of the program in their field `op`. */
export interface AreaLogger extends Logger {
  /** A logger for a part of the program. Levels are common to all areas: setting one sets all. */
  area(name: string): AreaLogger
}

/** Opens the log. Lines are written asynchronously, a fatal one at once. */
export function openLogger(options: LoggerOptions): AreaLogger {
  const { settings, format = 'pipe', forHumans = false, file, write, wallMs = Date.now } = options
  const output = write ? { write, flush: () => {} } : openLogOutput()
  const sinks: Sink[] = [{ output, format: forHumans ? 'short' : format }]
  if (file) sinks.push({ output: file, format })
  return new SharedLogger({ settings, sinks, wallMs, transactions: new Transactions(wallMs()) }, 'main')
}

const severity = { NONE: 0, FATAL: 1, ERROR: 2, WARN: 3, INFO: 4, DEBUG: 5 } as const satisfies Record<LogLevel, number>

interface Sink {
  readonly output: LogOutput
  readonly format: LogFormat
}

/** What the loggers of all areas have in common. */
interface Shared {
  readonly settings: LogSettings
  readonly sinks: readonly Sink[]
  readonly wallMs: () => number
  readonly transactions: Transactions
}

/** Numbers of transactions: `<start s>-<start ms>-<counter>` (operations.md §6.1). */
class Transactions {
  private readonly start: string
  private count = 0
  private readonly known = new WeakMap<LogContext, string>()

  constructor(startMs: number) {
    this.start = `${Math.floor(startMs / 1000)}-${String(Math.floor(startMs) % 1000).padStart(3, '0')}`
  }

  /** That of a context: the lines of one transaction have one. */
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
