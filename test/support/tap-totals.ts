// Counts the results of a test file from its TAP.
//
// The unit is a leaf: an assertion, not the test that contains it. A test that failed although all its leaves passed (a
// timeout, a plan not kept) counts as one failure, so that no error is lost from the total.

import { type EventEmitter, once } from 'node:events'
import type { Readable } from 'node:stream'
import { inspect } from 'node:util'
import { Parser, type Result } from 'tap-parser'

export interface Totals {
  passed: number
  failed: number
  skipped: number
}

/** The results of a file. */
export interface FileTotals extends Totals {
  /** Tests and assertions at its top; 0: it ran none. */
  readonly tests: number
}

/** The closing line, which has nothing else on it. */
export function closingLine(totals: Totals): string {
  const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''
  return `${totals.passed} passed, ${totals.failed} failed${skipped}`
}

/** Reads the output of `file` to its end, and prints every skip and failure on the way. */
export async function count(tap: Readable, file: string, print: (text: string) => void): Promise<FileTotals> {
  const totals: Totals = { passed: 0, failed: 0, skipped: 0 }
  const parser = new Parser()
  watch(parser, [file], totals, print)
  tap.pipe(parser as unknown as NodeJS.WritableStream)
  await once(parser as unknown as EventEmitter, 'complete')
  return { ...totals, tests: parser.count }
}

function watch(parser: Parser, above: readonly string[], totals: Totals, print: (text: string) => void): void {
  let before = { ...totals }
  parser.on('child', (child: Parser) => {
    before = { ...totals }
    watch(child, [...above, child.name], totals, print)
  })
  parser.on('assert', (result: Result) => {
    const path = [...above, result.name].join(' > ')
    const closes = 'closingTestPoint' in result && result.closingTestPoint === true
    if (result.skip || result.todo) {
      totals.skipped++
      print(`skipped: ${path}: ${inspect(result.skip || result.todo)}`)
    } else if (!result.ok && (!closes || totals.failed === before.failed)) {
      totals.failed++
      print(`FAILED: ${path}\n${details(result.diag)}`)
    } else if (result.ok && !closes) totals.passed++
  })
}

function details(diagnosis: unknown): string {
  if (typeof diagnosis !== 'object' || diagnosis === null) return ''
  const shown = Object.entries(diagnosis).map(([name, value]) =>
    typeof value === 'string' && value.includes('\n')
      ? `${name}:\n${value}`
      : `${name}: ${inspect(value, { depth: 6, breakLength: 120 })}`,
  )
  return shown.join('\n').replace(/^/gm, '    ')
}
