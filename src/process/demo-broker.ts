// The broker of `orrery demo`: a single node in a thread of this process, as the program itself runs it.
//
// It has only the options that the command gives it: the environment of the user is for a broker of the user.

import { readConfig } from '../config/config.js'
import type { OwnBroker } from '../demo/command.js'
import { outliveReaders } from '../observe/standard-lines.js'
import { tuneCollector } from './collector.js'
import { startInThread } from './own-thread.js'
import { preflight } from './preflight.js'

/** Starts it; rejects with sentences for the user. */
export async function startDemoBroker(words: readonly string[], onFailure: (error: Error) => void): Promise<OwnBroker> {
  const reading = readConfig(words, {})
  if (reading.kind === 'refuse') throw new Error(reading.lines.join('\n'))
  if (reading.kind === 'print') throw new Error(reading.text)
  outliveReaders()
  const { config } = reading
  const { faults, checkedAccess } = await preflight(config)
  if (faults.length > 0) throw new Error(faults.join('\n'))
  const broker = await startInThread({ config, checkedAccess }, onFailure, undefined)
  tuneCollector(config.workers)
  return broker
}
