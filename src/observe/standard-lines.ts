// Lines that the program prints beside its log: the ready line on standard output, refusals and last lines on standard
// error. With `-logFormat json` they are JSON like the lines of the log, so that a collector parses both streams alike.
//
// `-logForHumans` concerns standard output alone, as for the log. The texts that Node prints when it runs out of memory
// or when native code crashes cannot be changed (docs/operations/starting.md).

import { renderJsonLine } from './logger.js'

type Level = 'INFO' | 'WARN' | 'FATAL'

export interface LineFormat {
  readonly format: 'pipe' | 'json'
  readonly forHumans: boolean
}

/**
 * From now on a closed terminal, a pipe without a reader or a full disk does not end the process: lines for it are
 * lost.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}

/** A line on standard output. */
export function logReady({ format, forHumans }: LineFormat, text: string): void {
  process.stdout.write(`${format === 'json' && !forHumans ? jsonOf('INFO', text) : text}\n`)
}

/** The reason why the program does not start, or ends, on standard error. */
export function logFailure({ format }: Pick<LineFormat, 'format'>, text: string): void {
  process.stderr.write(`${format === 'json' ? jsonOf('FATAL', text) : `orrery: ${text}`}\n`)
}

/** The text of a bug, which ends the program, on standard error. */
export function logBug({ format }: Pick<LineFormat, 'format'>, error: Error): void {
  const text = error.stack ?? error.message
  process.stderr.write(`${format === 'json' ? jsonOf('FATAL', `Runtime Error (${text})`) : text}\n`)
}

/** From now on the warnings and bugs that Node prints in this process are JSON too, if the log is. */
export function logNodeLines(settings: Pick<LineFormat, 'format'>): void {
  logNodeWarnings(settings)
  if (settings.format !== 'json') return
  process.on('uncaughtException', error => {
    logBug(settings, error)
    process.exit(1)
  })
}

/** The same for warnings in a thread, whose bugs the main thread prints. */
export function logNodeWarnings({ format }: Pick<LineFormat, 'format'>): void {
  if (format !== 'json') return
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message }) => process.stderr.write(`${jsonOf('WARN', `${name}: ${message}`)}\n`))
}

const jsonOf = (level: Level, text: string): string => renderJsonLine(level, text, Date.now())
