// One event of the log as a line: fields separated by ` | ` as operators of the reference know them, JSON, or short and for human eyes
// (operations.md §6.1).
//
// What comes from a client cannot break a line or forge a field: control characters are escaped everywhere, and so is the bar between fields. A line that is too long becomes a short one that says so.
//
// Not here: which lines are written, and where (logger.ts).

import type { LogLevel } from '../messages/admin.js'
import type { LogContext } from '../ports.js'

export type LogFormat = 'pipe' | 'json' | 'short'

export interface LogEvent {
  readonly ms: number
  readonly level: LogLevel | 'SUMMARY'
  /** The part of the program. */
  readonly op: string
  readonly message: string
  /** undefined: it belongs to no transaction. */
  readonly context: LogContext | undefined
  /** Of the context; '' without one. */
  readonly transaction: string
}

/** The line, without its newline; `bytesMax` is what it may have. */
export function renderLine(event: LogEvent, format: LogFormat, bytesMax: number): string {
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

/** The same names; what there is not is left out. */
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

/** `TYPE@DATE  FILE[LINE]: TEXT`, with a part of the program for the file. */
function short({ ms, level, op, message }: LogEvent): string {
  return `${level}@${new Date(ms).toISOString()}  ${op}: ${printable(message)}`
}

export const field = (value: string | undefined, otherwise: string): string =>
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
