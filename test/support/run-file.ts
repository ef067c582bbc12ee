// Runs one test file in this process, as `node FILE` does, and reports its processor time when it ends.
//
// The number of seconds goes to file descriptor 3, which the runner of `npm test` reads. A process that is killed
// reports nothing.

import { writeSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { processorSeconds } from './processor-time.js'

process.once('exit', () => writeSync(3, String(processorSeconds())))
process.argv.splice(1, 1)
await import(pathToFileURL(process.argv[1]!).href)
