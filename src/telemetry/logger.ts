// The log as operators read it: one line per event, fields separated by ` | ` (operations.md §6.1).
//
// The line is ours and not JSON, which pino cannot write without making JSON first: so pino provides the destination
// (log-output.ts), and the levels and the text are here. What comes from a client cannot break a line or forge a field:
// control characters are escaped everywhere, and the bar in every field but the message, which is the last.
//
// Not here: what to log when (the callers), and the alarms of §6.4.

import type { LogContext, Logger, LogLevel, LogSettings } from '../ports.js'
import { openLogOutput } from './log-output.js'

export interface LoggerOptions {
  /** Looked at for each line: whoever changes them changes the log. */
  readonly settings: LogSettings
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

/** Opens the log. Lines on standard output are written asynchronously, a fatal one at once. */
export function openLogger({ settings, write, wallMs = Date.now }: LoggerOptions): AreaLogger {
  const output = write ? { write, flush: () => {} } : openLogOutput()
  return new PipeLogger({ settings, output, wallMs }, 'main')
}

const severity = { NONE: 0, FATAL: 1, ERROR: 2, WARN: 3, INFO: 4, DEBUG: 5 } as const satisfies Record<LogLevel, number>

/** What the loggers of all areas have in common. */
interface Shared {
  readonly settings: LogSettings
  readonly output: { write(line: string): void; flush(): void }
  readonly wallMs: () => number
}

class PipeLogger implements AreaLogger {
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
    return new PipeLogger(this.shared, field(name, 'main'))
  }

  fatal(message: string, context?: LogContext): void {
    this.#log('FATAL', message, context)
    this.shared.output.flush()
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

  #log(level: LogLevel, message: string, context: LogContext | undefined): void {
    const { output, wallMs, settings } = this.shared
    if (severity[level] > severity[settings.level]) return
    const line = renderLine(wallMs(), level, this.op, message, context)
    output.write(isTooLong(line, settings.lineBytesMax) ? 'LINE TOO LONG' : line)
  }
}

function renderLine(ms: number, level: LogLevel, op: string, message: string, context: LogContext | undefined): string {
  const time = new Date(ms).toISOString()
  const origin = context
    ? `corr=${field(context.correlator, 'N/A')} | trans=N/A | from=${field(context.from, 'N/A')}` +
      ` | srv=${field(context.tenant, '<none>')} | subsrv=${field(context.path, '<none>')}`
    : 'corr=N/A | trans=N/A | from=N/A | srv=N/A | subsrv=N/A'
  return `time=${time} | lvl=${level} | ${origin} | comp=Orrery | op=${op} | msg=${printable(message)}`
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
