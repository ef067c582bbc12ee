// `orrery config check`: what the options come to, and whether a start would accept them, without starting.
//
// Exit status: 0 when a start would accept them, 1 with a line for each reason why it would not.

import { readConfig } from '../config/config.js'

/** Runs the command; gives the exit status. */
export async function runConfigCheck(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const reading = readConfig(words, env)
  if (reading.kind === 'print') return say('stdout', reading.text, 0)
  if (reading.kind === 'refuse') return say('stderr', reading.lines.join('\n'), 1)
  return say('stdout', [...reading.warnings, ...reading.settings].join('\n'), 0)
}

function say(stream: 'stdout' | 'stderr', text: string, status: number): number {
  process[stream].write(`${text}\n`)
  return status
}
