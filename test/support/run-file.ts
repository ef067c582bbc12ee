// Runs one test file in this process, as `node FILE` does, and reports its processor time when it ends.
//
// The number of seconds goes to file descriptor 3, which the runner of `npm test` reads. A process that is killed
// reports nothing.
//
// tap follows each promise and socket, to know the test of an error that nobody caught. That doubles the processor time
// of files with many promises, so here it does not follow them: such an error ends the file, which is a failure, too.

import asyncHooks from 'node:async_hooks'
import { writeSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { pathToFileURL } from 'node:url'
import { processorSeconds } from './processor-time.js'

const { createHook } = asyncHooks
asyncHooks.createHook = callbacks => {
  const hook = createHook(callbacks)
  // Nothing else here asks for the end of each promise.
  if (callbacks.destroy) hook.enable = () => hook
  return hook
}
syncBuiltinESMExports()

process.once('exit', () => writeSync(3, String(processorSeconds())))
process.argv.splice(1, 1)
await import(pathToFileURL(process.argv[1]!).href)
