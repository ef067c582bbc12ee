#!/usr/bin/env node
// The program as it is started; what it does stands in program.ts.
//
// The import of program.ts is dynamic, so that a Node.js that is too old reports that instead of a failure to link.

import { isTooOld, oldestNode } from './process/node-version.js'

if (isTooOld(process.versions.node)) {
  const { major, minor } = oldestNode
  process.stderr.write(`orrery: needs Node.js ${major}.${minor} or newer; this is ${process.versions.node}\n`)
  process.exitCode = 1
} else {
  const { runProgram } = await import('./process/program.js')
  await runProgram()
}
